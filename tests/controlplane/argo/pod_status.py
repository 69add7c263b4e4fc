"""What the controller learns from a pod."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tests.controlplane.argo.state import FINISHED
from tests.controlplane.argo.templates import parameters_of
from tests.controlplane.times import write_time

Json = dict[str, Any]

KILLED = (137, 143)
"""Exit codes of containers that were ended from outside; sidecars may have them."""


def assess(node: Json, pod: Mapping[str, Any], template: Mapping[str, Any], now: datetime) -> Json:
    """The node as its pod lets it appear; the node itself is not changed."""
    status = pod.get("status") or {}
    updated = dict(node)
    phase, message = _phase(pod, node)
    updated["phase"] = phase
    _set_message(updated, message)
    if pod.get("spec", {}).get("nodeName"):
        updated["hostNodeName"] = pod["spec"]["nodeName"]
    code = _exit_code(status)
    if code is not None:
        updated["outputs"] = {**(node.get("outputs") or {}), "exitCode": str(code)}
    if updated["phase"] in FINISHED and _wait_is_running(status) and status["phase"] != "Failed":
        updated["phase"] = node["phase"]
    if updated["phase"] == "Succeeded" and _lacks_outputs(updated, template):
        updated["phase"] = node["phase"]
    if node["phase"] == "Pending" and updated["phase"] in ("Running", "Succeeded"):
        _set_message(updated, "")
    if updated["phase"] in FINISHED and not updated.get("finishedAt"):
        updated["finishedAt"] = _latest_end(status) or write_time(now)
        updated["progress"] = "1/1" if updated["phase"] == "Succeeded" else "0/1"
    return updated


def _set_message(node: Json, message: str) -> None:
    if message:
        node["message"] = message
    else:
        node.pop("message", None)


def _phase(pod: Mapping[str, Any], node: Mapping[str, Any]) -> tuple[str, str]:
    status = pod.get("status") or {}
    phase = status.get("phase", "Pending")
    if phase == "Pending":
        return "Pending", pending_reason(status)
    if phase == "Failed":
        return failed_reason(pod)
    if phase in ("Running", "Succeeded"):
        return phase, str(node.get("message", ""))
    return "Error", f"Unexpected pod phase for {pod['metadata']['name']}: {phase}"


def pending_reason(status: Mapping[str, Any]) -> str:
    """Why a pod does not run yet, in Kubernetes' own words."""
    for container in status.get("containerStatuses") or []:
        waiting = (container.get("state") or {}).get("waiting")
        if waiting is not None:
            reason, message = waiting.get("reason", ""), waiting.get("message", "")
            return f"{reason}: {message}" if message else str(reason)
    for condition in status.get("conditions") or []:
        if condition.get("reason") == "Unschedulable":
            message = condition.get("message", "")
            return f"Unschedulable: {message}" if message else "Unschedulable"
    return ""


def failed_reason(pod: Mapping[str, Any]) -> tuple[str, str]:
    """Phase and message of a node whose pod has failed.

    A pod with a message of its own, such as one that a kubelet rejected or evicted, is Failed.
    Init containers speak first, then main, wait and sidecars.
    """
    status = pod.get("status") or {}
    if status.get("message"):
        return "Failed", str(status["message"])
    order = {"main": 1, "wait": 2}
    containers = sorted(
        status.get("containerStatuses") or [], key=lambda entry: order.get(entry["name"], 3)
    )
    containers = [*(status.get("initContainerStatuses") or []), *containers]
    if not containers:
        metadata = pod["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        return "Failed", f"can't find failed message for pod {name} namespace {namespace}"
    succeeded = set()
    for container in containers:
        verdict = _container_verdict(container)
        if verdict is not None:
            return verdict
        if _code(container) == 0:
            succeeded.add(container["name"])
    return _without_culprit("main" in succeeded, "wait" in succeeded)


def _without_culprit(main: bool, wait: bool) -> tuple[str, str]:
    if main and wait:
        return "Succeeded", ""
    if main:
        return "Failed", "pod failed: wait container did not complete successfully"
    if wait:
        return "Failed", "pod failed: main container did not complete successfully"
    return "Failed", "pod failed: neither main nor wait container completed successfully"


def _code(container: Mapping[str, Any]) -> int | None:
    ended = (container.get("state") or {}).get("terminated")
    return None if ended is None else int(ended.get("exitCode", 0))


def _container_verdict(container: Mapping[str, Any]) -> tuple[str, str] | None:
    """What a container says about its pod's failure, or None."""
    name, state = container["name"], container.get("state") or {}
    waiting, ended = state.get("waiting"), state.get("terminated")
    if waiting is not None:
        cause = f"{waiting.get('reason', '')}: {waiting.get('message', '')}"
        return "Error", f"Pod failed before {name} container starts due to {cause}"
    code = _code(container)
    if ended is None or not code:
        return None
    message = f"{name}: {ended.get('reason', '')} (exit code {code})"
    if ended.get("message"):
        message += f": {ended['message']}"
    if name in ("init", "wait"):
        return "Error", message
    if name != "main" and code in KILLED:
        return None
    return "Failed", message


def _exit_code(status: Mapping[str, Any]) -> int | None:
    for container in status.get("containerStatuses") or []:
        if container["name"] == "main":
            return _code(container)
    return None


def _wait_is_running(status: Mapping[str, Any]) -> bool:
    return any(
        container["name"] == "wait" and (container.get("state") or {}).get("running") is not None
        for container in status.get("containerStatuses") or []
    )


def _lacks_outputs(node: Mapping[str, Any], template: Mapping[str, Any]) -> bool:
    """Whether outputs are declared, something was said, but not these: then Argo waits on."""
    declared, reported = parameters_of(template.get("outputs")), node.get("outputs")
    return bool(declared) and reported is not None and reported.get("parameters") is None


def _latest_end(status: Mapping[str, Any]) -> str | None:
    containers = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]
    ends = [
        (container.get("state") or {}).get("terminated", {}).get("finishedAt")
        for container in containers
        if (container.get("state") or {}).get("terminated")
    ]
    return max((end for end in ends if end), default=None)
