"""One measurement of scale, in a process of its own: how much time and memory a plan takes.

`python -m benchmarks.scale_case kfp 1000 100 2` prints one line of JSON.
"""

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from kfp_placement_engine import (
    Cluster,
    GeneticParams,
    LoweringOptions,
    MaxRuntime,
    PlacementProblem,
    PlanOptions,
    RunGraph,
    lower,
    plan_run,
    solve,
)
from kfp_placement_engine.search.genetic import seeds_of, trials_per_generation


def measure(shape: Shape, budget_seconds: float, seed: int = 0) -> dict[str, Any]:
    """Plan a made-up run; all times are wall times from the call on, in seconds."""
    run, cluster, dispatch = made_up_run(shape), made_up_cluster(shape), shape.dispatch
    first, problem = _first_plan(run, cluster, dispatch, seed)
    options = PlanOptions(budget_seconds=budget_seconds, seed=seed, dispatch=dispatch)
    started = time.perf_counter()
    plan = plan_run(run, cluster, options)
    total = time.perf_counter() - started
    # The first generations play one plan each: those that the search starts from.
    seeds = sum(1 for _ in seeds_of(problem, seed)) - 1
    bred = max(0, plan.generations - seeds)
    tried = seeds + bred * trials_per_generation(problem) * GeneticParams().islands
    return {
        "kind": shape.kind,
        "steps": shape.steps,
        "nodes": shape.nodes,
        "first_seconds": first,
        "total_seconds": total,
        "plans_per_second": tried / plan.planning_seconds,
        "unplaced": plan.figures.unplaced,
        "makespan_seconds": plan.figures.makespan_seconds,
        "bound_seconds": plan.lower_bound.seconds,
        "bound_kind": plan.lower_bound.kind,
        "baselines": {name: each.makespan_seconds for name, each in plan.baselines.items()},
        "peak_bytes": peak_bytes(),
    }


def _first_plan(
    run: RunGraph, cluster: Cluster, dispatch: str, seed: int
) -> tuple[float, PlacementProblem]:
    """Seconds to the first plan, and the problem."""
    started = time.perf_counter()
    problem = lower(run, cluster, LoweringOptions(dispatch=dispatch)).problem
    solve(problem, MaxRuntime(0.0), seed)
    return time.perf_counter() - started, problem


def peak_bytes() -> int:
    """The most memory this process has held.

    Linux counts what the parent held at the fork into `ru_maxrss`; its own figure is in /proc.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


if __name__ == "__main__":
    asked = Shape(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps(measure(asked, float(sys.argv[4]))))
