"""States of a step of a run, and causes of its waiting."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kfp_placement_engine.units.durations import format_duration


class StepState(StrEnum):
    """State of a step so far."""

    PENDING = "pending"
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CACHED = "cached"
    SKIPPED = "skipped"


ENDED_STATES = frozenset(
    {StepState.SUCCEEDED, StepState.FAILED, StepState.CACHED, StepState.SKIPPED}
)


class WaitingFor(StrEnum):
    """Cause that keeps a step's pod from running."""

    PLAN = "plan"
    QUOTA = "quota"
    NODE = "node"
    LIMIT = "limit"
    VOLUME = "volume"
    IMAGE = "image"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Waiting of a step.

    Attributes:
        what: one of `WaitingFor`, or a word of a newer revision.
        since_seconds: begin of the waiting, since the submission.
        until_seconds: latest end of the waiting; None = nobody ends it.
        detail: explanation by Kubernetes.
    """

    what: str
    since_seconds: float
    until_seconds: float | None = None
    detail: str = ""


_WAITING_TEXTS: Mapping[str, str] = {
    WaitingFor.PLAN: "its turn in the plan",
    WaitingFor.QUOTA: "the namespace's quota",
    WaitingFor.NODE: "room on a node",
    WaitingFor.LIMIT: "a node within its limit",
    WaitingFor.VOLUME: "its volume",
    WaitingFor.IMAGE: "its image",
}


def waiting_text(waiting: Waiting, now_seconds: float) -> str:
    """Return what a step waits for, for how long, until when at most, and what Kubernetes says."""
    what = _WAITING_TEXTS.get(waiting.what, waiting.what)
    waited = format_duration(max(0.0, now_seconds - waiting.since_seconds))
    text = f"waits for {what}, {waited} so far"
    if waiting.until_seconds is not None:
        left = format_duration(max(0.0, waiting.until_seconds - now_seconds))
        text += f", at most {left} more"
    return f"{text}: {waiting.detail}" if waiting.detail else text
