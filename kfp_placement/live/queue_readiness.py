"""Whether new runs wait at all, as the RunQueues say."""

from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
from kfp_placement.live.formatting import name_text
from kfp_placement.live.kinds import RUN_QUEUES, Api
from kfp_placement.report.visible import shown
from kfp_placement_engine.contract.resources import RunQueue, read_resource
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.exceptions import InputError

_READY = "Ready"


def default_queues(api: Api, namespace: str) -> tuple[RunQueue, ...] | None:
    """The RunQueues by which namespaces take part; None = we may not know.

    Args:
        api: the cluster.
        namespace: where to look; "" = everywhere.

    Raises:
        ClusterError: no answer.
    """
    try:
        items = [raw for page in api.pages(RUN_QUEUES, namespace=namespace) for raw in page.items]
        queues = [read_resource(RunQueue, raw) for raw in items if _is_default(raw.get("metadata"))]
    except (ClusterForbiddenError, ClusterMissingError, InputError):
        return None
    return tuple(queues)


def _is_default(metadata: object) -> bool:
    return isinstance(metadata, dict) and metadata.get("name") == DEFAULT_QUEUE


def not_ready_text(queue: RunQueue, *, namespaces: bool) -> str:
    """That new runs of a RunQueue begin at once, and why; "" = they wait, or nobody has said.

    Args:
        queue: which.
        namespaces: name its namespace.
    """
    status = queue.status
    if status is None or status.ready is not False:
        return ""
    condition = status.condition(_READY)
    reason = "" if condition is None else f" ({shown(condition.reason, 120)})"
    where = f"{name_text(queue.metadata.namespace)}/" if namespaces else ""
    return f"RunQueue {where}{DEFAULT_QUEUE} is not ready{reason}: new runs begin at once"
