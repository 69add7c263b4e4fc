"""Starts and stops of runs: a write is repeated only if the run's object does not show it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from kfp_placement_controller.pauses import lasting
from kfp_placement_controller.queueing.actions import (
    ReleaseCause,
    ReleaseHeld,
    ResumeRun,
    ShowHeld,
    SteeringAction,
    SuspendRun,
)
from kfp_placement_controller.queueing.backend import BY_REQUEST, Decisions, Stop
from kfp_placement_controller.queueing.requested_run import RequestedRun
from kfp_placement_controller.queueing.situation import Situation
from kfp_placement_controller.queueing.start_ranges import start_outcome

RETRY_SECONDS = 2.0
"""Time between two tries of the same write; a watch shows its effect earlier."""

_REFUSED_SECONDS = 60.0
"""Time for which a run does not take part after the API server refused to change its object, for
example by somebody's admission webhook; otherwise the run would block its queue forever."""

_RESUMED_BY_OTHERS = (
    "suspended again: its queue has stopped this run, so taking spec.suspend off does not let it go"
    " on, as kfp-placement release does"
)

_MOST_REMEMBERED = 10_000
"""Limit of the runs for which the last request to stop is remembered."""


@dataclass
class Standing:
    """Runs, sorted by what their queues may still decide about them.

    Attributes:
        wanted: actions to take whatever the queues decide.
        waiting: runs that wait.
        refused: runs that may start, but whose objects refuse to be changed.
        starting: runs that are being started.
    """

    wanted: list[SteeringAction]
    waiting: list[RequestedRun]
    refused: list[RequestedRun]
    starting: list[RequestedRun]


@dataclass
class Steering:
    """Decisions on how to start and stop runs, with memory of the latest tries.

    Attributes:
        monotonic: monotonic clock, in seconds.
    """

    monotonic: Callable[[], float]
    _tried: dict[tuple[str, ...], float] = field(default_factory=dict)
    _started: dict[tuple[str, str], float] = field(default_factory=dict)
    _refused: dict[str, float] = field(default_factory=dict)
    _obeyed: dict[str, datetime] = field(default_factory=dict)

    @property
    def has_tried(self) -> bool:
        """Return whether an action was tried a short time ago, and may have to be tried again."""
        return bool(self._tried)

    def clear(self) -> None:
        """Forget all tries."""
        self._tried.clear()
        self._started.clear()
        self._refused.clear()

    def forget(self) -> None:
        """Forget older tries, so that these actions may be tried again."""
        monotonic_seconds = self.monotonic()
        self._tried = lasting(RETRY_SECONDS, self._tried, monotonic_seconds)
        self._started = lasting(RETRY_SECONDS, self._started, monotonic_seconds)
        self._refused = lasting(_REFUSED_SECONDS, self._refused, monotonic_seconds)

    def standing(
        self,
        runs: Iterable[RequestedRun],
        cause_of: Callable[[RequestedRun], ReleaseCause | None],
        now: datetime,
    ) -> Standing:
        """Sort runs by what their queues may still decide about them.

        Args:
            runs: all runs.
            cause_of: function that returns why a run starts whatever its queue decides, or None.
            now: the time.
        """
        standing = Standing([], [], [], [])
        for run in runs:
            if not run.is_waiting:
                if run.preempted_for and run.is_admitted and not run.observed.is_suspended:
                    # Whoever may resume it removes the note of its preemption, too.
                    standing.wanted.append(
                        SuspendRun(run.observed, run.preempted_for, _RESUMED_BY_OTHERS)
                    )
            elif (cause := cause_of(run)) is not None:
                standing.wanted.append(self.start(run, cause, now))
                if cause is not ReleaseCause.TERMINATED:
                    standing.starting.append(run)
            elif self.is_refused(run):
                standing.refused.append(run)
            elif (run.observed.owner.uid, run.observed.version) in self._started:
                # The object of the run does not show yet that it was started.
                standing.starting.append(run)
            else:
                standing.waiting.append(run)
        return standing

    def start(self, run: RequestedRun, cause: ReleaseCause, now: datetime) -> SteeringAction:
        """Return the action that starts a waiting run; it counts as admitted from now on."""
        self._started.setdefault((run.observed.owner.uid, run.observed.version), self.monotonic())
        action = ReleaseHeld if run.observed.is_held else ResumeRun
        waited = now - run.waiting_since(now)
        is_admitted = cause is ReleaseCause.ADMITTED
        outcome = start_outcome(run.first_starts(now), now) if is_admitted else None
        return action(run.observed, cause, max(0.0, waited.total_seconds()), outcome)

    def refused(self, action: SteeringAction) -> None:
        """Remember that the API server has refused an action, and would refuse it again."""
        self._refused[action.run.owner.uid] = self.monotonic()

    def is_refused(self, run: RequestedRun) -> bool:
        """Return whether the object of a run refused to be changed a short time ago."""
        return run.observed.owner.uid in self._refused

    def decided(
        self,
        waiting: Iterable[RequestedRun],
        situation: Situation,
        decided: Decisions,
        now: datetime,
    ) -> Iterator[SteeringAction]:
        """Yield the actions on runs that wait, and on those that must make room.

        Args:
            waiting: runs that wait.
            situation: situation in which the backends decided.
            decided: decisions of the backends.
            now: the time.
        """
        for run in waiting:
            if run.preempted_for == BY_REQUEST and run.request is not None:
                self._obey(run.observed.owner.uid, run.request.preempt_asked_at)
            verdict = decided.verdicts.get(run.key)
            if verdict is not None and verdict.is_admitted:
                yield self.start(run, ReleaseCause.ADMITTED, now)
            elif (
                run.observed.is_held and not run.observed.held_message and not self.is_refused(run)
            ):
                queue = situation.queue_of(run)
                yield ShowHeld(run.observed, f"waits in RunQueue {queue.name}")
        for run in situation.admitted:
            stop = decided.stops.get(run.key)
            # What its RunRequest does not say yet would be taken for forged.
            if stop is not None and run.status.preempted_for == stop.preempted_for:
                yield SuspendRun(run.observed, stop.preempted_for, stop.note)

    def with_requests(self, decided: Decisions, situation: Situation, now: datetime) -> Decisions:
        """Return decisions with the stops that people ask for, of runs that go on.

        Args:
            decided: decisions of the backends.
            situation: situation in which they decided.
            now: the time.
        """
        going = {
            run.key: run
            for run in situation.admitted
            if run.is_admitted and not run.observed.is_suspended
        }
        asked = {
            key: Stop(BY_REQUEST, "suspended: somebody has asked for it")
            for key, run in going.items()
            if run.is_to_be_preempted(self._obeyed.get(run.observed.owner.uid), now)
        }
        stops = {key: stop for key, stop in decided.stops.items() if key in going}
        return replace(decided, stops={**asked, **stops})

    def may_try(self, identity: tuple[str, ...]) -> bool:
        """Return whether an action was not tried a short time ago, and remember this try."""
        if identity in self._tried:
            return False
        self._tried[identity] = self.monotonic()
        return True

    def _obey(self, uid: str, asked_at: datetime | None) -> None:
        """Remember the request by which somebody stopped a run.

        If somebody starts the run within the same second, the old request must not stop it again.
        """
        self._obeyed.pop(uid, None)
        if asked_at is not None:
            self._obeyed[uid] = asked_at
        if len(self._obeyed) > _MOST_REMEMBERED:
            del self._obeyed[next(iter(self._obeyed))]
