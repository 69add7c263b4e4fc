"""A step of a run as people see it: its rows in the plan and in the status, and its pod, in one."""

from dataclasses import dataclass, replace

from kfp_placement_engine.contract.resources import PipelinePlacement
from kfp_placement_engine.contract.rows import PlannedRow, StateRow
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.latency import is_within
from kfp_placement_engine.model.promise import StepPromise, TimeRange
from kfp_placement_engine.model.reasons import FAR_FROM_USERS, Reason, reason_text
from kfp_placement_engine.model.step_state import ENDED_STATES, StepState, Waiting
from kfp_placement_engine.plans.planned_step import Alternative
from kfp_placement_engine.units.durations import round_trip_text
from kfp_placement_engine.views.pods import PodView

UNKNOWN_STATE = "unknown"
"""State of a step of which the status does not speak, as it follows another revision."""

NOT_BEGUN = frozenset({StepState.PENDING, StepState.WAITING, UNKNOWN_STATE})

_ROUNDED_SECONDS = 0.5
"""Rows keep seconds to a tenth, long times to whole ones."""


@dataclass(frozen=True)
class OtherNode:
    """Another node for a step.

    Attributes:
        node: its name.
        loss_seconds: how much later the run would end with the step there.
        latency_ms: round trip from there; None = not said.
    """

    node: str
    loss_seconds: float
    latency_ms: float | None = None


@dataclass(frozen=True)
class StepView:
    """A step: what is planned and what happened to it. Times are seconds since the submission.

    Attributes:
        name: the step's name.
        state: one of `StepState`, or a word of a newer revision.
        node: where its pod is or was.
        planned_node: where it should be; None = nowhere.
        planned_start_seconds, planned_finish_seconds: by the plan in force.
        start_seconds, end_seconds: when it was bound and ended.
        promise: when it starts and ends; None = not known, or it has ended.
        duration_source: where its run time comes from, as in `DurationSource`; "" = not said.
        duration_basis: which past runs that rests on; None = none.
        memory_advice: what it should ask for instead; "" = nothing, or nobody has looked.
        location: where its users are; "" = not said.
        latency_ms: round trip from the node where it is, or is to go; None = not said.
        max_latency_ms: its hard limit; None = none, or not said.
        nodes_beyond: nodes beyond the limit; None = not said.
        why: it is to go there; None = not said.
        reason: the same in a sentence; "" = not said.
        alternatives: the next best nodes.
        waiting: what it waits for.
        pod: its latest pod, where pods were read.
    """

    name: str
    state: str
    node: str | None = None
    planned_node: str | None = None
    planned_start_seconds: float | None = None
    planned_finish_seconds: float | None = None
    start_seconds: float | None = None
    end_seconds: float | None = None
    promise: StepPromise | None = None
    duration_source: str = ""
    duration_basis: Basis | None = None
    memory_advice: str = ""
    location: str = ""
    latency_ms: float | None = None
    max_latency_ms: float | None = None
    nodes_beyond: int | None = None
    why: Reason | None = None
    reason: str = ""
    alternatives: tuple[OtherNode, ...] = ()
    waiting: Waiting | None = None
    pod: PodView | None = None

    @property
    def starts(self) -> TimeRange | None:
        """When it is promised to start."""
        return None if self.promise is None else self.promise.starts

    @property
    def ends(self) -> TimeRange | None:
        """When it is promised to end."""
        return None if self.promise is None else self.promise.ends

    @property
    def is_deviating(self) -> bool:
        """Its pod is not on the node that the plan in force wants."""
        return self.node is not None and self.planned_node not in (None, self.node)

    @property
    def is_beyond(self) -> bool:
        """Its limit is not kept, as far as is known."""
        if self.latency_ms is None or self.max_latency_ms is None:
            return False
        return not is_within(self.latency_ms, self.max_latency_ms)

    @property
    def elsewhere(self) -> str:
        """Why its pod is not where it should be, and what to say of its limit; "" = not known."""
        deviation = self.pod.deviation if self.is_deviating and self.pod is not None else ""
        return "; ".join(filter(None, (deviation, self._unkept_limit)))

    @property
    def _unkept_limit(self) -> str:
        """What to say of a limit that nobody looked after; "" = nothing.

        Under gates another scheduler places too, but the pod requires the nodes within its limit.
        """
        pod, limit_ms = self.pod, self.max_latency_ms
        if pod is None or not pod.node or limit_ms is None or pod.requires_hosts:
            return ""
        is_kept = self.planned_node == self.node and not self.is_beyond
        if is_kept or not pod.mark or pod.scheduler == pod.mark:
            return ""
        kept = "is not kept" if self.is_beyond else "may not be kept"
        to = f" to {self.location}" if self.location else ""
        return (
            f"placed by {pod.scheduler}, which knows no limits: that of"
            f" {round_trip_text(limit_ms)}{to} {kept}"
        )

    def with_state_of(self, old: "StepView | None") -> "StepView":
        """The step, with the state seen before where the status does not have it yet."""
        if old is None or self.state != UNKNOWN_STATE:
            return self
        return replace(
            self,
            state=old.state,
            node=old.node,
            start_seconds=old.start_seconds,
            end_seconds=old.end_seconds,
            promise=old.promise,
            waiting=old.waiting,
        )


