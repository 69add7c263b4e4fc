"""How runs wait in queues, as their RunRequests say."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kfp_placement.live.exceptions import (
    ClusterError,
    ClusterForbiddenError,
    ClusterMissingError,
)
from kfp_placement.live.formatting import NONE, age_text, name_text, sentence
from kfp_placement.live.kinds import RUN_REQUESTS, Api, JsonObject
from kfp_placement.report import values
from kfp_placement.report.columns import Column, layout
from kfp_placement.report.table import TableStyle
from kfp_placement.report.visible import shown
from kfp_placement_engine.contract.keys import ADMIT_ANNOTATION, PREEMPT_ANNOTATION
from kfp_placement_engine.contract.resources import RunRequest, read_resource
from kfp_placement_engine.contract.run_request import RequestPhase, RunRequestStatus
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.times import time_text

NO_QUEUES = (
    "the cluster does not serve kind RunRequest: queues are not installed there; deploy/README.md"
    " of kfp-placement says how to (features/queue)"
)
MAX_REQUESTS = 20_000
"""RunRequests that are listed."""

_MIN_MESSAGE = 24
_ORDER = (RequestPhase.WAITING, RequestPhase.ADMITTED, RequestPhase.FINISHED)


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
        earliest, latest: when it is likely to start, for four of five runs; None = not said.
        notes: what its author should know.
        makespan_seconds: how long it takes once it begins; None = not said.
        end: how it has ended, `Succeeded` or `Failed`; "" = not said.
        submitted_at, waiting_since, admitted_at: when; None = not said.
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
    earliest: datetime | None = None
    latest: datetime | None = None
    notes: tuple[str, ...] = ()
    makespan_seconds: float | None = None
    end: str = ""
    submitted_at: datetime | None = None
    waiting_since: datetime | None = None
    admitted_at: datetime | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it is not to run yet."""
        return self.phase in ("", RequestPhase.WAITING)

    # `typing.override` is there from Python 3.12 on.
    def __repr__(self) -> str:  # type: ignore[explicit-override]
        return f"<{'/'.join(map(name_text, self.key))}: {queue_text(self)}>"


def queue_view(raw: JsonObject) -> QueueView:
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
        earliest=None if starts is None else starts.earliest,
        latest=None if starts is None else starts.latest,
        notes=status.notes or spec.notes,
        makespan_seconds=spec.makespan_seconds,
        end=spec.end or "",
        submitted_at=spec.submitted_at,
        waiting_since=status.waiting_since,
        admitted_at=status.admitted_at,
    )


def list_queued(api: Api, namespace: str) -> tuple[QueueView, ...]:
    """The runs of a namespace ("" = all) with a RunRequest, by queue and position.

    Raises:
        ClusterMissingError: queues are not installed.
        ClusterError: refused, or no answer.
    """
    views: list[QueueView] = []
    try:
        for page in api.pages(RUN_REQUESTS, namespace=namespace):
            views += map(queue_view, page.items)
            if len(views) >= MAX_REQUESTS:
                break
    except ClusterMissingError as error:
        raise ClusterMissingError(NO_QUEUES) from error
    return tuple(sorted(views, key=_place))


def waiting_runs(api: Api, namespace: str) -> dict[RunKey, QueueView]:
    """Those that wait, by run; none where there are no queues, or we may not look.

    Raises:
        ClusterError: no answer.
    """
    try:
        views = list_queued(api, namespace)
    except (ClusterForbiddenError, ClusterMissingError):
        return {}
    return {view.key: view for view in views if view.is_waiting}


def queue_of(api: Api, run: RunKey) -> QueueView | None:
    """How one run waits; None = it is in no queue, or we may not look.

    Raises:
        ClusterError: no answer.
    """
    try:
        raw = api.get(RUN_REQUESTS, run.name, run.namespace)
    except (ClusterForbiddenError, ClusterMissingError):
        return None
    return None if raw is None else queue_view(raw)


def ask_to_admit(api: Api, view: QueueView, now: datetime) -> None:
    """Ask its queue to let a run begin out of turn.

    Raises:
        ClusterError: it does not wait; refused, or no answer.
    """
    if not view.is_waiting:
        raise ClusterError(f"run {_named(view)} does not wait: it is {view.phase.lower()}")
    _ask(api, view, ADMIT_ANNOTATION, max(now, view.waiting_since or now))


