"""RunQueues of an end-to-end test, and the runs that wait in them."""

from typing import Any

from kfp_placement_engine.contract.keys import API_VERSION, QUEUE_INSTANCE
from kfp_placement_engine.readers.argo.keys import INSTANCE_LABEL
from tests.controlplane.exceptions import ApiError
from tests.controlplane.waiting import wait_until
from tests.support.installation import Installation

JsonObject = dict[str, Any]


def queue_of(namespace: str, **spec: Any) -> JsonObject:
    metadata = {"name": "default", "namespace": namespace}
    return {"apiVersion": API_VERSION, "kind": "RunQueue", "metadata": metadata, "spec": spec}


def set_queue(installation: Installation, namespace: str, **spec: Any) -> None:
    """Make the queue `default` of a namespace, or change it, and wait until it holds new runs."""
    queue = queue_of(namespace, **spec)
    installation.api.patch(queue, queue, how="apply")
    wait_until(lambda: status(installation, namespace).get("ready") is True, "a queue to be ready")


def status(installation: Installation, namespace: str) -> JsonObject:
    found = installation.api.get(API_VERSION, "RunQueue", "default", namespace)
    return dict(found.get("status", {}))


def is_held(workflow: JsonObject) -> bool:
    return (workflow["metadata"].get("labels") or {}).get(INSTANCE_LABEL) == QUEUE_INSTANCE


def phase(workflow: JsonObject) -> str:
    return str(workflow.get("status", {}).get("phase", ""))


def released(installation: Installation, team: str, name: str) -> None:
    wait_until(lambda: not is_held(installation.workflow(name, team)), f"{name} to be released")


def request(installation: Installation, namespace: str, name: str) -> JsonObject:
    """The RunRequest of a run, or nothing."""
    try:
        return dict(installation.api.get(API_VERSION, "RunRequest", name, namespace))
    except ApiError:
        return {}


def said(installation: Installation, namespace: str, name: str) -> JsonObject:
    """What the RunRequest of a run says of its waiting."""
    return dict(request(installation, namespace, name).get("status") or {})
