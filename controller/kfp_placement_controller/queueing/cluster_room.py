"""Room of the cluster for runs that count by their demand: its nodes, less all other pods."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.queueing.requested_run import RequestedRun
from kfp_placement_controller.sources.load import Load
from kfp_placement_controller.sources.source import PodRun
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.units.resources import Resources, add_to, bounded, minus, with_pod
from kfp_placement_kube.change import Change

NOT_FOR_RUNS = ("node.kubernetes.io/", "node-role.kubernetes.io/")
"""Prefixes of the taints of nodes that are cordoned, lost, under pressure or of the control plane.
Other taints reserve a node for pods that tolerate them, such as one with GPUs; such a node counts.
"""


@dataclass
class ClusterRoom:
    """The nodes, and the pods on them.

    Attributes:
        load: resources that pods take on each node.
    """

    load: Load
    _nodes: dict[str, Node] = field(default_factory=dict)
    _pods: dict[PodRun, dict[str, Resources]] = field(default_factory=dict)
    """Requests of the pods of each run that have not ended, by uid."""
    _sums: dict[PodRun, Resources] = field(default_factory=dict)
    """Sums of these requests, kept since each decision asks for those of all admitted runs."""

    def node_changed(self, change: Change[Node]) -> None:
        """Take in that a node is new, has changed or is gone."""
        change.apply_to(self._nodes, change.key[1])

    def pod_changed(self, change: Change[ObservedPod]) -> bool:
        """Take in a change of a pod, and return whether the room that it takes has changed."""
        self.load.change(change.old, change.new)
        for pod in (change.old, change.new):
            self._keep(pod, is_there=pod is change.new)
        return _taken(change.old) != _taken(change.new)

    def is_draining(self, run: PodRun, demand: Demand | None) -> bool:
        """Return whether a stopped run still takes room, or may take some.

        Args:
            run: the stopped run.
            demand: demand of the run. Waiting pods of a gang count too: otherwise this gang and the
                next run's could each get part of the nodes.
        """
        if demand is not None and demand.gangs:
            return run in self._pods
        return bool(self.load.taken_by(run))

    def has_pods(self, run: PodRun) -> bool:
        """Return whether a run has pods that have not ended, on a node or not."""
        return run in self._pods

    def runs_with_pods(self) -> Iterable[PodRun]:
        """Return the runs that have pods which have not ended, whether these have a node or not."""
        return self._pods.keys()

    def taken_by_pods(self, run: PodRun) -> Resources:
        """Return what all pods of a run request that have not ended; empty if it has none."""
        if run not in self._pods:
            return {}
        if run not in self._sums:
            taken: dict[str, int] = {}
            for requests in self._pods[run].values():
                add_to(taken, with_pod(requests))
            self._sums[run] = bounded(taken)
        return self._sums[run]

    def _keep(self, pod: ObservedPod | None, *, is_there: bool) -> None:
        run = None if pod is None else self.load.sources.run_of(pod)
        if pod is None or run is None:
            return
        self._sums.pop(run, None)
        pods = self._pods.setdefault(run, {})
        if is_there and not pod.ended:
            pods[pod.uid] = pod.requests
        else:
            pods.pop(pod.uid, None)
        if not pods:
            del self._pods[run]

    def rooms(self, counted: Mapping[PodRun, Resources]) -> list[Resources]:
        """Return the room of each node for runs, `pods` included.

        Args:
            counted: resources that count for runs instead of their pods. What pods take beyond that
                counts as well, since anybody may make pods that belong to a run of theirs.
        """
        covered = (self.load.covered(run, most) for run, most in counted.items())
        load = self.load.by_node(chain.from_iterable(covered))
        return [
            minus(node.allocatable, load[name].used if name in load else {})
            for name, node in self._nodes.items()
            if is_for_runs(node)
        ]


@dataclass
class IdleRuns:
    """Admitted or preempted runs that take no pods, and since when.

    A run is idle while it has no pod that could take room, or while it is suspended: then its pods
    on nodes end, and no new ones come.
    """

    _since: dict[str, float] = field(default_factory=dict)

    def sleeping(
        self,
        runs: Iterable[RequestedRun],
        room: ClusterRoom,
        idle_after: Callable[[str, str], float],
        monotonic_seconds: float,
    ) -> set[RunKey]:
        """Return the runs that have been idle for long.

        Args:
            runs: all admitted or preempted runs.
            room: the pods.
            idle_after: function that returns how long runs may be idle, in seconds, by their
                namespace and the queue that they name.
            monotonic_seconds: the present moment.
        """
        before, self._since, sleeping = self._since, {}, set()
        for run in runs:
            if room.has_pods(run.as_pods_name_it) and not run.observed.is_suspended:
                continue
            uid = run.observed.owner.uid
            since = self._since[uid] = before.get(uid, monotonic_seconds)
            if not lasts(idle_after(run.key.namespace, run.queue_name), since, monotonic_seconds):
                sleeping.add(run.key)
        return sleeping


def _taken(pod: ObservedPod | None) -> tuple[bool, str, Resources] | None:
    """Return whether a pod holds room, its node and its requests.

    None if there is no pod, or it has ended.
    """
    return None if pod is None or pod.ended else (pod.holds_room, pod.node_name, pod.requests)


def is_for_runs(node: Node) -> bool:
    """Return whether pods of runs can be expected to go to a node."""
    return not node.unschedulable and not any(
        taint.effect != "PreferNoSchedule" and taint.key.startswith(NOT_FOR_RUNS)
        for taint in node.taints
    )
