"""A run that has ended, played again with what its steps took: what it took beside them is known.

Forecasts are held against what runs took. A part of that comes of the steps: they were slower than
forecast, or a branch was taken. The rest comes of what no plan knows: pods have waited.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kfp_placement_engine.lowering import LoweringOptions, lower_runs
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.assumptions import Assumptions
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.run_graph import NodeAffinity, RunGraph, Step
from kfp_placement_engine.planning.warm_start import as_started
from kfp_placement_engine.search.simulation import simulate

MOST_STEPS = 2_000
"""Larger runs are not played again: this is done where plans are made."""

_RUN = ""


@dataclass(frozen=True)
class StepRun:
    """How a step ran.

    Attributes:
        node: where.
        start_seconds: when it began, since a moment that is the same for all steps; of one that was
            tried again, as if its attempts had followed each other.
        seconds: for how long its last attempt ran, without its transfers.
        failed_seconds: what attempts took that failed before.
    """

    node: str
    start_seconds: float
    seconds: float
    failed_seconds: float = 0.0


def replayed_seconds(
    graph: RunGraph, ran: Mapping[str, StepRun], cluster: Cluster, assumptions: Assumptions
) -> float | None:
    """How long a run takes if its steps take what they took, where and in the order they ran.

    Args:
        graph: the run.
        ran: how steps of it ran, by name; the others take no time.
        cluster: with the nodes on which they ran, empty.
        assumptions: of plans.

    Returns:
        From its begin to its end; None = a node is not there, the run is too large, or has no end.

    Raises:
        PlanningError: the run cannot be planned.
    """
    speeds = {node.name: node.speed for node in cluster.nodes}
    is_known = all(each.node in speeds for each in ran.values())
    if not ran or not is_known or len(graph.steps) > MOST_STEPS:
        return None
    steps = tuple(_as_it_ran(each, ran.get(each.name), speeds) for each in graph.steps)
    runs = (ActiveRun(_RUN, replace(graph, steps=steps, claims=())),)
    nodes = tuple(replace(each, taints=(), unschedulable=False) for each in cluster.nodes)
    options = LoweringOptions(assumptions=assumptions, dispatch="ordered")
    lowered = lower_runs(runs, Cluster(nodes), options)
    placement = as_started(
        lowered,
        {name: each.node for name, each in ran.items()},
        {name: each.start_seconds for name, each in ran.items()},
    )
    schedule = simulate(lowered.problem, placement)
    return schedule.makespan_seconds if schedule.finished.all() else None


def _as_it_ran(step: Step, ran: StepRun | None, speeds: Mapping[str, float]) -> Step:
    """Run times of graphs are those on a node of speed 1. It did run there: that is allowed."""
    seconds = 0.0 if ran is None else (ran.seconds + ran.failed_seconds) * speeds[ran.node]
    return replace(
        step,
        duration_seconds=seconds,
        node_selector={},
        affinity=NodeAffinity(),
        claims=(),
        max_latency_ms=None,
    )
