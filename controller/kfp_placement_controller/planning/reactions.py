"""What a change of the cluster means for the plans of runs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from kfp_placement_controller.observed.claims import ObservedClaim
from kfp_placement_controller.observed.nodes import ObservedNode
from kfp_placement_controller.planning.cluster_state import ClusterState, matters, takes_less
from kfp_placement_controller.planning.planner import Planner
from kfp_placement_controller.planning.run_registry import RunRegistry
from kfp_placement_controller.planning.triggers import Trigger
from kfp_placement_engine.model.keys import ClaimKey
from kfp_placement_kube.change import Change

K = TypeVar("K")
V = TypeVar("V")


@dataclass
class Reactions:
    """Notes what the cluster is now, and says which runs are to be planned again for it.

    Attributes:
        registry: the runs.
        cluster: where they run.
        planner: plans them.
    """

    registry: RunRegistry
    cluster: ClusterState
    planner: Planner

    def node(self, change: Change[ObservedNode], now: datetime) -> None:
        """A node is new, has changed or is gone."""
        name = change.key[1]
        keep(self.cluster.nodes, name, change.new)
        if not matters(change.old, change.new):
            return
        if takes_less(change.old, change.new):
            for each in self.registry.planned():
                if each.waits_on(name):
                    self.planner.trigger(each.run, {Trigger.NODE}, now)
            return
        for each in self.registry.planned():
            if each.has_unplaced():
                self.planner.trigger(each.run, {Trigger.NODE}, now)
        self.planner.may_gain(now)

    def claim(self, change: Change[ObservedClaim], now: datetime) -> None:
        """A claim is new, has changed or is gone."""
        keep(self.cluster.claims, ClaimKey(*change.key), change.new)
        if change.new is None or change.old == change.new:
            return
        for each in self.registry.active():
            names = {claim.name for claim in each.graph.claims}
            if each.key[0] == change.key[0] and change.key[1] in names:
                self.planner.trigger(each.run, {Trigger.CLAIM}, now)

    def volume(self, change: Change[Any], _now: datetime) -> None:
        """A volume; what matters of it shows in its claim."""
        keep(self.cluster.volumes, change.key[1], change.new)

    def location(self, change: Change[Any], now: datetime) -> None:
        """A Location is new, has changed or is gone."""
        keep(self.cluster.locations, change.key[1], change.new)
        self.all_anew(Trigger.POLICY, now)

    def all_anew(self, why: Trigger, now: datetime) -> None:
        """All runs that have something left to start are to be planned again."""
        for each in self.registry.planned():
            if each.run.unstarted():
                self.planner.trigger(each.run, {why}, now)


def keep(known: dict[K, V], key: K, value: V | None) -> None:
    """Note what an object is now; None = it is gone."""
    if value is None:
        known.pop(key, None)
    else:
        known[key] = value
