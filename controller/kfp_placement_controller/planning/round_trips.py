"""Round trips between nodes and places, read again only when labels or Locations have changed."""

from collections.abc import Mapping

from kfp_placement_controller.planning.cluster_state import ClusterState, latencies

Labels = Mapping[str, Mapping[str, str]]


class RoundTrips:
    """Of all nodes; to read a thousand of them takes 80 ms, and gates are looked at often.

    Attributes:
        labels: node -> its labels, as last looked at.
    """

    def __init__(self, cluster: ClusterState) -> None:
        """Know none yet.

        Args:
            cluster: its nodes and Locations.
        """
        self.labels: Labels = {}
        self._cluster = cluster
        self._locations = dict(cluster.locations)
        self._by_place: Mapping[str, Mapping[str, float]] = {}

    def to(self, location: str) -> Mapping[str, float]:
        """Node -> round trip in milliseconds now, where it is known.

        Args:
            location: name of the place, in any case.
        """
        labels = {name: each.node.labels for name, each in self._cluster.nodes.items()}
        if (labels, self._cluster.locations) != (self.labels, self._locations):
            self.labels, self._locations = labels, dict(self._cluster.locations)
            nodes = tuple(each.node for each in self._cluster.nodes.values())
            known = latencies(self._locations, nodes)
            self._by_place = {place.lower(): trips for place, trips in known.items()}
        return self._by_place.get(location.lower(), {})
