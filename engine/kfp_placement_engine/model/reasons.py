"""Reasons: why a step goes where it goes, and what nodes have against a step.

A reason is a code and its arguments, because rows of a PipelinePlacement have no room for 5,000
sentences. `SENTENCES` defines every code: the placeholders of its sentence name its fields, and the
kind of each says how a stored argument is read and how it is shown. Codes are only ever added, and
fields only at the end. A reason of another revision is kept as it came, and shown as it is.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.units.durations import format_duration, round_trip_text
from kfp_placement_engine.units.quantities import format_resource

Argument: TypeAlias = "str | int | float | tuple[Argument, ...]"
"""Stored value of a field: a position, seconds, milliseconds, text, or a list of such."""

_FROM_USERS = (
    " to {location:text} of {node_count:nodes} with room: {latency_ms:milliseconds}"
    "{next_ms:following}"
)

SENTENCES: Mapping[str, str] = {
    "cached": "taken to come from the cache: only its driver pod runs",
    "no-pod": "{kind:text}: it has no pod, only its time is planned",
    "unlabelled": (
        "KFP gives {kind:text} pods no labels; this is where the default scheduler would put it"
    ),
    "unmarked": "carries no scheduler mark; this is where the default scheduler would put it",
    "volume-pinned": "volume claim {claim:text} is available on this node only",
    "volume-shared": "shares volume {claim:text} with {step:text}{more:more}",
    "latency-unknown": "no node with room states a latency to {location:text}",
    "latency-missed": (
        "{own_ms:latency} to {location:text}: {node:node} ({node_ms:milliseconds}) had no room "
        "when the step was ready"
    ),
    "latency-searched": (
        "{own_ms:latency} to {location:text}: the search found no better plan with it on "
        "{node:node} ({node_ms:milliseconds})"
    ),
    "latency-best": f"lowest round trip{_FROM_USERS}",
    "latency-near": f"round trip within the tolerance of the lowest{_FROM_USERS}",
    "only-node": "the only node that can take it{others:others}",
    "unschedulable": (
        "none of {node_count:nodes} can take it ({objections:objections}){volumes:further}"
    ),
    "refused": "{problem:text}",
    "quickest": "takes {seconds:seconds} here, {node_seconds:seconds} on {node:node}",
    "chosen": "one of {node_count:nodes} that take it; the search chose it for the whole run",
    "run-later": (
        "the run would end {seconds:seconds} later if this step alone went to {node:node}, the next"
        " best"
    ),
    "ends-first": "ends first here, {seconds:seconds} later on {node:node}",
    "keeps-room": "elsewhere it would take the room of a step that should be near its users",
    "found-in-time": (
        "found in the time given; {node:node} alone would end the run {seconds:seconds} earlier"
    ),
    "equal-end": (
        "the run ends no earlier with it on {node:node}{other:other}; {objective:deciding}"
    ),
    "no-room": "no room on {node:node}{other:other} when the step was ready",
    "started": "runs there already",
    "ended": "has ended",
    "kept": "keeps the node it was planned on; only steps of other runs move",
    "cordoned": "node is cordoned",
    "taint": "untolerated taint {taint:text}",
    "selector": "node(s) didn't match node affinity/selector",
    "windows": "runs Windows, and the images are for Linux",
    "claim": "{problem:text}",
    "volume": "its volume is elsewhere{claim:detail}",
    "latency": "round trip to {location:text} beyond {limit_ms:milliseconds}",
    "no-latency": "round trip to {location:text} unknown",
    "short": ("not enough {resource:text} (asks {requested:amount}, at most {free:amount} free)"),
}
"""Sentence of each code; `{other:node}` is the field `other`, which is of the kind `node`.

The last nine are objections of nodes. Nodes are positions in the plan's list of nodes, which may
be rewritten; resources are in canonical units.
"""

_STORED_ORDER: Mapping[str, tuple[str, ...]] = {
    "found-in-time": ("seconds", "node"),
    "equal-end": ("objective", "node", "other"),
}
"""Fields of the codes that are not stored in the order of their sentence."""

FAR_FROM_USERS = frozenset({"latency-missed", "latency-searched"})
"""Codes of nodes beyond the tolerance of a latency rule, or beyond a hard limit."""

NEAR_USERS = frozenset({"latency-best", "latency-near"})
"""Codes of nodes that are as near as the latency rule asks for."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+):([a-z]+)\}")

_NODES = frozenset({"node", "other"})
"""Fields that name a node."""

