"""The cluster as it is now: nodes, load, claims and places -> the engine's `Cluster`."""

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kfp_placement_controller.observed.claims import ObservedClaim, ObservedVolume
from kfp_placement_controller.sources.load import Load, NodeLoad
from kfp_placement_engine.model.cluster import Claim, Cluster, Node
from kfp_placement_engine.model.keys import ClaimKey, RunKey
from kfp_placement_engine.model.round_trips import (
    Latencies,
    StatedPlace,
    latencies_from_labels,
    latencies_to,
    with_places,
)
from kfp_placement_engine.units.resources import is_less


@dataclass
class ClusterState:
    """What is known of the cluster besides runs.

    Attributes:
        load: room that pods take.
        nodes, volumes: by name.
        claims: by namespace and name.
        locations: by object name.
    """

    load: Load
    nodes: dict[str, Node] = field(default_factory=dict)
    claims: dict[ClaimKey, ObservedClaim] = field(default_factory=dict)
    volumes: dict[str, ObservedVolume] = field(default_factory=dict)
    locations: dict[str, StatedPlace] = field(default_factory=dict)

    def snapshot(self, planned: Container[RunKey], namespaces: Collection[str]) -> Cluster:
        """The cluster for the engine.

        Args:
            planned: runs whose pods are not load.
            namespaces: of those runs; claims elsewhere cannot matter.
        """
        load = self.load.by_node(planned)
        nodes = tuple(self.with_load(name, load) for name in sorted(self.nodes))
        return Cluster(
            nodes=nodes,
            latencies=latencies(self.locations, nodes),
            claims=tuple(self._claims(namespaces)),
            source="cluster",
        )

    def with_load(self, name: str, load: Mapping[str, NodeLoad]) -> Node:
        """A node with what is taken on it.

        Args:
            name: of a node that is known.
            load: by node.
        """
        node, taken = self.nodes[name], load.get(name)
        if taken is None:
            return node
        return replace(node, used=taken.used, scored_used=taken.scored_used)

    def _claims(self, namespaces: Container[str]) -> Iterable[Claim]:
        for key, claim in self.claims.items():
            if key[0] in namespaces:
                volume = self.volumes.get(claim.volume_name)
                yield replace(
                    claim.claim,
                    required_terms=None if volume is None else volume.required_terms,
                    used_on=tuple(sorted(set(self.load.claim_users(key)))),
                )


@dataclass
class RoundTrips:
    """Of all nodes, read again only when labels or Locations have changed.

    To read a thousand of them takes 80 ms, and gates are looked at often.

    Attributes:
        cluster: its nodes and Locations.
        labels: node -> its labels, as last looked at.
    """

    cluster: ClusterState
    labels: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _locations: dict[str, StatedPlace] = field(default_factory=dict)
    _latencies: Latencies = field(default_factory=dict)

    def to(self, location: str) -> Mapping[str, float]:
        """Node -> round trip in milliseconds now, where it is known.

        Args:
            location: name of the place, in any case.
        """
        labels = {name: each.labels for name, each in self.cluster.nodes.items()}
        if (labels, self.cluster.locations) != (self.labels, self._locations):
            self.labels, self._locations = labels, dict(self.cluster.locations)
            nodes = tuple(self.cluster.nodes.values())
            self._latencies = latencies(self._locations, nodes)
        return latencies_to(location, self._latencies)


def latencies(locations: Mapping[str, StatedPlace], nodes: tuple[Node, ...]) -> Latencies:
    """Round trips: place -> node -> milliseconds, of Locations and of node labels."""
    return with_places(latencies_from_labels(nodes), locations.values(), nodes)


def matters(old: Node | None, new: Node | None) -> bool:
    """Whether plans may depend on what has changed about a node; its images alone do not count."""
    if old is None or new is None:
        return True
    return replace(old, images={}) != replace(new, images={})


def takes_less(old: Node | None, new: Node | None) -> bool:
    """Whether steps that were planned on the node may not fit there any more."""
    if old is None:
        return False
    if new is None:
        return True
    return (
        is_less(new.allocatable, old.allocatable)
        or (new.unschedulable and not old.unschedulable)
        or bool(set(new.taints) - set(old.taints))
        or any(new.labels.get(key) != value for key, value in old.labels.items())
    )
