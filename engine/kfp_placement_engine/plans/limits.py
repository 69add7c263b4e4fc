"""What limits a run: its critical path, and the resource of which most is in use at each moment."""

from dataclasses import dataclass
from enum import StrEnum


class PieceKind(StrEnum):
    """Why time passes on the critical path.

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
        kind: why the time passes.
        start_seconds, finish_seconds: when, on the plan's clock.
        node: name of the node where it passes, or where the step waits to go; None = none.
        cause: what it waits for: the image's reference, the volume claim, the loop, the step whose
            end makes room, or the step for which the plan keeps the room; "" where the kind says
            it all. Steps of other runs are `key/step`; reserved rooms have the key of their run.
    """

    step: str
    kind: PieceKind
    start_seconds: float
    finish_seconds: float
    node: str | None = None
    cause: str = ""

    @property
    def seconds(self) -> float:
        """How long the piece is."""
        return self.finish_seconds - self.start_seconds


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """A span of time, and the resource of which the largest share of the cluster is in use.

    Attributes:
        start_seconds, finish_seconds: the span, on the plan's clock.
        resource: its Kubernetes name, such as `cpu`; "" while nothing is in use.
        share: how much is in use on average of what the nodes that the run may use have free for
            runs that are planned, 0 to 1.
    """

    start_seconds: float
    finish_seconds: float
    resource: str
    share: float


@dataclass(frozen=True, slots=True)
class Phases:
    """How long a step works on its node, by what it does.

    Attributes:
        image_pull_seconds: pulling missing image bytes.
        transfer_seconds: downloading inputs and uploading outputs.
        duration_seconds: its run time there.
    """

    image_pull_seconds: float
    transfer_seconds: float
    duration_seconds: float


@dataclass(frozen=True, slots=True)
class ScheduledStep:
    """Where and when a baseline runs a step.

    Attributes:
        name: name of the step, as in the plan.
        node: name of the node.
        start_seconds, finish_seconds: when its pod is bound, and when its outputs are uploaded.
        phases: what of this time is work; the rest it waits, such as for a volume. None = all of it
            runs.
    """

    name: str
    node: str
    start_seconds: float
    finish_seconds: float
    phases: Phases | None = None


@dataclass(frozen=True)
class RunLimits:
    """What limits a run.

    Attributes:
        critical_path: what the end of the run waits for, from its submission to its end without a
            gap; empty where the run does not end or nobody asked.
        binding_resources: the resource that is scarcest, over time.
    """

    critical_path: tuple[CriticalPiece, ...] = ()
    binding_resources: tuple[ResourceUse, ...] = ()
