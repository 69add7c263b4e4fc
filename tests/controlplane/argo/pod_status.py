"""Reading of pods by the controller."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tests.controlplane.argo.state import FINISHED, Json
from tests.controlplane.argo.templates import parameters_of
from tests.controlplane.times import write_time


def assess(node: Json, pod: Mapping[str, Any], template: Mapping[str, Any], now: datetime) -> Json:
    """The node as its pod lets it appear; the node itself is not changed."""
    status = pod.get("status") or {}
    updated = dict(node)
    phase, message = _phase(pod, node)
    updated["phase"] = phase
    _set_message(updated, message)
    if pod.get("spec", {}).get("nodeName"):
        updated["hostNodeName"] = pod["spec"]["nodeName"]
    ended = _main_end(status)
    if ended:
        updated["outputs"] = {**(node.get("outputs") or {}), "exitCode": str(ended["exitCode"])}
    if updated["phase"] == "Succeeded" and _lacks_outputs(updated, template):
        updated["phase"] = node["phase"]
    if node["phase"] == "Pending" and updated["phase"] in ("Running", "Succeeded"):
        _set_message(updated, "")
    if updated["phase"] in FINISHED and not updated.get("finishedAt"):
        updated["finishedAt"] = ended.get("finishedAt") or write_time(now)
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
        return "Failed", failed_reason(status)
    return phase, str(node.get("message", ""))


def pending_reason(status: Mapping[str, Any]) -> str:
    """Return why a pod does not run yet, in Kubernetes' own words."""
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


def failed_reason(status: Mapping[str, Any]) -> str:
    """Return why a pod has failed: in the words of a kubelet that ended it, or by its code."""
    if status.get("message"):
        return str(status["message"])
    ended = _main_end(status)
    return f"main: {ended.get('reason', '')} (exit code {ended.get('exitCode', 0)})"


def _main_end(status: Mapping[str, Any]) -> Json:
    """Return how the main container of a pod has ended; empty while it has not."""
    for container in status.get("containerStatuses") or []:
        if container["name"] == "main":
            return dict(container["state"].get("terminated") or {})
    return {}


def _lacks_outputs(node: Mapping[str, Any], template: Mapping[str, Any]) -> bool:
    """Return whether declared outputs are missing in what was reported: then Argo waits on."""
    declared, reported = parameters_of(template.get("outputs")), node.get("outputs")
    return bool(declared) and reported is not None and reported.get("parameters") is None
