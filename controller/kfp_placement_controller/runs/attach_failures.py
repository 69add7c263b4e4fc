"""Volumes that could not be attached, by the pod that waits for them."""

from dataclasses import dataclass, field

from kfp_placement_controller.observed.attach_failures import AttachFailure
from kfp_placement_kube.change import Change, Key


@dataclass
class AttachFailures:
    """Messages about volumes that could not be attached, while Kubernetes keeps their events."""

    _by_pod: dict[str, dict[Key, str]] = field(default_factory=dict)

    def observe(self, change: Change[AttachFailure]) -> None:
        """Take in that an event is new, has changed or is gone."""
        if change.old is not None:
            messages = self._by_pod.get(change.old.pod_uid, {})
            messages.pop(change.key, None)
            if not messages:
                self._by_pod.pop(change.old.pod_uid, None)
        if change.new is not None:
            self._by_pod.setdefault(change.new.pod_uid, {})[change.key] = change.new.message

    def message(self, pod_uid: str) -> str:
        """Return the last message about a pod; "" = there is none."""
        messages = list(self._by_pod.get(pod_uid, {}).values())
        return messages[-1] if messages else ""
