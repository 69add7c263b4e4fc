"""The pod that kube-scheduler asks about, with what matters to an answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kfp_placement_controller.kube.pods import ObservedPod, observe_pod
from kfp_placement_engine.contract.codec import decode_hints
from kfp_placement_engine.contract.keys import HINTS_ANNOTATION
from kfp_placement_engine.exceptions import HintsError
from kfp_placement_engine.readers.fields import as_mapping, as_text


@dataclass(frozen=True, slots=True)
class AskedPod:
    """A pod to be placed.

    Attributes:
        observed: the pod as we see all pods.
        step_type: the step's type, lower case, or "".
        place: its location, lower case, or "".
        max_latency_ms: hard limit of the round trip to its location, from the step's hints.
    """

    observed: ObservedPod
    step_type: str
    place: str
    max_latency_ms: float | None


def read_asked_pod(raw: Mapping[str, Any]) -> AskedPod:
    """Read a pod as the API server prints it.

    Raises:
        InputError: it has another form.
    """
    metadata = as_mapping(raw.get("metadata"), "Pod: metadata")
    annotations = as_mapping(metadata.get("annotations"), "Pod: annotations")
    hints = as_text(annotations.get(HINTS_ANNOTATION), "Pod: hints")
    observed = observe_pod(raw)
    return AskedPod(
        observed, observed.step_type.lower(), observed.location.lower(), _max_latency_ms(hints)
    )


def _max_latency_ms(hints: str) -> float | None:
    """The limit in the hints; hints that cannot be read limit nothing, as in the planner."""
    try:
        return decode_hints(hints)[0].max_latency_ms if hints else None
    except HintsError:
        return None
