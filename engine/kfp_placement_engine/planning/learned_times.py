"""Run times of a run's steps by the runs before it, and what these tell of the cluster."""

from dataclasses import dataclass, replace

from kfp_placement_engine.contract.pipeline_history import step_identity
from kfp_placement_engine.history import Past
from kfp_placement_engine.history.node_factors import as_fast_as_seen
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.forecast import KNOWN_LEVELS, OWN_LEVELS, Basis, Forecast
from kfp_placement_engine.model.promise import CONFIDENCE, RunForecast
from kfp_placement_engine.model.run_graph import DurationSource, RunGraph, Step, StepKind
from kfp_placement_engine.planning.learned_courses import learned_courses

ENOUGH_RUNS = 3
"""From this many runs of the very step on, they win over its author's hint."""


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
        if (forecast := _forecast(graph, step, past)) is not None
    }
    steps = tuple(_with_forecast(step, told.get(step.name)) for step in graph.steps)
    of_run = RunForecast(
        told,
        common=past.steps.common_factor(graph.name),
        overrun=past.overrun(graph.name),
        expected_ends=past.ends.expected_ends(graph.name),
        confidence=confidence,
        driver_seconds=past.driver_seconds(graph.name),
        courses=learned_courses(graph, past),
        retries=past.retries.of(graph.name),
        beside_steps=past.ends.beside_steps(graph.name),
    )
    return LearnedRun(replace(graph, steps=steps), of_run)


def as_seen(cluster: Cluster, past: Past, pipeline: str) -> Cluster:
    """The cluster with what past runs tell of it, as the planner in it plans with that.

    Nodes are as fast as they were found to be, and drivers take what those of the pipeline took
    where the cluster's own defaults do not say it.

    Args:
        cluster: its nodes with their declared speeds.
        past: of the namespace of the run.
        pipeline: of the run.
    """
    factor, driver_seconds = past.steps.learned_factor, past.driver_seconds(pipeline)
    nodes = tuple(as_fast_as_seen(node, factor(node.name)) for node in cluster.nodes)
    learned = {} if driver_seconds is None else {"driver_seconds": driver_seconds}
    return replace(cluster, nodes=nodes, defaults={**learned, **cluster.defaults})


def rests_on_own_runs(basis: Basis) -> bool:
    """Whether a time rests on runs of the very step."""
    return basis.level in OWN_LEVELS


def _forecast(graph: RunGraph, step: Step, past: Past) -> Forecast | None:
    """What the past tells of a step; where its hint wins, around the hint."""
    identity = step_identity(graph.name, step)
    forecast = past.steps.predict(identity, "", step.input_bytes, step.arguments)
    if forecast is None or not _hint_wins(step, forecast.basis):
        return forecast
    if not step.duration_seconds or forecast.basis.level not in KNOWN_LEVELS:
        return None
    distribution = forecast.distribution
    scale = distribution.scale_seconds * step.duration_seconds / distribution.median_seconds
    return replace(forecast, distribution=replace(distribution, scale_seconds=scale))


def _hint_wins(step: Step, basis: Basis) -> bool:
    is_hinted = step.duration_source is DurationSource.HINT
    return is_hinted and not (rests_on_own_runs(basis) and basis.runs >= ENOUGH_RUNS)


def _with_forecast(step: Step, forecast: Forecast | None) -> Step:
    if forecast is None or _hint_wins(step, forecast.basis):
        return step
    return replace(
        step,
        duration_seconds=forecast.distribution.median_seconds,
        duration_source=DurationSource.HISTORY,
        duration_basis=forecast.basis,
    )
