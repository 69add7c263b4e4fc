"""Sentences of reasons: `RunLater(seconds=40, node=1)` and the plan's nodes make one.

Whoever shows a plan renders them here. What another revision says is shown as it is.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from kfp_placement_engine.contract.reason_rows import coded
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model import objections, reasons
from kfp_placement_engine.model.durations import format_duration, round_trip_text
from kfp_placement_engine.model.objections import Argument, CountedObjection, Objection
from kfp_placement_engine.model.quantities import format_resource
from kfp_placement_engine.model.reasons import Reason
from kfp_placement_engine.model.step_state import Waiting, WaitingFor

_LATENCY = (
    " to {location:text} of {node_count:nodes} with room: {latency_ms:milliseconds}"
    "{next_ms:following}"
)

REASON_TEXTS: Mapping[type[Reason], str] = {
    reasons.Cached: "taken to come from the cache: only its driver pod runs",
    reasons.Unlabelled: (
        "KFP gives {kind:text} pods no labels; this is where the default scheduler would put it"
    ),
    reasons.Unmarked: "carries no scheduler mark; this is where the default scheduler would put it",
    reasons.VolumePinned: "volume claim {claim:text} is available on this node only",
    reasons.VolumeShared: "shares volume {claim:text} with {step:text}{more:more}",
    reasons.LatencyUnknown: "no node with room states a latency to {location:text}",
    reasons.LatencyMissed: (
        "{latency_ms:latency} to {location:text}: {node:node} ({node_ms:milliseconds}) had no room "
        "when the step was ready"
    ),
    reasons.LatencySearched: (
        "{latency_ms:latency} to {location:text}: the search found no better plan with it on "
        "{node:node} ({node_ms:milliseconds})"
    ),
    reasons.LatencyBest: f"lowest round trip{_LATENCY}",
    reasons.LatencyNear: f"round trip within the tolerance of the lowest{_LATENCY}",
    reasons.OnlyNode: "the only node that can take it{objections:others}",
    reasons.Unschedulable: "none of {node_count:nodes} can take it ({objections:objections})",
    reasons.Quickest: "takes {seconds:seconds} here, {node_seconds:seconds} on {node:node}",
    reasons.Chosen: "one of {node_count:nodes} that take it; the search chose it for the whole run",
    reasons.RunLater: (
        "the run would end {seconds:seconds} later if this step alone went to {node:node}, the next"
        " best"
    ),
    reasons.EndsFirst: "ends first here, {seconds:seconds} later on {node:node}",
    reasons.KeepsRoom: "elsewhere it would take the room of a step that should be near its users",
    reasons.FoundInTime: (
        "found in the time given; {node:node} alone would end the run {seconds:seconds} earlier"
    ),
    reasons.EqualEnd: (
        "the run ends no earlier with it on {node:node}{other:other}; {objective:deciding}"
    ),
    reasons.NoRoom: "no room on {node:node}{other:other} when the step was ready",
    reasons.Started: "runs there already",
    reasons.Ended: "has ended",
    reasons.Kept: "keeps the node it was planned on; only steps of other runs move",
}
"""Sentence of each reason; `{other:node}` is the field `other`, shown as a node."""

OBJECTION_TEXTS: Mapping[type[Objection], str] = {
    objections.Cordoned: "node is cordoned",
    objections.Tainted: "untolerated taint {taint:text}",
    objections.NotSelected: "node(s) didn't match node affinity/selector",
    objections.VolumeElsewhere: "its volume is elsewhere",
    objections.BeyondLimit: "round trip to {location:text} beyond {limit_ms:milliseconds}",
    objections.LatencyNotKnown: "round trip to {location:text} unknown",
    objections.Short: (
        "not enough {resource:text} (asks {requested:amount}, at most {free:amount} free)"
    ),
}
"""The same for objections."""

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


def reason_text(reason: Reason, nodes: Sequence[str]) -> str:
    """The sentence of a reason.

    Args:
        reason: of a plan.
        nodes: `spec.nodes` of the same plan.
    """
    return _text(reason, REASON_TEXTS.get(type(reason)), nodes)


def objection_text(objection: Objection) -> str:
    """The text of an objection."""
    return _text(objection, OBJECTION_TEXTS.get(type(objection)), ())


def waiting_text(waiting: Waiting, now_seconds: float) -> str:
    """What a step waits for, for how long, until when at most, and what Kubernetes says."""
    what = _WAITING_TEXTS.get(waiting.what, waiting.what)
    since = format_duration(max(0.0, now_seconds - waiting.since_seconds))
    text = f"waits for {what} since {since}"
    if waiting.until_seconds is not None:
        left = format_duration(max(0.0, waiting.until_seconds - now_seconds))
        text += f", at most {left} more"
    return f"{text}: {waiting.detail}" if waiting.detail else text


def _text(owner: Reason | Objection, template: str | None, nodes: Sequence[str]) -> str:
    if template is not None:
        try:
            return _PLACEHOLDER.sub(partial(_field_text, owner, nodes), template)
        except InputError:
            pass  # words or nodes of another revision
    return _as_it_stands(*coded(owner))


def _as_it_stands(code: str, arguments: Sequence[Argument]) -> str:
    shown = ", ".join(_plain(argument) for argument in arguments)
    return f"{code} ({shown})" if shown else code


def _plain(argument: Argument) -> str:
    if isinstance(argument, tuple):
        return "[" + ", ".join(_plain(each) for each in argument) + "]"
    return argument if isinstance(argument, str) else f"{argument:g}"


def _field_text(owner: Reason | Objection, nodes: Sequence[str], match: re.Match[str]) -> str:
    """A field of a reason or objection, in the form that the placeholder names."""
    value, kind = getattr(owner, match.group(1)), match.group(2)
    if kind == "node":
        return _node(value, nodes)
    if kind == "other":
        return "" if value is None else f" or {_node(value, nodes)}"
    if isinstance(owner, objections.Short) and kind == "amount":
        return format_resource(owner.resource, value)
    return _FORMATS[kind](value)


def _node(position: int, nodes: Sequence[str]) -> str:
    if position >= len(nodes):
        raise InputError("an argument is not a node of the plan")
    return nodes[position]


def _seconds(seconds: float) -> str:
    return format_duration(float(seconds))


def _latency(latency_ms: float | None) -> str:
    return "unknown latency" if latency_ms is None else round_trip_text(latency_ms)


def _deciding(objective: str) -> str:
    """What speaks for a node among equals, by the objective; "" = nothing."""
    text = _DECIDING.get(objective)
    if text is None:
        raise InputError("an argument should be an objective")
    return text


def _nodes(number: int) -> str:
    return f"{number} node" if number == 1 else f"{number} nodes"


def _objections(counted: Sequence[CountedObjection]) -> str:
    return ", ".join(
        f"{_nodes(each.node_count)}: {objection_text(each.objection)}" for each in counted
    )


def _others(counted: Sequence[CountedObjection] | None) -> str:
    return f"; the others cannot ({_objections(counted)})" if counted else ""


def _more(number: int | None) -> str:
    return "" if number is None else f" and {number} more"


def _following(latency_ms: float | None) -> str:
    return "" if latency_ms is None else f", next {round_trip_text(latency_ms)}"


_FORMATS: Mapping[str, Callable[[Any], str]] = {
    "text": str,
    "seconds": _seconds,
    "milliseconds": round_trip_text,
    "latency": _latency,
    "deciding": _deciding,
    "nodes": _nodes,
    "objections": _objections,
    "others": _others,
    "more": _more,
    "following": _following,
}
