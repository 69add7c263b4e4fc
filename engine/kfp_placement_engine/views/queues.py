"""Views of runs in queues, read from their RunRequests, and texts on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from typing_extensions import override

from kfp_placement_engine.contract.custom_resources import RunQueue, RunRequest, read_resource
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.contract.run_request import (
    RequestCondition,
    RequestPhase,
    RunRequestStatus,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.views.document import (
    NAMESPACE,
    Column,
    ColumnOf,
    NumberColumn,
    Table,
    table_of,
)
from kfp_placement_engine.views.formatting import (
    NONE,
    age_text,
    duration,
    facts,
    name_text,
    sentence,
    shown,
    word,
)

_MIN_MESSAGE = 24


@dataclass(frozen=True)
class QueueView:
    """A run in its queue, whether it waits, runs or has ended.

    Attributes:
        key: namespace and name of the run.
        run_name: KFP's name of the run; "" = not known.
        phase: `Waiting`, `Admitted` or `Finished`; "" until the queue has looked at the run.
        queue: name of the RunQueue; "" until the queue has looked at the run.
        priority: priority that the queue allows.
        position: position among the waiting runs of the queue, from 1; None = it does not wait.
        waiting: number of waiting runs of the queue; None = not known.
        message: reason why the run waits: `3rd of 7, lacks 2 nvidia.com/gpu of the quota`.
        missing: missing resources, each with a Kubernetes quantity.
        notes: remarks for the author.
        earliest, latest: range of the likely start, which holds for four of five runs; None = not
            known.
        submitted_at, waiting_since, admitted_at: times of these events; None = not known.
        makespan_seconds: planned duration once the run begins; None = not known.
        end: outcome, `Succeeded` or `Failed`; "" = not known.
    """

    key: RunKey
    run_name: str = ""
    phase: str = ""
    queue: str = ""
    priority: int = 0
    position: int | None = None
    waiting: int | None = None
    message: str = ""
    missing: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    earliest: datetime | None = None
    latest: datetime | None = None
    submitted_at: datetime | None = None
    waiting_since: datetime | None = None
    admitted_at: datetime | None = None
    makespan_seconds: float | None = None
    end: str = ""

    @property
    def is_waiting(self) -> bool:
        """True while the run may not begin yet, or may not go on."""
        return self.phase in ("", RequestPhase.WAITING)

    @override
    def __repr__(self) -> str:
        return f"<{'/'.join(map(name_text, self.key))}: {queue_text(self)}>"


def queue_view(raw: dict[str, Any]) -> QueueView:
    """Read a RunRequest; if it is malformed, the view has its name and the error only."""
    metadata = raw.get("metadata") or {}
    key = RunKey(str(metadata.get("namespace", "")), str(metadata.get("name", "")))
    try:
        request = read_resource(RunRequest, raw)
    except InputError as error:
        return QueueView(key, message=str(error))
    spec, status = request.spec, request.status or RunRequestStatus()
    starts = status.starts
    return QueueView(
        key=key,
        run_name=spec.display_name,
        phase=status.phase or "",
        queue=status.queue or "",
        priority=spec.priority if status.priority is None else status.priority,
        position=status.position,
        waiting=status.waiting,
        message=status.message or "",
        missing=tuple((each.resource, each.amount) for each in status.missing),
        notes=(*_preemption(status), *(status.notes or spec.notes)),
        earliest=None if starts is None else starts.earliest,
        latest=None if starts is None else starts.latest,
        submitted_at=spec.submitted_at,
        waiting_since=status.waiting_since,
        admitted_at=status.admitted_at,
        makespan_seconds=spec.makespan_seconds,
        end=spec.end or "",
    )


def _preemption(status: RunRequestStatus) -> tuple[str, ...]:
    """Return why a run was stopped that waits again; none if it was not."""
    condition = status.condition(RequestCondition.PREEMPTED)
    waits = status.phase == RequestPhase.WAITING
    return (condition.message,) if waits and condition and condition.status == "True" else ()


def queue_text(view: QueueView) -> str:
    """Describe a run in its queue: `queued 3rd of 7, lacks 8 cpu of the quota`, then its notes."""
    text = facts(place_text(view), starts_text(view) if view.is_waiting else "")
    return "; ".join([text, *map(sentence, view.notes)])


def place_text(view: QueueView) -> str:
    """Describe the place of a run in its queue, without its likely start and without notes.

    The likely start moves with time, so a comparison of two moments leaves it out.
    """
    if not view.is_waiting:
        return f"{word(view.phase).lower()} in RunQueue {name_text(view.queue)}"
    message = sentence(view.message) or "not looked at yet"
    return f"queued {message}" if view.position is not None else f"queued: {message}"


def waiting_lines(view: QueueView, *, promised: bool = False) -> str:
    """Describe a run in its queue, and on a second line how long it takes once it begins.

    Args:
        view: run in its queue.
        promised: whether an end is promised by past runs, which replaces the second line.
    """
    seconds = view.makespan_seconds
    # A run that was stopped has a part of its duration behind it.
    if not view.is_waiting or seconds is None or view.admitted_at is not None or promised:
        return queue_text(view)
    return f"{queue_text(view)}\ntakes {duration(seconds)} once it begins"


def starts_text(view: QueueView) -> str:
    """Format the likely start: `starts 2026-11-29 14:20-15:40 UTC (80%)`; "" = not known."""
    if view.earliest is None:
        return ""
    first = view.earliest.astimezone(UTC)
    if view.latest is None:
        return f"starts not before {first:%Y-%m-%d %H:%M} UTC"
    last = view.latest.astimezone(UTC)
    day = "" if first.date() == last.date() else f"{last:%Y-%m-%d} "
    return f"starts {first:%Y-%m-%d %H:%M}-{day}{last:%H:%M} UTC (80%)"


def not_ready_text(queue: RunQueue, *, namespaces: bool) -> str:
    """Return a warning that new runs do not wait in a RunQueue, with the reason; "" if they do.

    Args:
        queue: RunQueue to look at.
        namespaces: whether the warning names the namespace.
    """
    status = queue.status
    if status is None or status.ready is not False:
        return ""
    condition = status.condition("Ready")
    reason = "" if condition is None else f" ({shown(condition.reason, 120)})"
    where = f"{name_text(queue.metadata.namespace)}/" if namespaces else ""
    return f"RunQueue {where}{DEFAULT_QUEUE} is not ready{reason}: new runs begin at once"


def queue_table(
    views: Sequence[QueueView], now: datetime, *, wide: bool, namespaces: bool
) -> Table:
    """Return the table that `queue` prints.

    Args:
        views: queued runs in the order of the table.
        now: present time.
        wide: whether columns that are seldom needed are shown.
        namespaces: whether there is a column for the namespace.
    """
    columns: list[ColumnOf[QueueView]] = [
        (NAMESPACE, lambda view: name_text(view.key.namespace)),
        (Column("QUEUE"), lambda view: name_text(view.queue)),
        (Column("RUN"), lambda view: name_text(view.key.name)),
        (Column("RUN NAME", only_wide=True, shrink_to=8), lambda view: name_text(view.run_name)),
        (Column("PHASE"), lambda view: word(view.phase) or NONE),
        (NumberColumn("PRIORITY", spare=2), lambda view: str(view.priority)),
        (NumberColumn("AGE", spare=3), lambda view: _passed(view.submitted_at, now)),
        (NumberColumn("WAITED", spare=1), lambda view: _waited(view, now)),
        (Column("NOTES", wrap_from=_MIN_MESSAGE), _remarks),
    ]
    return table_of("Queue", columns, views, wide=wide, namespaces=namespaces)


def _remarks(view: QueueView) -> str:
    waiting = (view.message, starts_text(view)) if view.is_waiting else ()
    return sentence(*waiting, *view.notes)


def _waited(view: QueueView, now: datetime) -> str:
    since, until = view.waiting_since, now if view.is_waiting else view.admitted_at
    return _passed(since, until) if since and until and since <= until else NONE


def _passed(since: datetime | None, until: datetime | None) -> str:
    if since is None or until is None:
        return NONE
    return age_text(max(0.0, (until - since).total_seconds()))
