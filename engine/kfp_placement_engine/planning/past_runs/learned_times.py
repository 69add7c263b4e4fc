"""Run times of a run's steps, learned from past runs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kfp_placement_engine.contract.pipeline_history import step_identity
from kfp_placement_engine.history import Past, PipelineEnds
from kfp_placement_engine.model.forecast import Basis, Level
from kfp_placement_engine.model.promise import CONFIDENCE
from kfp_placement_engine.model.run_graph import DurationSource, RunGraph, Step, StepKind

ENOUGH_RUNS = 3
"""Number of runs of the same step from which on they take precedence over its author's hint."""


@dataclass(frozen=True)
class RunForecast:
    """The forecast of a run by past runs, before it is planned.

    Attributes:
        steps: basis of each step's run time, by its name, where past runs say something about it.
        ends: ends of the pipeline's runs in comparison with their plans.
        confidence: share of runs whose ends the promised ranges should contain.
    """

    steps: Mapping[str, Basis]
    ends: PipelineEnds
    confidence: float


@dataclass(frozen=True)
class LearnedRun:
    """A run with learned run times.

    Attributes:
        graph: run with the run times.
        forecast: basis of the run times, and ends of past runs.
    """

    graph: RunGraph
    forecast: RunForecast


def with_history(graph: RunGraph, past: Past, confidence: float = CONFIDENCE) -> LearnedRun:
    """Return the run with run times learned from past runs.

    The order of precedence: a given time, three or more runs of the same step, a hint, fewer runs
    of the step, runs of other steps. Type defaults and assumptions come after all of these.

    Args:
        graph: run with hints and given times.
        past: past runs of its namespace.
        confidence: confidence of the ranges that will be promised.
    """
    bases: dict[str, Basis] = {}
    steps = tuple(_learned(graph.name, step, past, bases) for step in graph.steps)
    forecast = RunForecast(bases, past.ends.of(graph.name), confidence)
    return LearnedRun(replace(graph, steps=steps), forecast)


def rests_on_own_runs(basis: Basis) -> bool:
    """Return whether a time rests on runs of the same step."""
    return basis.level in (Level.ITERATION, Level.STEP)


def _learned(pipeline: str, step: Step, past: Past, bases: dict[str, Basis]) -> Step:
    """Return the step with the run time that takes precedence, and add its basis to `bases`."""
    source = step.duration_source
    if step.kind is not StepKind.CONTAINER or step.assumed_cached or source is DurationSource.GIVEN:
        return step
    forecast = past.steps.predict(step_identity(pipeline, step), step.input_bytes, step.arguments)
    if forecast is None:
        return step
    basis = forecast.basis
    is_enough = rests_on_own_runs(basis) and basis.runs >= ENOUGH_RUNS
    wins = source is not DurationSource.HINT or is_enough
    if wins or not basis.is_guess:
        bases[step.name] = basis
    if not wins:
        return step
    return replace(
        step,
        duration_seconds=forecast.typical_seconds,
        duration_source=DurationSource.HISTORY,
        duration_basis=basis,
    )
