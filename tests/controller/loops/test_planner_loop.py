"""The loop of `plan`: what is taken in before anything is decided, and when it hangs."""

import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kfp_placement_controller.kinds import PLACEMENTS
from kfp_placement_controller.loops.decision_loop import STUCK_SECONDS
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.loops.planner_loop import PlannerLoop
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_kube.exceptions import UnreachableError
from tests.controller.actuators.test_leading import Scene as LeadingScene
from tests.controller.memory_placements import MemoryPlacements

START = datetime(2026, 11, 20, 10, tzinfo=UTC)


class Scene:
    """A loop that ends at its first decision, and a clock that goes on by a second at each look."""

    def __init__(self) -> None:
        self.now = START
        self.seen: list[object] = []
        self.inbox: Inbox[Coordinator] = Inbox()
        coordinator = Coordinator(DEFAULT_SOURCES, self.monotonic)
        leading: Any = self
        runner: Any = None
        self.loop = PlannerLoop(
            coordinator, self.inbox, lambda: self.now, self.monotonic, leading, runner
        )

    def monotonic(self) -> float:
        """Later each time."""
        self.now += timedelta(seconds=1)
        return self.now.timestamp()

    def follow_election(self, _coordinator: Coordinator) -> None:
        """The first decision is the last."""
        self.seen.append("decides")
        self.loop.stop()

    def run(self, is_synced: Callable[[], bool] = lambda: True) -> None:
        """Work until the first decision."""
        self.loop.run(is_synced, lambda: self.seen.append("stands for election"))

    def tell(self, what: object) -> None:
        """Put a message into the inbox."""
        self.inbox.put(lambda _coordinator, _now: self.seen.append(what))


@pytest.fixture
def scene():
    return Scene()


def test_what_was_there_at_the_start_is_taken_in_whole_before_the_election(scene):
    """However long it takes."""
    for number in range(3):
        scene.tell(number)
    scene.run()
    assert scene.seen == [0, 1, 2, "stands for election", "decides"]
    assert scene.loop.caught_up


def test_nothing_is_decided_before_everything_was_seen(scene):
    synced = iter((False, False, True))

    def is_synced() -> bool:
        scene.inbox.wake()
        scene.seen.append("looks")
        return next(synced)

    scene.run(is_synced)
    assert scene.seen == ["looks", "looks", "looks", "stands for election", "decides"]


def test_changes_after_the_start_hold_up_no_decision(scene):
    scene.loop.caught_up = True
    for number in range(3):
        scene.tell(number)
    scene.run()
    assert scene.seen == [0, "decides"]


def test_a_signal_can_stop_the_loop_between_any_two_calls(scene):
    scene.follow_election = lambda _: sys.setprofile(lambda *_: scene.loop.stop())
    thread = threading.Thread(target=scene.run, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_a_loop_that_has_not_come_round_for_long_hangs(scene):
    assert scene.loop.stuck() == ""
    scene.now += timedelta(seconds=STUCK_SECONDS)
    assert scene.loop.stuck() == "the planner's loop has not come round for 122 s"


class NotedPlacements(MemoryPlacements):
    """Notes what is written in which order.

    Attributes:
        written: "plan" or "status" for each write.
        failures: number of creations that fail before one succeeds.
    """

    def __init__(self, failures: int = 0) -> None:
        super().__init__()
        self.written: list[str] = []
        self.failures = failures

    def create(self, kind, body):
        """Note that a plan is written, unless it fails."""
        if kind != PLACEMENTS:
            raise UnreachableError("nobody needs it here")
        if self.failures:
            self.failures -= 1
            raise UnreachableError("the connection broke")
        self.written.append("plan")
        return super().create(kind, body)

    def patch(self, *args, subresource="", **options):
        """Note what is written."""
        self.written.append(subresource or "plan")
        return super().patch(*args, subresource=subresource, **options)


def write_two_runs(placements: NotedPlacements) -> None:
    """Two new runs come at once; ends with the second status."""
    scene = LeadingScene(placements, 0)
    for number in range(2):
        scene.submit(f"run-{number}", f"uid-{number}")

    def clock() -> datetime:
        scene.now += timedelta(seconds=1)
        return scene.now

    loop = PlannerLoop(
        scene.coordinator, Inbox(), clock, scene.monotonic, scene.leading, scene.runner
    )
    loop.caught_up = True
    placements.patch = with_stop(placements, loop)  # type: ignore[method-assign]
    thread = threading.Thread(target=loop.run, args=(lambda: True, lambda: None), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def with_stop(placements: NotedPlacements, loop: PlannerLoop) -> Callable[..., Any]:
    """The write that stops the loop once two statuses are written."""
    patch = placements.patch

    def write(*args: Any, **options: Any) -> Any:
        stored = patch(*args, **options)
        if placements.written.count("status") == 2:
            loop.stop()
        return stored

    return write


def test_first_plans_are_written_before_any_status():
    placements = NotedPlacements()
    write_two_runs(placements)
    assert placements.written == ["plan", "plan", "status", "status"]


def test_a_first_plan_that_could_not_be_written_is_tried_again_and_no_status_without_it():
    placements = NotedPlacements(failures=2)
    write_two_runs(placements)
    assert placements.written == ["plan", "plan", "status", "status"]
