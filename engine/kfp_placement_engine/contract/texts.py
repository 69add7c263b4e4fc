"""Sentences of reasons: `run-later` of 40 s and node 1, with the plan's nodes, make one.

Whoever shows a plan renders them here. What another revision says is shown as it is.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kfp_placement_engine.model.reasons import Argument, Reason
from kfp_placement_engine.model.step_state import Waiting, WaitingFor
from kfp_placement_engine.units.durations import format_duration, round_trip_text
from kfp_placement_engine.units.quantities import format_resource

_LATENCY = (
    " to {location:text} of {node_count:nodes} with room: {latency_ms:milliseconds}"
    "{next_ms:following}"
)

REASON_TEXTS: Mapping[str, str] = {
    "cached": "taken to come from the cache: only its driver pod runs",
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
    "latency-best": f"lowest round trip{_LATENCY}",
    "latency-near": f"round trip within the tolerance of the lowest{_LATENCY}",
    "only-node": "the only node that can take it{others:others}",
    "unschedulable": "none of {node_count:nodes} can take it ({objections:objections})",
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
    "volume": "its volume is elsewhere",
    "latency": "round trip to {location:text} beyond {limit_ms:milliseconds}",
    "no-latency": "round trip to {location:text} unknown",
    "short": ("not enough {resource:text} (asks {requested:amount}, at most {free:amount} free)"),
}
"""Sentence of each code; `{other:node}` is the field `other`, shown as a node."""

_DECIDING: Mapping[str, str] = {
    "": "that is just as good",
    "completion": "this uses the nodes more evenly",
    "makespan": "all runs together do better with this",
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
_PLACEHOLDER = re.compile(r"\{([a-z_]+):([a-z]+)\}")


def reason_text(reason: Reason, nodes: Sequence[str] = ()) -> str:
    """The sentence of a reason, or the text of an objection.

    Args:
        reason: of a plan.
        nodes: `spec.nodes` of the same plan.
    """
    values = reason.values
    if values is not None:
        try:
            return _PLACEHOLDER.sub(
                lambda match: _field_text(values, nodes, *match.groups()), REASON_TEXTS[reason.code]
            )
        except LookupError:
            pass  # an objective or a node of another revision
    shown = ", ".join(map(_plain, reason.arguments))
    return f"{reason.code} ({shown})" if shown else reason.code


def waiting_text(waiting: Waiting, now_seconds: float) -> str:
    """What a step waits for, for how long, until when at most, and what Kubernetes says."""
    what = _WAITING_TEXTS.get(waiting.what, waiting.what)
    since = format_duration(max(0.0, now_seconds - waiting.since_seconds))
    text = f"waits for {what} since {since}"
    if waiting.until_seconds is not None:
        left = format_duration(max(0.0, waiting.until_seconds - now_seconds))
        text += f", at most {left} more"
    return f"{text}: {waiting.detail}" if waiting.detail else text


def _plain(argument: Argument) -> str:
    if isinstance(argument, tuple):
        return "[" + ", ".join(_plain(each) for each in argument) + "]"
    return argument if isinstance(argument, str) else f"{argument:g}"


def _field_text(values: Mapping[str, Any], nodes: Sequence[str], field: str, kind: str) -> str:
    """A field in the form that the placeholder names."""
    value: Any = values.get(field)
    if kind == "node":
        return str(nodes[value])
    if kind == "other":
        return "" if value is None else f" or {nodes[value]}"
    if kind == "amount":
        return format_resource(values["resource"], value)
    return _FORMATS[kind](value)


def _latency(latency_ms: float | None) -> str:
    return "unknown latency" if latency_ms is None else round_trip_text(latency_ms)


def _nodes(number: int) -> str:
    return f"{number} node" if number == 1 else f"{number} nodes"


def _objections(counted: Sequence[tuple[int, Reason]]) -> str:
    return ", ".join(f"{_nodes(number)}: {reason_text(each)}" for number, each in counted)


def _others(counted: Sequence[tuple[int, Reason]] | None) -> str:
    return f"; the others cannot ({_objections(counted)})" if counted else ""


def _more(number: int | None) -> str:
    return "" if number is None else f" and {number} more"


def _following(latency_ms: float | None) -> str:
    return "" if latency_ms is None else f", next {round_trip_text(latency_ms)}"


_FORMATS: Mapping[str, Callable[[Any], str]] = {
    "text": str,
    "seconds": format_duration,
    "milliseconds": round_trip_text,
    "latency": _latency,
    "deciding": _DECIDING.__getitem__,
    "nodes": _nodes,
    "objections": _objections,
    "others": _others,
    "more": _more,
    "following": _following,
}
