"""State of the cluster: nodes, load, claims and places, as the engine's `Cluster` needs them."""

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kfp_placement_controller.observed.claims import ObservedClaim, ObservedVolume
from kfp_placement_controller.sources.load import Load, NodeLoad, TakenRoom
from kfp_placement_engine.model.cluster import Claim, Cluster, Node
from kfp_placement_engine.model.keys import ClaimKey
from kfp_placement_engine.model.node_rules.round_trips import (
    Latencies,
    StatedPlace,
    latencies_from_labels,
    latencies_to,
    with_places,
)
from kfp_placement_engine.units.resources import is_less


@dataclass
class ClusterState:
    """State of the cluster, apart from its runs.

    Attributes:
        load: room that pods take on nodes.
        nodes, volumes: nodes and volumes by name.
        claims: claims by namespace and name.
        locations: places of users by the name of their Location.
    """

    load: Load
    nodes: dict[str, Node] = field(default_factory=dict)
    claims: dict[ClaimKey, ObservedClaim] = field(default_factory=dict)
    volumes: dict[str, ObservedVolume] = field(default_factory=dict)
    locations: dict[str, StatedPlace] = field(default_factory=dict)

    def snapshot(self, less: Iterable[TakenRoom], namespaces: Collection[str]) -> Cluster:
        """Return the cluster as the engine plans with it.

        Args:
            less: room of pods that plans contain, which is not load.
            namespaces: namespaces of the runs to plan; claims elsewhere cannot matter.
        """
        load = self.load.by_node(less)
        nodes = tuple(self.with_load(name, load) for name in sorted(self.nodes))
        return Cluster(
            nodes=nodes,
            latencies=latencies(self.locations, nodes),
            claims=tuple(self._claims(namespaces)),
            source="cluster",
        )

    def with_load(self, name: str, load: Mapping[str, NodeLoad]) -> Node:
        """Return a node with the room that is taken on it.

        Args:
            name: name of a node of the cluster.
            load: load by node name.
        """
        node, taken = self.nodes[name], load.get(name)
        if taken is None:
            return node
        return replace(node, used=taken.used, scored_used=taken.scored_used)

    def _claims(self, namespaces: Container[str]) -> Iterable[Claim]:
        for key, claim in self.claims.items():
            if key.namespace in namespaces:
                volume = self.volumes.get(claim.volume_name)
                yield replace(
                    claim.claim,
                    required_terms=None if volume is None else volume.required_terms,
                    used_on=tuple(sorted(set(self.load.claim_users(key)))),
                )


@dataclass
class RoundTrips:
    """Round trips of all nodes, read again only when labels or Locations have changed.

    Reading those of a thousand nodes takes 80 ms, and gates are decided on often.

    Attributes:
        cluster: cluster with the nodes and Locations.
        labels: labels by node name, as of the last call of `to`.
    """

    cluster: ClusterState
    labels: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _locations: dict[str, StatedPlace] = field(default_factory=dict)
    _latencies: Latencies = field(default_factory=dict)

    def to(self, location: str) -> Mapping[str, float]:
        """Return the round trips to a place in milliseconds, by the names of nodes.

        Args:
            location: name of the place, in upper or lower case.
        """
        labels = {name: node.labels for name, node in self.cluster.nodes.items()}
        if (labels, self.cluster.locations) != (self.labels, self._locations):
            self.labels, self._locations = labels, dict(self.cluster.locations)
            nodes = tuple(self.cluster.nodes.values())
            self._latencies = latencies(self._locations, nodes)
        return latencies_to(location, self._latencies)


def latencies(locations: Mapping[str, StatedPlace], nodes: tuple[Node, ...]) -> Latencies:
    """Return the round trips that Locations and node labels state."""
    return with_places(latencies_from_labels(nodes), locations.values(), nodes)


def matters(old: Node | None, new: Node | None) -> bool:
    """Return whether plans may depend on a change of a node; its images alone do not count."""
    if old is None or new is None:
        return True
    return replace(old, images={}) != replace(new, images={})


def takes_less(old: Node | None, new: Node | None) -> bool:
    """Return whether steps that were planned on a node may no longer fit there."""
    if old is None:
        return False
    if new is None:
        return True
    return (
        is_less(new.allocatable, old.allocatable)
        or (new.unschedulable and not old.unschedulable)
        or bool(set(new.taints) - set(old.taints))
        # Steps may require that a label is not there.
        or new.labels != old.labels
    )
