"""Round trips between nodes and places: what Locations say of a node, else the node's labels."""

from collections.abc import Mapping

from kfp_placement_engine.contract.resources import Location
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.readers.kubernetes.nodes import latencies_from_labels


class LocationIndex:
    """The Locations of the cluster, by the names that steps use for them, in any case."""

    def __init__(self) -> None:
        """Know none."""
        self._locations: dict[str, Location] = {}
        self._places: dict[str, Location] = {}

    def put(self, name: str, location: Location | None) -> None:
        """Note a Location by the name of its object; None = it is gone."""
        if location is None:
            self._locations.pop(name, None)
        else:
            self._locations[name] = location
        # Of two for one place the one whose object name comes first counts.
        ordered = [each for _, each in sorted(self._locations.items(), reverse=True)]
        self._places = {each.place: each for each in ordered}

    def latencies_ms(self, labels: Mapping[str, str]) -> dict[str, float]:
        """Place, lower case -> round trip of a node with these labels.

        A Location goes before a label of its name, also for nodes of which it says nothing.
        """
        by_label = latencies_from_labels((Node("", {}, labels=labels),))
        found = {place.lower(): latency[""] for place, latency in by_label.items()}
        for place, location in self._places.items():
            latency = location.latency_ms(labels)
            if latency is not None:
                found[place] = latency
            else:
                found.pop(place, None)
        return found
