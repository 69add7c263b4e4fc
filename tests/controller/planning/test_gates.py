"""Gates: whose turn it is, and that nothing waits for ever."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_controller.observed.gate_deadlines import StartWindow
from kfp_placement_controller.planning.gates import Cause, GatedPod, UnboundStep, releases
from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.run_graph import StartLimit
from kfp_placement_engine.planning.starts.node_queue import QueuedStep, RunningStep
from tests.controller.planning.builders import a_pod, after
from tests.support.kubernetes import a_node

RUN = RunKey("team", "run")
NODES = {name: a_node(name, allocatable={"cpu": 2000}) for name in ("n1", "n2")}


def gated(name: str, step: str | None = None, **fields) -> GatedPod:
    pod = a_pod(name, gates=(PLAN_GATE,), **fields)
    return GatedPod(pod, RUN, name if step is None else step)


def turn(step: str, start: float, node: str = "n1", cpu: int = 1000, **fields) -> UnboundStep:
    return UnboundStep(RUN, step, node, QueuedStep({"cpu": cpu}, start, **fields))


def opened(pods, planned_steps, *, nodes=NODES, seconds=1.0, running=None):
    return releases(pods, planned_steps, nodes, after(seconds), 60.0, running or {})


def test_a_pod_goes_to_its_node_when_there_is_room():
    (release,) = opened([gated("a")], [turn("a", 0)])
    assert (release.cause, release.hosts) == (Cause.TURN, ())
    assert (release.pod.name, release.node) == ("a", "n1")


def test_a_pod_waits_for_room_on_its_node():
    full = {"n1": a_node("n1", allocatable={"cpu": 2000}, used={"cpu": 1500}), "n2": NODES["n2"]}
    assert opened([gated("a")], [turn("a", 0)], nodes=full) == []


def test_a_pod_leaves_alone_the_room_of_those_before_it():
    """`b` is ready first, but `a`, which is not there yet, comes before it and needs the node."""
    planned_steps = [turn("a", 0, cpu=2000), turn("b", 10)]
    assert opened([gated("b")], planned_steps) == []


def test_a_pod_uses_room_that_those_before_it_do_not_need():
    planned_steps = [turn("a", 0, cpu=1000), turn("b", 10, cpu=1000)]
    assert [each.pod.name for each in opened([gated("b")], planned_steps)] == ["b"]


# 2 CPU, 1 of them taken by a step that ends in 30 s; `big` needs both and is next.
GAP_NODES = {"n1": a_node("n1", allocatable={"cpu": 2000}, used={"cpu": 1000})}
BUSY = (RunningStep({"cpu": 1000}, after(0).timestamp(), after(31).timestamp()),)
BIG = gated("big", requests={"cpu": 2000})


def filled(seconds: float, *, running=BUSY, big=True, is_allowed=False, others=(), planned=21.0):
    pods = [gated("small"), *map(gated, others), *([BIG] if big else [])]
    start = after(planned).timestamp()
    first = turn("big", start, cpu=2000, is_allowed=is_allowed)
    rest = [turn(name, start + 1, seconds=seconds) for name in ("small", *others)]
    gates = opened(pods, [first, *rest], nodes=GAP_NODES, running={"n1": running})
    return [each.pod.name for each in gates]


def test_a_step_that_ends_before_the_next_can_begin_fills_the_gap():
    assert filled(30.0) == ["small"]


def test_a_longer_one_waits():
    assert filled(30.1) == []


def test_a_gap_is_filled_once():
    assert filled(10.0, others=("other",)) == ["other"]


def test_nobody_overtakes_while_the_next_waits_for_what_has_no_known_end():
    assert filled(1.0, running=(), planned=1.0) == []


def test_a_step_without_a_pod_is_expected_when_it_is_planned():
    assert filled(30.0, big=False, planned=31.0) == ["small"]
    assert filled(30.1, big=False, planned=31.0) == []


def test_room_of_a_pod_that_is_on_its_way_is_taken():
    assert filled(1.0, big=False, is_allowed=True) == []


def test_starts_follow_the_plan_not_the_order_of_creation():
    first_created = gated("late", requests={"cpu": 2000})
    planned_steps = [turn("late", 20, cpu=2000), turn("soon", 5, cpu=2000)]
    gates = opened([first_created, gated("soon", requests={"cpu": 2000})], planned_steps)
    assert [each.pod.name for each in gates] == ["soon"]


@pytest.mark.parametrize("step", ["", "not planned"])
def test_a_pod_that_no_plan_knows_does_not_wait(step):
    (release,) = opened([gated("a", step)], [])
    assert (release.node, release.cause) == ("", Cause.NOT_PLANNED)


def test_a_pod_whose_node_is_gone_does_not_wait():
    (release,) = opened([gated("a")], [turn("a", 0, node="lost")])
    assert (release.node, release.cause) == ("", Cause.NODE_GONE)


def test_the_deadline_holds_whatever_the_plan_says():
    full = {"n1": a_node("n1", allocatable={"cpu": 0})}
    late = gated("a")
    assert opened([late], [turn("a", 0)], nodes=full, seconds=59.9) == []
    (release,) = opened([late], [turn("a", 0)], nodes=full, seconds=60)
    assert (release.node, release.cause) == ("", Cause.OVERDUE)


def test_a_pod_of_unknown_age_is_overdue():
    (release,) = opened([gated("a", created_at=None)], [turn("a", 0)])
    assert release.cause is Cause.OVERDUE


LIMIT = StartLimit(20.0, "pendingTimeout")


@pytest.mark.parametrize(
    ("pull_seconds", "begins", "kept_seconds"),
    [(0.0, 0.0, 10.0), (2.0, 0.0, 10.0), (7.0, 0.0, 6.0), (15.0, 0.0, 0.0), (0.0, -4.0, 6.0)],
)
def test_a_pod_that_must_run_soon_keeps_time_for_its_image_and_start(
    pull_seconds, begins, kept_seconds
):
    """Half of its limit at least, counted from its node in the run's object, not from the pod."""
    full = {"n1": a_node("n1", allocatable={"cpu": 0})}
    window = StartWindow(LIMIT, after(begins), pull_seconds)
    waiting = replace(gated("a"), window=window)
    if kept_seconds:
        assert opened([waiting], [turn("a", 0)], nodes=full, seconds=kept_seconds - 0.1) == []
    (release,) = opened([waiting], [turn("a", 0)], nodes=full, seconds=kept_seconds)
    assert (release.node, release.cause) == ("", Cause.OVERDUE)


