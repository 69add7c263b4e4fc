"""Hints, requests of memory and speeds of nodes beside what past runs took."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kfp_placement.check.findings import Finding, Level
from kfp_placement.check.marks import container_tasks
from kfp_placement_engine.contract.forecast_texts import factor_text, range_text
from kfp_placement_engine.contract.keys import SPEED_LABEL
from kfp_placement_engine.contract.pipeline_history import PipelineHistory, step_identity
from kfp_placement_engine.history import Past
from kfp_placement_engine.history.node_speeds import undeclared_speeds
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.run_graph import DurationSource, RunGraph
from kfp_placement_engine.planning.past_runs.learned_times import ENOUGH_RUNS, rests_on_own_runs
from kfp_placement_engine.planning.past_runs.memory_advice import MemoryProblem, step_advice
from kfp_placement_engine.planning.plan_rows import sized_input
from kfp_placement_engine.units.durations import format_duration

MOST_OFF = 2.0
"""Hints that are too long or too short by more than this factor are named."""


def hints_off(run: RunGraph, past: Past) -> Iterator[Finding]:
    """Hints that are off by more than 2 times, against three or more runs of the step."""
    for step in container_tasks(run):
        hint = step.duration_seconds
        if step.duration_source is not DurationSource.HINT or hint is None:
            continue
        # A hint is one for all iterations of a loop.
        iteration = None if step.iteration_key else ""
        identity = replace(step_identity(run.name, step), iteration=iteration)
        found = past.steps.predict(identity, step.input_bytes, step.arguments)
        if found is None or not rests_on_own_runs(found.basis) or found.basis.runs < ENOUGH_RUNS:
            continue
        typical = found.times.typical_seconds
        if not typical / MOST_OFF <= hint <= typical * MOST_OFF:
            factor = factor_text(found.basis, sized_input(step, found.basis))
            message = (
                f"the hint says {format_duration(hint)}, {found.basis.runs} runs"
                f"{f', {factor},' if factor else ''} tell {range_text(found.times)}"
            )
            if not factor:
                # Else no single duration is right.
                message += f': write duration="{format_duration(typical)}"'
            yield Finding(Level.WARNING, "hint-off", message, step.task)


def memory_off(run: RunGraph, past: Past) -> Iterator[Finding]:
    """Steps that ask for far more memory than they used, or less, or were killed for it."""
    for step in container_tasks(run):
        advice = past.memory and step_advice(run.name, step, past.memory)
        if advice:
            is_large = advice.problem is MemoryProblem.LARGE
            level = Level.NOTE if is_large else Level.WARNING
            yield Finding(level, f"memory-{advice.problem}", advice.text, step.task)


def wrong_speeds(histories: Iterable[PipelineHistory], cluster: Cluster) -> Iterator[Finding]:
    """Yield the nodes on which steps took longer than the declared speeds say.

    Args:
        histories: past runs of one namespace.
        cluster: its nodes say what is declared now; of others past runs alone tell.
    """
    runs = [run for each in histories for run in each.past_runs()]
    declared = {node.name: node.speed for node in cluster.nodes}
    for name, factor in sorted(undeclared_speeds(runs).items()):
        if cluster.nodes and name not in declared:
            continue
        speed = declared.get(name, 1.0) / factor
        yield Finding(
            Level.WARNING,
            "node-speed",
            f"steps take {factor:.2g} times as long on {name} as on other nodes: declare its speed,"
            f" for example with the node label {SPEED_LABEL}: {speed:.2g}",
        )