def ask_to_preempt(api: Api, view: QueueView, now: datetime) -> None:
    """Ask its queue to let a run stop after its running steps, and wait behind all others.

    Raises:
        ClusterError: it does not run; refused, or no answer.
    """
    if view.phase != RequestPhase.ADMITTED:
        state = view.phase.lower() or "not known to its queue yet"
        raise ClusterError(f"run {_named(view)} does not run: it is {state}")
    _ask(api, view, PREEMPT_ANNOTATION, max(now, view.admitted_at or now))


def _ask(api: Api, view: QueueView, annotation: str, at: datetime) -> None:
    """Ask for something.

    Args:
        api: the cluster.
        view: of the run.
        annotation: says what for.
        at: from when on; what is from before the run began to wait, or to run, counts as old.
    """
    patch = {"metadata": {"annotations": {annotation: time_text(at)}}}
    try:
        api.patch(RUN_REQUESTS, view.key.name, view.key.namespace, patch)
    except ClusterForbiddenError as error:
        raise ClusterForbiddenError(
            f"{error}; the ClusterRole kfp-placement-operate-queues allows it"
        ) from error


def queue_text(view: QueueView) -> str:
    """How a run waits, as text: `queued 3rd of 7, lacks 8 cpu of the quota`; then its notes."""
    parts = [place_text(view), starts_text(view) if view.is_waiting else ""]
    text = ", ".join(part for part in parts if part)
    return "; ".join([text, *map(sentence, view.notes)])


def place_text(view: QueueView) -> str:
    """The same without its likely start, which moves with time, and without notes."""
    if not view.is_waiting:
        return f"{shown(view.phase, 20).lower()} in RunQueue {name_text(view.queue)}"
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
    return f"{queue_text(view)}\ntakes {values.duration(seconds)} once it begins"


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


def queue_table(
    views: Sequence[QueueView], now: datetime, style: TableStyle, *, namespaces: bool
) -> str:
    """The table that `queue` prints.

    Args:
        views: in the order shown.
        now: the time.
        style: how to print.
        namespaces: with a column for the namespace.
    """
    columns = [
        *([Column("NAMESPACE")] if namespaces else []),
        Column("QUEUE"),
        Column("RUN"),
        *([Column("RUN NAME", shrink_to=8)] if style.wide else []),
        Column("PHASE"),
        Column("PRIORITY", right=True, spare=2),
        Column("AGE", right=True, spare=3),
        Column("WAITED", right=True, spare=1),
        Column("NOTES", wrap_from=_MIN_MESSAGE),
    ]
    rows = [_row(view, now, wide=style.wide, namespaces=namespaces) for view in views]
    return "".join(f"{line.rstrip()}\n" for line in layout(columns, rows, style.columns))


def _row(view: QueueView, now: datetime, *, wide: bool, namespaces: bool) -> list[str]:
    remarks = [view.message, starts_text(view)] if view.is_waiting else []
    return [
        *([name_text(view.key.namespace)] if namespaces else []),
        name_text(view.queue),
        name_text(view.key.name),
        *([name_text(view.run_name)] if wide else []),
        shown(view.phase, 20) or NONE,
        str(view.priority),
        _age(view.submitted_at, now),
        _waited(view, now),
        sentence("; ".join([*(each for each in remarks if each), *view.notes])),
    ]


def _age(since: datetime | None, now: datetime) -> str:
    return NONE if since is None else age_text(max(0.0, (now - since).total_seconds()))


def _waited(view: QueueView, now: datetime) -> str:
    until = now if view.is_waiting else view.admitted_at
    since = view.waiting_since
    return NONE if since is None or until is None or until < since else _age(since, until)


def _place(view: QueueView) -> tuple[object, ...]:
    phase = _ORDER.index(RequestPhase(view.phase)) if view.phase in _ORDER else 0
    position = view.position or MAX_REQUESTS
    return (view.key.namespace, view.queue, phase, position, view.key.name)


def _named(view: QueueView) -> str:
    return f"{shown(view.key.namespace, 63)}/{shown(view.key.name, 120)}"
