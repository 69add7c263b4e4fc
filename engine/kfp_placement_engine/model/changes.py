"""What somebody may change about a run or its cluster, to ask what the plan would be then.

Each change has a form as text, the one in which people write it (`readers.changes` reads it back).
Nodes are named as people name them: a node, the group of all nodes called `worker-1`, `worker-2`
and so on by `worker`, or a pattern with `*`.
"""

from dataclasses import dataclass

from kfp_placement_engine.model.durations import (
    exact_duration_text,
    exact_latency_text,
    plain_decimal,
)
from kfp_placement_engine.model.quantities import format_resource

ACCESS_MODES = ("ReadWriteOnce", "ReadWriteOncePod", "ReadOnlyMany", "ReadWriteMany")
"""Access modes of volume claims."""

SHARED = "ReadWriteMany"
"""The access mode under which steps on several nodes write to one volume."""

OFF = "off"
"""In place of a limit: there is none."""


@dataclass(frozen=True)
class AddNodes:
    """More nodes like an existing one, but empty: nothing runs on them, and they hold no image.

    Attributes:
        like: names the node, or a group of equal ones.
        count: how many more, 1 or more.
    """

    like: str
    count: int

    @property
    def text(self) -> str:
        """`+2 of worker`."""
        return f"+{self.count} of {self.like}"


@dataclass(frozen=True)
class RemoveNodes:
    """Fewer nodes; of several that are named the last ones go.

    Attributes:
        nodes: names the nodes of which some go.
        count: how many, 1 or more.
    """

    nodes: str
    count: int

    @property
    def text(self) -> str:
        """`-1 of worker`."""
        return f"-{self.count} of {self.nodes}"


@dataclass(frozen=True)
class ResizeNodes:
    """Nodes with other amounts of resources, or of another speed.

    Attributes:
        nodes: names the nodes; all of them change.
        resources: (resource, what pods may request of it on each node), canonical units.
        speed: run times are divided by it; None = as it is.
    """

    nodes: str
    resources: tuple[tuple[str, int], ...] = ()
    speed: float | None = None

    @property
    def text(self) -> str:
        """`gpu-node cpu=32 memory=64Gi speed=2`."""
        parts = [f"{name}={format_resource(name, amount)}" for name, amount in self.resources]
        if self.speed is not None:
            parts.append(f"speed={plain_decimal(self.speed)}")
        return " ".join([self.nodes, *parts])


@dataclass(frozen=True)
class LoopLimit:
    """Another limit of how many iterations of a loop run at once.

    Attributes:
        loop: names the loop.
        limit: 1 or more; None = no limit.
    """

    loop: str
    limit: int | None

    @property
    def text(self) -> str:
        """`loop for-loop-1 limit=4`."""
        return f"loop {self.loop} limit={OFF if self.limit is None else self.limit}"


@dataclass(frozen=True)
class StepDuration:
    """Another run time of a step, on the reference node.

    Attributes:
        step: names the step.
        seconds: its run time.
    """

    step: str
    seconds: float

    @property
    def text(self) -> str:
        """`step train duration=10m`."""
        return f"step {self.step} duration={exact_duration_text(self.seconds)}"


@dataclass(frozen=True)
class LatencyLimit:
    """Another hard limit of the round trip between a step and its location.

    Attributes:
        step: names the step.
        latency_ms: the limit; None = no limit.
    """

    step: str
    latency_ms: float | None

    @property
    def text(self) -> str:
        """`step predict max-latency=30ms`."""
        limit = OFF if self.latency_ms is None else exact_latency_text(self.latency_ms)
        return f"step {self.step} max-latency={limit}"


@dataclass(frozen=True)
class HoldImage:
    """Every node holds the image before the run starts.

    Attributes:
        image: its reference, by any of its names.
    """

    image: str

    @property
    def text(self) -> str:
        """`image python:3.12 everywhere`."""
        return f"image {self.image} everywhere"


@dataclass(frozen=True)
class ClaimAccess:
    """Another access mode of a volume claim.

    Attributes:
        claim: its name.
        mode: one of `ACCESS_MODES`.
    """

    claim: str
    mode: str

    @property
    def text(self) -> str:
        """`volume data access=ReadWriteMany`."""
        return f"volume {self.claim} access={self.mode}"


Change = (
    AddNodes
    | RemoveNodes
    | ResizeNodes
    | LoopLimit
    | StepDuration
    | LatencyLimit
    | HoldImage
    | ClaimAccess
)
"""Any change."""
