"""Volumes that could not be attached, by the pod that waits for them."""

from dataclasses import dataclass, field

from kfp_placement_controller.observed.attach_failures import AttachFailure
from kfp_placement_kube.change import Change, Key


@dataclass
class AttachFailures:
    """Messages about volumes that could not be attached, while Kubernetes keeps their events.

    Pods are known by namespace and uid: anybody may write events about any uid into their own.
    """

    _by_pod: dict[tuple[str, str], dict[Key, str]] = field(default_factory=dict)

    def observe(self, change: Change[AttachFailure]) -> None:
        """Take in that an event is new, has changed or is gone."""
        if change.old is not None:
            pod = change.old.namespace, change.old.pod_uid
            messages = self._by_pod.get(pod, {})
            messages.pop(change.key, None)
            if not messages:
                self._by_pod.pop(pod, None)
        if change.new is not None:
            pod = change.new.namespace, change.new.pod_uid
            self._by_pod.setdefault(pod, {})[change.key] = change.new.message

    def message(self, namespace: str, pod_uid: str) -> str:
        """Return the last message about a pod; "" = there is none."""
        messages = list(self._by_pod.get((namespace, pod_uid), {}).values())
        return messages[-1] if messages else ""
