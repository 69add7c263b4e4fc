"""Plans made up for tests of what shows them: no planner is needed for these."""

import random
from collections import defaultdict
from dataclasses import replace
from typing import Any

from kfp_placement_engine.contract.keys import LATENCY_RULED_TYPES
from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.node_rules.latency import LatencyTolerance, is_ruled
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.objective import ResourceWeights
from kfp_placement_engine.model.run_graph import DurationSource, Step
from kfp_placement_engine.plans.comparison import Bound, Comparison, Figures
from kfp_placement_engine.plans.limits import RunLimits
from kfp_placement_engine.plans.plan import ClusterRecord, Grounds, Plan, RunRecord, SearchRecord
from kfp_placement_engine.plans.planned_step import (
    Explanation,
    Phases,
    PlannedDriver,
    PlannedStep,
    RunTimeOrigin,
)

EDGE_NODES = ("nitos-cloud-node", "nitlab-edge-node", "home-edge-node")

_REQUESTS = {"cpu": 500, "memory": 2**30}

_STEP = PlannedStep(
    spec=Step("train", "train", image="python:3.12", requests=_REQUESTS),
    node="node-0",
    start_seconds=0.0,
    finish_seconds=60.0,
    phases=Phases(0.0, 0.0, 60.0),
    run_time=RunTimeOrigin(DurationSource.HINT, None, "", 1.0),
    progress=ProgressState.WAITING,
    latency_ms=None,
    is_latency_ruled=False,
    requests=_REQUESTS,
    explanation=Explanation("ends first there"),
)

_PLAN = Plan(
    run=RunRecord("made-up", "kfp-package"),
    cluster=ClusterRecord(("node-0",), "cluster.yaml"),
    search=SearchRecord(
        0, 120, 2.0, "ready", "completion", False, ResourceWeights(), LatencyTolerance()
    ),
    figures=Figures(0, 0.0, 0.0, 60.0),
    comparison=Comparison(Bound(50.0, "critical-path"), {}, (), None),
    steps=(_STEP,),
    drivers=(),
    unschedulable=(),
    limits=RunLimits(),
    grounds=Grounds((), False),
    notices=(),
)


_PARTS = {
    "spec": "name task kind iteration assumed type location image labels attempt_limit depends_on"
    " type_guessed display_name conditions assumed_cached",
    "phases": "image_pull_seconds transfer_seconds duration_seconds",
    "run_time": "sized_input node_speed",
    "explanation": "alternatives",
    "run": "release_seconds submitted_at",
    "search": "seed generations planning_seconds dispatch objective exact weights"
    " latency_tolerance",
    "comparison": "lower_bound baselines default_schedule ordered_makespan_seconds",
    "limits": "critical_path binding_resources",
    "grounds": "assumptions all_durations_assumed policy",
}
_HOMES: dict[str, tuple[str, str]] = {
    **{name: (part, name) for part, names in _PARTS.items() for name in names.split()},
    "cached": ("spec", "assumed_cached"),
    "duration_source": ("run_time", "source"),
    "duration_basis": ("run_time", "basis"),
    "reason": ("explanation", "sentence"),
    "why": ("explanation", "reason"),
    "run_name": ("run", "name"),
    "run_source": ("run", "source"),
    "cluster_nodes": ("cluster", "nodes"),
    "cluster_source": ("cluster", "source"),
}
"""Short names for tests: the part of a step or plan where a value stands, and its name there."""


def varied(whole: Any, **changes: Any) -> Any:
    """Return a step or plan with other values; those of its parts are named without the part."""
    if "conditional" in changes:
        changes["conditions"] = ("if",) * changes.pop("conditional")
    parts = defaultdict[str, dict[str, Any]](dict)
    own: dict[str, Any] = {}
    for name, value in changes.items():
        part, field = _HOMES.get(name, ("", name))
        (parts[part] if part else own)[field] = value
    if "requests" in own:
        parts["spec"]["requests"] = own["requests"]
    made = {part: replace(getattr(whole, part), **values) for part, values in parts.items()}
    return replace(whole, **made, **own)


def ends_after(seconds: float, *, unplaced: int = 0, **changes: Any) -> Figures:
    """Figures of a schedule of this makespan, of which no step is under a latency rule."""
    return Figures(unplaced, 0.0, 0.0, seconds, **changes)


def a_step(name: str = "train", **changes: Any) -> PlannedStep:
    """One step; only what matters is named. Its latency rule is that of its type, as usual."""
    step: PlannedStep = varied(_STEP, **{"name": name, "task": name, **changes})
    ruled = is_ruled(step.spec.type, LATENCY_RULED_TYPES)
    return replace(step, is_latency_ruled=changes.get("is_latency_ruled", ruled))


def unplaced_step(name: str = "huge", **changes: Any) -> PlannedStep:
    """A step that no node can take."""
    nowhere = {"node": None, "start_seconds": None, "finish_seconds": None}
    return a_step(name, **{**nowhere, "reason": "no node has 512 CPU", **changes})


def a_plan(*steps: PlannedStep, **changes: Any) -> Plan:
    """A plan of these steps (one step if none is named)."""
    given = steps or (a_step(),)
    ends = [step.finish_seconds for step in given if step.finish_seconds is not None]
    missing = tuple(
        (step.name, step.explanation.sentence)
        for step in given
        if step.node is None and not step.is_cached
    )
    figures = ends_after(max(ends, default=0.0), unplaced=len(missing))
    made = {"figures": figures, "unschedulable": missing, "steps": given}
    plan: Plan = varied(_PLAN, **{**made, **changes})
    return plan


