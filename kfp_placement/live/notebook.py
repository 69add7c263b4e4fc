"""`run(name)`: a run of the cluster in a notebook, where one cell follows it."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kfp_placement.exceptions import MarkValueError, UnknownStepError, UsageError
from kfp_placement.live.choosing import planned_run, steps_named, the_run
from kfp_placement.live.connection import LiveCluster
from kfp_placement.live.exceptions import ClusterMissingError
from kfp_placement.live.explanation import (
    ACTIVE,
    explanation,
    step_table,
    unplanned_explanation,
    without_past_plan,
)
from kfp_placement.live.fetching import NamedRun
from kfp_placement.live.formatting import clock_text, makespans_text, progress_text, run_title
from kfp_placement.live.kinds import Api
from kfp_placement.live.policy import why_off
from kfp_placement.live.promises import promise_after_start_of, run_ends_sentence
from kfp_placement.live.queues import QueueView, queue_of, queue_text, waiting_text
from kfp_placement.live.runs import RunView, StepView, run_view
from kfp_placement.live.watching import Clock, Look, Outcome, looks
from kfp_placement.live.workflows import why_no_plan
from kfp_placement.report.markup import Markup, tag, text
from kfp_placement.report.table import TableStyle
from kfp_placement.report.visible import visible
from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.durations import parse_duration
from kfp_placement_engine.model.keys import RunKey

MAX_ROWS = 60
"""Steps that a cell shows; where there are more, those that run or wait come first."""

MAX_NOTES = 5
"""Latest remarks that a cell shows."""

REDRAW_SECONDS = 5.0
"""A cell in which nothing has changed is drawn again after this: running times grow."""

_WIDER = "namespace=''"
# Notebooks lay tables out in their own way, and those that are not trusted keep no style sheets.
_TABLE_STYLE = "border-collapse:collapse;table-layout:auto;margin:4px 0"
_CELL_STYLE = "text-align:left;vertical-align:top;padding:2px 12px 2px 0;white-space:normal"


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
        known = None
        if named_run.raw is not None:
            known = run_view(named_run.raw, run_name=named_run.run_name)
        self._latest = self._snapshot(known, queue)

    @property
    def phase(self) -> str:
        """Its phase when it was last looked at: `Running`, `Succeeded`; "" = it has no plan."""
        return "" if self._latest.run is None else self._latest.run.phase

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
        seconds = None if timeout is None else _seconds(timeout)
        show = _screen()
        off = why_off(self._api)
        if off:
            show(self._looked(self._same(warnings=(visible(off),))))
        try:
            for look in looks(self._api, self._named_run, now=self._now, timeout_seconds=seconds):
                show(self._looked(look))
        except KeyboardInterrupt:
            stopped = ("Stopped watching; the run goes on.",)
            show(self._looked(self._same(notes=stopped)))

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
        queue = queue_of(self._api, named.key)
        if queue is not None and named.raw is None:
            self._latest = self._snapshot(None, queue)
            why = why_no_plan(self._api, self.namespace, self.name)
            return _Answer(unplanned_explanation(queue, why))
        view, missing = planned_run(self._api, named)
        view = without_past_plan(view, queue)
        self._latest = self._snapshot(view, queue)
        try:
            steps = view.steps if step is None else steps_named(view, step)
        except ClusterMissingError as error:
            raise UnknownStepError(str(error)) from None
        answer = explanation(view, steps, self._now(), TableStyle(), in_full=step is not None)
        waits: list[str] = []
        if queue is not None and queue.is_waiting:
            promised = promise_after_start_of(view) is not None
            waits = [waiting_text(queue, promised=promised)]
        warnings = (f"Warning: {visible(each)}" for each in missing)
        return _Answer("\n".join([*warnings, *waits, answer]))

    def _same(self, *, notes: tuple[str, ...] = (), warnings: tuple[str, ...] = ()) -> Look:
        """What was seen last, with something to say."""
        return Look(self._latest.run, notes=notes, warnings=warnings, queue=self._latest.queue)

    def _looked(self, look: Look) -> "_Snapshot":
        """What there is to show after a look."""
        ended = (_OUTCOMES[look.outcome],) if look.outcome in _OUTCOMES else ()
        warnings = (f"Warning: {each}" for each in look.warnings)
        news = (*look.notes, *warnings, *look.lines, *ended)
        run = look.run or self._latest.run
        self._latest = self._snapshot(run, look.queue, news, self._latest.remarks)
        return self._latest

    def _snapshot(
        self,
        run: RunView | None,
        queue: QueueView | None,
        news: tuple[str, ...] = (),
        before: tuple[str, ...] = (),
    ) -> "_Snapshot":
        remarks = (*before, *news)[-MAX_NOTES:]
        return _Snapshot(f"{self.namespace}/{self.name}", run, queue, self._now(), news, remarks)

    # `typing.override` is there from Python 3.12 on.
    def __repr__(self) -> str:  # type: ignore[explicit-override]
        return f"<Run {self._latest.title}>"

    def _repr_html_(self) -> str:
        return self._latest.markup()


_OUTCOMES = {Outcome.TIMED_OUT: "Timed out; the run has not ended."}
"""Said of the ends that no look has told."""


class _Answer(str):
    """Text of several lines that a notebook shows unchanged."""

    __slots__ = ()

    # `typing.override` is there from Python 3.12 on.
    def __repr__(self) -> str:  # type: ignore[explicit-override]
        return str(self).rstrip("\n")


@dataclass(frozen=True)
class _Snapshot:
    """A run at a moment.

    Attributes:
        key: namespace and name.
        run: as it was; None = it had no plan.
        queue: how it waited; None = in no queue.
        moment: when.
        news: changes since the snapshot before; empty = nothing.
        remarks: the latest of these and of earlier ones.
    """

    key: str
    run: RunView | None
    queue: QueueView | None
    moment: datetime
    news: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def title(self) -> str:
        """One line."""
        queue = self.queue
        waits = [queue_text(queue)] if queue is not None and queue.is_waiting else []
        if self.run is None:
            return f"{visible(self.key)}: {', '.join(['no plan yet', *waits])}"
        run = without_past_plan(self.run, queue)
        facts = [visible(run.phase), progress_text(run), makespans_text(run)]
        facts += filter(None, [run_ends_sentence(run, self.moment)])
        return f"{run_title(run)}: {', '.join([*facts, *waits])}"

    def markup(self) -> Markup:
        """A small table; bounded whatever the run is, and without a style sheet."""
        parts = [tag("p", tag("b", text(self.title)))]
        if self.run is not None and self.run.steps:
            chosen = _chosen(without_past_plan(self.run, self.queue).steps)
            columns, rows = step_table(self.run, chosen, self.moment)
            titles = [column.title.lower() for column in columns]
            table = [_row("th", titles), *(_row("td", row) for row in rows)]
            parts.append(tag("table", *table, style=_TABLE_STYLE))
            hidden = len(self.run.steps) - len(chosen)
            parts += [tag("p", text(f"{hidden:,} more steps are not shown."))] if hidden else []
        parts += [tag("p", text(remark)) for remark in self.remarks]
        parts.append(tag("p", text(f"as of {clock_text(self.moment)} UTC")))
        return tag("div", *parts)

    # `typing.override` is there from Python 3.12 on.
    def __repr__(self) -> str:  # type: ignore[explicit-override]
        return "\n".join((self.title, *self.remarks))

    def _repr_html_(self) -> str:
        return self.markup()


def _chosen(steps: tuple[StepView, ...]) -> tuple[StepView, ...]:
    if len(steps) <= MAX_ROWS:
        return steps
    return tuple(sorted(steps, key=lambda step: step.state not in ACTIVE)[:MAX_ROWS])


def _row(kind: str, cells: Sequence[str]) -> Markup:
    return tag("tr", *(tag(kind, text(cell), style=_CELL_STYLE) for cell in cells))


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


def _seconds(timeout: object) -> float:
    try:
        return parse_duration(timeout)
    except QuantityError as error:
        raise MarkValueError(f"watch: timeout: {error}") from None
