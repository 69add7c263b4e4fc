"""Volumes that could not be attached, by the pod that waits for them."""

from dataclasses import dataclass, field

from kfp_placement_controller.observed.attach_failures import AttachFailure
from kfp_placement_kube.change import Change, Key


@dataclass
class AttachFailures:
    """What events say of pods, for as long as Kubernetes keeps these."""

    _by_pod: dict[str, dict[Key, str]] = field(default_factory=dict)

    def change(self, change: Change[AttachFailure]) -> None:
        """An event is new, has changed or is gone."""
        if change.old is not None:
            messages = self._by_pod.get(change.old.pod_uid, {})
            messages.pop(change.key, None)
            if not messages:
                self._by_pod.pop(change.old.pod_uid, None)
        if change.new is not None:
            self._by_pod.setdefault(change.new.pod_uid, {})[change.key] = change.new.message

    def message(self, pod_uid: str) -> str:
        """What was said last of a pod; "" = nothing."""
        return next(reversed(self._by_pod.get(pod_uid, {"": ""}).values()))
