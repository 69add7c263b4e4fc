"""Which steps go near their users, and which nodes are near enough."""

import math

import pytest

from kfp_placement_engine import Cluster, Step
from kfp_placement_engine.model.node_rules.latency import (
    UNKNOWN_MS,
    LatencyRule,
    LatencyTolerance,
    band_limit_ms,
    excess_ms,
    hard_limit_ms,
    is_ruled,
    is_within,
    latency_rule,
    policy_tolerance,
    policy_types,
)

CLUSTER = Cluster((), latencies={"HOME": {"n1": 1.0}, "SHELF": {"n1": 2.0}})


def test_what_a_policy_leaves_open_is_as_usual():
    assert policy_tolerance(None, None) == LatencyTolerance()
    assert policy_tolerance(2.0, None) == LatencyTolerance(milliseconds=2.0)
    assert policy_tolerance(None, 20) == LatencyTolerance(share=0.2)
    assert policy_tolerance(0.0, 0) == LatencyTolerance(0.0, 0.0)


def test_a_type_is_ruled_in_any_case():
    assert is_ruled("Predict", ("predict",))
    assert is_ruled("predict", policy_types(["Show", "PREDICT"]))
    assert not is_ruled("train", ("predict",))


@pytest.mark.parametrize(
    ("location", "own", "assumed", "limit"),
    [
        ("HOME", 5.0, 9.0, 5.0),
        ("HOME", None, 9.0, 9.0),
        ("HOME", None, None, None),
        ("", 5.0, 9.0, None),
    ],
)
def test_a_step_s_own_limit_goes_before_and_none_holds_without_a_location(
    location, own, assumed, limit
):
    assert hard_limit_ms(location, own, assumed) == limit


def test_an_unknown_round_trip_keeps_no_limit():
    assert is_within(5.0, 5.0)
    assert not is_within(5.1, 5.0)
    assert not is_within(UNKNOWN_MS, 5.0)
    assert not is_within(math.nan, 5.0)


def test_only_what_is_beyond_a_limit_counts():
    assert excess_ms(7.5, 5.0) == 2.5
    assert excess_ms(4.0, 5.0) == 0.0


def test_the_band_begins_at_the_best_known_node():
    tolerance = LatencyTolerance(milliseconds=0.5, share=0.1)
    assert tolerance.text == "max(0.5 ms, 10%)"
    assert band_limit_ms([20.0, UNKNOWN_MS, 30.0], tolerance) == 22.0
    assert band_limit_ms([1.0], tolerance) == 1.5
    assert band_limit_ms([UNKNOWN_MS], tolerance) is None
    assert band_limit_ms([], tolerance) is None


@pytest.mark.parametrize(
    ("step", "rule"),
    [
        (Step("a", "a", type="Predict", location="home"), LatencyRule("home", nearest=True)),
        (Step("a", "a", type="x", location="HOME", max_latency_ms=5.0), LatencyRule("HOME")),
        (Step("a", "a", type="x", location="HOME"), LatencyRule()),
        (Step("a", "a", type="Predict"), LatencyRule()),
    ],
)
def test_which_rule_a_step_is_under(step, rule):
    assert latency_rule(step, CLUSTER, ("predict",)) == (rule, None)


@pytest.mark.parametrize(
    ("step", "cluster", "code"),
    [
        (Step("a", "a", max_latency_ms=5.0), CLUSTER, "no-location"),
        (
            Step("a", "a", type="Predict", location="HOMES", max_latency_ms=5.0),
            CLUSTER,
            "unknown-location",
        ),
        (Step("a", "a", type="Predict", location="MOON"), CLUSTER, "unknown-location"),
        (Step("a", "a", location="MOON", max_latency_ms=5.0), Cluster(()), "unknown-location"),
    ],
)
def test_a_rule_that_cannot_hold_is_told(step, cluster, code, golden):
    rule, notice = latency_rule(step, cluster, ("predict",))
    assert rule == LatencyRule()
    assert notice is not None
    assert notice.code == code
    golden(notice.message)
