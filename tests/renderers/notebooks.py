"""The plans whose views are looked at in every renderer: what plans of authors have in them."""

from dataclasses import replace

from kfp_placement_engine.model.limits import CriticalPiece, PieceKind, ScheduledStep
from kfp_placement_engine.model.plan import Bound, Figures, Plan, PlannedDriver, PlannedStep
from kfp_placement_engine.model.run_graph import Notice
from tests.support.plans import (
    a_plan,
    a_step,
    random_plan,
    renamed,
    stuck_plan,
    taxi_plan,
    unplaced_step,
)

ATTACK = "<img src=/attack onerror=\"fetch('/attack')\">'&$(id)\x1b[31m"
"""If any of it became an element, the server would be asked for `/attack`."""


def _in_turn(count: int, nodes: tuple[str, ...], **changes: object) -> list[PlannedStep]:
    """Items of a loop, one node after the other."""
    return [
        a_step(
            f"for-loop-1[{index}].train",
            task="for-loop-1[*].train",
            iteration=(index,),
            node=nodes[index % len(nodes)],
            start_seconds=60.0 + 90.0 * (index // len(nodes)),
            finish_seconds=150.0 + 90.0 * (index // len(nodes)),
            depends_on=("split",),
            **changes,
        )
        for index in range(count)
    ]


def _loop(count: int) -> Plan:
    nodes = ("worker-1", "worker-2", "worker-3")
    steps = [
        a_step("split", node="worker-1", finish_seconds=55.0, duration_seconds=55.0),
        *_in_turn(count, nodes),
        a_step("choose", node="worker-2", start_seconds=2000.0, finish_seconds=2060.0),
    ]
    return a_plan(*steps, cluster_nodes=nodes, run_name=f"loop of {count}")


def _latency() -> Plan:
    places = ("AMSTERDAM-CENTRAL-OFFICE", "BERLIN", "HOME-EDGE")
    steps = [
        a_step(
            f"predict-{index}",
            type="Predict",
            location=place,
            node=f"edge-node-{index}.example.internal",
            start_seconds=3_600.0 * index,
            finish_seconds=45_296.0 * (index + 1),
            duration_seconds=41_696.0,
            latency_ms=9.8 * (index + 1),
            reason=f"lowest round trip to {place} of 3 nodes with room: 9.8 ms, next 41.97 ms",
        )
        for index, place in enumerate(places)
    ]
    return a_plan(
        *steps,
        cluster_nodes=tuple(step.node or "" for step in steps),
        figures=Figures(0, 0.0, 58.8, 135_888.0),
        baselines={
            "kube-default": Figures(
                0, 112.3, 171.1, 140_000.0, 130_000.0, 150_000.0, tie_breaks=24
            ),
            "heft": Figures(0, 112.3, 171.1, 120_000.0),
        },
    )


def _conditional() -> Plan:
    return a_plan(
        a_step("evaluate"),
        a_step("condition-1.deploy", task="deploy", conditional=True, depends_on=("evaluate",)),
        a_step("for-loop-2[0].report", assumed=True, depends_on=("evaluate",)),
        run_name="conditional",
        policy=("objective: packing",),
    )


def _long_names() -> Plan:
    name = "prepare-the-features-of-everything-that-came-in-since-yesterday-" * 4
    plan = taxi_plan()
    steps = [
        replace(step, name=f"{name}{index}", task=f"{name}{index}", depends_on=())
        for index, step in enumerate(plan.steps)
    ]
    steps[1] = replace(steps[1], name="W" * 60_000, task="W" * 60_000, node="M" * 253)
    return replace(plan, steps=tuple(steps), run_name=name, notices=(Notice(name, name * 3, name),))


def _wide_cluster() -> Plan:
    return random_plan(60, 60, fan=1, name="scan-the-archive-for-objects-of-class")


def _cached() -> Plan:
    return a_plan(
        a_step("fetch", node=None, cached=True, finish_seconds=5.0, duration_seconds=0.0),
        a_step("train", depends_on=("fetch",), start_seconds=10.0, finish_seconds=70.0),
        unplaced_step("hit", cached=True, reason="taken from the cache"),
    )


def _lead() -> Plan:
    """Unequal steps of a fan-out, and the default scheduler's schedule beside the plan."""
    minutes = {"bayes": 3, "forest": 9, "lasso": 5, "ridge": 6, "trees": 8, "xgboost": 24}
    nodes = ("worker-1", "worker-2", "worker-3")
    starts = {
        "xgboost": 2.0,
        "forest": 2.0,
        "trees": 2.0,
        "ridge": 10.0,
        "lasso": 11.0,
        "bayes": 16.0,
    }
    places = {"xgboost": 0, "forest": 1, "trees": 2, "ridge": 2, "lasso": 1, "bayes": 1}
    late = {"xgboost": 14.0}
    steps = [a_step("fetch", node=nodes[0], finish_seconds=115.0, duration_seconds=115.0)]
    compared = [ScheduledStep("fetch", nodes[0], 0.0, 115.0)]
    for name, length in minutes.items():
        start, end = 60 * starts[name], 60 * (starts[name] + length)
        steps.append(
            a_step(
                f"train-{name}",
                node=nodes[places[name]],
                start_seconds=start,
                finish_seconds=end,
                duration_seconds=60.0 * length,
                depends_on=("fetch",),
                display_name=f"Train a model with {name}",
            )
        )
        later = 60 * late.get(name, starts[name])
        compared.append(
            ScheduledStep(f"train-{name}", nodes[places[name]], later, later + 60 * length)
        )
    pieces = (
        CriticalPiece("fetch", PieceKind.RUNNING, 0.0, 115.0, nodes[0]),
        CriticalPiece("train-xgboost", PieceKind.DRIVER, 115.0, 120.0, nodes[0]),
        CriticalPiece("train-xgboost", PieceKind.RUNNING, 120.0, 1560.0, nodes[0]),
    )
    return a_plan(
        *steps,
        cluster_nodes=nodes,
        run_name="unequal steps",
        figures=Figures(0, 0.0, 0.0, 1560.0),
        lower_bound=Bound(1560.0, "critical-path"),
        baselines={"kube-default": Figures(0, 0.0, 0.0, 2280.0)},
        drivers=(PlannedDriver("", nodes[0], 0.0, 5.0),),
        critical_path=pieces,
        default_schedule=tuple(compared),
    )


def _wfformat() -> Plan:
    return replace(
        random_plan(40, 4, name="individuals_ID000000"),
        run_source="wfformat",
        run_name="1000genome-chameleon-2ch-100k-001",
        dispatch="ordered",
        all_durations_assumed=True,
    )


PLANS: dict[str, Plan] = {
    "small": taxi_plan(),
    "loop": _loop(12),
    "hundred": random_plan(100, 12),
    "hostile": renamed(taxi_plan(), ATTACK),
    "unplaced": stuck_plan(),
    "latency": _latency(),
    "conditional": _conditional(),
    "long-names": _long_names(),
    "right-to-left": renamed(taxi_plan(), "אבג \u202e\u200f دحخ fetch-1"),
    "wide-cluster": _wide_cluster(),
    "cached": _cached(),
    "unequal": _lead(),
    "wfformat": _wfformat(),
}
