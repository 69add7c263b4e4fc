"""What the engine says of the same runs on the same nodes, without a cluster."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kfp_placement_engine.bounds.lower_bound import lower_bound
from kfp_placement_engine.lowering import LoweringOptions, lower_runs
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.planning.plan_runs import plan_runs
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.readers import read_cluster, read_run
from kfp_placement_kube.kinds import JsonObject
from tests.controller.cluster_bench.scenarios import Drawn

BUDGET_SECONDS = 1.0


@dataclass(frozen=True)
class Simulated:
    """Makespans in seconds, from the submission to the end of the last run.

    Attributes:
        kube_default: by what is modelled of the stock scheduler, mean over its ties.
        heft: HEFT.
        ready: the plan where a ready pod is bound at once.
        ordered: the plan where a pod may wait for its turn.
        bound: no schedule is shorter, even if drivers take no longer than their containers.
    """

    kube_default: float
    heft: float
    ready: float
    ordered: float
    bound: float


def simulate(
    nodes: Sequence[JsonObject],
    drawn: Drawn,
    driver_seconds: float,
    least_driver_seconds: float,
    budget_seconds: float = BUDGET_SECONDS,
) -> Simulated:
    """Plan and compare.

    Args:
        nodes: of the cluster.
        drawn: the runs; of others' pods only those count that are there from the start.
        driver_seconds: of a KFP driver with all that Argo and the schedulers need around it.
        least_driver_seconds: of its container alone; the bound counts no more.
        budget_seconds: for each of the two searches.
    """
    there = [each.manifest("others") for each in drawn.foreign if each.node]
    dump = {"apiVersion": "v1", "kind": "List", "items": [*nodes, *there]}
    cluster = read_cluster(json.dumps(dump).encode(), name="cluster")
    runs = [
        ActiveRun(str(number), read_run(json.dumps(each).encode(), name=f"run {number}"))
        for number, each in enumerate(drawn.workflows)
    ]
    assumed = replace(Assumptions(), driver_seconds=driver_seconds)
    makespans: dict[str, float] = {}
    for dispatch in ("ready", "ordered"):
        options = PlanOptions(
            budget_seconds=budget_seconds, dispatch=dispatch, assumptions=assumed, threads=1
        )
        plans = plan_runs(runs, cluster, options).plans.values()
        makespans[dispatch] = max(plan.figures.makespan_seconds for plan in plans)
        for name in options.compare:
            # The last one holds: baselines under `ordered`, where HEFT keeps its own order.
            makespans[name] = max(
                plan.comparison.baselines[name].makespan_seconds for plan in plans
            )
    return Simulated(
        kube_default=makespans["kube-default"],
        heft=makespans["heft"],
        ready=makespans["ready"],
        ordered=makespans["ordered"],
        bound=_bound(runs, cluster, least_driver_seconds),
    )


def _bound(runs: Sequence[ActiveRun], cluster: Cluster, driver_seconds: float) -> float:
    """Of all runs together."""
    assumed = replace(Assumptions(), driver_seconds=driver_seconds)
    problem = lower_runs(runs, cluster, LoweringOptions(assumptions=assumed)).problem
    return lower_bound(problem).seconds
