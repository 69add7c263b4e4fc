"""Gates that come off, and pods that were then bound elsewhere than planned: as actions.

A gate that comes off by our decision is remembered until its pod is bound, to say why it is there.
"""

from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.planning.actions import OpenGate, ReportDeviation
from kfp_placement_controller.planning.cluster_state import ClusterState
from kfp_placement_controller.planning.deviations import DeviationWatch
from kfp_placement_controller.planning.gate_controller import GateController
from kfp_placement_controller.planning.gates import Release
from kfp_placement_controller.planning.run_registry import RunRegistry
from kfp_placement_controller.planning.tracked_run import TrackedRun
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_kube.change import Change


@dataclass
class GateDecisions:
    """Follows pods from their gates to their nodes.

    Attributes:
        registry: the runs.
        cluster: where they run.
        retry_seconds: after this an opening that was not seen to work is tried again.
    """

    registry: RunRegistry
    cluster: ClusterState
    retry_seconds: float
    _gates: GateController = field(init=False)
    _deviations: DeviationWatch = field(init=False)

    def __post_init__(self) -> None:
        """Know no pod yet."""
        self._gates = GateController(self.registry, self.cluster, self.retry_seconds)
        self._deviations = DeviationWatch(self.registry, self.cluster)

    def pod_changed(
        self,
        change: Change[ObservedPod],
        policy: PlacementPolicySpec,
        now: datetime,
        *,
        leads: bool,
    ) -> None:
        """A pod is new, has changed or is gone.

        Args:
            change: of the pod.
            policy: in force.
            now: the time.
            leads: whether plans are ours to explain.
        """
        self._gates.pod_changed(change.old, change.new)
        self._deviations.pod_changed(change.old, change.new, policy, now, leads=leads)

    def adopted(self, run: TrackedRun) -> None:
        """An earlier planner's plan of a run is ours to explain from now on."""
        self._deviations.evaluate_bound(run)

    def overdue(self, policy: PlacementPolicySpec, now: datetime) -> list[OpenGate]:
        """Gates past their deadline come off, whoever leads."""
        return self._opening(self._gates.overdue(policy, now))

    def due(self, policy: PlacementPolicySpec, now: datetime) -> list[OpenGate | ReportDeviation]:
        """Gates that come off now, and what has been noticed of pods; of the planner that leads."""
        opening = self._opening(self._gates.due(policy, now))
        return [*opening, *map(ReportDeviation, self._deviations.noticed())]

    def next_deadline(self, policy: PlacementPolicySpec) -> datetime | None:
        """When the next gate is overdue."""
        return self._gates.next_deadline(policy)

    def _opening(self, releases: list[Release]) -> list[OpenGate]:
        self._deviations.released(releases)
        return [OpenGate(release) for release in releases]
