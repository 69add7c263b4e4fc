"""Why a step goes where it goes.

A node in a reason is a position in the plan's list of nodes, which may be rewritten. All are frozen
dataclasses; those without fields of their own are made as their base is, see `model.objections`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from kfp_placement_engine.model.objections import Argument, CountedObjection


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a step goes where it goes; see the classes made of it."""

    node_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that are positions of nodes, or None."""

    def with_nodes(self, translate: Callable[[int], int]) -> Self:
        """The same reason where the plan's list of nodes is another.

        Args:
            translate: old position to new.
        """
        positions = {name: getattr(self, name) for name in self.node_fields}
        named = {name: position for name, position in positions.items() if position is not None}
        return replace(self, **{name: translate(each) for name, each in named.items()})


@dataclass(frozen=True, slots=True)
class OtherReason(Reason):
    """A reason of another revision, as it came; what in it is a node is not known."""

    code: str
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownReason(Reason):
    """A reason of this revision.

    Attributes:
        added: what a newer revision says besides, as it came.
    """

    added: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfNode(KnownReason):
    """A reason that names another node."""

    node_fields: ClassVar[tuple[str, ...]] = ("node",)

    node: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfNodes(_OfNode):
    """A reason that names another node, or two."""

    node_fields: ClassVar[tuple[str, ...]] = ("node", "other")

    other: int | None = None


class Started(KnownReason):
    """It runs there already."""

    __slots__ = ()


class Ended(KnownReason):
    """It has ended."""

    __slots__ = ()


class Kept(KnownReason):
    """It keeps the node it was planned on."""

    __slots__ = ()


class Cached(KnownReason):
    """It is taken to come from the cache and has no pod of its own."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlabelled(KnownReason):
    """Pods of that kind carry no labels, so the default scheduler places it."""

    kind: str


class Unmarked(KnownReason):
    """It carries no scheduler mark, so the default scheduler places it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumePinned(KnownReason):
    """The volume of a claim is available on this node only."""

    claim: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeShared(KnownReason):
    """Steps that share a volume stay together.

    Attributes:
        claim: the volume's.
        step: one of the others.
        more: further ones; None = none.
    """

    claim: str
    step: str
    more: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyUnknown(KnownReason):
    """No node with room states a round trip to the location."""

    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NearUsers(KnownReason):
    """The latency rule decided for a node that is as near as possible.

    Attributes:
        location: of the users.
        node_count: nodes with room.
        latency_ms: round trip from this one.
        next_ms: the shortest round trip from another; None = there is no other.
    """

    location: str
    node_count: int
    latency_ms: float
    next_ms: float | None = None


class LatencyBest(NearUsers):
    """The node has the shortest round trip."""

    __slots__ = ()


class LatencyNear(NearUsers):
    """The round trip is within the tolerance of the shortest."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FarFromUsers(_OfNode):
    """The node is beyond the tolerance of the latency rule, or beyond the hard limit.

    Attributes:
        latency_ms: round trip from this node; None = not known.
        location: of the users.
        node: the nearest one.
        node_ms: round trip from there.
    """

    latency_ms: float | None
    location: str
    node_ms: float


class LatencyMissed(FarFromUsers):
    """The nearest node had no room when the step was ready."""

    __slots__ = ()


class LatencySearched(FarFromUsers):
    """The search found no better plan with the step on the nearest node."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyNode(KnownReason):
    """No other node can take it.

    Attributes:
        objections: of the others; None = not said.
    """

    objections: tuple[CountedObjection, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unschedulable(KnownReason):
    """None of this many nodes can take it."""

    node_count: int
    objections: tuple[CountedObjection, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quickest(_OfNode):
    """It takes less time here than on `node`, the next best.

    Attributes:
        seconds: download, run and upload here.
        node_seconds: the same there.
    """

    seconds: float
    node_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(KnownReason):
    """This many nodes take it; the search chose this one for the whole run."""

    node_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLater(_OfNode):
    """The run would end later with the step on `node`, the next best."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EndsFirst(_OfNode):
    """The step would end later on `node`, and the run no earlier."""

    seconds: float


class KeepsRoom(KnownReason):
    """On other nodes it would take the room of a step that should be near its users."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundInTime(_OfNode):
    """The search ended before it found that the run ends earlier with the step on `node`."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualEnd(_OfNodes):
    """The run ends no earlier with the step on the other nodes.

    Attributes:
        objective: by which this node is better anyway; "" = it is not.
    """

    objective: str


class NoRoom(_OfNodes):
    """The other nodes had no room when the step was ready."""

    __slots__ = ()
