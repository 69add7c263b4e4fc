"""The planner: run graph and cluster in, placement and schedule out.

>>> graph = read_run_file("pipeline.yaml")
>>> cluster = read_cluster_file("cluster.yaml")
>>> plan = plan_run(graph, cluster, PlanOptions(budget_seconds=2.0))
>>> plan.figures.makespan_seconds, plan.step("train").node

`plan_runs` plans all active runs together, with what has already happened to each (`ActiveRun`) and
with the room of others that keep their plans (`reserved_run`).

`plan_run` is made of parts that can be used separately: `lower` makes a `PlacementProblem`, `solve`
searches it until a stopping criterion says so, `simulate` computes the schedule of any `Placement`
of it.

>>> problem = lower(graph, cluster, LoweringOptions(dispatch="ordered")).problem
>>> result = solve(problem, MaxRuntime(2.0), seed=1)
>>> simulate(problem, result.placement).makespan_seconds
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kfp_placement_engine.bounds.lower_bound import lower_bound
    from kfp_placement_engine.lowering import LoweringOptions, lower
    from kfp_placement_engine.model.active_runs import (
        ActiveRun,
        ProgressState,
        ReservedRoom,
        ReservedRun,
        StepProgress,
    )
    from kfp_placement_engine.model.cluster import Claim, Cluster, Node, Taint
    from kfp_placement_engine.model.run_graph import RunGraph, Step
    from kfp_placement_engine.planning.plan_options import PlanOptions
    from kfp_placement_engine.planning.plan_runs import plan_run, plan_runs
    from kfp_placement_engine.plans.assumptions import Assumptions
    from kfp_placement_engine.plans.plan import Plan, RunsPlan, reserved_run
    from kfp_placement_engine.plans.planned_step import PlannedStep
    from kfp_placement_engine.problem.placement import Placement
    from kfp_placement_engine.problem.problem import PlacementProblem
    from kfp_placement_engine.problem.schedule import Schedule
    from kfp_placement_engine.readers import (
        ReadOptions,
        read_cluster,
        read_cluster_file,
        read_run,
        read_run_file,
    )
    from kfp_placement_engine.search.baselines import BASELINES
    from kfp_placement_engine.search.parameters import GeneticParams
    from kfp_placement_engine.search.result import Result
    from kfp_placement_engine.search.simulation import simulate
    from kfp_placement_engine.search.solve import solve
    from kfp_placement_engine.search.stop import AnyOf, MaxGenerations, MaxRuntime, MaxSchedules

__all__ = [
    "BASELINES",
    "ActiveRun",
    "AnyOf",
    "Assumptions",
    "Claim",
    "Cluster",
    "GeneticParams",
    "LoweringOptions",
    "MaxGenerations",
    "MaxRuntime",
    "MaxSchedules",
    "Node",
    "Placement",
    "PlacementProblem",
    "Plan",
    "PlanOptions",
    "PlannedStep",
    "ProgressState",
    "ReadOptions",
    "ReservedRoom",
    "ReservedRun",
    "Result",
    "RunGraph",
    "RunsPlan",
    "Schedule",
    "Step",
    "StepProgress",
    "Taint",
    "lower",
    "lower_bound",
    "plan_run",
    "plan_runs",
    "read_cluster",
    "read_cluster_file",
    "read_run",
    "read_run_file",
    "reserved_run",
    "simulate",
    "solve",
]

# A module that needs only the contract should not pay for numpy and the kernel: names are imported
# when they are first asked for (PEP 562).
_HOME = {
    "bounds.lower_bound": ("lower_bound",),
    "lowering": ("LoweringOptions", "lower"),
    "model.active_runs": (
        "ActiveRun",
        "ProgressState",
        "ReservedRoom",
        "ReservedRun",
        "StepProgress",
    ),
    "model.cluster": ("Claim", "Cluster", "Node", "Taint"),
    "model.run_graph": ("RunGraph", "Step"),
    "planning.plan_options": ("PlanOptions",),
    "planning.plan_runs": ("plan_run", "plan_runs"),
    "plans.assumptions": ("Assumptions",),
    "plans.plan": ("Plan", "RunsPlan", "reserved_run"),
    "plans.planned_step": ("PlannedStep",),
    "problem.placement": ("Placement",),
    "problem.problem": ("PlacementProblem",),
    "problem.schedule": ("Schedule",),
    "readers": ("ReadOptions", "read_cluster", "read_cluster_file", "read_run", "read_run_file"),
    "search.baselines": ("BASELINES",),
    "search.parameters": ("GeneticParams",),
    "search.result": ("Result",),
    "search.simulation": ("simulate",),
    "search.solve": ("solve",),
    "search.stop": ("AnyOf", "MaxGenerations", "MaxRuntime", "MaxSchedules"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
