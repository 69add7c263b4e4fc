"""Nodes of a Workflow, brought up to date from its pods and task results."""

from collections.abc import Iterable, Mapping
from typing import Any

from tests.controlplane.argo.pod_status import assess
from tests.controlplane.argo.settings import RECENTLY_STARTED_SECONDS
from tests.controlplane.argo.state import LABEL_ON_EXIT, Json, Run, is_finished
from tests.controlplane.times import read_time

LATE = "Step exceeded its deadline"


def read_results(run: Run, results: Iterable[Mapping[str, Any]]) -> None:
    """Take over outputs that executors have reported."""
    for result in results:
        node = run.nodes.get(result["metadata"]["name"])
        outputs = result.get("outputs")
        if node is None or not outputs:
            continue
        before = node.get("outputs") or {}
        kept = {"exitCode": before["exitCode"]} if "exitCode" in before else {}
        node["outputs"] = {**kept, **outputs}


def read_pods(run: Run) -> None:
    """Bring the nodes of pods up to date.

    A running pod that is gone is an Error; a pending one is created again later on.
    """
    for key, pod in run.pods.items():
        node = run.nodes.get(key)
        if node is None or is_finished(node):
            continue
        if _is_collected(pod):
            run.look_again(1.0)
            continue
        template = run.templates.resolve(node["templateName"])
        updated = assess(node, pod, template, run.now)
        run.nodes[key] = updated
        _control(run, updated, pod)
    _find_deleted(run)
    _fail_late_nodes(run)


def _is_collected(pod: Mapping[str, Any]) -> bool:
    """Return whether the pod garbage collector has failed a pod, which it removes at once.

    Argo looks at a Workflow 1 to 10 s after its pods have changed (DEFAULT_REQUEUE_TIME): to it the
    pod is gone.
    """
    going = bool(pod["metadata"].get("deletionTimestamp"))
    return going and (pod.get("status") or {}).get("phase") == "Failed"


def _control(run: Run, node: Json, pod: Mapping[str, Any]) -> None:
    """End pods of a Workflow that is late; exit handlers are not subject to it."""
    on_exit = LABEL_ON_EXIT in (pod["metadata"].get("labels") or {})
    if is_finished(node) or on_exit or not run.is_late:
        return
    run.mark(node["name"], "Failed", LATE)
    run.cluster.end_pod(pod["metadata"]["name"])


def _find_deleted(run: Run) -> None:
    for key, node in list(run.nodes.items()):
        if node["type"] != "Pod" or is_finished(node) or key in run.pods:
            continue
        if node["phase"] == "Pending":
            continue
        age = (run.now - read_time(node["startedAt"])).total_seconds()
        if age <= RECENTLY_STARTED_SECONDS:
            run.look_again(1.0)
            continue
        run.mark(node["name"], "Error", "pod deleted")


def _fail_late_nodes(run: Run) -> None:
    """Nodes without pods know of the deadline from here."""
    for node in list(run.nodes.values()):
        if run.is_late and node["phase"] == "Pending" and not _in_exit_handler(run, node):
            run.mark(node["name"], "Failed", LATE)


def _in_exit_handler(run: Run, node: Mapping[str, Any]) -> bool:
    while not str(node["displayName"]).endswith(".onExit"):
        boundary = node.get("boundaryID")
        if not boundary or boundary not in run.nodes:
            return False
        node = run.nodes[boundary]
    return True
