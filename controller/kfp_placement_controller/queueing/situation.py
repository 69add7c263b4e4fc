"""All runs at one moment, and the room they have: what a decision depends on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.queueing.cluster_room import ClusterRoom
from kfp_placement_controller.queueing.queued_runs import KnownRun
from kfp_placement_controller.queueing.run_queues import RunQueues
from kfp_placement_engine.contract.run_queue import QueueBackend
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.model.resources import Resources

NOT_KNOWN_YET = "waits for the planner to say what it needs"
NO_RULES_KNOWN = "waits until its RunQueue is corrected: see its condition Valid"
REFUSED = "may begin, but its object cannot be changed: that is tried again every minute"
"""Why runs are not decided about."""


@dataclass(frozen=True)
class Situation:
    """All that a decision depends on.

    Attributes:
        waiting: runs to decide about, of which it is known what they need.
        undecided: runs that wait and are not decided about, with the reason.
        admitted: runs that may run.
        draining: what the pods of runs take that were preempted and still have some.
        queues: the RunQueues.
        nodes: what each has for runs.
        requests: all RunRequests, also of runs that have ended or take no part.
        planner_problem: why nobody says what runs need; "" = somebody does.
        fixed: admitted runs whose objects refuse to be changed: they cannot be stopped.
        returning: namespaces whose RunQueue was there a moment ago: it may be being replaced.
    """

    waiting: Sequence[KnownRun]
    undecided: Mapping[RunKey, tuple[KnownRun, str]]
    admitted: Sequence[KnownRun]
    draining: Mapping[RunKey, tuple[KnownRun, Resources]]
    queues: RunQueues
    nodes: Sequence[Resources]
    requests: Sequence[ObservedRequest]
    planner_problem: str
    fixed: frozenset[RunKey]
    returning: frozenset[str]

    def queue_of(self, known: KnownRun) -> QueueKey:
        """The RunQueue that decides about a run."""
        return self.queues.of_run(known.key.namespace, known.queue_name)

    def waiting_in(self, backend: QueueBackend) -> Iterator[KnownRun]:
        """The runs that one backend decides about."""
        return (each for each in self.waiting if self._is_of(each, backend))

    def admitted_in(self, backend: QueueBackend) -> Iterator[KnownRun]:
        """The runs that may run, and that one backend may stop."""
        return (each for each in self.admitted if self._is_of(each, backend))

    def _is_of(self, known: KnownRun, backend: QueueBackend) -> bool:
        return self.queues.backend_of(self.queue_of(known)) == backend


def situation_of(
    waiting: Iterable[KnownRun],
    refused: Iterable[KnownRun],
    admitted: Sequence[KnownRun],
    queues: RunQueues,
    room: ClusterRoom,
    requests: Iterable[ObservedRequest],
    planner_problem: str,
    fixed: Iterable[RunKey],
    returning: Iterable[str],
) -> Situation:
    """Of all runs at one moment.

    Args:
        waiting: runs that wait, whether it is known what they need or not.
        refused: runs that wait, and whose objects refuse to be changed.
        admitted: runs that may run, those that are just being let run included.
        queues: the RunQueues.
        room: the cluster.
        requests: all RunRequests.
        planner_problem: why nobody says what runs need; "" = somebody does.
        fixed: admitted runs whose objects refuse to be changed.
        returning: namespaces whose RunQueue was there a moment ago.
    """
    draining = {}
    deciding = []
    undecided = {known.key: (known, REFUSED) for known in refused}
    for known in waiting:
        default = queues.of_namespace(known.key.namespace)
        if known.run.is_preempted and room.is_draining(known.key, known.demand):
            draining[known.key] = (known, room.load.of_run(known.key))
        elif not queues.has_rules(queues.of_run(known.key.namespace, known.queue_name)):
            undecided[known.key] = (known, NO_RULES_KNOWN)
        elif not (known.demand is not None or (known.spec and known.spec.unschedulable)):
            undecided[known.key] = (known, NOT_KNOWN_YET)
        elif planner_problem and default is not None and default.holds_without_controller:
            undecided[known.key] = (known, planner_problem)
        else:
            deciding.append(known)
    counted = {each.key for each in (*admitted, *deciding) if each.demand is not None}
    return Situation(
        waiting=deciding,
        undecided=undecided,
        admitted=admitted,
        draining=draining,
        queues=queues,
        nodes=room.rooms(counted | draining.keys()),
        requests=tuple(requests),
        planner_problem=planner_problem,
        fixed=frozenset(fixed),
        returning=frozenset(returning),
    )
