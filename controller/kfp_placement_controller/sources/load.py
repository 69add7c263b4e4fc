"""Sums of the resources that bound pods take on each node, by run.

Each change of a pod updates the sums, as adding up all pods for each snapshot takes too long. The
pods of a run that is being planned can be left out: its plan contains them as running steps.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_engine.model.keys import ClaimKey, RunKey
from kfp_placement_engine.units.resources import Resources, add_to, bounded, subtract_from, with_pod


@dataclass
class _Room:
    """Resources that the pods of one run, or of none, take on one node.

    Attributes:
        real: requests by resource, `pods` included.
        scored: CPU and memory as kube-scheduler's scores count them.
    """

    real: dict[str, int] = field(default_factory=dict)
    scored: dict[str, int] = field(default_factory=dict)

    def change(self, pod: ObservedPod, sign: int) -> None:
        change = add_to if sign > 0 else subtract_from
        change(self.real, with_pod(pod.requests))
        change(self.scored, pod.scored_requests)


@dataclass(frozen=True)
class NodeLoad:
    """Resources that pods take on a node.

    Attributes:
        used: requests by resource, `pods` included.
        scored_used: CPU and memory as kube-scheduler's scores count them.
    """

    used: Resources
    scored_used: Resources


@dataclass
class Load:
    """Resources that bound pods take, and the nodes where they mount claims.

    Attributes:
        sources: sources of runs, which find the run of a pod.
    """

    sources: RunSources
    _rooms: dict[RunKey | None, dict[str, _Room]] = field(default_factory=dict)
    _users: dict[ClaimKey, dict[str, str]] = field(default_factory=dict)

    def change(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        """Replace a pod by its new version.

        Args:
            old: the pod until now; None = it is new.
            new: the pod from now on; None = it is gone.
        """
        if old is not None and old.holds_room:
            self._change(old, -1)
        if new is not None and new.holds_room:
            self._change(new, 1)

    def by_node(self, without: Container[RunKey] = ()) -> Mapping[str, NodeLoad]:
        """Return the load of each node that has pods, by node name.

        Args:
            without: runs whose pods do not count.
        """
        sums: dict[str, _Room] = {}
        for owner, rooms in self._rooms.items():
            if owner is not None and owner in without:
                continue
            for node, room in rooms.items():
                summed = sums.setdefault(node, _Room())
                add_to(summed.real, room.real)
                add_to(summed.scored, room.scored)
        return {
            node: NodeLoad(bounded(room.real), bounded(room.scored)) for node, room in sums.items()
        }

    def of_run(self, run: RunKey) -> Resources:
        """Return the resources that the pods of a run take on all nodes, `pods` included."""
        taken: dict[str, int] = {}
        for room in self._rooms.get(run, {}).values():
            add_to(taken, room.real)
        return bounded(taken)

    def claim_users(self, claim: ClaimKey) -> Iterable[str]:
        """Return the nodes on which pods mount a claim, once for each pod."""
        return self._users.get(claim, {}).values()

    def run_of(self, pod: ObservedPod) -> RunKey | None:
        """Return the run that a pod belongs to, or None if it belongs to none."""
        run = self.sources.run_of(pod)
        return None if run is None else run.key

    def _change(self, pod: ObservedPod, sign: int) -> None:
        owner = self.run_of(pod)
        rooms = self._rooms.setdefault(owner, {})
        room = rooms.setdefault(pod.node_name, _Room())
        room.change(pod, sign)
        if not room.real.get("pods"):
            del rooms[pod.node_name]
            if not rooms:
                del self._rooms[owner]
        for name in pod.claims:
            claim = ClaimKey(pod.namespace, name)
            users = self._users.setdefault(claim, {})
            if sign > 0:
                users[pod.uid] = pod.node_name
            else:
                users.pop(pod.uid, None)
                if not users:
                    del self._users[claim]
