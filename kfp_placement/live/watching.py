"""What happens to one run until it ends: for a terminal, and for a cell of a notebook."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from kfp_placement.live.changes import (
    changes,
    is_promised_anew,
    is_replanned,
    with_states_seen,
)
from kfp_placement.live.exceptions import (
    ClusterError,
    ClusterForbiddenError,
    ClusterMissingError,
)
from kfp_placement.live.fetching import NamedRun
from kfp_placement.live.following import follow
from kfp_placement.live.formatting import clock_text
from kfp_placement.live.kinds import RUN_REQUESTS, Api, JsonObject
from kfp_placement.live.queues import QueueView, place_text, queue_of, queue_text, queue_view
from kfp_placement.live.runs import RunView, run_view
from kfp_placement.live.workflows import with_failure
from kfp_placement.report.visible import visible
from kfp_placement_engine.contract.placement import Phase
from kfp_placement_engine.contract.run_request import RequestedEnd, RequestPhase

LOOK_SECONDS = 1.0
"""Where nothing comes, a look is due after this: running times grow."""

Clock = Callable[[], datetime]


class Outcome(Enum):
    """How it ended, for us."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """It failed, or was refused."""
    DELETED = "deleted"
    TIMED_OUT = "timed out"
    """It goes on."""


@dataclass(frozen=True)
class Look:
    """What there is to see.

    Attributes:
        run: as it is now; None = it has no plan yet.
        lines: what has changed since the last look, each with the time of day.
        notes: what is awaited.
        warnings: what is not known.
        outcome: None = it goes on.
        queue: how it waits in its queue; None = it is in none, or we may not look.
    """

    run: RunView | None = None
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    outcome: Outcome | None = None
    queue: QueueView | None = None


def looks(
    api: Api, named_run: NamedRun, *, now: Clock, timeout_seconds: float | None = None
) -> Iterator[Look]:
    """Follow a run until it ends; survives restarts of the API server.

    Args:
        api: the cluster.
        named_run: the run.
        now: the time.
        timeout_seconds: give up after this; None = never.

    Yields:
        A look at each change, and every second without one.

    Raises:
        ClusterError: the server refuses to go on.
    """
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    follower, watcher = _Follower(api, named_run), _Watcher(api, named_run)
    queued = watcher.queued(_queue_now(api, named_run), now())
    if queued.lines:
        yield queued
    follower.start()
    while queued.outcome is None:
        wait = LOOK_SECONDS
        if deadline is not None:
            wait = min(wait, deadline - time.monotonic())
            if wait <= 0:
                yield watcher.look(outcome=Outcome.TIMED_OUT)
                return
        look = _next(follower, watcher, wait, now)
        yield look
        if look.outcome is not None:
            return


def _next(follower: "_Follower", watcher: "_Watcher", wait_seconds: float, now: Clock) -> Look:
    try:
        seen = follower.seen.get(timeout=wait_seconds)
    except queue.Empty:
        return watcher.look()
    if isinstance(seen, Exception):
        raise seen
    if isinstance(seen, str):
        return watcher.look(notes=(visible(seen),))
    if isinstance(seen, _SeenRequest):
        return watcher.queued(seen.view, now())
    return watcher.absent() if seen is None else watcher.saw(seen, now())


def _queue_now(api: Api, named_run: NamedRun) -> QueueView | None:
    """How it waits; None where nobody answers: that is said of the run itself."""
    try:
        return queue_of(api, named_run.key)
    except ClusterError:
        return None


@dataclass(frozen=True)
class _SeenRequest:
    """How a run waits; None = it is in no queue."""

    view: QueueView | None


class _Follower:
    """Follows the run and its RunRequest in threads; what they see goes into one queue."""

    def __init__(self, api: Api, named_run: NamedRun) -> None:
        self.seen: queue.Queue[JsonObject | _SeenRequest | str | Exception | None] = queue.Queue()
        self._api = api
        self._named_run = named_run

    def start(self) -> None:
        """Until the program ends, or an error ends it."""
        for each in (self._follow_plan, self._follow_request):
            threading.Thread(target=self._follow, args=(each,), name="watch", daemon=True).start()

    def _follow(self, follow_one: Callable[[], None]) -> None:
        try:
            follow_one()
        except Exception as error:
            # Raised again where people see it; nobody would see this thread's end.
            self.seen.put(error)

    def _follow_plan(self) -> None:
        name, namespace = self._named_run.name, self._named_run.namespace
        for placement in follow(self._api, namespace, name, pause=time.sleep, tell=self.seen.put):
            self.seen.put(placement)

    def _follow_request(self) -> None:
        name, namespace = self._named_run.name, self._named_run.namespace
        requests = follow(
            self._api,
            namespace,
            name,
            pause=time.sleep,
            tell=lambda _: None,  # the same is said of the plan
            kind=RUN_REQUESTS,
        )
        try:
            for raw in requests:
                self.seen.put(_SeenRequest(None if raw is None else queue_view(raw)))
        except (ClusterForbiddenError, ClusterMissingError):
            return  # no queues there, or we may not look


class _Watcher:
    """What has been seen so far."""

    def __init__(self, api: Api, named_run: NamedRun) -> None:
        self._api = api
        self._named_run = named_run
        self.run: RunView | None = None
        self._queue: QueueView | None = None
        self._announced: RunView | None = None

    def look(self, notes: tuple[str, ...] = (), outcome: Outcome | None = None) -> Look:
        """What is known, without a change."""
        return Look(self.run, notes=notes, outcome=outcome, queue=self._queue)

    def queued(self, view: QueueView | None, moment: datetime) -> Look:
        """How the run waits, or that it may run; a new likely start alone is not reported."""
        before, self._queue = self._queue, view
        if view is None or (not view.is_waiting and before is None and self._is_planned):
            return self.look()
        is_new = before is None or _said(before) != _said(view)
        lines = (f"{clock_text(moment)} {queue_text(view)}",) if is_new else ()
        return Look(self.run, lines, outcome=self._end_without_plan(view), queue=view)

    @property
    def _is_planned(self) -> bool:
        return self.run is not None or self._named_run.raw is not None

    def _end_without_plan(self, view: QueueView) -> Outcome | None:
        """How a run has ended of which only its queue knows."""
        if self._is_planned or view.phase != RequestPhase.FINISHED:
            return None
        is_success = view.end == RequestedEnd.SUCCEEDED
        return Outcome.SUCCEEDED if is_success else Outcome.FAILED

    def saw(self, placement: JsonObject, moment: datetime) -> Look:
        """The run has changed."""
        run = with_states_seen(self.run, run_view(placement, run_name=self._named_run.run_name))
        warnings: tuple[str, ...] = ()
        try:
            run = with_failure(self._api, run)
        except ClusterError as error:
            warnings = (f"why it failed is not known: {visible(str(error))}",)
        lines = changes(self.run, run, moment, self._announced)
        told = tuple(f"{clock_text(moment)} {line}" for line in lines)
        if self._announced is None or self._is_news(self._announced, run):
            self._announced = run if run.placement is not None else None
        self.run = run
        outcome = None
        if run.ended:
            outcome = Outcome.SUCCEEDED if run.phase == Phase.SUCCEEDED else Outcome.FAILED
        return Look(run, told, warnings=warnings, outcome=outcome, queue=self._queue)

    @staticmethod
    def _is_news(announced: RunView, run: RunView) -> bool:
        return is_replanned(announced, run) or is_promised_anew(announced, run)

    def absent(self) -> Look:
        """There is no plan, or no longer one."""
        if self.run is None:
            is_queued = self._queue is not None
            return self.look(() if is_queued else ("The run has no plan yet; waiting for one.",))
        return self.look(("The run has been deleted.",), Outcome.DELETED)


def _said(view: QueueView) -> tuple[str, tuple[str, ...]]:
    return place_text(view), view.notes
