"""What node labels and Locations say of round trips, and which of them holds."""

import pytest

from kfp_placement_engine import Node
from kfp_placement_engine.model.node_rules.round_trips import (
    LabelRoundTrip,
    StatedPlace,
    latencies_from_labels,
    latencies_to,
    location_labels,
    node_latencies,
    places_by_name,
    with_places,
)

NEAR = LabelRoundTrip("zone", "a", 1.0)
FAR = LabelRoundTrip("region", "eu", 9.0)


def a_node(name: str, **labels: str) -> Node:
    return Node(name, {}, labels=labels)


def test_the_first_entry_that_matches_a_node_counts():
    place = StatedPlace("HOME", "home", (NEAR, FAR))
    assert place.latency_ms({"zone": "a", "region": "eu"}) == 1.0
    assert place.latency_ms({"zone": "b", "region": "eu"}) == 9.0
    assert place.latency_ms({"zone": "b"}) is None


def test_of_two_locations_for_a_place_the_first_counts():
    second, first = StatedPlace("HOME", "b"), StatedPlace("home", "a")
    assert places_by_name([second, first]) == {"home": first}


def test_labels_with_a_prefix_or_another_meaning_are_no_locations():
    labels = {"example.com/home": "1", "Rack": "7", "HOME": "2ms"}
    assert list(location_labels(labels)) == [("HOME", "2ms")]


def test_labels_that_differ_in_case_are_one_location_spelled_as_it_comes_first():
    nodes = (a_node("n1", HOME="1ms", Home="5ms"), a_node("n2", home="2ms", Moon="soon"))
    assert latencies_from_labels(nodes) == {"HOME": {"n1": 1.0, "n2": 2.0}}


def test_a_location_goes_before_labels_also_where_it_says_nothing():
    nodes = (a_node("n1", HOME="5ms", zone="a"), a_node("n2", HOME="6ms", Edge="7ms"))
    place = StatedPlace("home", "home", (NEAR,))
    latencies = with_places(latencies_from_labels(nodes), [place], nodes)
    assert latencies == {"Edge": {"n2": 7.0}, "home": {"n1": 1.0}}
    one_by_one = {node.name: node_latencies(node.labels, {"home": place}) for node in nodes}
    assert one_by_one == {"n1": {"home": 1.0}, "n2": {"edge": 7.0}}


@pytest.mark.parametrize(
    ("location", "trips"), [("HOME", {"n": 1.0}), ("Home", {"n": 2.0}), ("hOME", {"n": 1.0})]
)
def test_a_location_is_looked_up_as_spelled_before_in_any_case(location, trips):
    assert latencies_to(location, {"HOME": {"n": 1.0}, "Home": {"n": 2.0}}) == trips


def test_of_an_unknown_location_nothing_is_known():
    assert latencies_to("MOON", {"HOME": {"n": 1.0}}) == {}
