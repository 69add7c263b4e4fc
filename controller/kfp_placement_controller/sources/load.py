"""Sums of the resources that bound pods take on each node, and of what the pods of a run take.

Each change of a pod updates the sums, as adding up all pods for each snapshot takes too long. A pod
counts with its own requests, whatever it claims to be. Whoever plans with room for running pods in
another form takes exactly that off again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources.source import PodRun, RunSources
from kfp_placement_engine.model.keys import ClaimKey
from kfp_placement_engine.units.resources import (
    Amounts,
    Resources,
    add_to,
    bounded,
    least,
    minus,
    subtract_from,
    with_pod,
)


class NodeLoad(NamedTuple):
    """Resources that pods take on a node.

    Attributes:
        used: requests by resource, `pods` included.
        scored_used: CPU and memory as kube-scheduler's scores count them.
    """

    used: Resources
    scored_used: Resources

    def within(self, most: Resources) -> "NodeLoad":
        """Return it without the requests beyond `most`, which then stay in the scores too."""
        used = least(self.used, most)
        beyond = minus(self.used, used)
        scored = {
            name: max(0, each - beyond.get(name, 0)) for name, each in self.scored_used.items()
        }
        return NodeLoad(used, scored)


class TakenRoom(NamedTuple):
    """Room that pods take on one node.

    Attributes:
        node: name of the node.
        load: resources that they take there.
    """

    node: str
    load: NodeLoad

    @classmethod
    def of_pod(cls, pod: ObservedPod) -> "TakenRoom":
        """Return the room that a bound pod takes."""
        return cls(pod.node_name, NodeLoad(with_pod(pod.requests), pod.scored_requests))


@dataclass
class _Sum:
    """Sum of the room of pods on one node."""

    used: Amounts = field(default_factory=dict)
    scored_used: Amounts = field(default_factory=dict)

    def add(self, load: NodeLoad) -> None:
        add_to(self.used, load.used)
        add_to(self.scored_used, load.scored_used)

    def subtract(self, load: NodeLoad) -> None:
        subtract_from(self.used, load.used)
        subtract_from(self.scored_used, load.scored_used)

    @property
    def load(self) -> NodeLoad:
        return NodeLoad(self.used, self.scored_used)


_Sums = dict[str, _Sum]
"""Sums by node name; of nodes without pods there is none."""


@dataclass
class Load:
    """Resources that bound pods take, and the nodes where they mount claims.

    Attributes:
        sources: sources of runs, which find the run of a pod.
    """

    sources: RunSources
    _nodes: _Sums = field(default_factory=dict)
    _runs: dict[PodRun, _Sums] = field(default_factory=dict)
    _users: dict[ClaimKey, dict[str, str]] = field(default_factory=dict)

    def change(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        """Replace a pod by its new version.

        Args:
            old: the pod until now; None = it is new.
            new: the pod from now on; None = it is gone.
        """
        if old is not None and old.holds_room:
            self._change(old, is_new=False)
        if new is not None and new.holds_room:
            self._change(new, is_new=True)

    def by_node(self, less: Iterable[TakenRoom] = ()) -> Mapping[str, NodeLoad]:
        """Return the load of each node that has pods, by node name.

        Args:
            less: room of pods that the caller counts otherwise.
        """
        taken_off: _Sums = {}
        for node, load in less:
            taken_off.setdefault(node, _Sum()).add(load)
        return {node: _bounded(each, taken_off.get(node)) for node, each in self._nodes.items()}

    def of_run(self, run: PodRun) -> Iterator[TakenRoom]:
        """Yield the room that the pods of a run take, once for each node."""
        for node, each in self._runs.get(run, {}).items():
            yield TakenRoom(node, each.load)

    def taken_by(self, run: PodRun) -> Resources:
        """Return the resources that the pods of a run take on all nodes, `pods` included."""
        taken: Amounts = {}
        for _, load in self.of_run(run):
            add_to(taken, load.used)
        return bounded(taken)

    def covered(self, run: PodRun, most: Resources) -> Iterator[TakenRoom]:
        """Yield the room of the pods of a run, as far as all of it is within `most`.

        Anybody may make a pod that belongs to a run of theirs, and the run has not asked for it.
        """
        left = dict(most)
        for node, load in self.of_run(run):
            within = load.within(left)
            subtract_from(left, within.used)
            yield TakenRoom(node, within)

    def claim_users(self, claim: ClaimKey) -> Iterable[str]:
        """Return the nodes on which pods mount a claim, once for each pod."""
        return self._users.get(claim, {}).values()

    def _change(self, pod: ObservedPod, *, is_new: bool) -> None:
        room, run = TakenRoom.of_pod(pod), self.sources.run_of(pod)
        _change(self._nodes, room, is_new=is_new)
        if run is not None:
            own = self._runs.setdefault(run, {})
            _change(own, room, is_new=is_new)
            if not own:
                del self._runs[run]
        for name in pod.claims:
            claim = ClaimKey(pod.namespace, name)
            users = self._users.setdefault(claim, {})
            if is_new:
                users[pod.uid] = pod.node_name
            else:
                users.pop(pod.uid, None)
                if not users:
                    del self._users[claim]


def _change(sums: _Sums, room: TakenRoom, *, is_new: bool) -> None:
    """Add the room of a pod that is new, or subtract that of one that is gone."""
    node = sums.setdefault(room.node, _Sum())
    if is_new:
        node.add(room.load)
    else:
        node.subtract(room.load)
        if not node.used.get("pods"):
            del sums[room.node]


def _bounded(total: _Sum, taken_off: _Sum | None) -> NodeLoad:
    rest = _Sum(dict(total.used), dict(total.scored_used))
    if taken_off is not None:
        rest.subtract(taken_off.load)
    return NodeLoad(bounded(rest.used), bounded(rest.scored_used))
