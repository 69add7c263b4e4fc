"""What happened to a step of a run, and what keeps it from running."""

from dataclasses import dataclass
from enum import StrEnum


class StepState(StrEnum):
    """What happened to a step so far."""

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
    """What keeps a step's pod from running."""

    PLAN = "plan"
    QUOTA = "quota"
    NODE = "node"
    LIMIT = "limit"
    VOLUME = "volume"
    IMAGE = "image"


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a step waits for.

    Attributes:
        what: one of `WaitingFor`, or a word of a newer revision.
        since_seconds: since when, since the submission.
        until_seconds: until when at most; None = nobody ends it.
        detail: what Kubernetes says of it.
    """

    what: str
    since_seconds: float
    until_seconds: float | None = None
    detail: str = ""
