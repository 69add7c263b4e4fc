"""What a node has against a step.

All are frozen dataclasses; those without fields of their own are made as their base is, which saves
a third of the time that importing them takes.
"""

from dataclasses import dataclass
from typing import TypeAlias

Argument: TypeAlias = "str | int | float | tuple[Argument, ...]"
"""What a row holds of a reason: a position, seconds, milliseconds, text, or a list of such."""


class Objection:
    """What a node has against a step; see the classes made of it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class OtherObjection(Objection):
    """An objection of another revision, as it came."""

    code: str
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownObjection(Objection):
    """An objection of this revision.

    Attributes:
        added: what a newer revision says besides, as it came.
    """

    added: tuple[Argument, ...] = ()


class Cordoned(KnownObjection):
    """The node is cordoned."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tainted(KnownObjection):
    """The step does not tolerate a taint, as kubectl writes it: `gpu=true:NoSchedule`."""

    taint: str


class NotSelected(KnownObjection):
    """The step's node selector or node affinity does not match the node."""

    __slots__ = ()


class VolumeElsewhere(KnownObjection):
    """A volume of the step cannot be reached from the node."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BeyondLimit(KnownObjection):
    """The round trip to the location is longer than the step's hard limit."""

    location: str
    limit_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyNotKnown(KnownObjection):
    """The step has a hard limit, and the node's round trip to the location is not known."""

    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Short(KnownObjection):
    """The node lacks room.

    Attributes:
        resource: of which it has too little.
        requested: what the step asks for, in canonical units.
        free: what the node with the most room of those that lack it has left.
    """

    resource: str
    requested: int
    free: int


@dataclass(frozen=True, slots=True)
class CountedObjection:
    """This many nodes have the same objection."""

    node_count: int
    objection: Objection
