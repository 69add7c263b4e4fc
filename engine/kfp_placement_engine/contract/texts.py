"""Sentences of reasons: `Reason("run-later", (40, 1))` and the plan's nodes make one.

A PipelinePlacement holds codes and arguments, since 5,000 sentences would not fit; whoever shows
it renders them here. Codes are only ever added. What a newer revision says is shown as it stands.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial

from kfp_placement_engine.contract.rows import Argument, Reason, Waiting, WaitingFor
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.durations import format_duration, round_trip_text
from kfp_placement_engine.model.quantities import format_resource


class ReasonCode(StrEnum):
    """Why a step goes where it goes."""

    CACHED = "cached"
    UNLABELLED = "unlabelled"
    UNMARKED = "unmarked"
    VOLUME_PINNED = "volume-pinned"
    VOLUME_SHARED = "volume-shared"
    LATENCY_UNKNOWN = "latency-unknown"
    LATENCY_MISSED = "latency-missed"
    LATENCY_SEARCHED = "latency-searched"
    LATENCY_BEST = "latency-best"
    LATENCY_NEAR = "latency-near"
    ONLY_NODE = "only-node"
    UNSCHEDULABLE = "unschedulable"
    QUICKEST = "quickest"
    CHOSEN = "chosen"
    RUN_LATER = "run-later"
    ENDS_FIRST = "ends-first"
    KEEPS_ROOM = "keeps-room"
    FOUND_IN_TIME = "found-in-time"
    EQUAL_END = "equal-end"
    NO_ROOM = "no-room"
    STARTED = "started"
    ENDED = "ended"
    KEPT = "kept"


class ObjectionCode(StrEnum):
    """Why a node does not take a step."""

    CORDONED = "cordoned"
    TAINT = "taint"
    SELECTOR = "selector"
    VOLUME = "volume"
    LATENCY = "latency"
    NO_LATENCY = "no-latency"
    SHORT = "short"


_LATENCY = " to {0:text} of {1:nodes} with room: {2:milliseconds}{3:following}"

REASON_TEXTS: Mapping[str, str] = {
    ReasonCode.CACHED: "taken to come from the cache: only its driver pod runs",
    ReasonCode.UNLABELLED: (
        "{0:text} pods carry no labels; where the default scheduler would put it"
    ),
    ReasonCode.UNMARKED: "carries no scheduler mark; where the default scheduler would put it",
    ReasonCode.VOLUME_PINNED: "volume claim {0:text} is available on this node only",
    ReasonCode.VOLUME_SHARED: "shares volume {0:text} with {1:text}{2:more}",
    ReasonCode.LATENCY_UNKNOWN: "no node with room states a latency to {0:text}",
    ReasonCode.LATENCY_MISSED: (
        "{0:latency} to {1:text}: {2:node} ({3:milliseconds}) had no room when the step was ready"
    ),
    ReasonCode.LATENCY_SEARCHED: (
        "{0:latency} to {1:text}: the search found no better plan with it on "
        "{2:node} ({3:milliseconds})"
    ),
    ReasonCode.LATENCY_BEST: f"lowest round trip{_LATENCY}",
    ReasonCode.LATENCY_NEAR: f"round trip within the tolerance of the lowest{_LATENCY}",
    ReasonCode.ONLY_NODE: "the only node that can take it{0:brackets}",
    ReasonCode.UNSCHEDULABLE: "none of {0:nodes} can take it ({1:objections})",
    ReasonCode.QUICKEST: "takes {0:seconds} here, {1:seconds} on {2:node}",
    ReasonCode.CHOSEN: "one of {0:nodes} that take it; the search chose it for the whole run",
    ReasonCode.RUN_LATER: (
        "the run would end {0:seconds} later with this step on {1:node}, the next best"
    ),
    ReasonCode.ENDS_FIRST: "ends first here, {0:seconds} later on {1:node}",
    ReasonCode.KEEPS_ROOM: (
        "elsewhere it would take the room of a step that should be near its users"
    ),
    ReasonCode.FOUND_IN_TIME: (
        "found in the time given; {1:node} alone would end the run {0:seconds} earlier"
    ),
    ReasonCode.EQUAL_END: ("the run ends no earlier with it on {1:node}{2:other}; {0:deciding}"),
    ReasonCode.NO_ROOM: "no room on {0:node}{1:other} when the step was ready",
    ReasonCode.STARTED: "runs there already",
    ReasonCode.ENDED: "has ended",
    ReasonCode.KEPT: "keeps the node it was planned on; only steps of other runs move",
}
"""Sentence of each code; `{1:node}` is the second argument, read as a node."""

OBJECTION_TEXTS: Mapping[str, str] = {
    ObjectionCode.CORDONED: "node is cordoned",
    ObjectionCode.TAINT: "untolerated taint {0:text}",
    ObjectionCode.SELECTOR: "node(s) didn't match node affinity/selector",
    ObjectionCode.VOLUME: "its volume is elsewhere",
    ObjectionCode.LATENCY: "round trip to {0:text} beyond {1:milliseconds}",
    ObjectionCode.NO_LATENCY: "round trip to {0:text} unknown",
    ObjectionCode.SHORT: "not enough {0:text} (asks {1:amount}, at most {2:amount} free)",
}
"""The same for objections; an objection is [number of nodes, code, argument ...]."""

_DECIDING: Mapping[str, str] = {
    "": "nothing speaks against those nodes",
    "completion": "this uses the nodes more evenly",
    "packing": "this uses fewer nodes",
    "paper": "Eq. (1) of the paper values this more",
}
_WAITING_TEXTS: Mapping[str, str] = {
    WaitingFor.PLAN: "its turn in the plan",
    WaitingFor.QUOTA: "the namespace's quota",
    WaitingFor.NODE: "room on a node",
    WaitingFor.LIMIT: "a node within its limit",
    WaitingFor.VOLUME: "its volume",
    WaitingFor.IMAGE: "its image",
}
_PLACEHOLDER = re.compile(r"\{([0-9]):([a-z]+)\}")


def reason_text(reason: Reason, nodes: Sequence[str]) -> str:
    """The sentence of a reason.

    Args:
        reason: read from a row.
        nodes: `spec.nodes` of the same plan.
    """
    return _text_of(REASON_TEXTS, reason.code, reason.arguments, nodes)


def objection_text(objection: Reason) -> str:
    """The text of an objection."""
    return _text_of(OBJECTION_TEXTS, objection.code, objection.arguments, ())


def waiting_text(waiting: Waiting, now_seconds: float) -> str:
    """What a step waits for, for how long, until when at most, and what Kubernetes says."""
    what = _WAITING_TEXTS.get(waiting.what, waiting.what)
    since = format_duration(max(0.0, now_seconds - waiting.since_seconds))
    text = f"waits for {what} since {since}"
    if waiting.until_seconds is not None:
        left = format_duration(max(0.0, waiting.until_seconds - now_seconds))
        text += f", at most {left} more"
    return f"{text}: {waiting.detail}" if waiting.detail else text


def _text_of(
    texts: Mapping[str, str],
    code: str,
    arguments: Sequence[Argument],
    nodes: Sequence[str],
) -> str:
    template = texts.get(code)
    if template is not None:
        try:
            return _PLACEHOLDER.sub(partial(_shown, arguments, nodes), template)
        except InputError:
            pass  # arguments of another revision
    said = ", ".join(_plain(argument) for argument in arguments)
    return f"{code} ({said})" if said else code


def _shown(arguments: Sequence[Argument], nodes: Sequence[str], match: re.Match[str]) -> str:
    position, kind = int(match.group(1)), match.group(2)
    argument = arguments[position] if position < len(arguments) else None
    if kind == "node":
        return _node(argument, nodes)
    if kind == "other":
        return "" if argument is None else f" or {_node(argument, nodes)}"
    if kind == "amount":
        return format_resource(_text(next(iter(arguments), None)), int(_number(argument)))
    if kind in _OPTIONAL:
        return _OPTIONAL[kind](argument)
    return _FORMATS[kind](argument)


def _text(argument: Argument | None) -> str:
    if not isinstance(argument, str):
        raise InputError("an argument should be a text")
    return argument


def _number(argument: Argument | None) -> float | int:
    if not isinstance(argument, int | float) or argument < 0:
        raise InputError("an argument should be a number from 0")
    return argument


def _node(argument: Argument | None, nodes: Sequence[str]) -> str:
    index = int(_number(argument))
    if index >= len(nodes):
        raise InputError("an argument is no node of the plan")
    return nodes[index]


def _seconds(argument: Argument | None) -> str:
    return format_duration(float(_number(argument)))


def _milliseconds(argument: Argument | None) -> str:
    return round_trip_text(float(_number(argument)))


def _latency(argument: Argument | None) -> str:
    """A round trip; "" = unknown."""
    return "unknown latency" if argument == "" else _milliseconds(argument)


def _deciding(argument: Argument | None) -> str:
    """What speaks for a node among equals, by the objective; "" = nothing."""
    text = _DECIDING.get(_text(argument))
    if text is None:
        raise InputError("an argument should be an objective")
    return text


def _nodes(argument: Argument | None) -> str:
    number = int(_number(argument))
    return f"{number} node" if number == 1 else f"{number} nodes"


def _objections(argument: Argument | None) -> str:
    if not isinstance(argument, tuple):
        raise InputError("an argument should be a list")
    return ", ".join(_objection(each) for each in argument)


def _objection(argument: Argument) -> str:
    if not isinstance(argument, tuple) or len(argument) < 2:
        raise InputError("an objection should be a list of a number and a code")
    number, code, *arguments = argument
    return f"{_nodes(number)}: {_text_of(OBJECTION_TEXTS, _text(code), arguments, ())}"


def _brackets(argument: Argument | None) -> str:
    text = "" if argument is None else _objections(argument)
    return f" ({text})" if text else ""


def _more(argument: Argument | None) -> str:
    return "" if argument is None else f" and {int(_number(argument))} more"


def _following(argument: Argument | None) -> str:
    return "" if argument is None else f", next {_milliseconds(argument)}"


def _plain(argument: Argument) -> str:
    if isinstance(argument, tuple):
        return "[" + ", ".join(_plain(each) for each in argument) + "]"
    return argument if isinstance(argument, str) else f"{argument:g}"


_FORMATS: Mapping[str, Callable[[Argument | None], str]] = {
    "text": _text,
    "seconds": _seconds,
    "milliseconds": _milliseconds,
    "latency": _latency,
    "deciding": _deciding,
    "nodes": _nodes,
    "objections": _objections,
}
_OPTIONAL: Mapping[str, Callable[[Argument | None], str]] = {
    "brackets": _brackets,
    "more": _more,
    "following": _following,
}
"""Formats of arguments that may be missing."""
