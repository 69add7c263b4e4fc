"""Watching of one run until it ends, for a terminal or a cell of a notebook."""

import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from functools import partial

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import ClusterError, ClusterForbiddenError, ClusterMissingError
from kfp_placement.live.following import follow
from kfp_placement.live.kinds import PLACEMENTS, RUN_REQUESTS
from kfp_placement.live.queues import queue_of
from kfp_placement.live.run_failures import failure_of
from kfp_placement_engine.contract.placement import Phase
from kfp_placement_engine.contract.run_request import RequestedEnd, RequestPhase
from kfp_placement_engine.views.formatting import clock_text, visible
from kfp_placement_engine.views.queues import QueueView, place_text, queue_text, queue_view
from kfp_placement_engine.views.run_news import is_news, news
from kfp_placement_engine.views.runs import NamedRun, RunView, run_view
from kfp_placement_kube.kinds import JsonObject, Kind

LOOK_SECONDS = 1.0
"""Time after which there is a look though nothing has changed: running times grow."""

Texts = tuple[str, ...]
"""Texts for people."""

Clock = Callable[[], datetime]
"""Function that returns the present time."""


class Outcome(Enum):
    """End of a watch."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """Failure or refusal of the run."""
    DELETED = "deleted"
    TIMED_OUT = "timed out"
    """Timeout of the watch; the run goes on."""


@dataclass(frozen=True)
class Look:
    """State of a watched run at one moment.

    Attributes:
        run: view of the run as it was last read; None if it has no plan yet.
        lines: news since the last look, each with the time of day.
        notes: remarks on what is awaited, or could not be read.
        outcome: end of the watch; None while it goes on.
        queue: view of the run in its queue; None if it is in none, or we have no right to look.
    """

    run: RunView | None
    lines: Texts = ()
    notes: Texts = ()
    outcome: Outcome | None = None
    queue: QueueView | None = None


def looks(
    api: ClusterApi, named_run: NamedRun, *, now: Clock, timeout_seconds: float | None = None
) -> Iterator[Look]:
    """Watch a run until it ends, through restarts of the API server.

    Args:
        api: cluster of the run.
        named_run: run to watch.
        now: clock.
        timeout_seconds: time after which to give up; None = never.

    Yields:
        A look at each change, and every second without one.

    Raises:
        ClusterError: the server refuses to go on.
    """
    deadline = time.monotonic() + (math.inf if timeout_seconds is None else timeout_seconds)
    watcher = _Watcher(api, named_run, now)
    look = watcher.queue_changed(_queue_now(api, named_run))
    if look.lines:
        yield look
    stopped = threading.Event()
    try:
        changes = _followed(api, named_run, watcher, stopped)
        while look.outcome is None:
            wait_seconds = min(LOOK_SECONDS, deadline - time.monotonic())
            if wait_seconds > 0:
                look = _next(changes, watcher, wait_seconds)
            else:
                look = watcher.look(outcome=Outcome.TIMED_OUT)
            yield look
    finally:
        stopped.set()


_Changes = queue.Queue[Callable[[], Look]]
"""Changes that other threads received, each as a function that returns the look after it."""


def _next(changes: _Changes, watcher: "_Watcher", wait_seconds: float) -> Look:
    try:
        look_after = changes.get(timeout=wait_seconds)
    except queue.Empty:
        return watcher.look()
    return look_after()


def _queue_now(api: ClusterApi, named_run: NamedRun) -> QueueView | None:
    """Return how the run waits; None without an answer, which the watch of the plan reports."""
    try:
        return queue_of(api, named_run.key)
    except ClusterError:
        return None


def _followed(
    api: ClusterApi, named_run: NamedRun, watcher: "_Watcher", stopped: threading.Event
) -> _Changes:
    """Follow the plan and the RunRequest in threads, until `stopped` is set or an error occurs."""
    changes: _Changes = queue.Queue()

    def follow_kind(
        kind: Kind, look_after: Callable[[JsonObject | None], Look], tell: Callable[[str], None]
    ) -> None:
        try:
            for raw in follow(api, kind, named_run.key, stopped=stopped, tell=tell):
                changes.put(partial(look_after, raw))
        except Exception as error:
            refused = isinstance(error, ClusterForbiddenError | ClusterMissingError)
            if kind is RUN_REQUESTS and refused:
                return  # queues are not installed, or we have no right to look
            # Raised again in the thread that shows looks; nobody would see this thread's end.
            changes.put(partial(_fail, error))

    def tell(text: str) -> None:
        changes.put(partial(watcher.look, (visible(text),)))

    for arguments in (
        (PLACEMENTS, watcher.plan_changed, tell),
        # Silent: what keeps this from coming keeps the plan from coming too.
        (RUN_REQUESTS, watcher.request_changed, lambda _: None),
    ):
        threading.Thread(target=follow_kind, args=arguments, name="watch", daemon=True).start()
    return changes


def _fail(error: Exception) -> Look:
    raise error


class _Watcher:
    """State of a watch: the run and its queue as last read, and the plan that was announced."""

    def __init__(self, api: ClusterApi, named_run: NamedRun, now: Clock) -> None:
        self._api = api
        self._named_run = named_run
        self._now = now
        self._run: RunView | None = None
        self._queue: QueueView | None = None
        self._announced: RunView | None = None

    def look(self, notes: Texts = (), outcome: Outcome | None = None) -> Look:
        """Return a look without a change."""
        return Look(self._run, notes=notes, outcome=outcome, queue=self._queue)

    def request_changed(self, raw: JsonObject | None) -> Look:
        """Return the look after a change of the RunRequest; None = it does not exist."""
        return self.queue_changed(None if raw is None else queue_view(raw))

    def queue_changed(self, view: QueueView | None) -> Look:
        """Return the look after a change of the queue; a new likely start alone is not reported."""
        before, self._queue = self._queue, view
        is_planned = self._run is not None or self._named_run.raw is not None
        if view is None or (not view.is_waiting and before is None and is_planned):
            return self.look()
        lines: Texts = ()
        if before is None or _place_and_notes(before) != _place_and_notes(view):
            lines = (f"{clock_text(self._now())} {queue_text(view)}",)
        outcome = None
        if not is_planned and view.phase == RequestPhase.FINISHED:
            # There is no plan from which to learn of the end.
            outcome = _outcome(is_success=view.end == RequestedEnd.SUCCEEDED)
        return Look(self._run, lines, outcome=outcome, queue=view)

    def plan_changed(self, raw: JsonObject | None) -> Look:
        """Return the look after a change of the PipelinePlacement; None = it does not exist."""
        before, moment = self._run, self._now()
        if raw is None and before is not None:
            return self.look(("The run has been deleted.",), Outcome.DELETED)
        if raw is None:
            is_queued = self._queue is not None
            return self.look(() if is_queued else ("The run has no plan yet; waiting for one.",))
        run = run_view(raw, moment, run_name=self._named_run.run_name).with_states_of(before)
        notes: Texts = ()
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


def _place_and_notes(view: QueueView) -> tuple[str, Texts]:
    return place_text(view), view.notes
