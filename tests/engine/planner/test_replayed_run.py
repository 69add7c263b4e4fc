"""A run that has ended, played again with what its steps took."""

from dataclasses import replace

import pytest

from kfp_placement_engine.model.assumptions import Assumptions
from kfp_placement_engine.model.run_graph import ClaimUse, RunClaim
from kfp_placement_engine.planning.replayed_run import MOST_STEPS, StepRun, replayed_seconds
from tests.support.builders import a_cluster, a_kfp_run, a_node, a_run, a_step

CLUSTER = a_cluster(a_node("n1", cpu=1), a_node("n2", cpu=1, speed=2.0))
FAN = a_run(a_step("a"), a_step("b", "a"), a_step("c", "a"), a_step("d", "b", "c"))


def replay(graph, ran, cluster=CLUSTER):
    return replayed_seconds(graph, ran, cluster, Assumptions(driver_seconds=2.0))


RAN = {
    "a": StepRun("n1", 5.0, 100.0),
    "b": StepRun("n1", 200.0, 50.0),
    "c": StepRun("n2", 300.0, 80.0),
    "d": StepRun("n2", 500.0, 20.0),
}


def test_steps_take_what_they_took_on_their_nodes_and_nothing_waits():
    """Times are of the node, however fast it is."""
    assert replay(FAN, RAN) == pytest.approx(100 + 80 + 20)


def test_attempts_that_failed_count_too():
    again = {**RAN, "c": replace(RAN["c"], failed_seconds=30.0)}
    assert replay(FAN, again) == pytest.approx(100 + 30 + 80 + 20)


def test_steps_wait_for_room_in_the_order_in_which_they_ran():
    on_one = {name: replace(each, node="n1") for name, each in RAN.items()}
    assert replay(FAN, on_one) == pytest.approx(100 + 50 + 80 + 20)
    later = {**on_one, "e": StepRun("n1", 700.0, 40.0), "f": StepRun("n2", 800.0, 1.0)}
    graph = replace(FAN, steps=(*FAN.steps, a_step("e"), a_step("f", "e")))
    assert replay(graph, later) == pytest.approx(250 + 40 + 1)


def test_steps_that_did_not_run_take_no_time_and_drivers_take_theirs():
    without = {name: each for name, each in RAN.items() if name != "c"}
    assert replay(FAN, without) == pytest.approx(100 + 50 + 20)
    chain = a_kfp_run(a_step("a"), a_step("b", "a"))
    two = {name: RAN[name] for name in ("a", "b")}
    assert replay(chain, two) == pytest.approx(100 + 50 + 3 * 2)


def test_what_has_changed_of_nodes_since_and_claims_that_are_not_known_hold_nothing_up():
    """They did run there."""
    cordoned = a_cluster(*(replace(each, unschedulable=True) for each in CLUSTER.nodes))
    assert replay(FAN, RAN, cordoned) == pytest.approx(200)
    shared = tuple(replace(each, claims=(ClaimUse("data"),)) for each in FAN.steps)
    graph = replace(FAN, steps=shared, claims=(RunClaim("data"),))
    assert replay(graph, RAN) == pytest.approx(200)


def test_what_cannot_be_played_again_is_not_known():
    assert replay(FAN, {}) is None
    assert replay(FAN, {**RAN, "d": StepRun("gone", 500.0, 20.0)}) is None
    wide = a_run(*(a_step(f"s{number}") for number in range(MOST_STEPS + 1)))
    assert replay(wide, {"s1": RAN["a"]}) is None
