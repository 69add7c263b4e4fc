"""Simulated queues beside faults: runs that can no longer fit, edits, clocks, refused writes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kfp_placement_controller.observed.liveness import HeldLease
from kfp_placement_controller.queueing.actions import (
    ReleaseHeld,
    ShowHeld,
    SuspendRun,
    WriteQueueStatus,
    WriteRequestStatus,
)
from kfp_placement_controller.queueing.builtin.backend import BuiltinBackend
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.sources.source import RunEnd
from kfp_placement_engine.contract.keys import PREEMPT_ANNOTATION
from kfp_placement_engine.units.times import time_text
from kfp_placement_kube.change import Change
from tests.controller.queueing.builders import START
from tests.controller.queueing.scene import (
    TEAM,
    SimulatedScene,
    a_node,
    a_queue,
    a_quota,
    demand,
    tell_queue,
)

FOUR_CPUS = a_quota(cpu="4")


def pass_days(scene: SimulatedScene) -> list[str]:
    return [each for _ in range(2) for each in scene.settle_after(86_400)]


# Preemption.


def stopped_for_another() -> tuple[SimulatedScene, Any]:
    """A run of three of four CPUs has stopped for one that needs two and a GPU."""
    scene = SimulatedScene(quota=FOUR_CPUS, nodes=[a_node(cpu=64), a_node("gpu", gpu=1)])
    scene.submit_and_settle("low", 0.1, cpu="3")
    pod = scene.pod("low", cpu=3000)
    scene.submit("high", 0.2, priority=10, cpu="2", gpu="1")
    assert scene.settle() == ["low stops for uid-high"]
    return scene, pod


@pytest.mark.parametrize("what", ["unschedulable", "quota", "node"])
def test_a_run_goes_on_if_the_one_that_it_stopped_for_can_never_go(what):
    scene, pod = stopped_for_another()
    if what == "unschedulable":
        scene.say("high", unschedulable="step a: no node has 1 gpu")
    elif what == "quota":
        scene.say("high", cpu="5", gpu="1")
    else:
        scene.place(a_node("gpu", gpu=1, unschedulable=True))
    scene.end_pod(pod)
    assert scene.settle() == ["low goes on: admitted"]
    scene.submit("other", 0.3, cpu="1")
    assert scene.settle() == ["other begins: admitted"]
    assert pass_days(scene) == []


def test_a_run_for_which_others_stopped_gets_their_room_even_if_more_must_go_first():
    scene, pod = stopped_for_another()
    scene.submit("small", 0.3, cpu="3")
    scene.end_pod(pod)
    assert scene.settle() == ["high begins: admitted"]


def two_of_two_cpus() -> SimulatedScene:
    """Two runs use up a quota of four CPUs; the second began a minute after the first."""
    scene = SimulatedScene(quota=FOUR_CPUS, nodes=[a_node(cpu=64)])
    for name, hours in (("one", 0.1), ("two", 0.2)):
        scene.submit_and_settle(name, hours, cpu="2")
        scene.pass_time(60)
    return scene


def test_a_run_that_somebody_has_suspended_is_not_asked_to_stop_but_another_is():
    scene = two_of_two_cpus()
    scene.change("two", is_suspended=True)
    scene.settle()
    scene.submit("high", 0.3, priority=10, cpu="2")
    assert scene.settle() == ["one stops for uid-high", "high begins: admitted"]


def test_a_run_behind_many_that_nobody_can_make_room_for_makes_others_stop():
    scene = SimulatedScene(quota=a_quota(cpu="10"), nodes=[a_node(cpu=64)])
    scene.submit("low", cpu="1")
    scene.submit_and_settle("middle", priority=10, cpu="9")
    for number in range(30):
        hours = 0.1 + number / 1000
        scene.submit(f"large-{number}", hours, priority=10, cpu="5")
    assert scene.settle() == []
    scene.submit("small", 0.9, priority=10, cpu="1")
    assert scene.settle() == ["low stops for uid-small", "small begins: admitted"]


def test_pods_of_a_stopped_gang_that_wait_for_nodes_keep_its_room():
    gang = demand((3, {"cpu": "1", "gpu": "1"}), cpu="3", gpu="3")
    scene = SimulatedScene(nodes=[a_node("a", gpu=2), a_node("b", gpu=2)])
    scene.submit_and_settle("low", 0.1, demand=gang)
    pending = scene.pod("low", node_name="", phase="Pending", cpu=1000)
    scene.submit("high", 0.2, priority=10, demand=gang)
    assert scene.settle() == ["low stops for uid-high"]
    assert scene.settle_after(590) == []
    scene.end_pod(pending)
    assert scene.settle() == ["high begins: admitted"]


# Requests by hand.


def test_a_request_of_a_clock_that_is_ahead_counts_once_from_the_time_that_it_names():
    scene = SimulatedScene()
    scene.submit_and_settle("one", 0.1)
    scene.pass_time(60)
    at = scene.now + timedelta(minutes=4)
    scene.say("one", annotations={PREEMPT_ANNOTATION: time_text(at)})
    outcomes = []
    for _ in range(100):
        outcomes += scene.settle_after(5)
    assert outcomes == ["one stops for request", "one goes on: admitted"]


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "2026-01-05"]
)
@pytest.mark.parametrize("place", ["annotation", "waitingSince", "admittedAt"])
def test_times_at_the_ends_of_the_calendar_do_no_harm(text, place):
    scene = SimulatedScene(runs=0)
    scene.submit_and_settle("run", 0.1)
    if place == "annotation":
        scene.say("run", annotations={PREEMPT_ANNOTATION: text})
    else:
        scene.written["run"] |= {place: text}
        scene.show("run")
    scene.settle_after(60)
    assert (
        scene.message("run")
        == "1st of 1, needs 1 run more than the whole quota, and waits until that is raised"
    )
    assert scene.written["run"].get("admittedAt") is None
    assert scene.written["run"]["waitingSince"] >= time_text(START)
    assert pass_days(scene) == []


# Statuses edited by hand.


def test_what_others_write_into_the_status_of_an_admitted_run_is_put_right():
    scene = SimulatedScene()
    scene.submit_and_settle("one", 0.1)
    right = dict(scene.written["one"])
    (condition,) = right["conditions"]
    scene.written["one"] |= {
        "assignedNodes": [{"labels": [{"key": "gone", "value": "x"}]}],
        "conditions": [{**condition, "reason": "Forged", "message": "forged"}],
        "admittedAt": "2999-01-01T00:00:00Z",
    }
    scene.show("one")
    scene.settle()
    scene.settle_after(10)
    assert scene.written["one"].get("assignedNodes", []) == right.get("assignedNodes", [])
    assert scene.written["one"]["conditions"] == right["conditions"]
    assert scene.written["one"]["admittedAt"] <= time_text(scene.now)


# The planner.


@pytest.mark.parametrize(
    ("policy", "begins"), [("run", ["old begins: admitted"]), ("hold", [])], ids=str
)
def test_a_queue_that_holds_without_a_planner_admits_nobody_then(policy, begins):
    """By what the planner has said before, runs of other queues are admitted as usual."""
    scene = SimulatedScene(onControllerDown=policy, runs=1)
    scene.pass_time(20, planner=False)
    scene.settle()
    scene.submit("old", 0.1)
    assert scene.settle() == begins
    if policy == "hold":
        assert scene.message("old") == "no planner has renewed its Lease for 15 s"
        assert scene.settle_after(5) == ["old begins: admitted"]


@pytest.mark.parametrize("lease", [None, HeldLease("plan-dead", START - timedelta(days=9))])
def test_a_queue_is_not_ready_before_a_planner_was_seen_to_renew_its_lease(lease):
    clock = Clock()
    coordinator = QueueCoordinator(DEFAULT_SOURCES, (BuiltinBackend(),), clock.monotonic)
    coordinator.planner_lease(lease)
    lead_with_a_queue(coordinator)
    assert ready(coordinator, clock, 0.0) == ready(coordinator, clock, 10.0) == []
    for seconds in (0, 2):
        lease = HeldLease("plan", START + timedelta(seconds=seconds))
        clock.seconds = 11.0 + seconds
        coordinator.planner_lease(lease)
    assert ready(coordinator, clock, 16.0) == [True]


def test_nor_if_none_ever_does():
    clock = Clock()
    coordinator = QueueCoordinator(DEFAULT_SOURCES, (BuiltinBackend(),), clock.monotonic)
    lead_with_a_queue(coordinator)
    assert ready(coordinator, clock, 0.0) == []
    assert ready(coordinator, clock, 16.0) == [False]


def test_who_leads_after_an_outage_gives_the_planner_its_time_again():
    """Nobody could renew a Lease without the API server."""
    clock = Clock()
    coordinator = QueueCoordinator(DEFAULT_SOURCES, (BuiltinBackend(),), clock.monotonic)
    for seconds in (0, 2):
        clock.seconds = float(seconds)
        coordinator.planner_lease(HeldLease("plan", START + timedelta(seconds=seconds)))
    clock.seconds = 40.0
    lead_with_a_queue(coordinator)
    assert ready(coordinator, clock, 40.0) == ready(coordinator, clock, 50.0) == []
    assert ready(coordinator, clock, 56.0) == [False]


def lead_with_a_queue(coordinator: QueueCoordinator) -> None:
    queue = a_queue()
    tell_queue(coordinator, queue.key, queue)
    coordinator.follow_election(1)


class Clock:
    """Seconds that tests count."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


