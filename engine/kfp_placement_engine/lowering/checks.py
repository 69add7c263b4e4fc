"""Checks that refuse runs and clusters which cannot be planned; the messages say why."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.run_graph import RunGraph


def check_problem(runs: Sequence[ActiveRun], cluster: Cluster) -> None:
    """Refuse runs and clusters that callers may build although no reader does.

    Raises:
        PlanningError: see `lower_runs`.
    """
    if not cluster.nodes:
        raise PlanningError("the cluster has no nodes; nothing can be placed")
    if not runs:
        raise PlanningError("no run is given; there is nothing to place")
    _refuse_twice("run", (run.key for run in runs))
    if len({run.graph.direct_transfers for run in runs}) > 1:
        raise PlanningError(
            "some runs move data through the object store and some from node to node; "
            "plan them apart"
        )
    _refuse_twice("node", (node.name for node in cluster.nodes))
    for node in cluster.nodes:
        rates = {
            "speed": node.speed,
            "bandwidth to the object store": node.store_bytes_per_second,
            "pull rate": node.pull_bytes_per_second,
        }
        for name, rate in rates.items():
            if rate is not None and not 0 < rate < math.inf:
                raise PlanningError(f"node {node.name!r} has {name} {rate}; it must be above 0")
    for run in runs:
        _check_graph(run.graph)


def _refuse_twice(kind: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise PlanningError(f"{kind} {name!r} appears {count} times; names must differ")


def _check_graph(graph: RunGraph) -> None:
    if not graph.steps:
        raise PlanningError("the run has no steps; there is nothing to place")
    _refuse_twice("step", (step.name for step in graph.steps))
    groups = {group.name for group in graph.groups}
    for group in graph.groups:
        if group.parent not in groups:
            raise PlanningError(
                f"group {group.name!r} is in group {group.parent!r}, which does not exist"
            )
    for step in graph.steps:
        seconds = step.duration_seconds
        if seconds is not None and not 0 <= seconds < math.inf:
            raise PlanningError(f"step {step.name!r} takes {seconds} s; it must be 0 or more")
