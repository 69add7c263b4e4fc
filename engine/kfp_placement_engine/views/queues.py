"""How runs wait in queues: what their RunRequests say, and the same in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from typing_extensions import override

from kfp_placement_engine.contract.resources import RunQueue, RunRequest, read_resource
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.contract.run_request import RequestPhase, RunRequestStatus
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.views.document import Column, ColumnOf, NumberColumn, Table, table_of
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
    """How a run waits, or has waited, in its queue.

    Attributes:
        key: namespace and name of the run.
        run_name: KFP's name of it; "" = not known.
        phase: `Waiting`, `Admitted` or `Finished`; "" = its queue has not said yet.
        queue: name of the RunQueue that decides; "" likewise.
        priority: as the queue allows it.
        position: among the runs of the queue that wait, from 1; None = it does not wait.
        waiting: how many these are.
        message: what keeps it waiting: `3rd of 7, lacks 2 nvidia.com/gpu of the quota`.
        missing: the same as amounts: resource -> Kubernetes quantity.
        notes: what its author should know.
        earliest, latest: when it is likely to start, for four of five runs; None = not
            said.
        submitted_at, waiting_since, admitted_at: when; None = not said.
        makespan_seconds: how long it takes once it begins; None = not said.
        end: how it has ended, `Succeeded` or `Failed`; "" = not said.
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
        """Whether it is not to run yet."""
        return self.phase in ("", RequestPhase.WAITING)

    @override
    def __repr__(self) -> str:
        return f"<{'/'.join(map(name_text, self.key))}: {queue_text(self)}>"


def queue_view(raw: dict[str, Any]) -> QueueView:
    """What a RunRequest says, whoever has written it; of one that cannot be read only its name."""
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
        notes=status.notes or spec.notes,
        earliest=None if starts is None else starts.earliest,
        latest=None if starts is None else starts.latest,
        submitted_at=spec.submitted_at,
        waiting_since=status.waiting_since,
        admitted_at=status.admitted_at,
        makespan_seconds=spec.makespan_seconds,
        end=spec.end or "",
    )


def queue_text(view: QueueView) -> str:
    """How a run waits, as text: `queued 3rd of 7, lacks 8 cpu of the quota`; then its notes."""
    text = facts(place_text(view), starts_text(view) if view.is_waiting else "")
    return "; ".join([text, *map(sentence, view.notes)])


def place_text(view: QueueView) -> str:
    """The same without its likely start, which moves with time, and without notes."""
    if not view.is_waiting:
        return f"{word(view.phase).lower()} in RunQueue {name_text(view.queue)}"
    message = sentence(view.message) or "not looked at yet"
    return f"queued {message}" if view.position is not None else f"queued: {message}"


def waiting_text(view: QueueView, *, promised: bool = False) -> str:
    """How a run waits, and on a line of its own how long it takes once it begins.

    Args:
        view: of the run.
        promised: whether past runs tell better when it ends.
    """
    seconds = view.makespan_seconds
    # One that was stopped has done a part of it.
    if not view.is_waiting or seconds is None or view.admitted_at is not None or promised:
        return queue_text(view)
    return f"{queue_text(view)}\ntakes {duration(seconds)} once it begins"


def starts_text(view: QueueView) -> str:
    """When it is likely to start: `starts 14:20-15:40 UTC (80%)`; "" = nobody says."""
    if view.earliest is None:
        return ""
    first = view.earliest.astimezone(UTC)
    if view.latest is None:
        return f"starts not before {first:%Y-%m-%d %H:%M} UTC"
    last = view.latest.astimezone(UTC)
    day = "" if first.date() == last.date() else f"{last:%Y-%m-%d} "
    return f"starts {first:%Y-%m-%d %H:%M}-{day}{last:%H:%M} UTC (80%)"


def not_ready_text(queue: RunQueue, *, namespaces: bool) -> str:
    """That new runs of a RunQueue begin at once, and why; "" = they wait, or nobody has said.

    Args:
        queue: which.
        namespaces: name its namespace.
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
    """The table that `queue` prints.

    Args:
        views: in the order shown.
        now: the time.
        wide: with what is seldom asked for.
        namespaces: with a column for the namespace.
    """
    columns: list[ColumnOf[QueueView]] = [
        (Column("NAMESPACE"), lambda view: name_text(view.key.namespace)),
        (Column("QUEUE"), lambda view: name_text(view.queue)),
        (Column("RUN"), lambda view: name_text(view.key.name)),
        (Column("RUN NAME", only_wide=True, shrink_to=8), lambda view: name_text(view.run_name)),
        (Column("PHASE"), lambda view: word(view.phase) or NONE),
        (NumberColumn("PRIORITY", spare=2), lambda view: str(view.priority)),
        (NumberColumn("AGE", spare=3), lambda view: _passed(view.submitted_at, now)),
        (NumberColumn("WAITED", spare=1), lambda view: _waited(view, now)),
        (Column("NOTES", wrap_from=_MIN_MESSAGE), _remarks),
    ]
    hidden = () if namespaces else ("NAMESPACE",)
    return table_of("Queue", columns, views, wide=wide, hidden=hidden)


def _remarks(view: QueueView) -> str:
    told = (view.message, starts_text(view)) if view.is_waiting else ()
    return sentence(*told, *view.notes)


def _waited(view: QueueView, now: datetime) -> str:
    since, until = view.waiting_since, now if view.is_waiting else view.admitted_at
    return _passed(since, until) if since and until and since <= until else NONE


def _passed(since: datetime | None, until: datetime | None) -> str:
    if since is None or until is None:
        return NONE
    return age_text(max(0.0, (until - since).total_seconds()))
