"""Why a pod does not go to its planned node, in one sentence for people."""

from kfp_placement_controller.extender.decisions import Decision, DecisionReason
from kfp_placement_controller.extender.knowledge import Knowledge
from kfp_placement_controller.extender.scheduling_request import SchedulingRequest
from kfp_placement_controller.observed.deviations import NODE_GONE, why_left_out


def why_deviating(known: Knowledge, pod: SchedulingRequest, decision: Decision) -> str:
    """Why the planned node is not the answer; "" where it is, or where nothing is planned."""
    planned, location = decision.planned, pod.observed.location
    if planned is None:
        return ""
    match decision.reason:
        case DecisionReason.LIMIT | DecisionReason.REFUSED:
            return f"its round trip to {location} is over the step's limit"
        case DecisionReason.VOLUME:
            return f"the step's volume is in use on {', '.join(decision.nodes)}"
        case DecisionReason.LATENCY:
            return f"other nodes are nearer to {location} now"
        case DecisionReason.NEXT_BEST:
            return _why_not_offered(known, pod, planned)
        case DecisionReason.PLAN | DecisionReason.NOTHING_KNOWN | DecisionReason.TAKEN:
            return ""


def _why_not_offered(known: Knowledge, pod: SchedulingRequest, name: str) -> str:
    """Why kube-scheduler left a node out, as far as we can see."""
    node = known.nodes.get(name)
    if node is None:
        return NODE_GONE
    used = known.used.get(name, {})
    objection = why_left_out(
        pod.observed.requests,
        node.allocatable,
        used,
        is_not_ready=node.not_ready,
        is_cordoned=node.cordoned,
    )
    return objection or "it does not take the pod now"
