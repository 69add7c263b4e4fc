"""View of a step of a run, from its rows in the plan and in the status, and from its pod."""

from dataclasses import dataclass, replace

from kfp_placement_engine.contract.custom_resources import PipelinePlacement
from kfp_placement_engine.contract.rows import PlannedRow, StateRow
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.node_rules.latency import is_within
from kfp_placement_engine.model.promise import StepPromise, TimeRange
from kfp_placement_engine.model.reasons import FAR_FROM_USERS, Reason, reason_text
from kfp_placement_engine.model.step_state import ENDED_STATES, StepState, Waiting
from kfp_placement_engine.plans.planned_step import Alternative
from kfp_placement_engine.readers.argo.step_pods import StepPod
from kfp_placement_engine.units.durations import round_trip_text

UNKNOWN_STATE = "unknown"
"""State of a step that the status does not list, as it follows another revision of the plan."""

NOT_BEGUN = frozenset({StepState.PENDING, StepState.WAITING, UNKNOWN_STATE})

_ROUNDED_SECONDS = 0.5
"""Largest error by rounding: rows keep tenths of a second, and long times in whole seconds."""


@dataclass(frozen=True)
class OtherNode:
    """One of the next best nodes for a step.

    Attributes:
        node: name of the node.
        loss_seconds: seconds by which the run would end later.
        latency_ms: round trip from the node; None = not known.
    """

    node: str
    loss_seconds: float
    latency_ms: float | None


@dataclass(frozen=True)
class StepView:
    """A step as planned and as it happened; times are seconds since the submission.

    Attributes:
        name: name of the step.
        state: a `StepState`, `UNKNOWN_STATE`, or a state that only newer versions know.
        node: node on which its pod runs or ran; None = it has no node yet.
        planned_node: node in the plan in force; None = none.
        planned_start_seconds, planned_finish_seconds: start and end in the plan in force.
        start_seconds, end_seconds: time at which the pod was bound, and at which it ended.
        promise: promised start and end; None = not known, or the step has ended.
        duration_source: origin of the run time, a `DurationSource`; "" = not known.
        duration_basis: past runs behind the run time; None = none.
        memory_advice: advice on the memory request; "" = none, or not read.
        location: location of the step's users; "" = not known.
        latency_ms: round trip from its node, else from the planned one; None = not known.
        max_latency_ms: hard limit of the round trip; None = none, or not known.
        nodes_beyond: number of nodes with a round trip above the limit; None = not known.
        why: reason for the planned node; None = not known.
        reason: reason for the planned node, as a sentence; "" = not known.
        alternatives: next best nodes.
        waiting: cause of waiting; None = the step does not wait.
        pod: latest pod; None = none, or not read.
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
    pod: StepPod | None = None

    @property
    def starts(self) -> TimeRange | None:
        """Promised range of the start; None = not known."""
        return None if self.promise is None else self.promise.starts

    @property
    def ends(self) -> TimeRange | None:
        """Promised range of the end; None = not known."""
        return None if self.promise is None else self.promise.ends

    @property
    def is_deviating(self) -> bool:
        """True if the pod is not on the node of the plan in force."""
        return self.node is not None and self.planned_node not in (None, self.node)

    @property
    def is_beyond(self) -> bool:
        """True if the latency limit is known to be broken."""
        if self.latency_ms is None or self.max_latency_ms is None:
            return False
        return not is_within(self.latency_ms, self.max_latency_ms)

    @property
    def elsewhere(self) -> str:
        """Reason why the pod is off its planned node, and warning about its limit; "" = neither."""
        deviation = self.pod.deviation if self.is_deviating and self.pod is not None else ""
        return "; ".join(filter(None, (deviation, self._unkept_limit)))

    @property
    def _unkept_limit(self) -> str:
        """Warning that a scheduler which does not know latency limits placed the pod; "" = none.

        With gates, too, another scheduler places the pod. But then the pod itself requires nodes
        within its limit, so there is no warning.
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
        """Return this view; while the status does not list the step, with the state of `old`."""
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
    placement: PipelinePlacement, row: PlannedRow, state: StateRow, pod: StepPod | None
) -> StepView:
    """Return the view of a step, joined from plan, status and pod.

    Args:
        placement: PipelinePlacement of the run.
        row: row of the plan.
        state: row of the status.
        pod: latest pod of the step; None = none, or not read.
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
        # The step has a node now: the reason was true only when the plan was made.
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
    """Return the location, and the round trip from the planned node, that the reason names."""
    if reason is None:
        return "", None
    trip_ms = reason.value_of("own_ms" if reason.code in FAR_FROM_USERS else "latency_ms")
    return reason.value_of("location") or "", None if trip_ms is None else float(trip_ms)


def _objection(reason: Reason | None) -> tuple[int | None, str, float | None]:
    """Return the number of nodes beyond the limit, the location and the limit in the reason."""
    objections = (
        None if reason is None else reason.value_of("others") or reason.value_of("objections")
    )
    for number, each in objections or ():
        if each.code == "latency" and each.values is not None:
            return number, each.value_of("location"), float(each.value_of("limit_ms"))
    return None, "", None


def _loss_seconds(reason: Reason | None, other: Alternative) -> float:
    """Return by how many seconds the run ends later if the step goes to another node.

    If the reason names that node, its figure is returned, so that both texts agree.
    """
    is_named = reason is not None and reason.code == "run-later"
    if reason is None or not is_named or reason.value_of("node") != other.node:
        return other.loss_seconds
    seconds = float(reason.value_of("seconds"))
    is_same = abs(seconds - other.loss_seconds) <= _ROUNDED_SECONDS
    return seconds if is_same else other.loss_seconds
