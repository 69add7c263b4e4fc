"""The planner: run graph and cluster in, placement and schedule out.

>>> graph = read_run_file("pipeline.yaml")
>>> cluster = read_cluster_file("cluster.yaml")
>>> plan = plan_run(graph, cluster, PlanOptions(budget_seconds=2.0))
>>> plan.figures.makespan_seconds, plan.step("train").node

`plan_runs` plans all active runs together, with what has already happened to each (`ActiveRun`) and
with the room of others that keep their plans (`reserved_run`).

`plan_run` is made of parts that compose by themselves: `lower` makes a `PlacementProblem`, `solve`
searches it until a stopping criterion says so, `simulate` plays any `Placement` of it.

>>> problem = lower(graph, cluster, LoweringOptions(dispatch="ordered")).problem
>>> result = solve(problem, MaxRuntime(2.0), seed=1)
>>> simulate(problem, result.placement).makespan_seconds
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kfp_placement_engine.active_runs import (
        ActiveRun,
        ProgressState,
        ReservedRoom,
        ReservedRun,
        StepProgress,
    )
    from kfp_placement_engine.assumptions import Assumptions
    from kfp_placement_engine.baselines import BASELINES
    from kfp_placement_engine.cluster import Claim, Cluster, Node, Taint
    from kfp_placement_engine.genetic import GeneticParams
    from kfp_placement_engine.lower_bound import lower_bound
    from kfp_placement_engine.lowering import LoweringOptions, lower
    from kfp_placement_engine.placement import Placement
    from kfp_placement_engine.plan import Plan, PlannedStep, RunsPlan, reserved_run
    from kfp_placement_engine.planning import PlanOptions, plan_run, plan_runs
    from kfp_placement_engine.problem import PlacementProblem
    from kfp_placement_engine.readers import (
        ReadOptions,
        read_cluster,
        read_cluster_file,
        read_run,
        read_run_file,
    )
    from kfp_placement_engine.result import Result
    from kfp_placement_engine.run_graph import RunGraph, Step
    from kfp_placement_engine.simulation import Schedule, simulate
    from kfp_placement_engine.solve import solve
    from kfp_placement_engine.stop import AnyOf, MaxGenerations, MaxRuntime, NoImprovement

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
    "NoImprovement",
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
    "active_runs": ("ActiveRun", "ProgressState", "ReservedRoom", "ReservedRun", "StepProgress"),
    "assumptions": ("Assumptions",),
    "baselines": ("BASELINES",),
    "cluster": ("Claim", "Cluster", "Node", "Taint"),
    "genetic": ("GeneticParams",),
    "lower_bound": ("lower_bound",),
    "lowering": ("LoweringOptions", "lower"),
    "placement": ("Placement",),
    "plan": ("Plan", "PlannedStep", "RunsPlan", "reserved_run"),
    "planning": ("PlanOptions", "plan_run", "plan_runs"),
    "problem": ("PlacementProblem",),
    "readers": ("ReadOptions", "read_cluster", "read_cluster_file", "read_run", "read_run_file"),
    "result": ("Result",),
    "run_graph": ("RunGraph", "Step"),
    "simulation": ("Schedule", "simulate"),
    "solve": ("solve",),
    "stop": ("AnyOf", "MaxGenerations", "MaxRuntime", "NoImprovement"),
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


class _Package(ModuleType):
    """This package: `solve` and `lower_bound` stay functions when modules of these names load.

    Python sets a submodule as an attribute of its package, which would hide the public name.
    """

    # `typing.override` came with Python 3.12.
    def __setattr__(self, name: str, value: Any) -> None:  # type: ignore[explicit-override]
        if isinstance(value, ModuleType) and name in _MODULE_OF:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
