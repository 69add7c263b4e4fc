"""What every backend of queues does: the same cases for the built-in queue and for Kueue itself."""

from collections.abc import Callable

import pytest

from kfp_placement_engine.contract.keys import PREEMPT_ANNOTATION
from tests.controller.queueing.backend_worlds import BuiltinWorld

MakeWorld = Callable[..., BuiltinWorld]


@pytest.fixture
def builtin():
    return BuiltinWorld


@pytest.fixture
def make_world(request):
    """Makes the world of a backend, with a quota."""
    made: MakeWorld = request.getfixturevalue(request.param)
    return made


both = pytest.mark.parametrize(
    "make_world", ["builtin", pytest.param("on_kueue", marks=pytest.mark.cluster)], indirect=True
)


def one_that_runs(make_world: MakeWorld) -> BuiltinWorld:
    """A world in which a run takes three of four CPUs."""
    world = make_world(cpu="4")
    world.submit_run("first", cpu="3")
    world.settle()
    return world


@both
def test_a_run_that_fits_begins(make_world):
    world = make_world(cpu="8")
    world.submit_run("run", cpu="3", memory="2Gi")
    assert world.outcomes() == ["run begins"]
    assert world.settle() == []


@both
def test_a_run_waits_until_another_has_ended(make_world):
    world = one_that_runs(make_world)
    world.submit_run("second", cpu="2")
    assert world.settle() == []
    assert world.phase("second") == "Waiting"
    assert world.message("second").startswith("1st of 1, ")
    assert "cpu" in world.message("second")
    assert world.condition("second") == ("False", "WaitingForQuota")
    world.end_run("first")
    assert world.outcomes() == ["second begins"]


@both
def test_what_a_run_no_longer_needs_is_for_others(make_world):
    world = make_world(cpu="8")
    world.submit_run("first", cpu="6")
    world.settle()
    world.submit_run("second", cpu="5")
    assert world.settle() == []
    world.need("first", cpu="3")
    assert world.outcomes() == ["second begins"]


@both
def test_the_run_of_the_highest_priority_is_next(make_world):
    world = make_world(cpu="4")
    world.submit_run("runs", cpu="4", priority=9)
    world.settle()
    world.submit_run("low", cpu="3", priority=1)
    world.submit_run("high", cpu="3", priority=5)
    assert world.settle() == []
    assert (world.written["high"]["position"], world.written["low"]["position"]) == (1, 2)
    world.end_run("runs")
    assert world.outcomes() == ["high begins"]


@both
def test_a_run_stops_for_one_of_higher_priority_and_goes_on_later(make_world):
    world = make_world(cpu="4")
    world.submit_run("low", cpu="3")
    world.settle()
    pod = world.pod("low", cpu=3000)
    world.submit_run("high", cpu="2", priority=10)
    assert world.outcomes() == ["low stops"]
    assert world.message("low") == "its running steps end, then it waits again"
    world.end_pod(pod)
    assert world.outcomes() == ["high begins"]
    assert world.phase("low") == "Waiting"
    world.end_run("high")
    assert world.outcomes() == ["low goes on"]


@both
def test_a_run_that_is_deleted_takes_nothing(make_world):
    world = one_that_runs(make_world)
    world.submit_run("waits", cpu="3")
    world.submit_run("second", cpu="4")
    world.settle()
    world.delete_run("waits")
    world.delete_run("first")
    assert world.outcomes() == ["second begins"]


@both
def test_a_run_that_fits_no_node_waits_and_takes_nothing(make_world):
    world = make_world(cpu="4")
    world.submit_run("large", cpu="4")
    world.say("large", unschedulable="step a: no node has 4 cpu")
    world.submit_run("small", cpu="2")
    assert world.outcomes() == ["small begins"]
    said = "has a step that fits no node: step a: no node has 4 cpu"
    assert world.message("large").endswith(f", {said}")
    assert world.condition("large") == ("False", "NoMatchingNode")
    world.say("large", unschedulable="")
    world.end_run("small")
    assert world.outcomes() == ["large begins"]


@both
def test_when_the_quota_is_cut_nobody_new_begins_and_others_go_on(make_world):
    world = one_that_runs(make_world)
    world.cut_quota(cpu="2")
    world.submit_run("second", cpu="1")
    assert world.settle() == []
    world.end_run("first")
    assert world.outcomes() == ["second begins"]


@both
def test_a_new_leader_continues(make_world):
    world = make_world(cpu="4")
    world.submit_run("first", cpu="3")
    world.submit_run("second", cpu="3")
    assert world.outcomes() == ["first begins"]
    world.restart()
    assert world.settle() == []
    world.end_run("first")
    world.restart()
    assert world.outcomes() == ["second begins"]


@both
def test_a_run_that_somebody_lets_begin_counts(make_world):
    world = one_that_runs(make_world)
    world.submit_run("second", cpu="3")
    world.settle()
    world.change("second", is_held=False, has_begun=True)
    world.end_run("first")
    world.submit_run("third", cpu="3")
    assert world.settle() == []
    world.end_run("second")
    assert world.outcomes() == ["third begins"]


@both
def test_a_run_that_is_asked_to_stop_waits_behind_others(make_world):
    world = one_that_runs(make_world)
    world.submit_run("second", cpu="3")
    world.settle()
    world.ask("first", PREEMPT_ANNOTATION)
    assert world.outcomes() == ["first stops", "second begins"]
    world.end_run("second")
    assert world.outcomes() == ["first goes on"]


@both
def test_accelerators_have_quota_of_their_own(make_world):
    world = make_world(cpu="40", gpu="2")
    world.submit_run("first", cpu="3", gpu="2")
    world.submit_run("second", cpu="3", gpu="1")
    assert world.outcomes() == ["first begins"]
    world.need("first", cpu="3", gpu="1")
    assert world.outcomes() == ["second begins"]
