"""Run times of a run's steps by the runs before it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kfp_placement_engine.contract.pipeline_history import step_identity
from kfp_placement_engine.history import Past, PipelineEnds
from kfp_placement_engine.model.forecast import KNOWN_LEVELS, OWN_LEVELS, Basis, Forecast
from kfp_placement_engine.model.promise import CONFIDENCE
from kfp_placement_engine.model.run_graph import DurationSource, RunGraph, Step, StepKind

ENOUGH_RUNS = 3
"""From this many runs of the very step on, they win over its author's hint."""


@dataclass(frozen=True)
class RunForecast:
    """What past runs tell of a run, before it is planned.

    Attributes:
        steps: how long each step takes, by its name, where anything is known of it.
        ends: how the runs of its pipeline ended beside their plans.
        confidence: how often the ranges that are made of it are to hold.
        empty_loops: loops of the run that had no iteration in past runs.
    """

    steps: Mapping[str, Forecast] = field(default_factory=dict)
    ends: PipelineEnds = field(default_factory=PipelineEnds)
    confidence: float = CONFIDENCE
    empty_loops: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LearnedRun:
    """A run with learned run times.

    Attributes:
        graph: the run.
        forecast: how long its steps may take, around the times that the graph has now.
    """

    graph: RunGraph
    forecast: RunForecast


def with_history(graph: RunGraph, past: Past, confidence: float = CONFIDENCE) -> LearnedRun:
    """The run with the run times that past runs tell.

    What wins, in this order: a given time, three or more runs of the very step, a hint, fewer runs
    of it, what other steps tell. Type defaults and assumptions come after all of these.

    Args:
        graph: the run, with hints and given times.
        past: of its namespace.
        confidence: of the ranges that will be promised.
    """
    told: dict[str, Forecast] = {}
    steps = [_learned(graph.name, step, past, confidence, told) for step in graph.steps]
    of_run = RunForecast(told, past.ends.of(graph.name), confidence, _empty_loops(graph, past))
    return LearnedRun(replace(graph, steps=tuple(steps)), of_run)


def rests_on_own_runs(basis: Basis) -> bool:
    """Whether a time rests on runs of the very step."""
    return basis.level in OWN_LEVELS


def _empty_loops(graph: RunGraph, past: Past) -> frozenset[str]:
    """Loops whose width nobody knows and that had no iteration in past runs."""
    empty = {loop for loop, width in past.widths(graph.name).items() if not width.width}
    return frozenset(
        each.name for each in graph.groups if each.width_assumed and each.name in empty
    )


def _learned(
    pipeline: str, step: Step, past: Past, confidence: float, told: dict[str, Forecast]
) -> Step:
    """The step with the run time that wins; what the past tells of it, around that, into `told`."""
    source = step.duration_source
    if step.kind is not StepKind.CONTAINER or step.assumed_cached or source is DurationSource.GIVEN:
        return step
    identity = step_identity(pipeline, step)
    found = past.steps.predict(identity, step.input_bytes, step.arguments, confidence)
    if found is None:
        return step
    is_enough = rests_on_own_runs(found.basis) and found.basis.runs >= ENOUGH_RUNS
    if source is DurationSource.HINT and not is_enough:
        if step.duration_seconds and found.basis.level in KNOWN_LEVELS:
            told[step.name] = found.around(step.duration_seconds)
        return step
    told[step.name] = found
    return replace(
        step,
        duration_seconds=found.typical_seconds,
        duration_source=DurationSource.HISTORY,
        duration_basis=found.basis,
    )
