"""The pod that kube-scheduler asks about, with what matters to an answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources.source import RunSources


@dataclass(frozen=True, slots=True)
class SchedulingRequest:
    """A pod to be placed.

    Attributes:
        observed: the pod as we see all pods.
        step_type: the step's type, lower case, or "".
        place: its location, lower case, or "".
    """

    observed: ObservedPod
    step_type: str
    place: str


def read_scheduling_request(raw: Mapping[str, Any], sources: RunSources) -> SchedulingRequest:
    """Read a pod as the API server prints it.

    Args:
        raw: the pod.
        sources: what they read in it is kept.

    Raises:
        InputError: it is malformed.
    """
    observed = sources.observe_pod(raw)
    return SchedulingRequest(observed, observed.step_type.lower(), observed.location.lower())
