"""Why a step goes where it goes, and what nodes have against a step.

Either is a code and what it says, in an order of its own (`FIELDS`). Rows of a PipelinePlacement
hold these, since 5,000 sentences would not fit. Codes are only ever added, and fields only
at the end. What this revision does not know is kept as it came. `contract.texts` has the sentences.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from kfp_placement_engine.exceptions import InputError

Argument: TypeAlias = "str | int | float | tuple[Argument, ...]"
"""What is said of a reason: a position, seconds, milliseconds, text, or a list of such."""

_NEAR = ("location", "node_count", "latency_ms", "next_ms")
_FAR = ("own_ms", "location", "node", "node_ms")

FIELDS: Mapping[str, tuple[str, ...]] = {
    "started": (),
    "ended": (),
    "kept": (),
    "cached": (),
    "unlabelled": ("kind",),
    "unmarked": (),
    "volume-pinned": ("claim",),
    "volume-shared": ("claim", "step", "more"),
    "latency-unknown": ("location",),
    "latency-missed": _FAR,
    "latency-searched": _FAR,
    "latency-best": _NEAR,
    "latency-near": _NEAR,
    "only-node": ("others",),
    "unschedulable": ("node_count", "objections"),
    "quickest": ("seconds", "node_seconds", "node"),
    "chosen": ("node_count",),
    "run-later": ("seconds", "node"),
    "ends-first": ("seconds", "node"),
    "keeps-room": (),
    "found-in-time": ("seconds", "node"),
    "equal-end": ("objective", "node", "other"),
    "no-room": ("node", "other"),
    "cordoned": (),
    "taint": ("taint",),
    "selector": (),
    "volume": (),
    "latency": ("location", "limit_ms"),
    "no-latency": ("location",),
    "short": ("resource", "requested", "free"),
}
"""What each code says; the last seven are objections of nodes, whose sentences say what is meant.

Nodes are positions in the plan's list of nodes, which may be rewritten; resources are in canonical
units.
"""

_OPTIONAL = frozenset({"more", "next_ms", "others", "other"})
"""Fields that may be missing, at the end."""

_NODES = frozenset({"node", "other"})

FAR_FROM_USERS = frozenset({"latency-missed", "latency-searched"})
"""Codes of nodes beyond the tolerance of a latency rule, or beyond a hard limit."""

NEAR_USERS = frozenset({"latency-best", "latency-near"})
"""Codes of nodes that are as near as the latency rule asks for."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a step goes where it goes, or what a node has against it.

    Attributes:
        code: a key of `FIELDS`, or a word of a newer revision.
        arguments: what it says, in the order of its fields; a newer revision may say more.
    """

    code: str
    arguments: tuple[Argument, ...] = ()

    @property
    def values(self) -> dict[str, Any] | None:
        """What it says, by field; None = it is of another revision, or written wrongly."""
        fields = FIELDS.get(self.code)
        if fields is None or len(self.arguments) < sum(each not in _OPTIONAL for each in fields):
            return None
        try:
            pairs = zip(fields, self.arguments, strict=False)
            return {field: _READERS[field](argument) for field, argument in pairs}
        except InputError:
            return None

    def says(self, field: str) -> Any:
        """The value of a field; None = it says none."""
        return (self.values or {}).get(field)

    def with_nodes(self, translate: Callable[[int], int]) -> "Reason":
        """The same reason where the plan's list of nodes is another.

        Args:
            translate: old position to new.
        """
        values = self.values
        if values is None or _NODES.isdisjoint(values):
            return self
        moved = [
            translate(values[field]) if field in _NODES else argument
            for field, argument in zip(values, self.arguments, strict=False)
        ]
        return replace(self, arguments=(*moved, *self.arguments[len(moved) :]))


def reason(code: str, **values: Any) -> Reason:
    """A reason of this revision.

    Args:
        code: a key of `FIELDS`.
        values: by field; None = not known, or not said.
    """
    said = [values.get(field) for field in FIELDS[code]]
    while said and said[-1] is None:
        said.pop()
    return Reason(code, tuple("" if each is None else each for each in said))


def counted(node_count: int, objection: Reason) -> Argument:
    """An objection that this many nodes have."""
    return node_count, objection.code, *objection.arguments


def _text(argument: Argument) -> str:
    if not isinstance(argument, str):
        raise InputError("an argument should be a string")
    return argument


def _number(argument: Argument) -> float:
    if not isinstance(argument, (float, int)) or argument < 0:
        raise InputError("an argument should be a number from 0")
    return argument


def _whole(argument: Argument) -> int:
    if isinstance(argument, float) and argument.is_integer():
        argument = int(argument)
    if not isinstance(argument, int) or argument < 0:
        raise InputError("an argument should be a whole number from 0")
    return argument


def _latency(argument: Argument) -> float | None:
    return None if argument == "" else _number(argument)


def _objections(argument: Argument) -> tuple[tuple[int, Reason], ...]:
    """How many nodes have each objection."""
    if not isinstance(argument, tuple):
        raise InputError("an argument should be a list")
    return tuple(map(_counted, argument))


def _counted(argument: Argument) -> tuple[int, Reason]:
    if not isinstance(argument, tuple) or len(argument) < 2:
        raise InputError("an objection should be a list of a number and a code")
    number, code, *arguments = argument
    return _whole(number), Reason(_text(code), tuple(arguments))


_READERS: Mapping[str, Callable[[Argument], Any]] = {
    **dict.fromkeys(("claim", "kind", "location", "objective"), _text),
    **dict.fromkeys(("resource", "step", "taint"), _text),
    **dict.fromkeys(("latency_ms", "limit_ms", "next_ms", "node_ms"), _number),
    **dict.fromkeys(("node_seconds", "seconds"), _number),
    **dict.fromkeys(("free", "more", "node", "node_count", "other", "requested"), _whole),
    **dict.fromkeys(("objections", "others"), _objections),
    "own_ms": _latency,
}
"""What reads each field, whatever the code."""
