"""The plans whose views are looked at in every renderer: what plans of authors have in them."""

from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.plans.comparison import Bound, Figures, ScheduledStep
from kfp_placement_engine.plans.limits import CriticalPiece, PieceKind
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.planned_step import PlannedDriver
from tests.support.plans import (
    a_plan,
    a_step,
    random_plan,
    renamed,
    stuck_plan,
    taxi_plan,
    unplaced_step,
    varied,
)

ATTACK = "<img src=/attack onerror=\"fetch('/attack')\">'&$(id)\x1b[31m"
"""Text that would ask the server for `/attack` if any of it became an element."""


def _loop(count: int) -> Plan:
    """A fan-out with all that a plan may have: drivers, what limits it, the default's schedule."""
    nodes = ("worker-1", "worker-2", "worker-3")
    items = [
        a_step(
            f"for-loop-1[{index}].train",
            task="for-loop-1[*].train",
            iteration=(index,),
            display_name="Train a model with xgboost",
            node=nodes[index % len(nodes)],
            start_seconds=60.0 + 90.0 * (index // len(nodes)),
            finish_seconds=150.0 + 90.0 * (index // len(nodes)),
            depends_on=("split",),
        )
        for index in range(count)
    ]
    steps = [
        a_step("split", node="worker-1", finish_seconds=55.0, duration_seconds=55.0),
        *items,
        a_step("choose", node="worker-2", start_seconds=2000.0, finish_seconds=2060.0),
    ]
    compared = (
        ScheduledStep(step.name, "worker-1", 90.0 * index, 90.0 * index + 90.0)
        for index, step in enumerate(steps)
    )
    return a_plan(
        *steps,
        cluster_nodes=nodes,
        run_name=f"loop of {count}",
        figures=Figures(0, 0.0, 0.0, 2060.0),
        lower_bound=Bound(2060.0, "critical-path"),
        baselines={"kube-default": Figures(0, 0.0, 0.0, 3280.0)},
        drivers=(PlannedDriver("", "worker-1", 0.0, 5.0),),
        critical_path=(
            CriticalPiece("split", PieceKind.RUNNING, 0.0, 55.0, "worker-1"),
            CriticalPiece("choose", PieceKind.DRIVER, 55.0, 60.0, "worker-1"),
            CriticalPiece("choose", PieceKind.RUNNING, 60.0, 2060.0, "worker-2"),
        ),
        default_schedule=tuple(compared),
    )


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


def _special() -> Plan:
    """Conditional, assumed and cached steps, under a policy."""
    return a_plan(
        a_step("fetch", node=None, cached=True, finish_seconds=5.0, duration_seconds=0.0),
        a_step("evaluate", depends_on=("fetch",), start_seconds=10.0, finish_seconds=70.0),
        a_step("condition-1.deploy", task="deploy", conditional=True, depends_on=("evaluate",)),
        a_step("for-loop-2[0].report", assumed=True, depends_on=("evaluate",)),
        unplaced_step("hit", cached=True, reason="taken from the cache"),
        run_name="special",
        policy=("objective: packing",),
    )


def _long_names() -> Plan:
    name = "prepare-the-features-of-everything-that-came-in-since-yesterday-" * 4
    plan = taxi_plan()
    steps = [
        varied(step, name=f"{name}{index}", task=f"{name}{index}", depends_on=())
        for index, step in enumerate(plan.steps)
    ]
    steps[1] = varied(steps[1], name="W" * 60_000, task="W" * 60_000, node="M" * 253)
    return varied(plan, steps=tuple(steps), run_name=name, notices=(Notice(name, name * 3, name),))


def _assumed() -> Plan:
    return varied(
        random_plan(100, 12, name="individuals_ID000000"),
        run_source="wfformat",
        dispatch="ordered",
        all_durations_assumed=True,
    )


PLANS: dict[str, Plan] = {
    "small": taxi_plan(),
    "loop": _loop(12),
    "hundred, assumed": _assumed(),
    "hostile": renamed(taxi_plan(), ATTACK),
    "unplaced": stuck_plan(),
    "latency": _latency(),
    "special": _special(),
    "long-names": _long_names(),
    "right-to-left": renamed(taxi_plan(), "אבג \u202e\u200f دحخ fetch-1"),
    "wide-cluster": random_plan(60, 60, fan=1, name="scan-the-archive-for-objects-of-class"),
}
