"""What the statuses of RunQueues and RunRequests are to say, and how often that is written."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from kfp_placement_controller.queueing.actions import (
    ReleaseCause,
    WriteQueueStatus,
    WriteRequestStatus,
)
from kfp_placement_controller.queueing.backend import BY_KUEUE, BY_REQUEST, Decisions
from kfp_placement_controller.queueing.queue_status import QueueCounts, findings_of, status_patch
from kfp_placement_controller.queueing.queued_runs import KnownRun
from kfp_placement_controller.queueing.request_status import (
    NOT_HELD,
    RunPlace,
    request_status_patch,
)
from kfp_placement_controller.queueing.situation import NOT_KNOWN_YET, Situation
from kfp_placement_controller.queueing.start_ranges import StartRanges
from kfp_placement_controller.queueing.steering import RETRY_AFTER
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.contract.run_queue import resources_of
from kfp_placement_engine.contract.run_request import RequestPhase, RequestReason
from kfp_placement_engine.model.keys import QueueKey, RunKey

_COUNTS = timedelta(seconds=1)
"""Time between two writes of a queue's counts, which change with every run."""

_POSITIONS = timedelta(seconds=10)
"""Time between two writes of what changes with every run for all that wait, such as their
positions, at most."""

_POSITIONS_PER_RUN = timedelta(milliseconds=50)
"""The same for each run that waits: where few do, all is written soon, and where a thousand do they
are not written all the time."""

_MOST_POSITIONS = 20
"""Such writes at a time."""

_OTHERS_FACTOR = 6
"""How many times rarer that is for a run of which only how many others wait is new: while a
thousand runs are submitted that changes all the time."""

_AT_ONCE = frozenset({"phase", "conditions", "queue", "assignedNodes"})
_OF_OTHERS = frozenset({"waiting", "message"})
"""What changes with every run that is submitted or begins behind a run."""

_MOST_KNOWN = 10_000
"""Runs of which is remembered what was written and why they run; their objects say it, too."""

_REASONS = {
    ReleaseCause.ADMITTED: (RequestReason.ADMITTED, "its queue has admitted it"),
    ReleaseCause.REQUESTED: (RequestReason.BY_REQUEST, "somebody who may has let it begin"),
    ReleaseCause.UNPLANNABLE: (RequestReason.UNPLANNABLE, "nobody can say what it needs"),
    ReleaseCause.NO_DEMAND: (RequestReason.UNPLANNABLE, "nobody has said what it needs"),
    ReleaseCause.NO_QUEUE: (RequestReason.NOT_HELD, "its namespace takes no part any more"),
}


_STOPPED = {
    "": "",
    BY_REQUEST: "stopped: somebody has asked for it",
    BY_KUEUE: "stopped: Kueue has evicted it",
}
"""What is said of runs by what they have made room for; of all others, by a run's uid."""


@dataclass(frozen=True, slots=True)
class _Patch:
    """What must be written of a run, as long as run and place are these; None = nothing."""

    known: KnownRun
    place: RunPlace
    fields: Mapping[str, Any] | None


