"""Counts pods that the kubelet refused because two schedulers had given away the same room."""

from kfp_placement_controller.metrics import PODS_REJECTED
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_kube.change import Change

_NO_ROOM = "OutOf"
"""What the kubelet's reasons begin with: `OutOfcpu`, `OutOfmemory`, `OutOfpods`."""


for _scheduler in ("ours", "another"):
    # At 0 from the start: Prometheus sees no increase in a counter that is new.
    PODS_REJECTED.labels(_scheduler)


def count_rejection(change: Change[ObservedPod], scheduler_names: tuple[str, ...]) -> None:
    """Count a pod when it turns out to have been refused.

    Two schedulers that share nodes can give away the same room; headroom makes it rare, gates
    make it impossible.

    Args:
        change: of any pod.
        scheduler_names: our own schedulers.
    """
    old, new = change.old, change.new
    if old is None or new is None or _is_refused(old) or not _is_refused(new):
        return
    scheduler = "ours" if new.scheduler_name in scheduler_names else "another"
    PODS_REJECTED.labels(scheduler).inc()


def _is_refused(pod: ObservedPod) -> bool:
    return pod.failure is not None and pod.failure.reason.startswith(_NO_ROOM)
