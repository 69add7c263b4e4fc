"""`run(name)`: a run of the cluster in a notebook, where one cell follows it."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from typing_extensions import override

from kfp_placement._mark_values import duration
from kfp_placement.exceptions import UnknownStepError, UsageError
from kfp_placement.live.connection import LiveCluster
from kfp_placement.live.exceptions import ClusterMissingError
from kfp_placement.live.fetching import look_at
from kfp_placement.live.finding import steps_named, the_run
from kfp_placement.live.kinds import Api
from kfp_placement.live.policy import why_off
from kfp_placement.live.queues import queue_of
from kfp_placement.live.watching import Clock, Look, Outcome, looks
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.render.text import document_text
from kfp_placement_engine.views.explanation import explanation, snapshot
from kfp_placement_engine.views.formatting import visible
from kfp_placement_engine.views.queues import QueueView
from kfp_placement_engine.views.run_texts import summary
from kfp_placement_engine.views.runs import NamedRun, RunView, run_view

MAX_ROWS = 60
"""Steps that a cell shows; where there are more, those that run or wait come first."""

MAX_NOTES = 5
"""Latest remarks that a cell shows."""

REDRAW_SECONDS = 5.0
"""A cell in which nothing has changed is drawn again after this: running times grow."""

_WIDER = "namespace=''"


def run(
    name: str,
    namespace: str | None = None,
    *,
    kubeconfig: str | Path | None = None,
    context: str | None = None,
) -> "Run":
    """A run in the cluster that kubectl would talk to; nothing is written to the cluster.

    Args:
        name: the Workflow's name or NAMESPACE/NAME, KFP's run id, or KFP's name of the run.
        namespace: where to look; by default the context's; "" = everywhere.
        kubeconfig: file; by default `KUBECONFIG`, else `~/.kube/config`, else the pod's account.
        context: by name; by default the current one.

    Returns:
        The run; `.watch()` follows it, `.explain("train")` says why a step is where it is.

    Raises:
        UsageError: the name is not text, or empty.
        PlacementError: there is no such run, several may be meant, or the cluster does not answer.
    """
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"name a run, such as run('taxi-x7k2p'); got {name!r:.60}")
    file = None if kubeconfig is None else Path(kubeconfig)
    cluster = LiveCluster.connect(file, context, "kubeconfig=")
    where = cluster.namespace if namespace is None else namespace
    named = the_run(cluster, where, name, wider=_WIDER)
    return Run(cluster, named, queue=queue_of(cluster, named.key))


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


class Run:
    """One run of the cluster, shown as it was when it was last looked at.

    Attributes:
        name: of its Workflow.
        namespace: where.
    """

    def __init__(
        self,
        api: Api,
        named_run: NamedRun,
        now: Clock = utc_now,
        *,
        queue: QueueView | None = None,
    ) -> None:
        """Show what is known of it; nothing is asked yet.

        Args:
            api: the cluster.
            named_run: the run.
            now: the time.
            queue: how it waits in its queue; None = it is in none.
        """
        self.name = named_run.name
        self.namespace = named_run.namespace
        self._api = api
        self._named_run = named_run
        self._now = now
        known = RunView(self.name, self.namespace, now())
        if named_run.raw is not None:
            known = run_view(named_run.raw, now(), run_name=named_run.run_name)
        self._latest = _Snapshot(known.in_queue(queue))

    @property
    def phase(self) -> str:
        """Its phase when it was last looked at: `Running`, `Succeeded`; "" = it has no plan."""
        return self._latest.run.phase

    @property
    def queue(self) -> QueueView | None:
        """How it waits in its queue, as the cluster says now; None = it is in no queue.

        Raises:
            PlacementError: the cluster does not answer.
        """
        return queue_of(self._api, RunKey(self.namespace, self.name))

    def watch(self, timeout: str | float | timedelta | None = None) -> None:
        """Follow the run until it ends; interrupting stops the watching, not the run.

        In a notebook one cell shows the run as it changes; elsewhere there is a line for each
        change.

        Args:
            timeout: give up after this: `2h`, or seconds; by default never.

        Raises:
            MarkValueError: a timeout that is not a duration.
            PlacementError: the server refuses to go on.
        """
        seconds = None if timeout is None else duration("watch", "timeout", timeout)
        show = _screen()
        off = why_off(self._api)
        if off:
            show(self._told(f"Warning: {visible(off)}"))
        try:
            for look in looks(self._api, self._named_run, now=self._now, timeout_seconds=seconds):
                show(self._looked(look))
        except KeyboardInterrupt:
            show(self._told("Stopped watching; the run goes on."))

    def explain(self, step: str | None = None) -> str:
        """Where a step is, why there, why not yet and until when, as the cluster says now.

        Args:
            step: its name, or a task's for all its iterations; by default all steps, a line each.

        Raises:
            UnknownStepError: there is no such step.
            PlacementError: the run has no plan and waits in no queue, or the cluster does not
                answer.
        """
        named = the_run(self._api, "", f"{self.namespace}/{self.name}", wider=_WIDER)
        seen = look_at(self._api, named, self._now(), queue_of(self._api, named.key))
        self._latest = _Snapshot(seen)
        try:
            steps = seen.steps if step is None else steps_named(seen, step)
        except ClusterMissingError as error:
            raise UnknownStepError(str(error)) from None
        answer = document_text(explanation(seen, steps, in_full=step is not None))
        return _Answer("\n".join([*(f"Warning: {visible(each)}" for each in seen.missing), answer]))

    def _looked(self, look: Look) -> "_Snapshot":
        """What there is to show after a look."""
        timed_out = look.outcome is Outcome.TIMED_OUT
        ended = ("Timed out; the run has not ended.",) if timed_out else ()
        seen = replace(look.run or self._latest.run, seen_at=self._now()).in_queue(look.queue)
        return self._told(*look.notes, *look.lines, *ended, run=seen)

    def _told(self, *news: str, run: RunView | None = None) -> "_Snapshot":
        """The latest snapshot, with something to say."""
        remarks = (*self._latest.remarks, *news)[-MAX_NOTES:]
        self._latest = _Snapshot(run or self._latest.run, news, remarks)
        return self._latest

    @override
    def __repr__(self) -> str:
        return f"<Run {summary(self._latest.run)}>"

    def _repr_html_(self) -> str:
        return self._latest._repr_html_()


class _Answer(str):
    """Text of several lines that a notebook shows unchanged."""

    __slots__ = ()

    @override
    def __repr__(self) -> str:
        return str(self).rstrip("\n")


@dataclass(frozen=True)
class _Snapshot:
    """A run at a moment.

    Attributes:
        run: as it was.
        news: changes since the snapshot before; empty = nothing.
        remarks: the latest of these and of earlier ones.
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


def _screen() -> _Screen:
    """One cell in a notebook, lines elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # A terminal has a shell too, but cannot change what it has shown.
    return _Cell() if hasattr(shell, "kernel") else _print_news


def _print_news(snapshot: _Snapshot) -> None:
    for line in snapshot.news:
        print(line, flush=True)


class _Cell:
    """Shows the latest snapshot, and each instead of the one before."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._drawn = 0.0

    def __call__(self, snapshot: _Snapshot) -> None:
        """Show it, unless it says nothing new."""
        if self._handle is None:
            from IPython.display import display

            self._handle = display(snapshot, display_id=True)  # type: ignore[no-untyped-call]
        elif snapshot.news or time.monotonic() - self._drawn >= REDRAW_SECONDS:
            self._handle.update(snapshot)
        else:
            return
        self._drawn = time.monotonic()
