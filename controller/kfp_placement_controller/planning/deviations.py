"""Deviations: pods that a scheduler other than ours has not put on their planned nodes, and why.

Under gates the stock scheduler binds: it weighs the node that we prefer against its own scores, and
many gates come off without a preference. Pods of our own scheduler are reported by the extender.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.observed.deviations import Deviation, why_left_out
from kfp_placement_controller.observed.gate_deadlines import is_overdue
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.planning.cluster_state import ClusterState
from kfp_placement_controller.planning.gates import Cause, OpenGate
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_kube.change import Change

_WITHOUT_NODE = {
    Cause.OVERDUE: "the deadline of the pod's gate had passed",
    Cause.PAUSED: "placement was paused",
    Cause.NOT_PLANNED: "no plan had a node for the step when the pod's gate came off",
    Cause.NODE_GONE: "the node planned until then had gone",
    Cause.BY_OTHERS: "somebody other than this planner took the pod's gate off",
}
"""Texts about gates that came off without a node to prefer, by cause."""


@dataclass
class DeviationWatch:
    """Memory of how gates came off, until their pods are bound.

    Attributes:
        registry: all runs.
        cluster: cluster in which they run.
    """

    registry: RunRegistry
    cluster: ClusterState
    _gates: dict[str, OpenGate | None] = field(default_factory=dict)
    _noticed: list[Deviation] = field(default_factory=list)

    def released(self, releases: Iterable[OpenGate]) -> None:
        """Remember the gates that this planner removes."""
        for release in releases:
            self._gates[release.pod.uid] = release

    def pod_changed(
        self,
        change: Change[ObservedPod],
        policy: PlacementPolicySpec,
        now: datetime,
        *,
        leads: bool,
    ) -> None:
        """Take in that a pod is new, has changed or is gone.

        Args:
            change: change of the pod.
            policy: policy in force.
            now: the time.
            leads: whether this planner leads, and so reports deviations; a planner that follows
                only remembers gates.
        """
        old, new = change.old, change.new
        if old is not None and (new is None or new.uid != old.uid):
            self._gates.pop(old.uid, None)
            old = None
        if new is None:
            return
        if PLAN_GATE in new.gates:
            self._gates.setdefault(new.uid, None)
            return
        if new.uid in self._gates and self._gates[new.uid] is None:
            self._gates[new.uid] = OpenGate(new, _cause_of_others(new, policy, now))
        if new.node_name:
            release = self._gates.pop(new.uid, None)
            planned = self._missed(new) if leads and (old is None or not old.node_name) else None
            if planned is not None:
                reason, why = self._why(new, planned, release)
                self._noticed.append(Deviation(new, planned, reason, why))

    def evaluate_bound(self, run: TrackedRun) -> None:
        """Report the deviations among the pods of a run that were bound before this planner led."""
        for pod in (run_pod.pod for run_pod in run.pods):
            planned = self._missed(pod) if pod.holds_room else None
            if planned is not None:
                why = f"{pod.scheduler_name} placed it before this planner led"
                self._noticed.append(Deviation(pod, planned, "not-seen", why))

    def noticed(self) -> list[Deviation]:
        """Return the deviations since the last call."""
        noticed, self._noticed = self._noticed, []
        return noticed

    def _missed(self, pod: ObservedPod) -> str | None:
        """Return the planned node of a pod that is bound to another; None = nothing to report."""
        if self.registry.mark_of(pod) in ("", pod.scheduler_name):
            return None
        run = self.registry.run_of(pod)
        if run is None or run.plan is None:
            return None
        planned = run.plan.node_of(run.planned_step(pod))
        return None if planned == pod.node_name else planned

    def _why(self, pod: ObservedPod, planned: str, release: OpenGate | None) -> tuple[str, str]:
        """Return why a pod is not on its planned node: a reason in one word, and an explanation."""
        objection = self._objection(pod, planned)
        if release is None:
            why = f"{pod.scheduler_name} placed it, and this planner saw no gate on the pod"
            return "no-gate", _joined(why, objection or "it had room")
        if release.cause is not Cause.TURN:
            return str(release.cause), _joined(_WITHOUT_NODE[release.cause], objection)
        if release.node != planned:
            return "replanned", f"the pod's gate came off for {release.node}, then the plan changed"
        if objection:
            return "left-out", objection
        chose = f"{pod.scheduler_name} preferred another by its own rules and scores"
        return "scores", f"it had room; {chose}"

    def _objection(self, pod: ObservedPod, name: str) -> str:
        """Return why a node cannot take one more pod; "" = no reason is known."""
        is_known = name in self.cluster.nodes
        load = self.cluster.load.by_node()
        return why_left_out(pod.requests, self.cluster.with_load(name, load) if is_known else None)


def _cause_of_others(pod: ObservedPod, policy: PlacementPolicySpec, now: datetime) -> Cause:
    """Return the cause why others have taken a gate off: by the planner's own rules, or by none."""
    if policy.paused:
        return Cause.PAUSED
    overdue = is_overdue(pod, now, policy.gate_deadline_seconds)
    return Cause.OVERDUE if overdue else Cause.BY_OTHERS


def _joined(why: str, objection: str) -> str:
    return f"{why}; {objection}" if objection else why
