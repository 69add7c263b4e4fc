"""Letting runs begin, stop and go on: each such write once, until its object shows it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.queueing.actions import (
    ReleaseCause,
    ReleaseHeld,
    ResumeRun,
    ShowHeld,
    SteeringAction,
    SuspendRun,
)
from kfp_placement_controller.queueing.backend import BY_REQUEST, Decisions
from kfp_placement_controller.queueing.queued_runs import RequestedRun
from kfp_placement_controller.queueing.situation import Situation
from kfp_placement_controller.queueing.start_ranges import start_outcome

RETRY_AFTER = timedelta(seconds=2)
"""Time between two tries of the same write; what it changes comes by a watch."""

_REFUSED_FOR = timedelta(minutes=1)
"""How long a run is left alone whose object may not be changed, as an admission webhook of others
can say: else it took its place in the queue forever."""

_MOST_REMEMBERED = 10_000
"""Runs of which is remembered what they were asked for."""


@dataclass
class Standing:
    """Which runs wait, before their queues decide.

    Attributes:
        wanted: what to do whatever queues decide.
        waiting: runs that wait.
        refused: runs that may go on, and of whose objects that is refused.
        starting: runs that are being let go on.
    """

    wanted: list[SteeringAction]
    waiting: list[RequestedRun]
    refused: list[RequestedRun]
    starting: list[RequestedRun]


@dataclass
class Steering:
    """What is done with runs, and what was tried a short time ago."""

    _tried: dict[tuple[str, ...], datetime] = field(default_factory=dict)
    _started: dict[tuple[str, str], datetime] = field(default_factory=dict)
    _refused: dict[str, datetime] = field(default_factory=dict)
    _obeyed: dict[str, datetime] = field(default_factory=dict)

    @property
    def has_tried(self) -> bool:
        """Whether anything was tried a short time ago, and may have to be tried again."""
        return bool(self._tried)

    def clear(self) -> None:
        """Nothing was tried."""
        self._tried.clear()
        self._started.clear()
        self._refused.clear()

    def forget(self, now: datetime) -> None:
        """What was tried longer ago may be tried again."""
        self._tried = {what: at for what, at in self._tried.items() if now - at < RETRY_AFTER}
        self._started = {run: at for run, at in self._started.items() if now - at < RETRY_AFTER}
        self._refused = {uid: at for uid, at in self._refused.items() if now - at < _REFUSED_FOR}

    def standing(
        self,
        runs: Iterable[RequestedRun],
        cause_of: Callable[[RequestedRun], ReleaseCause | None],
        now: datetime,
    ) -> Standing:
        """Which runs wait, before their queues decide.

        Args:
            runs: all.
            cause_of: why a run that waits goes on whatever its queue decides; None = it waits on.
            now: the time.
        """
        standing = Standing([], [], [], [])
        for run in runs:
            if not run.is_waiting:
                if (
                    run.observed.preempted_for
                    and run.observed.end is None
                    and not run.observed.is_suspended
                ):
                    # Somebody else has let it go on: what it says of its preemption is over.
                    standing.wanted.append(ResumeRun(run.observed, ReleaseCause.REQUESTED, 0.0))
            elif (cause := cause_of(run)) is not None:
                standing.wanted.append(self.start(run, cause, now))
                if cause is not ReleaseCause.TERMINATED:
                    standing.starting.append(run)
            elif self.is_refused(run):
                standing.refused.append(run)
            elif (run.observed.owner.uid, run.observed.version) in self._started:
                # Its object does not show it yet.
                standing.starting.append(run)
            else:
                standing.waiting.append(run)
        return standing

    def start(self, run: RequestedRun, cause: ReleaseCause, now: datetime) -> SteeringAction:
        """Let a run that waits begin, or go on; it counts as admitted from now on."""
        self._started.setdefault((run.observed.owner.uid, run.observed.version), now)
        action = ReleaseHeld if run.observed.is_held else ResumeRun
        waited = now - run.waiting_since(now)
        is_admitted = cause is ReleaseCause.ADMITTED
        outcome = start_outcome(run.first_starts(now), now) if is_admitted else None
        return action(run.observed, cause, max(0.0, waited.total_seconds()), outcome)

    def refused(self, action: SteeringAction, now: datetime) -> None:
        """The API server has refused something for good, not only for now."""
        self._refused[action.run.owner.uid] = now

    def is_refused(self, run: RequestedRun) -> bool:
        """Whether its object could not be changed a short time ago."""
        return run.observed.owner.uid in self._refused

    def decided(
        self,
        waiting: Iterable[RequestedRun],
        situation: Situation,
        decided: Decisions,
        now: datetime,
    ) -> Iterator[SteeringAction]:
        """What to do with the runs that wait, and with those that must make room.

        Args:
            waiting: runs that wait.
            situation: on which the decision was made.
            decided: what was decided.
            now: the time.
        """
        for run in waiting:
            if run.observed.preempted_for == BY_REQUEST and run.request is not None:
                self._obey(run.observed.owner.uid, run.request.preempt_at)
            verdict = decided.verdicts.get(run.key)
            if verdict is not None and verdict.is_admitted:
                yield self.start(run, ReleaseCause.ADMITTED, now)
            elif (
                run.observed.is_held and not run.observed.held_message and not self.is_refused(run)
            ):
                queue = situation.queue_of(run)
                yield ShowHeld(run.observed, f"waits in RunQueue {queue.name}")
        for run in situation.admitted:
            if not run.is_admitted or run.observed.is_suspended:
                continue
            stop = decided.stops.get(run.key)
            if stop is not None:
                yield SuspendRun(run.observed, stop.preempted_for, stop.note)
            elif run.is_to_be_preempted(self._obeyed.get(run.observed.owner.uid), now):
                yield SuspendRun(run.observed, BY_REQUEST, "suspended: somebody has asked for it")

    def may_try(self, what: tuple[str, ...], now: datetime) -> bool:
        """Whether a write was not tried just now.

        Args:
            what: the target of the action.
            now: the time.
        """
        if what in self._tried:
            return False
        self._tried[what] = now
        return True

    def _obey(self, uid: str, asked_at: datetime | None) -> None:
        """A run has stopped by request; let go on within the same second it must not stop again."""
        self._obeyed.pop(uid, None)
        if asked_at is not None:
            self._obeyed[uid] = asked_at
        if len(self._obeyed) > _MOST_REMEMBERED:
            del self._obeyed[next(iter(self._obeyed))]
