"""Causes of a run's length: its critical path, and the scarcest resource over time."""

from dataclasses import dataclass
from enum import StrEnum


class PieceKind(StrEnum):
    """Kinds of pieces of the critical path: work, waits, and the past.

    `RUNNING`, `DATA` and `IMAGE` are work of a step; `DRIVER` is work of a KFP driver pod. `PAST`
    is the time before the moment of planning, in a run that had begun. In all others a pod is ready
    but waits: its node is full, its volume is in use, its loop or another limit is at its most, or
    the plan holds it back although there is room (`ordered` dispatch).
    """

    RUNNING = "running"
    DATA = "data"
    IMAGE = "image"
    DRIVER = "driver"
    NODE_FULL = "node-full"
    VOLUME = "volume"
    LOOP_LIMIT = "loop-limit"
    LIMIT = "limit"
    HELD_BACK = "held-back"
    PAST = "past"


@dataclass(frozen=True, slots=True)
class CriticalPiece:
    """One piece of the critical path; each begins where the one before it ends.

    Attributes:
        step: name of the step that works or waits; for a driver, name of its step or group.
        kind: kind of the piece.
        start_seconds, finish_seconds: start and end, on the plan's clock.
        node: name of the node where the step works, or for which it waits; None = none.
        cause: object that the step waits for: the image's reference, the volume claim, the loop,
            the name of another limit, the step whose end makes room, or the step for which the plan
            keeps the room; "" if `kind` says enough. A step of another run is written `key/step`, a
            reserved room as the key of its run.
    """

    step: str
    kind: PieceKind
    start_seconds: float
    finish_seconds: float
    node: str | None
    cause: str = ""

    @property
    def seconds(self) -> float:
        """Length of the piece."""
        return self.finish_seconds - self.start_seconds


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """A span of time, and the resource of which the largest share is in use then.

    Attributes:
        start_seconds, finish_seconds: the span, on the plan's clock.
        resource: Kubernetes' name of the resource, such as `cpu`; "" while nothing is in use.
        share: average share in use, 0 to 1, of the amount of the resource that the run's nodes
            have free for planned runs.
    """

    start_seconds: float
    finish_seconds: float
    resource: str
    share: float


@dataclass(frozen=True)
class RunLimits:
    """Causes of a run's length; both attributes are empty unless they were requested.

    Attributes:
        critical_path: pieces from the run's submission to its end, without a gap; empty, too, if
            the run does not end.
        binding_resources: scarcest resource in each span of time.
    """

    critical_path: tuple[CriticalPiece, ...] = ()
    binding_resources: tuple[ResourceUse, ...] = ()