def ready(coordinator: QueueCoordinator, clock: Clock, seconds: float) -> list[Any]:
    clock.seconds = seconds
    return [
        each.fields.get("ready")
        for each in coordinator.tick(START + timedelta(seconds=seconds)) or []
        if isinstance(each, WriteQueueStatus)
    ]


# Writes.


def settle_without(
    scene: SimulatedScene,
    kind: type[ReleaseHeld] | type[ShowHeld] | type[SuspendRun],
    name: str,
    seconds: float,
    *,
    refused: bool,
) -> list[str]:
    """Carry out all but one kind of action on one run; returns what happened, and each such try.

    Args:
        scene: what is simulated.
        kind: of the action.
        name: of the run.
        seconds: how long.
        refused: whether the API server says that it never will; else it says nothing for now.
    """
    outcomes = []
    until = scene.now + timedelta(seconds=seconds)
    while scene.now < until:
        for action in scene.actions():
            if isinstance(action, kind) and action.run.key.name == name:
                outcomes.append(f"{kind.__name__} {name}")
                if refused:
                    scene.coordinator.steering.refused(action)
            else:
                outcomes += scene.carry_out(action)
        scene.pass_time(0.5)
    return outcomes


def two_for_one_place() -> SimulatedScene:
    scene = SimulatedScene(runs=1)
    scene.submit("first", 0.1)
    scene.submit("next", 0.2)
    return scene


