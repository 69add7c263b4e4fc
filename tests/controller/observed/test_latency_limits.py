"""Which nodes a pod under a hard limit may go to once its gate is off."""

import pytest

from kfp_placement_controller.observed.latency_limits import (
    MAX_HOSTS,
    HardLimit,
    hard_limit,
    limit_ms,
)
from kfp_placement_engine.contract.keys import HOST_LABEL
from tests.controller.planning.builders import a_pod, a_policy

TRIPS = {"n1": 12.0, "n2": 3.0, "n3": 20.0, "far": 20.1}
LABELS = {name: {HOST_LABEL: f"host-{name}"} for name in (*TRIPS, "unknown")}
BY_TYPE = a_policy(defaults={"byType": [{"type": "Predict", "maxLatency": "9ms"}]})


def limit_of(trips=TRIPS, labels=LABELS, planned="", paused=False, **pod):
    limited = a_pod(location="HOME", **{"max_latency_ms": 20.0, **pod})
    return hard_limit(limited, a_policy(paused=paused), trips, labels, planned)


def test_nodes_within_the_limit_are_named_the_nearest_first():
    assert limit_of() == HardLimit(20.0, ("host-n2", "host-n1", "host-n3"))


def test_the_planned_node_comes_first_if_it_is_within():
    assert limit_of(planned="n3").hosts == ("host-n3", "host-n2", "host-n1")
    assert limit_of(planned="far").hosts == ("host-n2", "host-n1", "host-n3")


def test_where_none_is_within_it_requires_what_there_is_not():
    limit = limit_of(max_latency_ms=2.5)
    assert limit.hosts == ()
    assert limit.required == ("no-node-within-2.5ms",)


def test_a_limit_of_zero_is_one():
    assert limit_of(max_latency_ms=0.0).hosts == ()


@pytest.mark.parametrize("pod", [{"location": ""}, {"max_latency_ms": None}])
def test_without_location_or_limit_there_is_none(pod):
    assert limit_ms(a_pod(**{"location": "HOME", "max_latency_ms": 20.0, **pod}), BY_TYPE) is None


def test_the_policy_says_a_limit_for_a_type_and_the_step_says_another():
    predict = a_pod(location="HOME", step_type="predict")
    assert limit_ms(predict, BY_TYPE) == 9.0
    assert limit_ms(a_pod(location="HOME", step_type="x", max_latency_ms=5.0), BY_TYPE) == 5.0


def test_a_place_that_no_node_knows_limits_nothing():
    assert limit_of(trips={}) is None


def test_a_pause_limits_nothing():
    assert limit_of(paused=True) is None


def test_nodes_that_are_gone_are_not_named():
    assert limit_of(labels={"n1": LABELS["n1"]}).hosts == ("host-n1",)


def test_a_host_label_that_is_missing_or_borne_by_a_node_beyond_names_nobody():
    labels = {**LABELS, "n1": {}, "far": LABELS["n2"]}
    assert limit_of(labels=labels).hosts == ("host-n3",)


def test_a_host_label_that_nodes_within_share_is_named_once():
    assert limit_of(labels={**LABELS, "n3": LABELS["n1"]}).hosts == ("host-n2", "host-n1")


def test_of_very_many_the_nearest_are_named():
    trips = {f"n{number:03}": number / 10 for number in range(150)}
    labels = {name: {HOST_LABEL: name} for name in trips}
    hosts = limit_of(trips, labels, planned="n149").hosts
    assert hosts == ("n149", *(f"n{number:03}" for number in range(MAX_HOSTS - 1)))
