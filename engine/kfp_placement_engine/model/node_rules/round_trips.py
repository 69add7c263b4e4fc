"""Round trips between nodes and places: node labels and Locations, and which of them counts.

A node label that has the name of a place, in any case, is the node's round trip to it. A Location
takes precedence over labels of its name, also for nodes of which it says nothing: their round trip
is unknown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.pod_constraints import Labels
from kfp_placement_engine.units.durations import parse_latency_ms

NOT_A_LOCATION = frozenset(
    {
        "arch", "class", "generation", "group", "hostname", "id", "index", "name", "os", "pool",
        "rack", "rank", "region", "role", "row", "size", "tier", "type", "version", "zone",
    }
)  # fmt: skip
"""Keys that people use otherwise: `rack: 7` is not a latency of 7 ms to a place called rack."""

Trips = dict[str, float]
"""Node name -> round trip in milliseconds."""

Latencies = Mapping[str, Mapping[str, float]]
"""Location, as spelled -> node name -> round trip in milliseconds."""


@dataclass(frozen=True, slots=True)
class LabelRoundTrip:
    """The round trip of all nodes with a label.

    Attributes:
        key, value: key and value of the label.
        latency_ms: round trip between such a node and the place.
    """

    key: str
    value: str
    latency_ms: float


@dataclass(frozen=True, slots=True)
class StatedPlace:
    """Round trips of a place as its Location states them.

    Attributes:
        name: name of the place, as steps name it, in any case.
        location: name of the Location.
        round_trips: round trips by node label; the first that matches a node counts.
    """

    name: str
    location: str
    round_trips: tuple[LabelRoundTrip, ...] = ()

    @property
    def lookup_name(self) -> str:
        """Name by which the place is looked up: lower case."""
        return self.name.lower()

    def latency_ms(self, labels: Labels) -> float | None:
        """Return the round trip of a node with these labels, or None if it is not stated."""
        for each in self.round_trips:
            if labels.get(each.key) == each.value:
                return each.latency_ms
        return None


def places_by_name(places: Iterable[StatedPlace]) -> dict[str, StatedPlace]:
    """Return the places by name in lower case; of two for one place the first Location's counts."""
    by_name: dict[str, StatedPlace] = {}
    for place in sorted(places, key=lambda each: each.location):
        by_name.setdefault(place.lookup_name, place)
    return by_name


def location_labels(labels: Labels) -> Iterator[tuple[str, str]]:
    """Return the labels of a node that may be round trips to a location, by key."""
    for key, value in sorted(labels.items()):
        if "/" not in key and key.lower() not in NOT_A_LOCATION:
            yield key, value


def latencies_from_labels(nodes: Iterable[Node]) -> dict[str, Trips]:
    """Return the nodes' round trips by their labels: location -> node name -> milliseconds.

    A label is one if its key has no prefix, is not a word with another common meaning, and its
    value reads as a latency. Keys that differ only in case are one location, spelled as it comes
    first. Locations that no step names do no harm.
    """
    latencies: dict[str, Trips] = {}
    spelled: dict[str, str] = {}
    for node in nodes:
        for key, latency_ms in _labelled(node.labels):
            name = spelled.setdefault(key.lower(), key)
            latencies.setdefault(name, {}).setdefault(node.name, latency_ms)
    return latencies


def with_places(
    by_label: Latencies, places: Iterable[StatedPlace], nodes: Sequence[Node]
) -> dict[str, Trips]:
    """Return the round trips of labels with those of Locations, which take precedence.

    Args:
        by_label: round trips from node labels.
        places: places from Locations.
        nodes: all nodes.
    """
    stated_places = places_by_name(places)
    latencies = {
        name: dict(trips) for name, trips in by_label.items() if name.lower() not in stated_places
    }
    for place in stated_places.values():
        trips = {node.name: place.latency_ms(node.labels) for node in nodes}
        latencies[place.name] = {node: trip for node, trip in trips.items() if trip is not None}
    return latencies


def node_latencies(labels: Labels, places: Mapping[str, StatedPlace]) -> Trips:
    """Return the round trips of one node in milliseconds, by place in lower case.

    Args:
        labels: labels of the node.
        places: round trips from Locations, by place in lower case.
    """
    latencies_ms: Trips = {}
    for key, latency_ms in _labelled(labels):
        latencies_ms.setdefault(key.lower(), latency_ms)
    for name, place in places.items():
        stated = place.latency_ms(labels)
        if stated is not None:
            latencies_ms[name] = stated
        else:
            latencies_ms.pop(name, None)
    return latencies_ms


def latencies_to(location: str, latencies: Latencies) -> Mapping[str, float]:
    """Return the known round trips to a location by node; in any case, if not as spelled."""
    exact = latencies.get(location)
    if exact is not None:
        return exact
    wanted = location.lower()
    return next((trips for name, trips in latencies.items() if name.lower() == wanted), {})


def _labelled(labels: Labels) -> Iterator[tuple[str, float]]:
    for key, value in location_labels(labels):
        try:
            yield key, parse_latency_ms(value)
        except QuantityError:
            continue
