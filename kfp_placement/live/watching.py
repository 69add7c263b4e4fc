"""What happens to one run until it ends: for a terminal, and for a cell of a notebook."""

import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from functools import partial

from kfp_placement.live.exceptions import (
    ClusterError,
    ClusterForbiddenError,
    ClusterMissingError,
)
from kfp_placement.live.following import follow
from kfp_placement.live.kinds import PLACEMENTS, RUN_REQUESTS, Api, JsonObject
from kfp_placement.live.queues import queue_of
from kfp_placement.live.workflows import failure_of
from kfp_placement_engine.contract.placement import Phase
from kfp_placement_engine.contract.run_request import RequestedEnd, RequestPhase
from kfp_placement_engine.views.formatting import clock_text, visible
from kfp_placement_engine.views.queues import QueueView, place_text, queue_text, queue_view
from kfp_placement_engine.views.run_news import is_news, news
from kfp_placement_engine.views.runs import NamedRun, RunView, run_view
from kfp_placement_kube.kinds import Kind

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
        run: as it was when it was last read; None = it has no plan yet.
        lines: what has changed since the last look, each with the time of day.
        notes: what is awaited, or not known.
        outcome: None = it goes on.
        queue: how it waits in its queue; None = it is in none, or we may not look.
    """

    run: RunView | None = None
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
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
    deadline = time.monotonic() + (math.inf if timeout_seconds is None else timeout_seconds)
    watcher = _Watcher(api, named_run, now)
    look = watcher.queued(_queue_now(api, named_run))
    if look.lines:
        yield look
    seen = _followed(api, named_run, watcher)
    while look.outcome is None:
        wait_seconds = min(LOOK_SECONDS, deadline - time.monotonic())
        if wait_seconds > 0:
            look = _next(seen, watcher, wait_seconds)
        else:
            look = watcher.look(outcome=Outcome.TIMED_OUT)
        yield look


_Seen = queue.Queue[Callable[[], Look]]
"""What other threads have seen, each as a call that looks at it."""


def _next(seen: _Seen, watcher: "_Watcher", wait_seconds: float) -> Look:
    try:
        look_at_it = seen.get(timeout=wait_seconds)
    except queue.Empty:
        return watcher.look()
    return look_at_it()


def _queue_now(api: Api, named_run: NamedRun) -> QueueView | None:
    """How it waits; None where nobody answers: that is said of the run itself."""
    try:
        return queue_of(api, named_run.key)
    except ClusterError:
        return None


def _followed(api: Api, named_run: NamedRun, watcher: "_Watcher") -> _Seen:
    """Follow the run and its RunRequest in threads, until the program ends or an error does it."""
    seen: _Seen = queue.Queue()

    def follow_kind(
        kind: Kind, look_at: Callable[[JsonObject | None], Look], tell: Callable[[str], None]
    ) -> None:
        try:
            for raw in follow(api, kind, named_run.key, pause=time.sleep, tell=tell):
                seen.put(partial(look_at, raw))
        except Exception as error:
            refused = isinstance(error, ClusterForbiddenError | ClusterMissingError)
            if kind is RUN_REQUESTS and refused:
                return  # no queues there, or we may not look
            # Raised again where people see it; nobody would see this thread's end.
            seen.put(partial(_fail, error))

    def tell(text: str) -> None:
        seen.put(partial(watcher.look, (visible(text),)))

    for each in (
        (PLACEMENTS, watcher.saw, tell),
        # The same is said of the plan.
        (RUN_REQUESTS, watcher.saw_request, lambda _: None),
    ):
        threading.Thread(target=follow_kind, args=each, name="watch", daemon=True).start()
    return seen


def _fail(error: Exception) -> Look:
    raise error


class _Watcher:
    """What has been seen so far."""

    def __init__(self, api: Api, named_run: NamedRun, now: Clock) -> None:
        self._api = api
        self._named_run = named_run
        self._now = now
        self._run: RunView | None = None
        self._queue: QueueView | None = None
        self._announced: RunView | None = None

    def look(self, notes: tuple[str, ...] = (), outcome: Outcome | None = None) -> Look:
        """What is known, without a change."""
        return Look(self._run, notes=notes, outcome=outcome, queue=self._queue)

    def saw_request(self, raw: JsonObject | None) -> Look:
        """Its RunRequest has changed, or there is none."""
        return self.queued(None if raw is None else queue_view(raw))

    def queued(self, view: QueueView | None) -> Look:
        """How the run waits, or that it may run; a new likely start alone is not reported."""
        before, self._queue = self._queue, view
        is_planned = self._run is not None or self._named_run.raw is not None
        if view is None or (not view.is_waiting and before is None and is_planned):
            return self.look()
        lines: tuple[str, ...] = ()
        if before is None or _said(before) != _said(view):
            lines = (f"{clock_text(self._now())} {queue_text(view)}",)
        outcome = None
        if not is_planned and view.phase == RequestPhase.FINISHED:
            # Only its queue knows of it.
            outcome = _outcome(is_success=view.end == RequestedEnd.SUCCEEDED)
        return Look(self._run, lines, outcome=outcome, queue=view)

    def saw(self, raw: JsonObject | None) -> Look:
        """The run has changed; None = there is no plan, or no longer one."""
        before, moment = self._run, self._now()
        if raw is None and before is not None:
            return self.look(("The run has been deleted.",), Outcome.DELETED)
        if raw is None:
            is_queued = self._queue is not None
            return self.look(() if is_queued else ("The run has no plan yet; waiting for one.",))
        run = run_view(raw, moment, run_name=self._named_run.run_name).with_states_of(before)
        notes: tuple[str, ...] = ()
        try:
            run = replace(run, workflow_message=failure_of(self._api, run))
        except ClusterError as error:
            notes = (f"Why it failed is not known: {visible(str(error))}",)
        news_lines = news(before, run, self._announced)
        lines = tuple(f"{clock_text(moment)} {line}" for line in news_lines)
        if self._announced is None or is_news(self._announced, run):
            self._announced = run if run.has_plan else None
        self._run = run
        outcome = _outcome(is_success=run.phase == Phase.SUCCEEDED) if run.ended else None
        return Look(run, lines, notes, outcome=outcome, queue=self._queue)


def _outcome(*, is_success: bool) -> Outcome:
    return Outcome.SUCCEEDED if is_success else Outcome.FAILED


def _said(view: QueueView) -> tuple[str, tuple[str, ...]]:
    return place_text(view), view.notes