@dataclass
class QueuePublisher:
    """Writes what is new: phases and conditions at once, counts and positions now and then.

    Attributes:
        ranges: says when runs are likely to start.
        counts: of each queue, as last decided.
    """

    ranges: StartRanges
    counts: dict[QueueKey, QueueCounts] = field(default_factory=dict)
    _worked_out: dict[RunKey, _Patch] = field(default_factory=dict)
    _written: dict[tuple[str, ...], tuple[datetime, str]] = field(default_factory=dict)
    _causes: dict[str, ReleaseCause] = field(default_factory=dict)

    def clear(self) -> None:
        """When what was written is not known any more: the clock was set."""
        self._written.clear()

    def released(self, uid: str, cause: ReleaseCause) -> None:
        """A run has been let run.

        Args:
            uid: of its object.
            cause: why.
        """
        if len(self._causes) >= _MOST_KNOWN:
            del self._causes[next(iter(self._causes))]
        self._causes[uid] = cause

    def requests(
        self, runs: Iterable[KnownRun], situation: Situation, decided: Decisions, now: datetime
    ) -> Iterator[WriteRequestStatus]:
        """Statuses of RunRequests that do not say what they should.

        Args:
            runs: of namespaces that take part, and those of others that do not wait.
            situation: on which the decision was made.
            decided: what was decided.
            now: the time.
        """
        positions = 0
        between_positions = min(_POSITIONS, _POSITIONS_PER_RUN * len(situation.waiting))
        before, self._worked_out = self._worked_out, {}
        # What is said of a run that is being let go on is said when its object shows it; but that
        # it has waited again must be said, else it counts as admitted since the first time.
        let = {each.key for each in situation.admitted if each.is_waiting}
        let |= {key for key, verdict in decided.verdicts.items() if verdict.is_admitted}
        for known in runs:
            is_let = known.key in let and known.status.phase != RequestPhase.ADMITTED
            if known.request is None or is_let:
                continue
            place = self._place(known, situation, decided, now)
            patch = before.get(known.key)
            if patch is None or patch.known is not known or patch.place != place:
                patch = _Patch(known, place, request_status_patch(known, place, now))
            # Of a thousand runs that wait few change at a time: the others cost nothing.
            self._worked_out[known.key] = patch
            fields = patch.fields
            if fields is None:
                continue
            is_urgent = not _AT_ONCE.isdisjoint(fields)
            if not is_urgent and positions >= _MOST_POSITIONS:
                continue
            key, version = known.key, known.request.version
            pause = timedelta() if is_urgent else between_positions
            if fields.keys() <= _OF_OTHERS:
                pause *= _OTHERS_FACTOR
            if self._may_write(("request", *key), version, pause, now):
                positions += not is_urgent
                yield WriteRequestStatus(key, version, fields)

    def queues(
        self,
        runs: Iterable[KnownRun],
        situation: Situation,
        decided: Decisions,
        policy: PlacementPolicySpec,
        excluded: Callable[[str], bool],
        now: datetime,
    ) -> Iterator[WriteQueueStatus]:
        """Statuses of RunQueues that do not say what they should.

        Args:
            runs: of namespaces that take part.
            situation: on which the decision was made.
            decided: what was decided.
            policy: in force.
            excluded: whether a namespace takes no part.
            now: the time.
        """
        queues = situation.queues
        waiting, admitted = Counter[QueueKey](), Counter[QueueKey]()
        for known in runs:
            count = waiting if known.is_waiting else admitted
            count[situation.queue_of(known)] += known.run.end is None
        self.counts = {
            each.key: QueueCounts(
                waiting[each.key],
                admitted[each.key],
                # What admitted runs demand of the resources that have a quota.
                {
                    name: decided.used.get(each.key, {}).get(name, 0)
                    for name in resources_of(each.spec.quota.resources)
                },
                self.ranges.ratios(each.key),
            )
            for each in queues
        }
        for queue in queues:
            findings = findings_of(
                queue,
                situation,
                decided.problems.get(queue.key),
                is_excluded=excluded(queue.key.namespace),
                is_paused=policy.paused,
            )
            patch = status_patch(queue, findings, self.counts[queue.key], now)
            if patch is None:
                continue
            pause = _COUNTS if {"ready", "conditions"}.isdisjoint(patch) else timedelta()
            if self._may_write(("queue", *queue.key), queue.version, pause, now):
                yield WriteQueueStatus(queue.key, queue.version, patch)

    def _place(
        self,
        known: KnownRun,
        situation: Situation,
        decided: Decisions,
        now: datetime,
    ) -> RunPlace:
        queue = situation.queue_of(known)
        priority = situation.queues.allowed_priority(queue, known.priority)
        notes = list(() if known.spec is None else known.spec.notes)
        if queue.name != known.queue_name:
            notes.append(f"there is no RunQueue {known.queue_name}: it is in {queue.name}")
        if priority != known.priority:
            notes.append(f"priority {known.priority} counts as {priority} in {queue.name}")
        cause = self._causes.get(known.run.owner.uid)
        verdict, starts = decided.verdicts.get(known.key), None
        if verdict is not None and not verdict.is_admitted:
            since = known.waiting_since(now)
            starts = self.ranges.starts(known.key, queue, known.status.starts, since, now)
        keeps_nodes = known.is_admitted and queue in decided.assigning
        return RunPlace(
            queue=queue,
            priority=priority,
            verdict=verdict,
            undecided=situation.undecided.get(known.key, (known, NOT_KNOWN_YET))[1],
            draining=known.key in situation.draining,
            cause=None if cause is None else _REASONS.get(cause, NOT_HELD),
            stopped=_stopped(known, situation),
            notes=tuple(notes),
            nodes=decided.nodes.get(known.key, None if keeps_nodes else ()),
            starts=starts,
        )

    def _may_write(
        self, what: tuple[str, ...], version: str, pause: timedelta, now: datetime
    ) -> bool:
        """Whether a version was not written over before, nor the object a short time ago."""
        last = self._written.pop(what, None)
        if last is not None:
            written_at, over = last
            if over == version:
                pause = max(pause, RETRY_AFTER)
            if now - written_at < pause:
                self._written[what] = last
                return False
        if len(self._written) >= _MOST_KNOWN:
            del self._written[next(iter(self._written))]
        self._written[what] = (now, version)
        return True


def _stopped(known: KnownRun, situation: Situation) -> str:
    """Why a run was stopped that waits again; "" = it was not."""
    preempted_for = known.run.preempted_for if known.run.is_preempted else ""
    if preempted_for in _STOPPED:
        return _STOPPED[preempted_for]
    runs = (*situation.waiting, *situation.admitted)
    names = (f"run {each.key.name}" for each in runs if each.run.owner.uid == preempted_for)
    return f"stopped for {next(names, 'a run')} of a higher priority"
