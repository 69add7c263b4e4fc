"""The longest time for which our gate stays on a pod: by the policy, and by limits of its source.

Argo fails a pod that does not run within a limit, whatever keeps it. So our gate takes at most half
of that time, and less if the plan expects a long pull of the image.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_engine.model.run_graph import StartLimit


@dataclass(frozen=True, slots=True)
class StartWindow:
    """Time within which a pod must run, because its source fails it otherwise.

    Attributes:
        limit: limit of the source.
        begins_at: time from which the limit counts.
        pull_seconds: time that the plan expects for pulling the image.
    """

    limit: StartLimit
    begins_at: datetime
    pull_seconds: float = 0.0

    @property
    def ends_at(self) -> datetime:
        """Time at which the source fails a pod that does not run."""
        return self.begins_at + timedelta(seconds=self.limit.seconds)

    @property
    def gate_ends_at(self) -> datetime:
        """Time at which our gate must be off, so that the pod can pull its image and start."""
        seconds = self.limit.seconds
        kept_seconds = min(seconds / 2, seconds - 2 * self.pull_seconds)
        return self.begins_at + timedelta(seconds=max(0.0, kept_seconds))


def gate_ends_at(
    pod: ObservedPod, deadline_seconds: float, window: StartWindow | None = None
) -> datetime | None:
    """Return when our gate comes off a pod at the latest; None = its age is unknown.

    Args:
        pod: the pod.
        deadline_seconds: age at which every pod loses its gate.
        window: time within which the pod must run; None = as far as the pod itself says it.
    """
    if pod.created_at is None:
        return None
    if window is None and pod.start_limit is not None:
        window = StartWindow(pod.start_limit, pod.created_at)
    end = pod.created_at + timedelta(seconds=deadline_seconds)
    return end if window is None else min(end, window.gate_ends_at)


def is_overdue(
    pod: ObservedPod, now: datetime, deadline_seconds: float, window: StartWindow | None = None
) -> bool:
    """Return whether a gated pod has waited for the longest time allowed, or is of unknown age.

    The arguments are as in `gate_ends_at`.
    """
    end = gate_ends_at(pod, deadline_seconds, window)
    return end is None or now >= end
