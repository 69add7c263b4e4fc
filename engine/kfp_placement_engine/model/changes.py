"""What somebody may change about a run or its cluster, to ask what the plan would be then.

Each change has a form as text, the one in which people write it (`readers.changes` reads it back).
Nodes are named as people name them: a node, the group of all nodes called `worker-1`, `worker-2`
and so on by `worker`, or a pattern with `*`.
"""

import math
from collections.abc import Iterable
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

Amounts = tuple[tuple[str, int], ...]
"""(resource, amount), canonical units."""


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

    Where no node has the name but a step, the step requests these amounts.

    Attributes:
        nodes: names the nodes; all of them change.
        resources: what pods may request of them on each node.
        speed: run times are divided by it; None = as it is.
    """

    nodes: str
    resources: Amounts = ()
    speed: float | None = None

    @property
    def text(self) -> str:
        """`gpu-node cpu=32 memory=64Gi speed=2`."""
        speed = [] if self.speed is None else [f"speed={plain_decimal(self.speed)}"]
        return " ".join([self.nodes, *_texts(self.resources), *speed])


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
class ChangeStep:
    """Another run time of a step, other requests, or another choice of nodes; the rest stays.

    Attributes:
        step: names the step.
        resources: what its pod requests of them; 0 = nothing.
        nodes: names the nodes to which it may go, in place of its node selector and its required
            node affinity; None = as it is.
        seconds: its run time on the reference node; None = as it is.
        max_latency_ms: hard limit of the round trip to its location; infinite = there is none,
            None = as it is.
    """

    step: str
    resources: Amounts = ()
    nodes: str | None = None
    seconds: float | None = None
    max_latency_ms: float | None = None

    @property
    def text(self) -> str:
        """`step train cpu=4 node=gpu-node duration=10m`."""
        parts = ["step", self.step, *_texts(self.resources)]
        if self.nodes is not None:
            parts.append(f"node={self.nodes}")
        if self.seconds is not None:
            parts.append(f"duration={exact_duration_text(self.seconds)}")
        if self.max_latency_ms is not None:
            is_off = math.isinf(self.max_latency_ms)
            limit = OFF if is_off else exact_latency_text(self.max_latency_ms)
            parts.append(f"max-latency={limit}")
        return " ".join(parts)


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


Change = AddNodes | RemoveNodes | ResizeNodes | LoopLimit | ChangeStep | HoldImage | ClaimAccess
"""Any change."""


def _texts(resources: Amounts) -> Iterable[str]:
    return (f"{name}={format_resource(name, amount)}" for name, amount in resources)
