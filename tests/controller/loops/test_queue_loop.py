"""The thread of the queue: what it has decided is carried out while it leads, and no longer."""

from datetime import timedelta
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from kfp_placement_controller.actuators.queue_actions import QueueActionRunner
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.loops.kueue_following import KueueFollowing
from kfp_placement_controller.loops.queue_loop import QueueLoop
from kfp_placement_controller.queueing.actions import ReleaseHeld
from tests.controller.queueing.builders import START
from tests.controller.queueing.scene import Scene, a_queue, a_run

if TYPE_CHECKING:
    from kfp_placement_controller.queueing.coordinator import QueueCoordinator


class Election:
    """Says with which epoch we lead."""

    def __init__(self) -> None:
        self.epoch: int | None = 1


def a_loop(scene: Scene, election: Election, runner: Mock) -> QueueLoop:
    inbox: Inbox[QueueCoordinator] = Inbox()
    return QueueLoop(
        scene.coordinator,
        inbox,
        lambda: scene.now,
        scene.monotonic,
        election,  # type: ignore[arg-type]
        Mock(KueueFollowing),
        runner,
    )


@pytest.fixture
def runner() -> Mock:
    return Mock(QueueActionRunner)


def released(runner: Mock) -> list[str]:
    actions = [call.args[0] for call in runner.run.call_args_list]
    return [each.run.key.name for each in actions if isinstance(each, ReleaseHeld)]


@pytest.fixture
def scene() -> Scene:
    """Two runs that may start."""
    scene = Scene(a_queue())
    scene.tell(a_run("first", 0.1), a_run("second", 0.2))
    scene.pass_time(1)
    return scene


def decide(loop: QueueLoop, runner: Mock) -> list[str]:
    """Let the loop decide once."""

    def stop(_coordinator: object, _now: object) -> None:
        loop.stop()

    loop.inbox.wake()
    loop.run(lambda: True, lambda: loop.inbox.put(stop))
    return released(runner)


def test_what_is_decided_is_carried_out_in_order(scene, runner):
    assert decide(a_loop(scene, Election(), runner), runner) == ["first", "second"]


def test_nothing_more_is_written_once_another_process_leads(scene, runner):
    """Its Lease is lost while the first release is being written."""
    election = Election()

    def lose(_action: object) -> None:
        election.epoch = None

    runner.run.side_effect = lose
    assert decide(a_loop(scene, election, runner), runner) == ["first"]


def test_nor_while_the_process_ends(scene, runner):
    loop = a_loop(scene, Election(), runner)
    runner.run.side_effect = lambda _action: loop.stop()
    assert decide(loop, runner) == ["first"]


def test_a_leader_that_has_lost_its_lease_follows(scene, runner):
    election = Election()
    loop = a_loop(scene, election, runner)
    election.epoch = None
    assert decide(loop, runner) == []
    assert scene.coordinator.epoch is None
    assert scene.now > START + timedelta(hours=1)