def test_a_long_limit_keeps_no_gate_beyond_the_deadline():
    full = {"n1": a_node("n1", allocatable={"cpu": 0})}
    waiting = replace(gated("a"), window=StartWindow(StartLimit(3600.0, "timeout"), after(0)))
    assert opened([waiting], [turn("a", 0)], nodes=full, seconds=59.9) == []
    assert opened([waiting], [turn("a", 0)], nodes=full, seconds=60)


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 10 * 366 * 86400.0])
def test_extreme_limits_are_no_problem(seconds):
    pod = gated("a", start_limit=StartLimit(seconds, "timeout"))
    assert len(opened([pod], [], seconds=0.1)) == 1


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 4000), st.sampled_from(["n1", "n2", "x"])),
        max_size=12,
    ),
    st.floats(0, 120),
)
def test_no_node_is_overbooked_and_nothing_outlives_its_deadline(steps, seconds):
    pods = [gated(f"s{i}", requests={"cpu": cpu}) for i, (_, cpu, _) in enumerate(steps)]
    planned_steps = [turn(f"s{i}", start, node, cpu) for i, (start, cpu, node) in enumerate(steps)]
    gates = opened(pods, planned_steps, seconds=seconds)
    if seconds >= 60:
        assert {each.pod.name for each in gates} == {each.pod.name for each in pods}
        return
    for name, node in NODES.items():
        there = [each.pod.requests["cpu"] for each in gates if each.node == name]
        assert sum(there) <= node.allocatable["cpu"]
