"""Writes of the statuses of RunQueues and RunRequests: which fields change, and how often."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from kfp_placement_controller.queueing.actions import (
    ReleaseCause,
    WriteQueueStatus,
    WriteRequestStatus,
)
from kfp_placement_controller.queueing.backend import BY_KUEUE, BY_REQUEST, Decisions
from kfp_placement_controller.queueing.requested_run import RequestedRun
from kfp_placement_controller.queueing.situation import NOT_KNOWN_YET, Situation
from kfp_placement_controller.queueing.start_ranges import StartRanges
from kfp_placement_controller.queueing.statuses.queue_status import (
    QueueCounts,
    findings_of,
    queue_status_patch,
)
from kfp_placement_controller.queueing.statuses.request_status import RunPlace, request_status_patch
from kfp_placement_controller.queueing.steering import RETRY_SECONDS
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.contract.run_queue import resources_of
from kfp_placement_engine.contract.run_request import RequestPhase
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_kube.kinds import JsonObject

_COUNTS_SECONDS = 1.0
"""Time between two writes of a queue's counts, which change with every run."""

_POSITIONS_SECONDS = 10.0
"""Longest pause between two writes of fields that change with every run, such as positions."""

_POSITIONS_SECONDS_PER_RUN = 0.05
"""Pause between such writes for each waiting run: a short queue is written soon, a long one is not
written all the time."""

_MOST_POSITIONS = 20
"""Largest number of position writes in one decision."""

_MOST_OF_NAMESPACE = 50
"""Largest number of writes for runs of a namespace that wait, in one decision.

Decisions stop while statuses are written. However many runs somebody submits at a time, runs of
other namespaces must not wait until all of them have a status.
"""

_OTHERS_FACTOR = 6
"""Factor on the pause between writes that only change the number of waiting runs; it changes at
every submission."""

_AT_ONCE = frozenset({"phase", "conditions", "queue", "assignedNodes", "preemptedFor"})
"""Fields that are written at once."""

_OF_OTHERS = frozenset({"waiting", "message"})
"""Fields that change with every run that is submitted, or starts, behind a run."""

ASLEEP = "it has had no pod for long: runs of other queues may have its room until it has one"
"""Note of an admitted run that sleeps."""

NOT_STOPPED = "it is marked as preempted, but not by its queue: that changes nothing"
"""Note of an admitted run whose object others have marked as its queue does."""

_MOST_REMEMBERED = 10_000
"""Largest number of remembered writes, and of remembered causes; the objects state both, too."""

_STOPPED = {
    "": "",
    BY_REQUEST: "stopped: somebody has asked for it",
    BY_KUEUE: "stopped: Kueue has evicted it",
}
"""Texts about stopped runs, by what they make room for; others make room for the uid of a run."""


class _Write(NamedTuple):
    """A write of a status.

    Attributes:
        at_seconds: time of the write, in monotonic seconds.
        version: resource version of the object on which it was decided.
    """

    at_seconds: float
    version: str


@dataclass
class _LatestWrites:
    """The last write of the status of each object."""

    _written: dict[tuple[str, ...], _Write] = field(default_factory=dict)

    def begin_write(
        self, target: tuple[str, ...], version: str, pause_seconds: float, moment: float
    ) -> bool:
        """Record a write unless it is too early; return whether to write.

        Args:
            target: kind and key of the object.
            version: resource version of the object. A write that it does not show yet is repeated
                only after `RETRY_SECONDS`.
            pause_seconds: shortest time between two writes of the object.
            moment: present moment, in monotonic seconds.
        """
        last = self._written.pop(target, None)
        if last is not None:
            if last.version == version:
                pause_seconds = max(pause_seconds, RETRY_SECONDS)
            if moment - last.at_seconds < pause_seconds:
                self._written[target] = last
                return False
        if len(self._written) >= _MOST_REMEMBERED:
            del self._written[next(iter(self._written))]
        self._written[target] = _Write(moment, version)
        return True


@dataclass(frozen=True, slots=True)
class _Patch:
    """Changes of the status of a RunRequest.

    Attributes:
        run: run for which they were worked out.
        place: place of the run for which they were worked out.
        fields: fields to write, or None if nothing changes.
    """

    run: RequestedRun
    place: RunPlace
    fields: JsonObject | None


