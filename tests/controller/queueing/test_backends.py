"""What every backend of queues does: the same cases for the built-in queue and for Kueue itself."""

from collections.abc import Callable
from functools import partial

import pytest

from kfp_placement_engine.contract.keys import PREEMPT_ANNOTATION
from tests.controller.queueing.backend_worlds import BuiltinWorld

MakeWorld = Callable[..., BuiltinWorld]


@pytest.fixture
def builtin(make):
    """Makes worlds in which the built-in queue admits runs."""
    return partial(make, BuiltinWorld)


@pytest.fixture
def make_world(request):
    """Makes the world of a backend, with a quota."""
    return request.getfixturevalue(request.param)


both = pytest.mark.parametrize(
    "make_world", ["builtin", pytest.param("on_kueue", marks=pytest.mark.cluster)], indirect=True
)


def one_that_runs(make_world: MakeWorld) -> BuiltinWorld:
    """A world in which a run takes three of four CPUs."""
    world = make_world(cpu="4")
    world.submit_run("first", cpu="3")
    world.wait_for("first begins")
    return world


@both
def test_a_run_that_fits_begins(make_world):
    world = make_world(cpu="8")
    world.submit_run("run", cpu="3", memory="2Gi")
    world.wait_for("run begins")


@both
def test_a_run_waits_until_another_has_ended(make_world):
    world = one_that_runs(make_world)
    world.submit_run("second", cpu="2")
    world.wait_until_refused("second")
    assert world.phase("second") == "Waiting"
    assert world.message("second").startswith("1st of 1, ")
    assert world.condition("second") == ("False", "WaitingForQuota")
    world.end_run("first")
    world.wait_for("second begins")


@both
def test_what_a_run_no_longer_needs_is_for_others(make_world):
    world = make_world(cpu="8")
    world.submit_run("first", cpu="6")
    world.wait_for("first begins")
    world.submit_run("second", cpu="5")
    world.wait_until_refused("second")
    world.need("first", cpu="3")
    world.wait_for("second begins")


@both
def test_the_run_of_the_highest_priority_is_next(make_world):
    world = make_world(cpu="4")
    world.submit_run("runs", cpu="4", priority=9)
    world.wait_for("runs begins")
    world.submit_run("low", cpu="3", priority=1)
    world.submit_run("high", cpu="3", priority=5)
    world.wait_until_refused("low", "high")
    assert (world.written["high"]["position"], world.written["low"]["position"]) == (1, 2)
    world.end_run("runs")
    world.wait_for("high begins")


@both
def test_a_run_stops_for_one_of_higher_priority_and_goes_on_later(make_world):
    world = make_world(cpu="4")
    world.submit_run("low", cpu="3")
    world.wait_for("low begins")
    pod = world.pod("low", cpu=3000)
    world.submit_run("high", cpu="2", priority=10)
    world.wait_for("low stops")
    world.wait_for_message("low", "its running steps end, then it waits again")
    world.end_pod(pod)
    world.wait_for("high begins")
    assert world.phase("low") == "Waiting"
    world.end_run("high")
    world.wait_for("low goes on")


@both
def test_a_run_that_is_deleted_takes_nothing(make_world):
    world = one_that_runs(make_world)
    world.submit_run("waits", cpu="3")
    world.submit_run("second", cpu="4")
    world.wait_until_refused("waits", "second")
    world.delete_run("waits")
    world.delete_run("first")
    world.wait_for("second begins")


@both
def test_a_run_that_fits_no_node_waits_and_takes_nothing(make_world):
    world = make_world(cpu="4")
    world.submit_run("large", cpu="4")
    world.say("large", unschedulable="step a: no node has 4 cpu")
    world.submit_run("small", cpu="2")
    world.wait_for("small begins")
    message = "has a step that fits no node: step a: no node has 4 cpu"
    assert world.message("large").endswith(f", {message}")
    assert world.condition("large") == ("False", "NoMatchingNode")
    world.say("large", unschedulable="")
    world.end_run("small")
    world.wait_for("large begins")


@both
def test_when_the_quota_is_cut_nobody_new_begins_and_others_go_on(make_world):
    world = one_that_runs(make_world)
    world.cut_quota(cpu="2")
    world.submit_run("second", cpu="1")
    world.wait_until_refused("second")
    world.end_run("first")
    world.wait_for("second begins")


@both
def test_a_new_leader_continues(make_world):
    world = one_that_runs(make_world)
    world.submit_run("second", cpu="3")
    world.wait_until_refused("second")
    del world.written["second"]["message"]
    world.show("second")
    world.lead_again()
    world.wait_until_refused("second")
    world.end_run("first")
    world.lead_again()
    world.wait_for("second begins")


@both
def test_a_run_that_somebody_lets_begin_counts(make_world):
    world = one_that_runs(make_world)
    world.submit_run("second", cpu="3")
    world.wait_until_refused("second")
    world.change("second", is_held=False, has_begun=True)
    world.end_run("first")
    world.wait_until_counted("second")
    world.submit_run("third", cpu="3")
    world.wait_until_refused("third")
    world.end_run("second")
    world.wait_for("third begins")


@both
def test_a_run_that_is_asked_to_stop_waits_behind_others(make_world):
    world = one_that_runs(make_world)
    world.submit_run("second", cpu="3")
    world.wait_until_refused("second")
    world.pass_second()
    world.ask("first", PREEMPT_ANNOTATION)
    world.wait_for("first stops", "second begins")
    world.end_run("second")
    world.wait_for("first goes on")


@both
def test_accelerators_have_quota_of_their_own(make_world):
    world = make_world(cpu="40", gpu="2")
    world.submit_run("first", cpu="3", gpu="2")
    world.wait_for("first begins")
    world.submit_run("second", cpu="3", gpu="1")
    world.wait_for_message("second", "gpu")
    world.need("first", cpu="3", gpu="1")
    world.wait_for("second begins")
