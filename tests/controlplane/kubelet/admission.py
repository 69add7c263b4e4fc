"""Admission by a kubelet: whether a node takes a pod that was bound to it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.controlplane.kubelet.amounts import amounts, pod_requests


@dataclass(frozen=True)
class Rejection:
    """Rejection of a pod by a kubelet.

    Attributes:
        reason: `OutOf<resource>`.
        message: explanation in the kubelet's words.
    """

    reason: str
    message: str

    @property
    def status(self) -> dict[str, Any]:
        """The status of the pod."""
        text = f"Pod was rejected: {self.message}"
        return {"phase": "Failed", "reason": self.reason, "message": text}


def admit(
    node: Mapping[str, Any], admitted: Iterable[Mapping[str, Any]], pod: Mapping[str, Any]
) -> Rejection | None:
    """Hold a pod against what a node has left; None = it is taken.

    Args:
        node: the Node.
        admitted: pods that the node has taken and that have not ended.
        pod: the new pod.
    """
    capacity = amounts((node.get("status") or {}).get("allocatable"))
    others = [pod_requests(other) for other in admitted]
    if len(others) + 1 > capacity.get("pods", 0):
        return _rejection("pods", 1, len(others), capacity.get("pods", 0))
    for name, wanted in pod_requests(pod).items():
        used = sum(requests.get(name, 0) for requests in others)
        if wanted and used + wanted > capacity.get(name, 0):
            return _rejection(name, wanted, used, capacity.get(name, 0))
    return None


def _rejection(name: str, wanted: int, used: int, capacity: int) -> Rejection:
    message = (
        f"Node didn't have enough resource: {name}, requested: {wanted}, used: {used}, "
        f"capacity: {capacity}"
    )
    return Rejection(f"OutOf{name}", message)