@dataclass
class QueuePublisher:
    """Writes what is new: phases and conditions at once, counts and positions now and then.

    Attributes:
        ranges: ranges in which runs are likely to start.
        monotonic: monotonic clock, in seconds.
        counts: numbers of each queue at the last decision.
    """

    ranges: StartRanges
    monotonic: Callable[[], float]
    counts: dict[QueueKey, QueueCounts] = field(default_factory=dict)
    _writes: _LatestWrites = field(default_factory=_LatestWrites)
    _worked_out: dict[RunKey, _Patch] = field(default_factory=dict)
    _causes: dict[str, ReleaseCause] = field(default_factory=dict)

    def released(self, uid: str, cause: ReleaseCause) -> None:
        """Remember why a run was started.

        Args:
            uid: uid of its object.
            cause: reason for the start.
        """
        self._causes.pop(uid, None)
        if len(self._causes) >= _MOST_REMEMBERED:
            del self._causes[next(iter(self._causes))]
        self._causes[uid] = cause

    def requests(
        self, runs: Iterable[RequestedRun], situation: Situation, decided: Decisions, now: datetime
    ) -> Iterator[WriteRequestStatus]:
        """Yield writes for the RunRequests whose status is not as it must be.

        Args:
            runs: runs of namespaces that take part, and those of others that do not wait.
            situation: situation on which the decision was made.
            decided: the decision.
            now: the time.
        """
        positions, waiting = 0, Counter[str]()
        between_positions_seconds = min(
            _POSITIONS_SECONDS, _POSITIONS_SECONDS_PER_RUN * len(situation.waiting)
        )
        before, self._worked_out = self._worked_out, {}
        starting = _starting(situation, decided)
        keys = {
            each.observed.owner.uid: each.key for each in (*situation.waiting, *situation.admitted)
        }
        for run in runs:
            # A run that is being started gets its status when its object shows that it has started.
            # But if its status still says admitted, it must be written that it waited: otherwise it
            # seems never to have stopped.
            is_starting = run.key in starting and run.status.phase != RequestPhase.ADMITTED
            if run.request is None or is_starting:
                continue
            place = self._place(run, situation, decided, keys, now)
            patch = before.get(run.key)
            if patch is None or patch.run is not run or patch.place != place:
                patch = _Patch(run, place, request_status_patch(run, place, now))
            # Of a thousand runs that wait few change at a time: only their patches are made.
            self._worked_out[run.key] = patch
            fields = patch.fields
            if fields is None:
                continue
            is_urgent = not _AT_ONCE.isdisjoint(fields)
            if not is_urgent and positions >= _MOST_POSITIONS:
                continue
            # Who was stopped, and for whom, must be known soon.
            is_many = run.is_waiting and "preemptedFor" not in fields
            if is_many and waiting[run.key.namespace] >= _MOST_OF_NAMESPACE:
                continue
            key, version = run.key, run.request.version
            pause_seconds = 0.0 if is_urgent else between_positions_seconds
            if fields.keys() <= _OF_OTHERS:
                pause_seconds *= _OTHERS_FACTOR
            moment = self.monotonic()
            if self._writes.begin_write(("request", *key), version, pause_seconds, moment):
                positions += not is_urgent
                waiting[key.namespace] += is_many
                yield WriteRequestStatus(key, version, fields)

    def queues(
        self,
        runs: Iterable[RequestedRun],
        situation: Situation,
        decided: Decisions,
        policy: PlacementPolicySpec,
        takes_part: Callable[[str], bool],
        now: datetime,
    ) -> Iterator[WriteQueueStatus]:
        """Yield writes for the RunQueues whose status is not as it must be.

        Args:
            runs: runs of namespaces that take part.
            situation: situation on which the decision was made.
            decided: the decision.
            policy: policy in force.
            takes_part: function that returns whether a namespace takes part.
            now: the time.
        """
        self.counts = self._counts(runs, situation, decided)
        for queue in situation.queues:
            findings = findings_of(
                queue,
                situation,
                decided.problems.get(queue.key),
                is_excluded=not takes_part(queue.key.namespace),
                is_paused=policy.paused,
            )
            patch = queue_status_patch(queue, findings, self.counts[queue.key], now)
            if patch is None:
                continue
            is_urgent = not {"ready", "conditions"}.isdisjoint(patch)
            pause_seconds = 0.0 if is_urgent else _COUNTS_SECONDS
            target, moment = ("queue", *queue.key), self.monotonic()
            if self._writes.begin_write(target, queue.version, pause_seconds, moment):
                yield WriteQueueStatus(queue.key, queue.version, patch)

    def _counts(
        self, runs: Iterable[RequestedRun], situation: Situation, decided: Decisions
    ) -> dict[QueueKey, QueueCounts]:
        """Return the numbers of each queue: its runs, and what the admitted ones demand."""
        waiting, admitted = Counter[QueueKey](), Counter[QueueKey]()
        for run in runs:
            if run.observed.end is None or run.key in situation.draining:
                (waiting if run.is_waiting else admitted)[situation.queue_of(run)] += 1
        return {
            each.key: QueueCounts(
                waiting[each.key],
                admitted[each.key],
                # Of the resources that have a quota.
                {
                    name: decided.used.get(each.key, {}).get(name, 0)
                    for name in resources_of(each.spec.quota.resources)
                },
                self.ranges.ratios(each.key),
            )
            for each in situation.queues
        }

    def _place(
        self,
        run: RequestedRun,
        situation: Situation,
        decided: Decisions,
        keys: Mapping[str, RunKey],
        now: datetime,
    ) -> RunPlace:
        queue = situation.queue_of(run)
        priority = situation.queues.allowed_priority(queue, run.priority)
        notes = list(() if run.spec is None else run.spec.notes)
        if queue.name != run.queue_name:
            notes.append(f"there is no RunQueue {run.queue_name}: it is in {queue.name}")
        if priority != run.priority:
            notes.append(f"priority {run.priority} counts as {priority} in {queue.name}")
        if run.is_admitted and run.key in situation.sleeping - situation.fixed:
            notes.append(ASLEEP)
        if run.observed.preempted_for and run.is_admitted and not run.preempted_for:
            notes.append(NOT_STOPPED)
        if run.problem and run.demand is not None:
            notes.append(f"{situation.queues.stated_text(queue)}: {run.problem}")
        verdict, undecided = decided.verdicts.get(run.key), situation.undecided.get(run.key)
        starts = None
        if verdict is not None and not verdict.is_admitted:
            since = run.waiting_since(now)
            starts = self.ranges.starts(run.key, queue, run.status.starts, since, now)
        stop = decided.stops.get(run.key)
        keeps_nodes = run.is_admitted and queue in decided.assigning
        return RunPlace(
            queue=queue,
            priority=priority,
            verdict=verdict,
            undecided=NOT_KNOWN_YET if undecided is None else undecided.why,
            draining=run.key in situation.draining,
            cause=self._causes.get(run.observed.owner.uid),
            preempted_for=run.preempted_for if stop is None else stop.preempted_for,
            stopped=_stopped(run, keys),
            notes=tuple(notes),
            nodes=decided.nodes.get(run.key, None if keeps_nodes else ()),
            starts=starts,
        )


def _starting(situation: Situation, decided: Decisions) -> set[RunKey]:
    """Return the runs that are being started, or that start by this decision."""
    starting = {each.key for each in situation.admitted if each.is_waiting}
    return starting | {key for key, verdict in decided.verdicts.items() if verdict.is_admitted}


def _stopped(run: RequestedRun, keys: Mapping[str, RunKey]) -> str:
    """Return why a run was stopped that waits again, or "" if it was not.

    Args:
        run: the run.
        keys: keys of runs by uid.
    """
    preempted_for = run.preempted_for if run.is_preempted else ""
    if preempted_for in _STOPPED:
        return _STOPPED[preempted_for]
    preemptor = keys.get(preempted_for)
    if preemptor is None:
        return "stopped for a run that goes first"
    if preemptor.namespace != run.key.namespace:
        # Who may see this namespace may not see the other one.
        return "stopped for a run of another namespace"
    return f"stopped for run {preemptor.name} of a higher priority"
