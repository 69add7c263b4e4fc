"""What a change of the cluster, or of what was asked for, means for plans and RunRequests."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from kfp_placement_controller.observed.claims import ObservedClaim
from kfp_placement_controller.observed.namespaces import ObservedNamespace
from kfp_placement_controller.planning.cluster_state import ClusterState, matters, takes_less
from kfp_placement_controller.planning.planner import Planner
from kfp_placement_controller.planning.run_requests import RunRequests
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.keys import ClaimKey
from kfp_placement_kube.change import Change

K = TypeVar("K")
V = TypeVar("V")


@dataclass
class Reactions:
    """Notes what the cluster is now, and says what must be planned again for it.

    Attributes:
        registry: the runs.
        cluster: where they run.
        planner: plans them.
        requests: what runs need, which is planned as well.
    """

    registry: RunRegistry
    cluster: ClusterState
    planner: Planner
    requests: RunRequests

    def node(self, change: Change[Node], now: datetime) -> None:
        """A node is new, has changed or is gone."""
        name = change.key[1]
        _keep(self.cluster.nodes, name, change.new)
        if not matters(change.old, change.new):
            return
        self.requests.conditions_changed()
        if takes_less(change.old, change.new):
            for each in self.registry.planned():
                if each.waits_on(name):
                    self.planner.trigger(each.run, now)
            return
        for each in self.registry.planned():
            if each.has_unplaced():
                self.planner.trigger(each.run, now)
        self.planner.may_gain(now)

    def claim(self, change: Change[ObservedClaim], now: datetime) -> None:
        """A claim is new, has changed or is gone."""
        _keep(self.cluster.claims, ClaimKey(*change.key), change.new)
        if change.new is None or change.old == change.new:
            return
        for each in self.registry.active():
            names = {claim.name for claim in each.graph.claims}
            if each.key[0] == change.key[0] and change.key[1] in names:
                self.planner.trigger(each.run, now)

    def volume(self, change: Change[Any], _now: datetime) -> None:
        """A volume; what matters of it shows in its claim."""
        _keep(self.cluster.volumes, change.key[1], change.new)

    def location(self, change: Change[Any], now: datetime) -> None:
        """A Location is new, has changed or is gone."""
        _keep(self.cluster.locations, change.key[1], change.new)
        self._all_anew(now)

    def namespace(self, change: Change[ObservedNamespace], _now: datetime) -> None:
        """What a namespace says of taking part; counts from its next run on."""
        _keep(self.registry.namespaces, change.key[1], change.new)
        if change.old != change.new:
            self.requests.conditions_changed()

    def policy(
        self, before: PlacementPolicySpec, after: PlacementPolicySpec, now: datetime
    ) -> None:
        """Another policy is in force."""
        if (before.defaults, before.history) != (after.defaults, after.history):
            for each in self.registry.active():
                each.run.reread(after)
                each.run.changed, each.run.promises.made_at = True, None
        if before != after:
            self._all_anew(now)
            self.requests.conditions_changed()

    def _all_anew(self, now: datetime) -> None:
        """All runs that have something left to start must be planned again."""
        for each in self.registry.planned():
            if each.run.unstarted():
                self.planner.trigger(each.run, now)


def _keep(known: dict[K, V], key: K, value: V | None) -> None:
    """Note what an object is now; None = it is gone."""
    if value is None:
        known.pop(key, None)
    else:
        known[key] = value
