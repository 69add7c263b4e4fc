"""Factors of nodes: what runs agree on, and what namespaces share."""

import math

import pytest

from kfp_placement_engine.history import NodeFactors
from kfp_placement_engine.history.node_factors import MOST_NODES

TWICE = math.log(2)


def learned(runs, misses=(TWICE, TWICE, TWICE), namespace="team-a"):
    factors = NodeFactors()
    factors.learn(namespace, {"other": [0.0]})
    for _ in range(runs):
        factors.learn(namespace, {"slow": list(misses)})
    return factors


def test_the_declared_speed_is_where_it_starts():
    factors = NodeFactors({"fast": 2.0})
    assert factors.log_factor("fast", "team-a") == pytest.approx(-TWICE)
    assert factors.log_factor("unknown", "team-a") == 0
    assert factors.log_factor("", "team-a") == 0


def test_a_factor_is_believed_the_more_runs_show_it():
    assert learned(1).log_factor("slow", "team-a") == 0
    few, more, many = (learned(runs).log_factor("slow", "team-a") for runs in (2, 4, 40))
    assert 0.5 * TWICE < few < more < many < TWICE
    assert many == pytest.approx(TWICE, rel=0.05)


def test_where_there_is_one_node_alone_nothing_is_known_of_it():
    """What its runs have in common may come from anywhere."""
    factors = NodeFactors()
    for _ in range(10):
        factors.learn("team-a", {"slow": [TWICE]})
    assert factors.log_factor("slow", "team-a") == 0
    factors.learn("team-a", {"other": [0.0]})
    assert factors.log_factor("slow", "team-a") == pytest.approx(TWICE, rel=0.1)


def test_runs_that_do_not_agree_show_little():
    agreeing, factors = learned(4), learned(0)
    for miss in (TWICE + 0.7, TWICE - 0.7, TWICE + 1.4, TWICE - 1.4):
        factors.learn("team-a", {"slow": [miss]})
    shown = factors.log_factor("slow", "team-a")
    assert 0 < shown < 0.5 * agreeing.log_factor("slow", "team-a")


def test_runs_on_either_side_of_what_was_expected_show_nothing():
    factors = learned(0)
    for number in range(30):
        factors.learn("team-a", {"node": [0.3 if number % 2 else -0.28]})
    assert factors.log_factor("node", "team-a") == 0


def test_one_slow_run_of_several_shows_nothing():
    factors = learned(0)
    for miss in (0.0, 0.0, 3.0):
        factors.learn("team-a", {"node": [miss]})
    assert factors.log_factor("node", "team-a") == 0


def test_many_steps_of_one_run_are_one_witness():
    """A run that was slow as a whole says nothing of the node where it was."""
    assert learned(1, [TWICE] * 500).log_factor("slow", "team-a") == 0
    one, many = learned(2, [TWICE]), learned(2, [TWICE] * 500)
    assert one.log_factor("slow", "team-a") == many.log_factor("slow", "team-a")


def test_another_namespace_learns_of_it_only_when_two_have_shown_it():
    """And only from twenty pods on."""
    factors = learned(10)
    assert factors.log_factor("slow", "team-a") > 0
    assert factors.log_factor("slow", "team-b") == 0
    factors.learn("team-b", {"slow": [TWICE], "other": [0.0]})
    assert factors.log_factor("slow", "team-b") > 0
    assert factors.log_factor("slow", "team-c") > 0


def test_no_namespace_takes_from_another_what_it_saw():
    """Nor does one alone decide for all, and none moves a factor without limit."""
    factors = learned(10)
    before = factors.log_factor("slow", "team-a")
    for _ in range(60):
        factors.learn("team-b", {"slow": [-50.0] * 9})
    assert factors.log_factor("slow", "team-a") == before
    assert abs(factors.log_factor("slow", "team-b")) < 3.1
    assert abs(factors.log_factor("slow", "team-c")) < 1.5


def test_a_run_that_is_slow_everywhere_says_nothing_of_its_nodes():
    factors = NodeFactors()
    for _ in range(10):
        factors.learn("team-a", {"one": [TWICE], "two": [TWICE], "three": [TWICE + 0.4]})
    assert factors.log_factor("one", "team-a") == 0
    assert factors.log_factor("three", "team-a") > 0


def test_few_pods_of_two_namespaces_are_not_shared():
    factors = learned(3)
    factors.learn("team-b", {"slow": [TWICE]})
    assert factors.log_factor("slow", "team-c") == 0


def test_nodes_that_were_not_seen_for_longest_are_forgotten():
    factors = learned(5)
    factors.learn("team-a", {f"node-{number}": [0.0] for number in range(MOST_NODES)})
    assert factors.log_factor("slow", "team-a") == 0


def test_what_a_namespace_saw_is_replaced_at_once_when_it_has_been_observed_again():
    factors = learned(30)
    for _ in range(30):
        factors.learn("team-b", {"slow": [TWICE] * 3})
    factors.learn("team-b", {"other": [0.0]})
    before = factors.log_factor("slow", "team-c")
    again = factors.without("team-a")
    assert again.log_factor("slow", "team-a") == 0
    assert again.log_factor("slow", "team-b") == factors.log_factor("slow", "team-b")
    for _ in range(30):
        again.learn("team-a", {"slow": [0.0] * 3})
    again.learn("team-a", {"other": [0.0]})
    assert factors.log_factor("slow", "team-c") == before
    factors.take("team-a", again)
    assert factors.log_factor("slow", "team-a") == 0
    assert 0 < factors.log_factor("slow", "team-c") < before
