"""A step's round trip to its location and its limit, from whatever says something of them; pure."""

from dataclasses import dataclass

from kfp_placement.live.pods import PodView
from kfp_placement.report.values import counted
from kfp_placement_engine.contract.rows import PlannedRow
from kfp_placement_engine.model.durations import round_trip_text
from kfp_placement_engine.model.latency import is_within
from kfp_placement_engine.model.objections import BeyondLimit
from kfp_placement_engine.model.reasons import (
    FarFromUsers,
    LatencyUnknown,
    NearUsers,
    OnlyNode,
    Reason,
    Unschedulable,
)


@dataclass(frozen=True)
class LatencyView:
    """What is known of the round trip of a step.

    Attributes:
        location: where its users are; "" = not said.
        latency_ms: round trip from the node where it is, or is to go; None = not said.
        max_latency_ms: its hard limit; None = none, or not said.
        nodes_beyond: nodes beyond the limit; None = not said.
    """

    location: str = ""
    latency_ms: float | None = None
    max_latency_ms: float | None = None
    nodes_beyond: int | None = None

    @property
    def is_beyond(self) -> bool:
        """The limit is not kept, as far as is known."""
        if self.latency_ms is None or self.max_latency_ms is None:
            return False
        return not is_within(self.latency_ms, self.max_latency_ms)


def latency_view(row: PlannedRow, node: int | None, pod: PodView | None) -> LatencyView:
    """Put together what the plan's row and the pod say.

    Args:
        row: the plan's.
        node: index of the node where the step is, or is to go.
        pod: the step's, where pods were read.
    """
    location, planned_ms = _planned_trip(row.reason)
    beyond, other_location, limit_ms = _objection(row.reason) or (None, "", None)
    if pod is not None:
        location = pod.location or location
        limit_ms = limit_ms if pod.max_latency_ms is None else pod.max_latency_ms
    trips: dict[int | None, float | None]
    trips = {each.node: each.latency_ms for each in row.alternatives}
    return LatencyView(
        location=location or other_location,
        latency_ms=planned_ms if node == row.node else trips.get(node),
        max_latency_ms=limit_ms,
        nodes_beyond=beyond,
    )


def latency_text(latency: LatencyView) -> str:
    """For people: `9.8 ms to HOME-EDGE, limit 20 ms (2 nodes beyond)`; "" = nothing is known."""
    limit_ms = latency.max_latency_ms
    if latency.latency_ms is None and limit_ms is None:
        return ""
    trip = "not said" if latency.latency_ms is None else round_trip_text(latency.latency_ms)
    text = f"{trip} to {latency.location}" if latency.location else trip
    if limit_ms is None:
        return text
    beyond = f" ({counted(latency.nodes_beyond, 'node')} beyond)" if latency.nodes_beyond else ""
    return f"{text}, limit {round_trip_text(limit_ms)}{beyond}"


def unkept_limit(latency: LatencyView, pod: PodView | None) -> str:
    """What to say of a limit that nobody looked after; "" = nothing.

    Under gates another scheduler places too, but the pod requires the nodes within its limit.
    """
    limit_ms = latency.max_latency_ms
    if pod is None or not pod.node or limit_ms is None or pod.requires_hosts:
        return ""
    if not pod.mark or pod.scheduler == pod.mark:
        return ""
    kept = "is not kept" if latency.is_beyond else "may not be kept"
    to = f" to {latency.location}" if latency.location else ""
    return (
        f"placed by {pod.scheduler}, which knows no limits: that of {round_trip_text(limit_ms)}"
        f"{to} {kept}"
    )


def _planned_trip(reason: Reason | None) -> tuple[str, float | None]:
    """Location, and the round trip from the planned node, as the reason has them."""
    match reason:
        case NearUsers():
            return reason.location, float(reason.latency_ms)
        case FarFromUsers():
            trip = reason.latency_ms
            return reason.location, None if trip is None else float(trip)
        case LatencyUnknown():
            return reason.location, None
        case _:
            return "", None


def _objection(reason: Reason | None) -> tuple[int, str, float] | None:
    """How many nodes are beyond the limit, of which location, and the limit."""
    objections = reason.objections if isinstance(reason, OnlyNode | Unschedulable) else None
    for each in () if objections is None else objections:
        beyond = each.objection
        if isinstance(beyond, BeyondLimit):
            return each.node_count, beyond.location, float(beyond.limit_ms)
    return None