def test_a_run_whose_release_is_refused_gives_its_place_to_others_and_is_tried_again():
    scene = two_for_one_place()
    outcomes = settle_without(scene, ReleaseHeld, "first", 30, refused=True)
    assert outcomes == ["ReleaseHeld first", "next begins: admitted"]
    assert scene.message("first") == (
        "may begin, but its object cannot be changed: that is tried again every minute"
    )
    scene.end("next")
    assert scene.settle_after(61) == ["first begins: admitted"]


def test_a_run_whose_release_fails_for_now_keeps_its_place_and_is_tried_again_soon():
    scene = two_for_one_place()
    outcomes = settle_without(scene, ReleaseHeld, "first", 30, refused=False)
    assert set(outcomes) == {"ReleaseHeld first"}
    assert 5 <= len(outcomes) <= 30
    assert scene.settle() == ["first begins: admitted"]


def test_a_terminated_run_is_released_even_if_that_was_refused_before():
    scene = two_for_one_place()
    settle_without(scene, ReleaseHeld, "first", 5, refused=True)
    scene.change("first", is_terminated=True)
    assert scene.settle() == ["first begins: terminated"]


def test_where_a_run_cannot_be_stopped_another_is():
    scene = two_of_two_cpus()
    scene.submit("high", 0.3, priority=10, cpu="2")
    outcomes = settle_without(scene, SuspendRun, "two", 10, refused=True)
    assert outcomes == ["SuspendRun two", "one stops for uid-high", "high begins: admitted"]


def test_what_a_run_cannot_be_let_say_is_not_tried_all_the_time():
    scene = SimulatedScene(runs=0)
    scene.submit("run", 0.1)
    outcomes = settle_without(scene, ShowHeld, "run", 300, refused=True)
    assert 3 <= len(outcomes) <= 6