def step_view(
    placement: PipelinePlacement, row: PlannedRow, state: StateRow, pod: PodView | None
) -> StepView:
    """Join what is said of a step.

    Args:
        placement: of its run.
        row: what is planned.
        state: what happened.
        pod: its latest one, where pods were read.
    """
    nodes = placement.spec.nodes
    bound = placement.node_name(state.node) or (pod.node if pod is not None else "") or None
    at = row.node if bound is None else nodes.index(bound) if bound in nodes else None
    location, latency_ms = _planned_trip(row.reason)
    beyond, other_location, limit_ms = _objection(row.reason)
    if at != row.node:
        latency_ms = next((each.latency_ms for each in row.alternatives if each.node == at), None)
    if pod is not None:
        location = pod.location or location
        limit_ms = limit_ms if pod.max_latency_ms is None else pod.max_latency_ms
    reason = "" if row.reason is None else reason_text(row.reason, nodes)
    if bound is not None and row.reason is not None and row.reason.code == "unschedulable":
        # It has got a node since.
        reason = f"at the time of the plan: {reason}"
    may_wait = state.state in (StepState.WAITING, StepState.PENDING)
    return StepView(
        name=row.name,
        state=state.state,
        node=bound,
        planned_node=placement.node_name(row.node),
        planned_start_seconds=row.start_seconds,
        planned_finish_seconds=row.finish_seconds,
        start_seconds=state.start_seconds,
        end_seconds=state.end_seconds,
        promise=None if state.state in ENDED_STATES else state.promise,
        duration_source=row.duration_source,
        duration_basis=row.duration_basis,
        location=location or other_location,
        latency_ms=latency_ms,
        max_latency_ms=limit_ms,
        nodes_beyond=beyond,
        why=row.reason,
        reason=reason,
        alternatives=tuple(
            OtherNode(nodes[each.node], _loss_seconds(row.reason, each), each.latency_ms)
            for each in row.alternatives
        ),
        waiting=state.waiting if may_wait else None,
        pod=pod,
    )


def _planned_trip(reason: Reason | None) -> tuple[str, float | None]:
    """Location, and the round trip from the planned node, as the reason has them."""
    if reason is None:
        return "", None
    trip_ms = reason.says("own_ms" if reason.code in FAR_FROM_USERS else "latency_ms")
    return reason.says("location") or "", None if trip_ms is None else float(trip_ms)


def _objection(reason: Reason | None) -> tuple[int | None, str, float | None]:
    """How many nodes are beyond the limit, of which location, and the limit."""
    objections = None if reason is None else reason.says("others") or reason.says("objections")
    for number, each in objections or ():
        if each.code == "latency" and each.values is not None:
            return number, each.says("location"), float(each.says("limit_ms"))
    return None, "", None


def _loss_seconds(reason: Reason | None, other: Alternative) -> float:
    """What another node costs the run: as the reason has it where it names that node."""
    is_named = reason is not None and reason.code == "run-later"
    if reason is None or not is_named or reason.says("node") != other.node:
        return other.loss_seconds
    seconds = float(reason.says("seconds"))
    is_same = abs(seconds - other.loss_seconds) <= _ROUNDED_SECONDS
    return seconds if is_same else other.loss_seconds
