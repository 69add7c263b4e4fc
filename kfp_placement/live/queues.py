"""Queued runs of a cluster: list them, and ask queues to start or stop a run out of turn."""

from collections import defaultdict
from datetime import datetime
from itertools import islice

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import (
    ClusterError,
    ClusterForbiddenError,
    ClusterMissingError,
    allowed_by,
)
from kfp_placement.live.kinds import (
    RUN_QUEUES,
    RUN_REQUESTS,
    object_if_allowed,
    objects,
    our_objects,
)
from kfp_placement_engine.contract.custom_resources import RunQueue, read_resource
from kfp_placement_engine.contract.keys import ADMIT_ANNOTATION, PREEMPT_ANNOTATION
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.contract.run_request import RequestPhase
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.units.times import time_text
from kfp_placement_engine.views.formatting import counted, name_text, shown
from kfp_placement_engine.views.queues import QueueView, queue_view, starts_text

MAX_REQUESTS = 20_000
"""Largest number of RunRequests that are listed."""

_ORDER = (RequestPhase.WAITING, RequestPhase.ADMITTED, RequestPhase.FINISHED)
_SHOWN_QUEUES = 3


def list_queued(api: ClusterApi, namespace: str) -> tuple[QueueView, ...]:
    """Return the runs of a namespace ("" = all) with a RunRequest, by queue and position.

    Raises:
        ClusterMissingError: queues are not installed.
        ClusterError: the cluster refuses, or gives no answer.
    """
    requests = islice(our_objects(api, RUN_REQUESTS, namespace=namespace), MAX_REQUESTS)
    return tuple(sorted(map(queue_view, requests), key=_place))


def waiting_runs(api: ClusterApi, namespace: str) -> dict[RunKey, QueueView]:
    """Return the runs of a namespace ("" = all) that wait, by key.

    There are none if queues are not installed, or we have no right to list RunRequests.

    Raises:
        ClusterError: the cluster gives no answer.
    """
    try:
        views = list_queued(api, namespace)
    except (ClusterForbiddenError, ClusterMissingError):
        return {}
    return {view.key: view for view in views if view.is_waiting}


def queue_of(api: ClusterApi, run: RunKey) -> QueueView | None:
    """Return how a run waits; None if it is in no queue, or we have no right to look it up.

    Raises:
        ClusterError: the cluster gives no answer.
    """
    raw = object_if_allowed(api, RUN_REQUESTS, run.name, run.namespace)
    return None if raw is None else queue_view(raw)


def default_queues(api: ClusterApi, namespace: str) -> tuple[RunQueue, ...] | None:
    """Return the RunQueues named `default`, with which a namespace takes part in queueing.

    The result is None if RunQueues are not installed, cannot be read, or we have no right to.

    Args:
        api: cluster to read.
        namespace: namespace of the RunQueues; "" = all.

    Raises:
        ClusterError: the cluster gives no answer.
    """
    only = f"metadata.name={DEFAULT_QUEUE}"
    try:
        queues = objects(api, RUN_QUEUES, namespace=namespace, field_selector=only)
        return tuple(read_resource(RunQueue, raw) for raw in queues)
    except (ClusterForbiddenError, ClusterMissingError, InputError):
        return None


def queue_notices(api: ClusterApi, namespace: str) -> tuple[Notice, ...]:
    """Return a notice that a new run may wait, with how many wait now; none without a queue.

    Args:
        api: cluster to read.
        namespace: namespace of the run.

    Raises:
        ClusterError: the cluster gives no answer.
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
    """Return how many runs wait in a queue, and when the last of them is likely to start."""
    starts = starts_text(max(views, key=lambda view: view.position or 0))
    text = f"{counted(len(views), 'run')} in RunQueue {name_text(queue)}"
    return f"{text}, the last of which {starts}" if starts else text


def ask_to_admit(api: ClusterApi, view: QueueView, now: datetime) -> None:
    """Ask the queue of a run to let it begin out of turn.

    Raises:
        ClusterError: the run does not wait, or the cluster refuses or gives no answer.
    """
    if not view.is_waiting:
        raise ClusterError(f"run {_named(view)} does not wait: it is {view.phase.lower()}")
    # A request from before the run began to wait would be ignored.
    _ask(api, view, ADMIT_ANNOTATION, max(now, view.waiting_since or now))


def ask_to_preempt(api: ClusterApi, view: QueueView, now: datetime) -> None:
    """Ask the queue of a run to stop it after its running steps, and to put it behind all others.

    Raises:
        ClusterError: the run does not run, or the cluster refuses or gives no answer.
    """
    if view.phase != RequestPhase.ADMITTED:
        state = view.phase.lower() or "not known to its queue yet"
        raise ClusterError(f"run {_named(view)} does not run: it is {state}")
    _ask(api, view, PREEMPT_ANNOTATION, max(now, view.admitted_at or now))


def _ask(api: ClusterApi, view: QueueView, annotation: str, at: datetime) -> None:
    patch = {"metadata": {"annotations": {annotation: time_text(at)}}}
    with allowed_by("kfp-placement-operate-queues"):
        api.patch(RUN_REQUESTS, view.key.name, view.key.namespace, patch)


def _place(view: QueueView) -> tuple[object, ...]:
    phase = _ORDER.index(RequestPhase(view.phase)) if view.phase in _ORDER else 0
    position = view.position or MAX_REQUESTS
    return (view.key.namespace, view.queue, phase, position, view.key.name)


def _named(view: QueueView) -> str:
    return f"{shown(view.key.namespace, 63)}/{shown(view.key.name, 120)}"
