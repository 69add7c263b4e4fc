"""Hints, requests of memory and speeds of nodes beside what past runs took."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kfp_placement.check.findings import Finding, Level
from kfp_placement.check.marks import container_tasks
from kfp_placement_engine.contract.forecast_texts import range_text
from kfp_placement_engine.contract.keys import SPEED_LABEL
from kfp_placement_engine.contract.memory_texts import memory_quantity, memory_text
from kfp_placement_engine.contract.pipeline_history import PipelineHistory, step_identity
from kfp_placement_engine.history import Past
from kfp_placement_engine.history.node_speeds import undeclared_speeds
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.durations import format_duration
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.history import StepIdentity
from kfp_placement_engine.model.run_graph import DurationSource, RunGraph, Step
from kfp_placement_engine.planning.learned_times import ENOUGH_RUNS, rests_on_own_runs
from kfp_placement_engine.planning.memory_advice import MemoryProblem, advice_on
from kfp_placement_engine.planning.plan_rows import sized_input
from kfp_placement_engine.views.formatting import counted

MOST_OFF = 2.0
"""Hints that are too long or too short by this factor are named."""

_STEPS = ((60, 1), (600, 15), (3600, 60), (86400, 300))
"""Up to how many seconds a duration is written in multiples of how many."""


def hints_off(run: RunGraph, past: Past) -> Iterator[Finding]:
    """Hints that are off by 2 times or more, against three or more runs of the step."""
    for step in container_tasks(run):
        hint = step.duration_seconds
        if step.duration_source is not DurationSource.HINT or hint is None:
            continue
        identity = _identity(run, step)
        forecast = past.steps.predict(identity, step.input_bytes, step.arguments)
        if forecast is None or not rests_on_own_runs(forecast.basis):
            continue
        times, runs = forecast.times, forecast.basis.runs
        typical = times.typical_seconds
        # Past times are exact to a millionth.
        off = round(hint / max(typical, 1e-9), 5)
        if runs < ENOUGH_RUNS or 1 / MOST_OFF < off < MOST_OFF:
            continue
        by = _varies_by(step, forecast.basis)
        yield Finding(
            Level.WARNING,
            "hint-off",
            f"the hint says {format_duration(hint)}, {counted(runs, 'run')}"
            f"{f', by {by},' if by else ''} tell {range_text(times)}: {_advice(typical, by)}",
            step.task,
        )


def _varies_by(step: Step, basis: Basis) -> str:
    """What a forecast depends on: `rounds`, `size of table`; "" = it is one for all runs."""
    if basis.by_argument:
        return basis.by_argument
    return f"size of {sized_input(step, basis) or 'inputs'}" if basis.by_size else ""


def _advice(typical_seconds: float, by: str) -> str:
    if by:
        return f"it differs by {by}, so no single duration is right; plans on past runs need none"
    write = format_duration(rounded(typical_seconds))
    is_rounded = write != format_duration(typical_seconds)
    return f'write duration="{write}"{" (rounded)" * is_rounded}'


def _identity(run: RunGraph, step: Step) -> StepIdentity:
    """Whose past counts: a hint is one for all iterations of a loop."""
    identity = step_identity(run.name, step)
    return replace(identity, iteration=None) if step.iteration_key else identity


def rounded(seconds: float) -> float:
    """A duration as people write one: 4m12s is 4m15s."""
    if seconds < 1:
        return round(max(seconds, 0.1), 1)
    multiple = next((size for limit, size in _STEPS if seconds < limit), 3600)
    return max(multiple, round(seconds / multiple) * multiple)


def memory_off(run: RunGraph, past: Past) -> Iterator[Finding]:
    """Steps that ask for far more memory than they used, or less, or were killed for it."""
    if past.memory is None:
        return
    for step in container_tasks(run):
        advice = advice_on(run.name, step, past.memory)
        if advice is None:
            continue
        yield Finding(
            Level.NOTE if advice.problem is MemoryProblem.LARGE else Level.WARNING,
            f"memory-{advice.problem}",
            f"{advice.text}{_written(advice.amount_bytes)}",
            step.task,
        )


def _written(amount_bytes: int) -> str:
    """How KFP takes an amount, if that is not how the advice says it: `, written "1536Mi"`."""
    written = memory_quantity(amount_bytes)
    return "" if written == memory_text(amount_bytes) else f', written "{written}"'


def wrong_speeds(histories: Iterable[PipelineHistory], cluster: Cluster) -> Iterator[Finding]:
    """Yield the nodes on which steps took longer, or less, than the declared speeds say.

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
