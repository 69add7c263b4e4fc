"""Rules of `check` about a run beside its past runs: hints, memory requests, speeds of nodes."""

from collections.abc import Iterator
from dataclasses import replace

from kfp_placement.check.findings import Finding, Rule, Severity
from kfp_placement.check.tasks import container_tasks
from kfp_placement.prepared_run import PreparedRun
from kfp_placement_engine.contract.history.pipeline_history import step_identity
from kfp_placement_engine.contract.keys import SPEED_LABEL
from kfp_placement_engine.history.node_speeds import undeclared_speeds
from kfp_placement_engine.model.run_graph import DurationSource
from kfp_placement_engine.planning.author_languages import language_of
from kfp_placement_engine.planning.past_runs.learned_times import outweighs_hints
from kfp_placement_engine.planning.past_runs.memory_advice import MemoryProblem, step_advice
from kfp_placement_engine.planning.plan_rows import sized_input
from kfp_placement_engine.units.durations import format_duration
from kfp_placement_engine.views.forecast_texts import factor_text, range_text

_MAX_FACTOR = 2.0
"""Factor by which a hint may be too long or too short."""


def hints_off(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield hints that are off by more than 2 times, where enough runs of the step are known."""
    # The run as read: past runs have not changed its run times.
    run, past = prepared.as_read, prepared.known_past.past
    if past is None:
        return
    for step in container_tasks(run):
        hint = step.duration_seconds
        if step.duration_source is not DurationSource.HINT or hint is None:
            continue
        # A hint is one for all iterations of a loop.
        iteration = None if step.iteration_key else ""
        identity = replace(step_identity(run.name, step), iteration=iteration)
        forecast = past.steps.predict(identity, step.input_bytes, step.arguments)
        if forecast is None or not outweighs_hints(forecast.basis):
            continue
        basis, typical = forecast.basis, forecast.times.typical_seconds
        if not typical / _MAX_FACTOR <= hint <= typical * _MAX_FACTOR:
            factor = factor_text(basis, sized_input(step, basis))
            message = (
                f"the hint says {format_duration(hint)}, {basis.runs} runs"
                f"{f', {factor},' if factor else ''} tell {range_text(forecast.times)}"
            )
            if not factor:
                # If run times follow a factor, no single duration is right.
                message += f": write {language_of(run).duration(typical)}"
            yield Finding(Severity.WARNING, "hint-off", message, step.task)


def memory_off(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield steps that request far too much memory, too little, or were killed for using more."""
    run, past = prepared.run, prepared.known_past.past
    for step in container_tasks(run):
        advice = past and past.memory and step_advice(run, step, past.memory)
        if advice:
            is_large = advice.problem is MemoryProblem.LARGE
            level = Severity.NOTE if is_large else Severity.WARNING
            yield Finding(level, f"memory-{advice.problem}", advice.text, step.task)


def wrong_speeds(prepared: PreparedRun) -> Iterator[Finding]:
    """Yield the nodes on which steps took longer than the declared speeds say.

    The nodes of a given cluster say what is declared now; without one, all nodes of past runs are
    taken to have the usual speed.
    """
    cluster = prepared.cluster
    runs = [run for history in prepared.known_past.histories for run in history.past_runs()]
    declared = {node.name: node.speed for node in cluster.nodes}
    for name, factor in sorted(undeclared_speeds(runs).items()):
        if cluster.nodes and name not in declared:
            continue
        speed = declared.get(name, 1.0) / factor
        yield Finding(
            Severity.WARNING,
            "node-speed",
            f"steps take {factor:.2g} times as long on {name} as on other nodes: declare its speed,"
            f" for example with the node label {SPEED_LABEL}: {speed:.4g}",
        )


PAST_RUN_RULES: tuple[Rule, ...] = (hints_off, memory_off, wrong_speeds)
