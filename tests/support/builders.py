"""Runs, clusters and problems for tests of the planner: only what matters to a test is named."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kfp_placement_engine.contract.keys import LATENCY_RULED_TYPES
from kfp_placement_engine.contract.planned_policy import planning_policy
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.lowering import Lowered, LoweringOptions, lower
from kfp_placement_engine.model.cluster import Cluster, Node
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.pod_constraints import NodeSelectorTerm, Requirement
from kfp_placement_engine.model.policy import PlanningPolicy
from kfp_placement_engine.model.run_graph import (
    DataInput,
    Group,
    GroupKind,
    RunClaim,
    RunGraph,
    Step,
)
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.planning.plan_runs import plan_run
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.parameters import GeneticParams
from kfp_placement_engine.search.result import Result
from kfp_placement_engine.search.solve import solve
from kfp_placement_engine.search.stop import MaxGenerations

GIBIBYTE = 2**30

PAPER = GeneticParams.paper()

ROUND_NUMBERS = Assumptions(
    duration_seconds=4.0,
    output_bytes=0,
    image_bytes=100,
    store_bytes_per_second=100.0,
    pull_bytes_per_second=50.0,
    driver_seconds=1.0,
    link_bytes_per_second=100.0,
)
"""Assumptions under which all times are multiples of a small power of two, so exact in floats."""

SEARCH = GeneticParams(exact_below=0)
"""The default search, also of runs of which all plans could be tried."""


def a_step(
    name: str,
    *after: str,
    cpu: float = 1,
    memory: float = 0,
    seconds: float | None = 10,
    claims: Iterable[str] = (),
    reads: Iterable[tuple[str, int | None]] = (),
    extended: dict[str, int] | None = None,
    **changes: Any,
) -> Step:
    """A step of 1 CPU and 10 s.

    Args:
        name: name of the step and of its task.
        after: steps that must have ended.
        cpu: requested cores; 0 = no request.
        memory: requested GiB; 0 = no request.
        seconds: run time; None = unknown.
        claims: volume claims it mounts.
        reads: (producer, bytes) of its inputs.
        extended: further requests.
        changes: other fields of `Step`.
    """
    requests = {"cpu": round(cpu * 1000), "memory": round(memory * GIBIBYTE), **(extended or {})}
    return Step(
        name=name,
        task=name,
        requests={resource: amount for resource, amount in requests.items() if amount},
        duration_seconds=seconds,
        depends_on=tuple(sorted(after)),
        claims=tuple(claims),
        inputs=tuple(DataInput(producer, "data", size) for producer, size in reads),
        **changes,
    )


def equal_steps(count: int, *after: str, **changes: Any) -> list[Step]:
    """Steps s0, s1, ... that differ in nothing but their names; `after` as for `a_step`."""
    return [a_step(f"s{number}", *after, **changes) for number in range(count)]


def a_chain(*seconds: float | None, name: str = "s", **changes: Any) -> list[Step]:
    """Steps s0, s1, ... one after another, one for each run time."""
    names = [f"{name}{number}" for number in range(len(seconds))]
    return [
        a_step(names[number], *names[max(0, number - 1) : number], seconds=each, **changes)
        for number, each in enumerate(seconds)
    ]


def a_node(
    name: str = "n1",
    cpu: float = 4,
    memory: float = 64,
    pods: int = 110,
    extended: dict[str, int] | None = None,
    used: dict[str, int] | None = None,
    **changes: Any,
) -> Node:
    """A node of 4 CPU, 64 GiB and 110 pods; `used` is in milli-CPU and bytes."""
    allocatable = {"cpu": round(cpu * 1000), "memory": round(memory * GIBIBYTE), "pods": pods}
    return Node(name, {**allocatable, **(extended or {})}, used=used or {}, **changes)


def nodes(count: int, **changes: Any) -> tuple[Node, ...]:
    """Equal nodes n1, n2, ..."""
    return tuple(a_node(f"n{number}", **changes) for number in range(1, count + 1))


def in_zone(*zones: str) -> NodeSelectorTerm:
    """A term that nodes with the label `zone` of one of these values match."""
    return NodeSelectorTerm((Requirement("zone", "In", zones),))


def a_cluster(*members: Node, **changes: Any) -> Cluster:
    """A cluster of these nodes, of one node if none is named."""
    return Cluster(members or (a_node(),), **changes)


def cluster_of(count: int, **changes: Any) -> Cluster:
    """A cluster of equal nodes n1, n2, ..."""
    return Cluster(nodes(count, **changes))


def zones_a_and_b(**of_a: Any) -> tuple[Node, Node]:
    """Node n1 with the label `zone: a`, and n2 with `zone: b`; n1 may be given other fields."""
    return a_node("n1", labels={"zone": "a"}, **of_a), a_node("n2", labels={"zone": "b"})


def a_run(*steps: Step, **changes: Any) -> RunGraph:
    """A run of plain pods: no drivers, data through the object store.

    Volume claims that steps mount are ReadWriteOnce unless `claims` is given.
    """
    mounted = dict.fromkeys(claim for step in steps for claim in step.claims)
    fields: dict[str, Any] = {
        "name": "made-up",
        "source": "argo-workflow",
        "claims": tuple(RunClaim(name, ("ReadWriteOnce",)) for name in mounted),
    }
    return RunGraph(steps=steps, **fields | changes)


def a_workflow(*steps: Step, **changes: Any) -> RunGraph:
    """A run of a workflow format: no drivers, data moves from node to node."""
    return a_run(*steps, **{"source": "wfformat", "direct_transfers": True} | changes)


def a_kfp_run(*steps: Step, groups: Iterable[Group] = (), **changes: Any) -> RunGraph:
    """A run of KFP: a root driver, and a driver before every step."""
    driven = tuple(replace(step, has_driver=True) for step in steps)
    root = Group("", GroupKind.ROOT)
    return a_run(*driven, **{"source": "kfp-package", "groups": (root, *groups)} | changes)


def a_loop(
    name: str, width: int, parallelism: int = 0, after: Iterable[str] = ()
) -> tuple[Group, ...]:
    """A loop in the root group and its iterations."""
    loop = Group(
        name, GroupKind.LOOP, depends_on=tuple(after), parallelism=parallelism, width=width
    )
    return (
        loop,
        *(Group(f"{name}[{index}]", GroupKind.ITERATION, parent=name) for index in range(width)),
    )


ONE_NODE = a_cluster()


def lowered(run: RunGraph, cluster: Cluster = ONE_NODE, **options: Any) -> Lowered:
    """Lower with the latency rules of a stock policy and round-number assumptions."""
    given: dict[str, Any] = {
        "assumptions": ROUND_NUMBERS,
        "latency_ruled_types": LATENCY_RULED_TYPES,
    }
    return lower(run, cluster, LoweringOptions(**given | options))


def a_problem(run: RunGraph, cluster: Cluster = ONE_NODE, **options: Any) -> PlacementProblem:
    """The lowered problem alone."""
    return lowered(run, cluster, **options).problem


def a_working_loop(
    name: str, width: int, parallelism: int, **changes: Any
) -> tuple[list[Step], tuple[Group, ...]]:
    """A loop with a step `work` in each iteration: the steps, and the groups of the loop."""
    iterations = [f"{name}[{index}]" for index in range(width)]
    steps = [a_step(f"{each}.work", group=each, **changes) for each in iterations]
    return steps, a_loop(name, width, parallelism)


def plan_of(run: RunGraph, cluster: Cluster = ONE_NODE, **options: Any) -> Plan:
    """The plan of a run on its own, with these options."""
    return plan_run(run, cluster, PlanOptions(**options))


def unplaced(plan: Plan) -> list[str]:
    """Names of the steps that no node takes."""
    return [name for name, _ in plan.unschedulable]


def sentence_of(plan: Plan, step: str) -> str:
    """Return why a plan puts a step where it does, in words."""
    return plan.step(step).explanation.sentence


def notice_of(plan: Plan, code: str) -> Notice:
    """The only notice of a plan with this code."""
    (match,) = (notice for notice in plan.notices if notice.code == code)
    return match


def codes_of_plan(plan: Plan) -> list[str]:
    """Codes of a plan's notices, except for the one that its steps are not marked."""
    return [notice.code for notice in plan.notices if notice.code != "unmarked-steps"]


def searched(
    problem: PlacementProblem,
    generations: int,
    seed: int = 0,
    params: GeneticParams = SEARCH,
    **options: Any,
) -> Result:
    """Search for a number of generations, those of the plans to start from included."""
    return solve(problem, MaxGenerations(generations), seed, params, **options)


def a_policy(**spec: Any) -> PlanningPolicy:
    """Return the part of a PlacementPolicy that the planner follows; keys as in its spec."""
    return planning_policy(PlacementPolicySpec.model_validate(spec))
