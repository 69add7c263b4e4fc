"""Reasons in rows, both ways: `["run-later", 40, 1]` and `RunLater(seconds=40, node=1)`.

A PipelinePlacement holds codes and arguments, since 5,000 sentences would not fit. Codes are only
ever added, and arguments only at the end. What this revision does not know is kept as it came.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model import objections, reasons
from kfp_placement_engine.model.objections import (
    Argument,
    CountedObjection,
    Objection,
    OtherObjection,
)
from kfp_placement_engine.model.reasons import OtherReason, Reason

KnownT = TypeVar("KnownT")

CodedArguments = tuple[str, tuple[Argument, ...]]
"""A code and what it says."""


def read_reason(code: str, arguments: tuple[Argument, ...]) -> Reason:
    """The reason that a row holds; of another revision, or with other arguments, as it came."""
    return _read(_REASONS, code, arguments) or OtherReason(code, arguments)


def _read_objection(code: str, arguments: tuple[Argument, ...]) -> Objection:
    return _read(_OBJECTIONS, code, arguments) or OtherObjection(code, arguments)


def coded(why: Reason | Objection) -> CodedArguments:
    """The code and arguments of a reason or an objection."""
    if isinstance(why, OtherReason | OtherObjection):
        return why.code, why.arguments
    code, layout = _BY_CLASS[type(why)]
    return code, layout.write(why)


def _read(
    layouts: "Mapping[str, _Layout[KnownT]]", code: str, arguments: tuple[Argument, ...]
) -> KnownT | None:
    """What the layout of the code reads; None where there is none, or it reads other arguments."""
    if code not in layouts:
        return None
    try:
        return layouts[code].read(arguments)
    except InputError:
        return None


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


def _written_latency(latency_ms: float | None) -> Argument:
    return "" if latency_ms is None else latency_ms


def _objections(argument: Argument) -> tuple[CountedObjection, ...]:
    if not isinstance(argument, tuple):
        raise InputError("an argument should be a list")
    return tuple(_counted(each) for each in argument)


def _counted(argument: Argument) -> CountedObjection:
    if not isinstance(argument, tuple) or len(argument) < 2:
        raise InputError("an objection should be a list of a number and a code")
    number, code, *arguments = argument
    return CountedObjection(_whole(number), _read_objection(_text(code), tuple(arguments)))


def _written_objections(counted: Sequence[CountedObjection]) -> Argument:
    return tuple(_written_counted(each) for each in counted)


def _written_counted(counted: CountedObjection) -> Argument:
    code, arguments = coded(counted.objection)
    return counted.node_count, code, *arguments


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class _Kind:
    """How an argument is read and written; an optional one may be missing at the end."""

    read: Callable[[Argument], Any]
    write: Callable[[Any], Argument] = _as_it_is
    is_optional: bool = False


class _Layout(Generic[KnownT]):
    """The arguments of a code, in their order, by field; optional ones come last.

    Attributes:
        made: the class whose instances have these fields.
    """

    def __init__(
        self, made: Callable[..., KnownT], fields: Mapping[str, _Kind] | None = None
    ) -> None:
        """Prepare it: rows are read by the thousand."""
        kinds = {} if fields is None else fields
        self.made = made
        self._readers = tuple((name, kind.read) for name, kind in kinds.items())
        self._writers = tuple((name, kind.write, kind.is_optional) for name, kind in kinds.items())
        self._required = sum(not kind.is_optional for kind in kinds.values())

    def read(self, arguments: tuple[Argument, ...]) -> KnownT:
        """What the arguments say.

        Raises:
            InputError: one is missing, or is not of its kind.
        """
        if len(arguments) < self._required:
            raise InputError("an argument is missing")
        values = {
            name: read(argument)
            for (name, read), argument in zip(self._readers, arguments, strict=False)
        }
        added = arguments[len(self._readers) :]
        return self.made(**values, added=added) if added else self.made(**values)

    def write(self, known: Any) -> tuple[Argument, ...]:
        """The arguments, without optional ones that say nothing."""
        written = []
        for name, write, is_optional in self._writers:
            value = getattr(known, name)
            if value is not None or not is_optional:
                written.append(write(value))
        return (*written, *known.added)


_TEXT = _Kind(_text)
_NUMBER = _Kind(_number)
_WHOLE = _Kind(_whole)
_LATENCY = _Kind(_latency, _written_latency)
_LIST = _Kind(_objections, _written_objections)
_OPTIONAL_NUMBER, _OPTIONAL_WHOLE, _OPTIONAL_LIST = (
    replace(kind, is_optional=True) for kind in (_NUMBER, _WHOLE, _LIST)
)
_NEAR = {
    "location": _TEXT,
    "node_count": _WHOLE,
    "latency_ms": _NUMBER,
    "next_ms": _OPTIONAL_NUMBER,
}
_FAR = {"latency_ms": _LATENCY, "location": _TEXT, "node": _WHOLE, "node_ms": _NUMBER}
_LATER = {"seconds": _NUMBER, "node": _WHOLE}

_REASONS: Mapping[str, _Layout[reasons.KnownReason]] = {
    "cached": _Layout(reasons.Cached),
    "unlabelled": _Layout(reasons.Unlabelled, {"kind": _TEXT}),
    "unmarked": _Layout(reasons.Unmarked),
    "volume-pinned": _Layout(reasons.VolumePinned, {"claim": _TEXT}),
    "volume-shared": _Layout(
        reasons.VolumeShared, {"claim": _TEXT, "step": _TEXT, "more": _OPTIONAL_WHOLE}
    ),
    "latency-unknown": _Layout(reasons.LatencyUnknown, {"location": _TEXT}),
    "latency-missed": _Layout(reasons.LatencyMissed, _FAR),
    "latency-searched": _Layout(reasons.LatencySearched, _FAR),
    "latency-best": _Layout(reasons.LatencyBest, _NEAR),
    "latency-near": _Layout(reasons.LatencyNear, _NEAR),
    "only-node": _Layout(reasons.OnlyNode, {"objections": _OPTIONAL_LIST}),
    "unschedulable": _Layout(reasons.Unschedulable, {"node_count": _WHOLE, "objections": _LIST}),
    "quickest": _Layout(
        reasons.Quickest, {"seconds": _NUMBER, "node_seconds": _NUMBER, "node": _WHOLE}
    ),
    "chosen": _Layout(reasons.Chosen, {"node_count": _WHOLE}),
    "run-later": _Layout(reasons.RunLater, _LATER),
    "ends-first": _Layout(reasons.EndsFirst, _LATER),
    "keeps-room": _Layout(reasons.KeepsRoom),
    "found-in-time": _Layout(reasons.FoundInTime, _LATER),
    "equal-end": _Layout(
        reasons.EqualEnd, {"objective": _TEXT, "node": _WHOLE, "other": _OPTIONAL_WHOLE}
    ),
    "no-room": _Layout(reasons.NoRoom, {"node": _WHOLE, "other": _OPTIONAL_WHOLE}),
    "started": _Layout(reasons.Started),
    "ended": _Layout(reasons.Ended),
    "kept": _Layout(reasons.Kept),
}
_OBJECTIONS: Mapping[str, _Layout[objections.KnownObjection]] = {
    "cordoned": _Layout(objections.Cordoned),
    "taint": _Layout(objections.Tainted, {"taint": _TEXT}),
    "selector": _Layout(objections.NotSelected),
    "volume": _Layout(objections.VolumeElsewhere),
    "latency": _Layout(objections.BeyondLimit, {"location": _TEXT, "limit_ms": _NUMBER}),
    "no-latency": _Layout(objections.LatencyNotKnown, {"location": _TEXT}),
    "short": _Layout(objections.Short, {"resource": _TEXT, "requested": _WHOLE, "free": _WHOLE}),
}
_BY_CLASS: Mapping[object, tuple[str, _Layout[Any]]] = {
    layout.made: (code, layout)
    for layouts in (_REASONS, _OBJECTIONS)
    for code, layout in layouts.items()
}
