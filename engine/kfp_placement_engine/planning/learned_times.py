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
    told = {
        step.name: forecast
        for step in graph.steps
        if step.kind is StepKind.CONTAINER and not step.assumed_cached
        if step.duration_source is not DurationSource.GIVEN
        if (forecast := _forecast(graph, step, past, confidence)) is not None
    }
    steps = tuple(_with_forecast(step, told.get(step.name)) for step in graph.steps)
    of_run = RunForecast(told, past.ends.of(graph.name), confidence, _empty_loops(graph, past))
    return LearnedRun(replace(graph, steps=steps), of_run)


def rests_on_own_runs(basis: Basis) -> bool:
    """Whether a time rests on runs of the very step."""
    return basis.level in OWN_LEVELS


def _empty_loops(graph: RunGraph, past: Past) -> frozenset[str]:
    """Loops whose width nobody knows and that had no iteration in past runs."""
    empty = {loop for loop, width in past.widths(graph.name).items() if not width.width}
    return frozenset(
        each.name for each in graph.groups if each.width_assumed and each.name in empty
    )


def _forecast(graph: RunGraph, step: Step, past: Past, confidence: float) -> Forecast | None:
    """What the past tells of a step; where its hint wins, around the hint."""
    identity = step_identity(graph.name, step)
    forecast = past.steps.predict(identity, step.input_bytes, step.arguments, confidence)
    if forecast is None or not _hint_wins(step, forecast.basis):
        return forecast
    if not step.duration_seconds or forecast.basis.level not in KNOWN_LEVELS:
        return None
    return forecast.around(step.duration_seconds)


def _hint_wins(step: Step, basis: Basis) -> bool:
    is_hinted = step.duration_source is DurationSource.HINT
    return is_hinted and not (rests_on_own_runs(basis) and basis.runs >= ENOUGH_RUNS)


def _with_forecast(step: Step, forecast: Forecast | None) -> Step:
    if forecast is None or _hint_wins(step, forecast.basis):
        return step
    return replace(
        step,
        duration_seconds=forecast.typical_seconds,
        duration_source=DurationSource.HISTORY,
        duration_basis=forecast.basis,
    )