def stuck_plan() -> Plan:
    """A run that never ends: of three steps in a row of two, one fits no node."""
    return a_plan(
        a_step("crunch-1"),
        unplaced_step("crunch-2"),
        a_step("merge", depends_on=("crunch-1", "crunch-2")),
        a_step("report", depends_on=("merge",)),
        figures=ends_after(37_200.0, unplaced=1),
        lower_bound=Bound(37_200.0, "critical-path"),
        baselines={"kube-default": ends_after(38_400.0, unplaced=1)},
    )


def taxi_plan() -> Plan:
    """The shape of the taxi run on the thesis' cluster, with a bit of everything."""
    cloud, _, home = EDGE_NODES
    rows: list[tuple[str, str, str, float, float, float, float, tuple[str, ...]]] = [
        ("fetch", "Fetch", cloud, 10, 8, 3, 90, ()),
        ("validate", "", cloud, 121, 0, 4, 60, ("fetch",)),
        ("transform", "Transform", cloud, 121, 0, 6, 240, ("fetch",)),
        ("train", "Training", cloud, 372, 12, 5, 1200, ("transform", "validate")),
        ("evaluate", "Evaluate", cloud, 1594, 0, 2, 120, ("train",)),
        ("predict", "Predict", home, 1594, 25, 9, 180, ("train",)),
        ("publish.report", "", "nitlab-edge-node", 1813, 11, 1, 40, ("evaluate", "predict")),
    ]
    steps = [
        a_step(
            name,
            type=kind,
            location="HOME-EDGE" if name == "predict" else "",
            node=node,
            start_seconds=float(start),
            finish_seconds=float(start + pull + transfer + run),
            image_pull_seconds=float(pull),
            transfer_seconds=float(transfer),
            duration_seconds=float(run),
            latency_ms=9.8 if name == "predict" else None,
            depends_on=depends_on,
            type_guessed=name == "evaluate",
            conditional=name == "publish.report",
            duration_source=DurationSource.ASSUMED
            if name in ("validate", "publish.report")
            else DurationSource.HINT,
            reason="lowest round trip to HOME-EDGE of 3 nodes with room: 9.8 ms, next 41.97 ms"
            if name == "predict"
            else f"ends first there: {run} s of run time at speed 1, its inputs are near",
        )
        for name, kind, node, start, pull, transfer, run, depends_on in rows
    ]
    drivers = tuple(
        PlannedDriver(step.name, cloud, (step.start_seconds or 0) - 5, step.start_seconds or 0)
        for step in steps
    )
    return a_plan(
        *steps,
        run_name="taxi",
        cluster_nodes=EDGE_NODES,
        cluster_source="the thesis' cluster",
        drivers=(PlannedDriver("", cloud, 0, 5), *drivers),
        figures=Figures(0, 0.0, 9.8, 1865.0),
        lower_bound=Bound(1802.0, "critical-path"),
        baselines={
            "kube-default": Figures(0, 32.166, 41.966, 2210.0),
            "heft": Figures(0, 32.166, 41.966, 1821.0),
            "fifo": ends_after(2304.0, unplaced=1),
        },
        notices=(
            Notice("unmarked-steps", "2 of 7 steps are not marked: planned as if marked"),
            Notice("guessed-type", "type Evaluate was guessed from the name", "evaluate"),
        ),
        assumptions=("duration 60 s for 2 of 7 steps", "image size 0 B for 7 of 7 images"),
    )


def random_plan(steps: int, nodes: int, *, fan: int = 2, name: str = "step") -> Plan:
    """A plan of any size: each step waits for up to `fan` earlier ones, nodes take it in turn."""
    rng = random.Random(0)
    names = tuple(f"node-{index}" for index in range(nodes))
    made: list[PlannedStep] = []
    for index in range(steps):
        parents = rng.sample(made[-40:], k=min(len(made[-40:]), rng.randint(0, fan)))
        start = max((parent.finish_seconds or 0.0 for parent in parents), default=0.0) + 5.0
        pull, transfer, run = (rng.choice((0.0, 12.0)), rng.random() * 8, rng.lognormvariate(4, 1))
        made.append(
            a_step(
                f"{name}-{index}",
                node=rng.choice(names),
                start_seconds=start,
                finish_seconds=start + pull + transfer + run,
                image_pull_seconds=pull,
                transfer_seconds=transfer,
                duration_seconds=run,
                depends_on=tuple(sorted(parent.name for parent in parents)),
            )
        )
    return a_plan(*made, cluster_nodes=names, run_name=f"{steps} steps")


def renamed(plan: Plan, name: str) -> Plan:
    """The plan with one hostile name wherever a name stands."""
    step: PlannedStep = varied(
        plan.steps[0], name=name, task=name, node=name, reason=name, type=name
    )
    made: Plan = varied(
        plan,
        run_name=name,
        cluster_source=name,
        cluster_nodes=(name, *plan.cluster.nodes),
        steps=(varied(step, location=name, latency_ms=1.0), *plan.steps[1:]),
        unschedulable=((name, name),),
        notices=(Notice(name, name, name),),
        assumptions=(name,),
        baselines={name: plan.figures},
    )
    return made
