"""What happens to one run until it ends: for a terminal, and for a cell of a notebook."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from kfp_placement.live.changes import changes, is_replanned, with_states_seen
from kfp_placement.live.exceptions import ClusterError
from kfp_placement.live.fetching import NamedRun
from kfp_placement.live.following import follow
from kfp_placement.live.formatting import clock_text
from kfp_placement.live.kinds import Api, JsonObject
from kfp_placement.live.runs import RunView, run_view
from kfp_placement.live.workflows import with_failure
from kfp_placement.report.visible import visible
from kfp_placement_engine.contract.placement import Phase

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
    """

    run: RunView | None = None
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    outcome: Outcome | None = None


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
    follower.start()
    while True:
        wait = LOOK_SECONDS
        if deadline is not None:
            wait = min(wait, deadline - time.monotonic())
            if wait <= 0:
                yield Look(watcher.run, outcome=Outcome.TIMED_OUT)
                return
        look = _next(follower, watcher, wait, now)
        yield look
        if look.outcome is not None:
            return


def _next(follower: "_Follower", watcher: "_Watcher", wait_seconds: float, now: Clock) -> Look:
    try:
        seen = follower.seen.get(timeout=wait_seconds)
    except queue.Empty:
        return Look(watcher.run)
    if isinstance(seen, Exception):
        raise seen
    if isinstance(seen, str):
        return Look(watcher.run, notes=(visible(seen),))
    return watcher.absent() if seen is None else watcher.saw(seen, now())


class _Follower(threading.Thread):
    """Follows the run in a thread; what it sees goes into a queue."""

    def __init__(self, api: Api, named_run: NamedRun) -> None:
        super().__init__(name="watch", daemon=True)
        self.seen: queue.Queue[JsonObject | str | Exception | None] = queue.Queue()
        self._api = api
        self._named_run = named_run

    # `typing.override` is there from Python 3.12 on.
    def run(self) -> None:  # type: ignore[explicit-override]
        """Until the program ends, or an error ends it."""
        name, namespace = self._named_run.name, self._named_run.namespace
        try:
            for placement in follow(
                self._api, namespace, name, pause=time.sleep, tell=self.seen.put
            ):
                self.seen.put(placement)
        except Exception as error:
            # Raised again where people see it; nobody would see this thread's end.
            self.seen.put(error)


class _Watcher:
    """What has been seen so far."""

    def __init__(self, api: Api, named_run: NamedRun) -> None:
        self._api = api
        self._named_run = named_run
        self.run: RunView | None = None
        self._announced: RunView | None = None

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
        if self._announced is None or is_replanned(self._announced, run):
            self._announced = run if run.placement is not None else None
        self.run = run
        outcome = None
        if run.ended:
            outcome = Outcome.SUCCEEDED if run.phase == Phase.SUCCEEDED else Outcome.FAILED
        return Look(run, told, warnings=warnings, outcome=outcome)

    def absent(self) -> Look:
        """There is no plan, or no longer one."""
        if self.run is None:
            return Look(notes=("The run has no plan yet; waiting for one.",))
        return Look(self.run, notes=("The run has been deleted.",), outcome=Outcome.DELETED)
