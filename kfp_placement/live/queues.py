"""Asks for what waits in the queues of a cluster, and asks queues to let runs go out of turn."""

from collections import defaultdict
from datetime import datetime
from itertools import islice

from kfp_placement.live.exceptions import (
    ClusterError,
    ClusterForbiddenError,
    ClusterMissingError,
    allowed_by,
)
from kfp_placement.live.kinds import (
    RUN_QUEUES,
    RUN_REQUESTS,
    Api,
    object_if_allowed,
    objects,
    our_objects,
)
from kfp_placement_engine.contract.keys import ADMIT_ANNOTATION, PREEMPT_ANNOTATION
from kfp_placement_engine.contract.resources import RunQueue, read_resource
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.contract.run_request import RequestPhase
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.units.times import time_text
from kfp_placement_engine.views.formatting import counted, name_text, shown
from kfp_placement_engine.views.queues import QueueView, queue_view, starts_text

MAX_REQUESTS = 20_000
"""RunRequests that are listed."""

_ORDER = (RequestPhase.WAITING, RequestPhase.ADMITTED, RequestPhase.FINISHED)
_SHOWN_QUEUES = 3


def list_queued(api: Api, namespace: str) -> tuple[QueueView, ...]:
    """The runs of a namespace ("" = all) with a RunRequest, by queue and position.

    Raises:
        ClusterMissingError: queues are not installed.
        ClusterError: refused, or no answer.
    """
    found = islice(our_objects(api, RUN_REQUESTS, namespace=namespace), MAX_REQUESTS)
    return tuple(sorted(map(queue_view, found), key=_place))


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
    raw = object_if_allowed(api, RUN_REQUESTS, run.name, run.namespace)
    return None if raw is None else queue_view(raw)


def default_queues(api: Api, namespace: str) -> tuple[RunQueue, ...] | None:
    """The RunQueues by which namespaces take part; None = we may not know.

    Args:
        api: the cluster.
        namespace: where to look; "" = everywhere.

    Raises:
        ClusterError: no answer.
    """
    only = f"metadata.name={DEFAULT_QUEUE}"
    try:
        found = objects(api, RUN_QUEUES, namespace=namespace, field_selector=only)
        return tuple(read_resource(RunQueue, raw) for raw in found)
    except (ClusterForbiddenError, ClusterMissingError, InputError):
        return None


def queue_notices(api: Api, namespace: str) -> tuple[Notice, ...]:
    """That a run may wait before it starts, and how many wait there now; none without a queue.

    Args:
        api: the cluster.
        namespace: of the run.

    Raises:
        ClusterError: no answer.
    """
    if not default_queues(api, namespace):
        return ()
    by_queue: dict[str, list[QueueView]] = defaultdict(list)
    for view in waiting_runs(api, namespace).values():
        by_queue[view.queue or DEFAULT_QUEUE].append(view)
    waits = [_waits(queue, by_queue[queue]) for queue in sorted(by_queue)[:_SHOWN_QUEUES]]
    return (
        Notice(
            "queue",
            f"namespace {namespace} has queues: the run may wait before it starts, and what past"
            f" runs say counts from its start; {', '.join(waits) or 'no run waits now'}",
        ),
    )


def _waits(queue: str, views: list[QueueView]) -> str:
    """How many wait in a queue, and when the last of them is likely to start."""
    starts = starts_text(max(views, key=lambda view: view.position or 0))
    text = f"{counted(len(views), 'run')} in RunQueue {name_text(queue)}"
    return f"{text}, the last of which {starts}" if starts else text


def ask_to_admit(api: Api, view: QueueView, now: datetime) -> None:
    """Ask its queue to let a run begin out of turn.

    Raises:
        ClusterError: it does not wait; refused, or no answer.
    """
    if not view.is_waiting:
        raise ClusterError(f"run {_named(view)} does not wait: it is {view.phase.lower()}")
    # What is from before the run began to wait counts as old.
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
    patch = {"metadata": {"annotations": {annotation: time_text(at)}}}
    with allowed_by("kfp-placement-operate-queues"):
        api.patch(RUN_REQUESTS, view.key.name, view.key.namespace, patch)


def _place(view: QueueView) -> tuple[object, ...]:
    phase = _ORDER.index(RequestPhase(view.phase)) if view.phase in _ORDER else 0
    position = view.position or MAX_REQUESTS
    return (view.key.namespace, view.queue, phase, position, view.key.name)


def _named(view: QueueView) -> str:
    return f"{shown(view.key.namespace, 63)}/{shown(view.key.name, 120)}"
