"""What a run waits for that is planned before its submission, in a namespace with queues."""

from collections import defaultdict

from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
from kfp_placement.live.formatting import name_text
from kfp_placement.live.kinds import RUN_QUEUES, Api
from kfp_placement.live.queues import QueueView, starts_text, waiting_runs
from kfp_placement.report.values import counted
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.model.run_graph import Notice

_SHOWN = 3


def queue_notices(api: Api, namespace: str) -> tuple[Notice, ...]:
    """That a run may wait before it starts, and how many wait there now; none without a queue.

    Args:
        api: the cluster.
        namespace: of the run.

    Raises:
        ClusterError: no answer.
    """
    try:
        if api.get(RUN_QUEUES, DEFAULT_QUEUE, namespace) is None:
            return ()
    except (ClusterForbiddenError, ClusterMissingError):
        return ()
    by_queue: dict[str, list[QueueView]] = defaultdict(list)
    for view in waiting_runs(api, namespace).values():
        by_queue[view.queue or DEFAULT_QUEUE].append(view)
    waits = [_waits(queue, by_queue[queue]) for queue in sorted(by_queue)[:_SHOWN]]
    return (
        Notice(
            "queue",
            f"namespace {namespace} has queues: the run may wait before it starts, and what past"
            f" runs say counts from its start; {', '.join(waits) or 'no run waits now'}",
        ),
    )


def _waits(queue: str, views: list[QueueView]) -> str:
    """How many wait in a queue, and when the last of them is likely to start."""
    last = max(views, key=lambda view: view.position or 0)
    starts = starts_text(last)
    text = f"{counted(len(views), 'run')} in RunQueue {name_text(queue)}"
    return f"{text}, the last of which {starts}" if starts else text
