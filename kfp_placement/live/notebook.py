"""A run of the cluster in a notebook: `run(name)`, and a cell that follows it."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from typing_extensions import override

from kfp_placement._mark_values import Given, duration
from kfp_placement.exceptions import UnknownStepError, UsageError
from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import ClusterMissingError
from kfp_placement.live.fetching import look_at
from kfp_placement.live.finding import steps_named, the_run
from kfp_placement.live.policy import why_off
from kfp_placement.live.queues import queue_of
from kfp_placement.live.watching import Clock, Look, Outcome, looks
from kfp_placement_engine.render.text import document_text
from kfp_placement_engine.views.explanation import explanation, snapshot
from kfp_placement_engine.views.formatting import visible
from kfp_placement_engine.views.queues import QueueView
from kfp_placement_engine.views.run_texts import summary
from kfp_placement_engine.views.runs import NamedRun, RunView, run_view

MAX_ROWS = 60
"""Largest number of steps in a cell; if there are more, those that run or wait come first."""

MAX_NOTES = 5
"""Largest number of remarks that a cell shows, the latest ones."""

REDRAW_SECONDS = 5.0
"""Time after which a cell is drawn again though nothing has changed: running times grow."""

_WIDER = "namespace=''"
"""Argument that searches all namespaces, for messages."""


def run(
    name: str,
    namespace: str | None = None,
    *,
    kubeconfig: str | Path | None = None,
    context: str | None = None,
) -> "Run":
    """Find a run in the cluster that kubectl would talk to; nothing is written to the cluster.

    Args:
        name: the Workflow's name or NAMESPACE/NAME, KFP's run id, or KFP's name of the run.
        namespace: namespace to search; by default the context's; "" = all.
        kubeconfig: file; by default `KUBECONFIG`, else `~/.kube/config`, else the pod's account.
        context: name of a context; by default the current one.

    Returns:
        The run; `.watch()` follows it, `.explain("train")` says why a step is where it is.

    Raises:
        UsageError: the name is not text, or empty.
        PlacementError: there is no such run, the name may mean several, or the cluster does not
            answer.
    """
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"name a run, such as run('taxi-x7k2p'); got {name!r:.60}")
    file = None if kubeconfig is None else Path(kubeconfig)
    api = ClusterApi.connect(file, context, "kubeconfig=")
    where = api.namespace if namespace is None else namespace
    named = the_run(api, where, name, wider=_WIDER)
    return Run(api, named, queue=queue_of(api, named.key))


def utc_now() -> datetime:
    """Return the present time."""
    return datetime.now(UTC)


class Run:
    """One run of the cluster; shows the state in which it was last read.

    Attributes:
        name: name of its Workflow.
        namespace: namespace of its Workflow.
    """

    def __init__(
        self,
        api: ClusterApi,
        named_run: NamedRun,
        now: Clock = utc_now,
        *,
        queue: QueueView | None = None,
    ) -> None:
        """Set up the run with what is known of it; nothing is read yet.

        Args:
            api: cluster of the run.
            named_run: the run as it was found.
            now: clock.
            queue: view of the run in its queue; None if it is in none.
        """
        self.name = named_run.name
        self.namespace = named_run.namespace
        self._api = api
        self._named_run = named_run
        self._now = now
        view = RunView(self.name, self.namespace, now())
        if named_run.raw is not None:
            view = run_view(named_run.raw, now(), run_name=named_run.run_name)
        self._latest = _Snapshot(view.in_queue(queue))

    @property
    def phase(self) -> str:
        """Phase in which the run was last read: `Running`, `Succeeded`; "" = it has no plan."""
        return self._latest.run.phase

    @property
    def queue(self) -> QueueView | None:
        """State of the run in its queue; None if it is in no queue.

        It asks the cluster each time, unlike `phase`, which is that of the last reading.

        Raises:
            PlacementError: the cluster does not answer.
        """
        return queue_of(self._api, self._named_run.key)

    def watch(self, timeout: str | float | timedelta | None = None) -> None:
        """Follow the run until it ends; interrupting stops the watching, not the run.

        In a notebook one cell shows the run as it changes; elsewhere there is a line for each
        change.

        Args:
            timeout: time after which it gives up: `2h`, or seconds; by default never.

        Raises:
            MarkValueError: a timeout that is not a duration.
            PlacementError: the server refuses to go on.
        """
        seconds = None if timeout is None else duration(Given("watch", "timeout", timeout))
        show = _screen()
        off = why_off(self._api)
        if off:
            show(self._with_news(f"Warning: {visible(off)}"))
        try:
            for look in looks(self._api, self._named_run, now=self._now, timeout_seconds=seconds):
                show(self._after(look))
        except KeyboardInterrupt:
            show(self._with_news("Stopped watching; the run goes on."))

    def explain(self, step: str | None = None) -> str:
        """Return where a step is and why, or what it waits for, read from the cluster now.

        Args:
            step: name of a step, or of a task for all its iterations; by default all steps, in one
                line each.

        Raises:
            UnknownStepError: there is no such step.
            PlacementError: the run has no plan and waits in no queue, or the cluster does not
                answer.
        """
        named = the_run(self._api, "", f"{self.namespace}/{self.name}", wider=_WIDER)
        view = look_at(self._api, named, self._now(), queue_of(self._api, named.key))
        self._latest = _Snapshot(view)
        try:
            steps = view.steps if step is None else steps_named(view, step)
        except ClusterMissingError as error:
            raise UnknownStepError(str(error)) from None
        answer = document_text(explanation(view, steps, in_full=step is not None))
        warnings = [f"Warning: {visible(problem)}" for problem in view.missing]
        return _Answer("\n".join([*warnings, answer]))

    def _after(self, look: Look) -> "_Snapshot":
        """Return the snapshot after a look of the watch."""
        timed_out = look.outcome is Outcome.TIMED_OUT
        ended = ("Timed out; the run has not ended.",) if timed_out else ()
        view = replace(look.run or self._latest.run, seen_at=self._now()).in_queue(look.queue)
        return self._with_news(*look.notes, *look.lines, *ended, run=view)

    def _with_news(self, *news: str, run: RunView | None = None) -> "_Snapshot":
        """Add news to the latest snapshot and return it."""
        remarks = (*self._latest.remarks, *news)[-MAX_NOTES:]
        self._latest = _Snapshot(run or self._latest.run, news, remarks)
        return self._latest

    @override
    def __repr__(self) -> str:
        return f"<Run {summary(self._latest.run)}>"

    def _repr_html_(self) -> str:
        return self._latest._repr_html_()


class _Answer(str):
    """Text of several lines that a notebook shows without quotes and escapes."""

    __slots__ = ()

    @override
    def __repr__(self) -> str:
        return str(self).rstrip("\n")


@dataclass(frozen=True)
class _Snapshot:
    """State of a run at one moment.

    Attributes:
        run: view of the run.
        news: texts on changes since the last snapshot.
        remarks: latest news, of this and of earlier snapshots.
    """

    run: RunView
    news: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @override
    def __repr__(self) -> str:
        return "\n".join((summary(self.run), *self.remarks))

    def _repr_html_(self) -> str:
        from kfp_placement_engine.render.html import html_fragment

        return html_fragment(snapshot(self.run, self.remarks, MAX_ROWS))


_Screen = Callable[[_Snapshot], None]
"""Function that shows a snapshot."""


def _screen() -> _Screen:
    """Return what shows snapshots: one cell in a notebook, printed lines elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # IPython on a terminal has a shell too, but cannot change its output.
    return _Cell() if hasattr(shell, "kernel") else _print_news


def _print_news(snapshot: _Snapshot) -> None:
    for line in snapshot.news:
        print(line, flush=True)


class _Cell:
    """Output of a cell: each snapshot replaces the one before."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._drawn = 0.0

    def __call__(self, snapshot: _Snapshot) -> None:
        """Show a snapshot, if something changed or the last one is old."""
        if self._handle is None:
            from IPython.display import display

            self._handle = display(snapshot, display_id=True)  # type: ignore[no-untyped-call]
        elif snapshot.news or time.monotonic() - self._drawn >= REDRAW_SECONDS:
            self._handle.update(snapshot)
        else:
            return
        self._drawn = time.monotonic()
