"""Run times of a run's steps by the runs before it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kfp_placement_engine.contract.pipeline_history import step_identity
from kfp_placement_engine.history import Past, PipelineEnds
from kfp_placement_engine.model.forecast import Basis, Level
from kfp_placement_engine.model.promise import CONFIDENCE
from kfp_placement_engine.model.run_graph import DurationSource, RunGraph, Step, StepKind

ENOUGH_RUNS = 3
"""From this many runs of the very step on, they win over its author's hint."""


@dataclass(frozen=True)
class RunForecast:
    """What past runs tell of a run, before it is planned.

    Attributes:
        steps: what the run time of each step rests on, by its name, where anything is known of it.
        ends: how the runs of its pipeline ended beside their plans.
        confidence: how often the ranges that are made of it are to hold.
    """

    steps: Mapping[str, Basis]
    ends: PipelineEnds
    confidence: float


@dataclass(frozen=True)
class LearnedRun:
    """A run with learned run times.

    Attributes:
        graph: the run.
        forecast: what these rest on, and how its runs have ended.
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
    told: dict[str, Basis] = {}
    steps = tuple(_learned(graph.name, step, past, told) for step in graph.steps)
    of_run = RunForecast(told, past.ends.of(graph.name), confidence)
    return LearnedRun(replace(graph, steps=steps), of_run)


def rests_on_own_runs(basis: Basis) -> bool:
    """Whether a time rests on runs of the very step."""
    return basis.level in (Level.ITERATION, Level.STEP)


def _learned(pipeline: str, step: Step, past: Past, told: dict[str, Basis]) -> Step:
    """The step with the run time that wins; what the past tells of it rests on goes into `told`."""
    source = step.duration_source
    if step.kind is not StepKind.CONTAINER or step.assumed_cached or source is DurationSource.GIVEN:
        return step
    found = past.steps.predict(step_identity(pipeline, step), step.input_bytes, step.arguments)
    if found is None:
        return step
    basis = found.basis
    is_enough = rests_on_own_runs(basis) and basis.runs >= ENOUGH_RUNS
    wins = source is not DurationSource.HINT or is_enough
    if wins or not basis.is_guess:
        told[step.name] = basis
    if not wins:
        return step
    return replace(
        step,
        duration_seconds=found.typical_seconds,
        duration_source=DurationSource.HISTORY,
        duration_basis=basis,
    )