_DECIDING: Mapping[str, str] = {
    "": "that is just as good",
    "completion": "this uses the nodes more evenly",
    "makespan": "all runs together do better with this",
    "packing": "this uses fewer nodes",
    "paper": "Eq. (1) of the paper values this more",
}
"""Sentences that say what decides between equal ends, by objective."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason why a step goes where it goes, or objection of a node to a step.

    Attributes:
        code: a key of `SENTENCES`, or a word of a newer revision.
        arguments: values of its fields, in their stored order; a newer revision may add some.
    """

    code: str
    arguments: tuple[Argument, ...]

    @property
    def values(self) -> dict[str, Any] | None:
        """Values by field; None = it is of another revision, or written wrongly."""
        fields = _FIELDS.get(self.code)
        needed = (kind for kind in (fields or {}).values() if not kind.is_optional)
        if fields is None or len(self.arguments) < sum(1 for _ in needed):
            return None
        try:
            pairs = zip(fields.items(), self.arguments, strict=False)
            return {field: kind.read(argument) for (field, kind), argument in pairs}
        except InputError:
            return None

    def value_of(self, field: str) -> Any:
        """Return the value of a field, or None if the reason has none."""
        return (self.values or {}).get(field)

    def with_nodes(self, translate: Callable[[int], int]) -> "Reason":
        """Return the same reason for a plan with another list of nodes.

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
    """Return a reason of this revision.

    Args:
        code: a key of `SENTENCES`.
        values: value of each field; None = not known, or left out.
    """
    arguments = [values.pop(field, None) for field in FIELDS[code]]
    if values:
        raise TypeError(f"a reason {code} has no field {', '.join(values)}")
    while arguments and arguments[-1] is None:
        arguments.pop()
    return Reason(code, tuple("" if each is None else each for each in arguments))


def count_argument(node_count: int, objection: Reason) -> Argument:
    """Return the argument for the number of nodes with an objection."""
    return node_count, objection.code, *objection.arguments


def reason_text(reason: Reason, nodes: Sequence[str] = ()) -> str:
    """Return the sentence of a reason, or the text of an objection.

    Args:
        reason: a reason of a plan.
        nodes: `spec.nodes` of the same plan.
    """
    values = reason.values
    if values is not None:
        try:
            return _PLACEHOLDER.sub(
                lambda match: _shown(match[1], match[2], values, nodes), SENTENCES[reason.code]
            )
        except LookupError:
            pass  # an objective or a node of another revision
    shown = ", ".join(map(_plain, reason.arguments))
    return f"{reason.code} ({shown})" if shown else reason.code


def _shown(field: str, kind: str, values: Mapping[str, Any], nodes: Sequence[str]) -> str:
    """Return the text of a field."""
    value: Any = values.get(field)
    if value is None and _KINDS[kind].is_optional:
        return ""
    if field in _NODES:
        value = nodes[value]
    return (
        format_resource(values["resource"], value) if kind == "amount" else _KINDS[kind].show(value)
    )


def _plain(argument: Argument) -> str:
    if isinstance(argument, tuple):
        return "[" + ", ".join(_plain(each) for each in argument) + "]"
    return argument if isinstance(argument, str) else f"{argument:g}"


def _read_text(argument: Argument) -> str:
    if not isinstance(argument, str):
        raise InputError("an argument should be a string")
    return argument


def _read_number(argument: Argument) -> float:
    if not isinstance(argument, (float, int)) or not 0 <= argument < math.inf:
        raise InputError("an argument should be a number from 0")
    return argument


def _read_whole(argument: Argument) -> int:
    if isinstance(argument, float) and argument.is_integer():
        argument = int(argument)
    if not isinstance(argument, int) or argument < 0:
        raise InputError("an argument should be a whole number from 0")
    return argument


_Objection = tuple[int, Reason]
"""Number of nodes with an objection, and the objection."""


def _read_objections(argument: Argument) -> tuple[_Objection, ...]:
    """Read the number of nodes with each objection."""
    if not isinstance(argument, tuple):
        raise InputError("an argument should be a list")
    return tuple(map(_read_objection, argument))


def _read_objection(argument: Argument) -> _Objection:
    if not isinstance(argument, tuple) or len(argument) < 2:
        raise InputError("an objection should be a list of a number and a code")
    number, code, *arguments = argument
    return _read_whole(number), Reason(_read_text(code), tuple(arguments))


def _nodes_text(number: int) -> str:
    return f"{number} node" if number == 1 else f"{number} nodes"


def _objections_text(counted: Sequence[_Objection]) -> str:
    return ", ".join(f"{_nodes_text(number)}: {reason_text(each)}" for number, each in counted)


@dataclass(frozen=True, slots=True)
class _Kind:
    """Kind of a field.

    Attributes:
        read: parser of a stored argument; raises `InputError` if it is not of this kind.
        show: function that makes the text of a value.
        is_optional: whether the field may be missing at the end of a stored reason; then it is "".
    """

    read: Callable[[Argument], Any]
    show: Callable[[Any], str] = str
    is_optional: bool = False


_KINDS: Mapping[str, _Kind] = {
    "text": _Kind(_read_text),
    "deciding": _Kind(_read_text, _DECIDING.__getitem__),
    "seconds": _Kind(_read_number, format_duration),
    "milliseconds": _Kind(_read_number, round_trip_text),
    "following": _Kind(_read_number, lambda ms: f", next {round_trip_text(ms)}", is_optional=True),
    "latency": _Kind(
        lambda argument: None if argument == "" else _read_number(argument),
        lambda ms: "unknown latency" if ms is None else round_trip_text(ms),
    ),
    "further": _Kind(_read_text, lambda text: f": {text}", is_optional=True),
    "detail": _Kind(_read_text, lambda text: f" ({text})", is_optional=True),
    "amount": _Kind(_read_whole),
    "node": _Kind(_read_whole),
    "other": _Kind(_read_whole, lambda node: f" or {node}", is_optional=True),
    "nodes": _Kind(_read_whole, _nodes_text),
    "more": _Kind(_read_whole, lambda number: f" and {number} more", is_optional=True),
    "objections": _Kind(_read_objections, _objections_text),
    "others": _Kind(
        _read_objections,
        lambda others: f"; the others cannot ({_objections_text(others)})" if others else "",
        is_optional=True,
    ),
}
"""Kinds of fields, by their names in placeholders.

`_shown` also uses what is outside the field: the resource gives an amount its unit, and the list of
nodes gives `node` and `other` their names.
"""


def _fields(code: str, sentence: str) -> dict[str, _Kind]:
    kinds = {field: _KINDS[kind] for field, kind in _PLACEHOLDER.findall(sentence)}
    return {field: kinds[field] for field in _STORED_ORDER.get(code, kinds)}


_FIELDS = {code: _fields(code, sentence) for code, sentence in SENTENCES.items()}

FIELDS: Mapping[str, tuple[str, ...]] = {code: tuple(fields) for code, fields in _FIELDS.items()}
"""Fields of each code, in their stored order."""