def test_a_run_that_waits_is_not_written_about_while_nothing_happens():
    """Only as what is left of its wait is halved, and halved again."""
    scene = SimulatedScene(runs=1, status={"waitRatios": 10 * [0.5, 2.0]}, nodes=[a_node()])
    scene.submit("old", 0.9, makespan="1h")
    for number in range(10):
        scene.submit(f"run-{number}", 1.0 + number / 1000, makespan="5m")
    scene.settle()
    writes = []
    for _ in range(10 * 60 // 5):
        scene.pass_time(5)
        for action in scene.actions():
            writes.append(type(action).__name__)
            scene.carry_out(action)
    assert len(writes) <= 10


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_is_set_frees_nobody_and_holds_nothing_up(hours):
    scene = SimulatedScene(runs=1)
    scene.submit("first", 0.1)
    scene.submit("next", 0.2, demand=None)
    assert scene.settle() == ["first begins: admitted"]
    scene.set_clock(timedelta(hours=hours))
    assert scene.settle() == []
    scene.pass_time(1)
    scene.say("next", demand={})
    scene.end("first")
    assert scene.settle() == ["next begins: admitted"]


def test_nothing_is_said_of_a_run_between_its_admission_and_its_beginning():
    scene = SimulatedScene()
    scene.submit("run", 0.1)
    written = []
    for _ in range(6):
        for action in scene.actions():
            written += [action.fields["phase"]] if isinstance(action, WriteRequestStatus) else []
            scene.carry_out(action)
    assert written == ["Admitted"]


def test_amounts_that_change_for_many_runs_are_written_in_turn():
    """Each change of what one run takes changes what a hundred others lack."""
    scene = SimulatedScene(overcommit=1, nodes=[a_node(cpu=64)])
    scene.submit("large", 0.0, cpu="60")
    for number in range(100):
        scene.submit(f"run-{number:03}", 0.1, cpu="10")
    scene.settle()
    scene.settle_after(30)
    scene.say("large", cpu="59")
    scene.pass_time(1)
    seen: list[str] = []
    for _ in range(100):
        actions = [each for each in scene.actions() if isinstance(each, WriteRequestStatus)]
        assert len(actions) <= 20
        for action in actions:
            seen.append(action.key.name)
            scene.carry_out(action)
        scene.pass_time(0.5)
    # Each in its turn, and none a second time before all others.
    assert len(seen) >= 100
    assert len({*seen[:100]}) == 100


def test_a_status_that_cannot_be_read_is_written_whole_and_not_again_and_again():
    scene = SimulatedScene(runs=0)
    scene.submit_and_settle("run", 0.1)
    scene.written["run"] = {"phase": "Waiting", "admittedAt": "0001-01-01T00:00:00+14:00"}
    scene.show("run")
    scene.settle()
    scene.pass_time(20)
    assert [each for each in scene.actions() if isinstance(each, WriteRequestStatus)] == []


def test_a_run_waits_for_a_planner_that_is_busy_with_others_but_not_forever():
    """Of many new runs the last is planned after minutes; it must not pass the quota."""
    scene = SimulatedScene(holdDeadline="30s", runs=1)
    scene.submit("first", 1.0)
    scene.submit_unknown("last", 1.0)
    assert scene.settle() == ["first begins: admitted"]
    for number in range(20):
        scene.pass_time(25)
        scene.submit_unknown(f"run-{number}", 1.0)
        scene.say(f"run-{number}", demand={})
        outcomes = scene.settle()
        if outcomes:
            break
    assert outcomes == ["last begins: no-demand"]
    assert 30 * 10 <= 25 * (number + 1) <= 30 * 12 + 25


def test_what_changes_in_runs_that_go_on_and_matters_to_no_queue_causes_no_decision():
    scene = SimulatedScene()
    scene.submit_and_settle("run")
    run = scene.by_name["run"]
    for end in None, RunEnd.SUCCEEDED:
        new = replace(run, version=str(end), end=end)
        scene.coordinator.handle(run.owner.kind, Change((TEAM, "run"), run, new))
        scene.pass_time(0.2, planner=False)
        assert (scene.coordinator.tick(scene.now) is None) is (end is None)


def test_a_run_that_was_stopped_by_request_stops_nobody_else_and_stops_once():
    scene = SimulatedScene(runs=1)
    scene.submit("high", 0.1, priority=50)
    scene.submit("low", 0.2)
    assert scene.settle() == ["high begins: admitted"]
    scene.ask("high", PREEMPT_ANNOTATION)
    assert scene.settle() == ["high stops for request", "low begins: admitted"]
    assert pass_days(scene) == []
    scene.end("low")
    assert scene.settle() == ["high goes on: admitted"]
    assert pass_days(scene) == []
