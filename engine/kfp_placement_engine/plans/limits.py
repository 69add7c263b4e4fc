"""Limits of a run: its critical path, and the resource that is scarcest at each moment."""

from dataclasses import dataclass
from enum import StrEnum


class PieceKind(StrEnum):
    """Causes for the passing of time on the critical path.

    `RUNNING`, `DATA` and `IMAGE` are work of a step, `DRIVER` that of a KFP driver pod. The others
    are waits of a pod that is ready: its node is full, its volume is in use, its loop is at its
    limit, or the plan holds it back although there is room (`ordered` dispatch). `PAST` is what
    came before the moment of planning, of a run that had begun.
    """

    RUNNING = "running"
    DATA = "data"
    IMAGE = "image"
    DRIVER = "driver"
    NODE_FULL = "node-full"
    VOLUME = "volume"
    LOOP_LIMIT = "loop-limit"
    HELD_BACK = "held-back"
    PAST = "past"


@dataclass(frozen=True, slots=True)
class CriticalPiece:
    """One piece of the critical path; each begins where the one before it ends.

    Attributes:
        step: name of the step whose time it is; of a driver, of its step or group.
        kind: cause for the passing of time.
        start_seconds, finish_seconds: begin and end, on the plan's clock.
        node: name of the node where it passes, or where the step waits to go; None = none.
        cause: object that it waits for: the image's reference, the volume claim, the loop, the step
            whose end makes room, or the step for which the plan keeps the room; "" where the kind
            says it all. Steps of other runs are `key/step`; reserved rooms have the key of their
            run.
    """

    step: str
    kind: PieceKind
    start_seconds: float
    finish_seconds: float
    node: str | None = None
    cause: str = ""

    @property
    def seconds(self) -> float:
        """Length of the piece."""
        return self.finish_seconds - self.start_seconds


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """A span of time, and the resource of which the largest share of the cluster is in use.

    Attributes:
        start_seconds, finish_seconds: the span, on the plan's clock.
        resource: Kubernetes' name of the resource, such as `cpu`; "" while nothing is in use.
        share: average share in use of the resource that the nodes of the run have free for
            runs that are planned, 0 to 1.
    """

    start_seconds: float
    finish_seconds: float
    resource: str
    share: float


@dataclass(frozen=True, slots=True)
class Phases:
    """Time that a step works on its node, by the kind of work.

    Attributes:
        image_pull_seconds: pulling missing image bytes.
        transfer_seconds: downloading inputs and uploading outputs.
        duration_seconds: run time there.
    """

    image_pull_seconds: float
    transfer_seconds: float
    duration_seconds: float


@dataclass(frozen=True, slots=True)
class ScheduledStep:
    """Place and time of a step under a baseline.

    Attributes:
        name: name of the step, as in the plan.
        node: name of the node.
        start_seconds, finish_seconds: time at which its pod is bound, and its outputs are uploaded.
        phases: part of this time that is work; the rest it waits, such as for a volume. None = all
            of it runs.
    """

    name: str
    node: str
    start_seconds: float
    finish_seconds: float
    phases: Phases | None = None


@dataclass(frozen=True)
class RunLimits:
    """Limits of a run, where they were asked for.

    Attributes:
        critical_path: causes of the run's length, from its submission to its end without a
            gap; empty where the run does not end or nobody asked.
        binding_resources: the resource that is scarcest, over time.
    """

    critical_path: tuple[CriticalPiece, ...] = ()
    binding_resources: tuple[ResourceUse, ...] = ()
