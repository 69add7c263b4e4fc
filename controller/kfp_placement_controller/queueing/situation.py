"""Situation at one moment: the runs, their queues, and the room of the cluster."""

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import InitVar, dataclass
from typing import NamedTuple

from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.queueing.cluster_room import ClusterRoom
from kfp_placement_controller.queueing.requested_run import RequestedRun
from kfp_placement_controller.queueing.run_queues import RunQueues
from kfp_placement_engine.contract.run_queue import QueueBackend
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.resources import Resources, minus

NOT_KNOWN_YET = "waits for the planner to say what it needs"
UNREADABLE = (
    "waits until an admin admits it, or states in spec.unreadable of its RunQueue what runs take"
    " that cannot be read"
)
NO_RULES_KNOWN = "waits until its RunQueue is corrected: see its condition Valid"
REFUSED = "may begin, but its object cannot be changed: that is tried again every minute"
"""Reasons for which there is no decision about a waiting run."""


class UndecidedRun(NamedTuple):
    """A waiting run about which nobody can decide now.

    Attributes:
        run: the run.
        why: reason for that.
    """

    run: RequestedRun
    why: str


class DrainingRun(NamedTuple):
    """A run that has pods although it waits or has ended: they alone count.

    Attributes:
        run: the run.
        taken: resources that its pods take.
        on_nodes: part that alone counts for other queues, of the pods on nodes; None = all of it
            counts, and the gangs of the run too.
    """

    run: RequestedRun
    taken: Resources
    on_nodes: Resources | None


@dataclass(eq=False)
class Situation:
    """Everything that a decision depends on, apart from a backend's own objects.

    Attributes:
        all_waiting: runs that wait, whether their needs are known or not.
        refused: runs that wait, and whose objects refuse to be changed.
        ended: runs that have ended.
        room: room of the cluster.
        waiting: runs to decide about, whose needs are known.
        undecided: waiting runs without a decision.
        admitted: runs that may run, including those that are just being started.
        draining: runs that wait or have ended, and still have pods.
        queues: the RunQueues.
        nodes: room of each node for runs.
        beyond: amounts that pods of admitted runs request beyond what these may.
        requests: all RunRequests, also of runs that have ended or take no part.
        planner_problem: reason why no planner says what runs need, or "".
        fixed: admitted runs whose objects refuse to be changed: they cannot be stopped.
        sleeping: admitted or preempted runs that have taken no pod for long. They count by their
            pods, and by their demand for their own queue alone.
        returning: namespaces whose RunQueue was there a moment ago: it may be being replaced.
    """

    all_waiting: InitVar[Iterable[RequestedRun]]
    refused: InitVar[Iterable[RequestedRun]]
    ended: InitVar[Iterable[RequestedRun]]
    room: InitVar[ClusterRoom]
    admitted: Sequence[RequestedRun]
    queues: RunQueues
    requests: Collection[ObservedRequest]
    planner_problem: str
    fixed: Set[RunKey]
    sleeping: Set[RunKey]
    returning: Collection[str]

    def __post_init__(
        self,
        all_waiting: Iterable[RequestedRun],
        refused: Iterable[RequestedRun],
        ended: Iterable[RequestedRun],
        room: ClusterRoom,
    ) -> None:
        """Tell runs that can be decided about from those that cannot."""
        self.waiting: list[RequestedRun] = []
        self.draining = {run.key: _draining(run, room) for run in ended}
        self.undecided = {run.key: UndecidedRun(run, REFUSED) for run in refused}
        for run in all_waiting:
            queue = self.queues.get(self.queue_of(run))
            expected = None if run.key in self.sleeping else run.demand
            if run.is_preempted and room.is_draining(run.as_pods_name_it, expected):
                taken = room.load.taken_by(run.as_pods_name_it)
                self.draining[run.key] = DrainingRun(run, taken, None if expected else taken)
            elif run.observed.is_held and room.has_pods(run.as_pods_name_it):
                self.draining[run.key] = _draining(run, room)
            elif not self.queues.has_rules(self.queue_of(run)):
                self.undecided[run.key] = UndecidedRun(run, NO_RULES_KNOWN)
            elif not (run.demand is not None or (run.spec and run.spec.unschedulable)):
                why = f"{UNREADABLE}: {run.problem}" if run.problem else NOT_KNOWN_YET
                self.undecided[run.key] = UndecidedRun(run, why)
            elif self.planner_problem and queue is not None and queue.holds_without_controller:
                self.undecided[run.key] = UndecidedRun(run, self.planner_problem)
            else:
                self.waiting.append(run)
        self.beyond = dict(_beyond(self.admitted, room))
        counted = {each.run.as_pods_name_it: each.taken for each in self.draining.values()}
        for each in self.admitted:
            if each.demand is not None and each.key not in self.sleeping:
                counted[each.as_pods_name_it] = each.demand.peak
        self.nodes = room.rooms(counted)

    def queue_of(self, run: RequestedRun) -> QueueKey:
        """Return the RunQueue that decides about a run."""
        return self.queues.of_run(run.key.namespace, run.queue_name)

    def those_of(
        self, runs: Iterable[RequestedRun], backend: QueueBackend
    ) -> Iterator[RequestedRun]:
        """Yield the runs that one backend decides about, or may stop."""
        return (each for each in runs if self.queues.backend_of(self.queue_of(each)) == backend)


def _draining(run: RequestedRun, room: ClusterRoom) -> DrainingRun:
    pods = run.as_pods_name_it
    return DrainingRun(run, room.taken_by_pods(pods), room.load.taken_by(pods))


def _beyond(
    admitted: Iterable[RequestedRun], room: ClusterRoom
) -> Iterator[tuple[RunKey, Resources]]:
    """Yield the admitted runs with pods that request more than the demand, and how much more."""
    for run in admitted:
        demand = {} if run.demand is None else run.demand.of_quota
        taken = room.taken_by_pods(run.as_pods_name_it)
        if over := {name: more for name, more in minus(taken, demand).items() if more > 0}:
            yield run.key, over
