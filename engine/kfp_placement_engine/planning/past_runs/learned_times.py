"""Run times of a run's steps, learned from past runs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kfp_placement_engine.contract.history.pipeline_history import step_identity
from kfp_placement_engine.history import Past, PipelineEnds
from kfp_placement_engine.model.forecast import Basis, Level
from kfp_placement_engine.model.promise import CONFIDENCE
from kfp_placement_engine.model.run_graph import DurationSource, RunGraph, Step, StepKind

_ENOUGH_RUNS = 3
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
        past: past runs of the run's namespace.
        confidence: confidence of the ranges that will be promised.
    """
    learned = [_learned(graph.name, step, past) for step in graph.steps]
    bases = {step.name: basis for step, basis in learned if basis}
    forecast = RunForecast(bases, past.ends.of(graph.name), confidence)
    return LearnedRun(replace(graph, steps=tuple(step for step, _ in learned)), forecast)


def outweighs_hints(basis: Basis) -> bool:
    """Return whether a time rests on enough runs of the same step to outweigh an author's hint."""
    return basis.level in (Level.ITERATION, Level.STEP) and basis.runs >= _ENOUGH_RUNS


def _learned(pipeline: str, step: Step, past: Past) -> tuple[Step, Basis | None]:
    """Return the step with the run time that takes precedence, and what past runs say of it.

    Its basis is None if they say nothing of it, or only something vague beside the author's hint.
    """
    source = step.duration_source
    if step.kind is not StepKind.CONTAINER or step.assumed_cached or source is DurationSource.GIVEN:
        return step, None
    forecast = past.steps.predict(step_identity(pipeline, step), step.input_bytes, step.arguments)
    if forecast is None:
        return step, None
    basis = forecast.basis
    if source is DurationSource.HINT and not outweighs_hints(basis):
        return step, None if basis.is_guess else basis
    learned = replace(
        step,
        duration_seconds=forecast.typical_seconds,
        duration_source=DurationSource.HISTORY,
        duration_basis=basis,
    )
    return learned, basis
