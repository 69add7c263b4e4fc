"""Watches of `extend`: each kind, the part of it that is kept, and the receiver of changes."""

from dataclasses import dataclass

from kfp_placement_controller.actuators.deviations import report_deviation
from kfp_placement_controller.actuators.guard import Guard
from kfp_placement_controller.actuators.policies import show_policy
from kfp_placement_controller.extender.contention import count_rejection
from kfp_placement_controller.extender.deviations import DeviationNotes
from kfp_placement_controller.extender.knowledge import read_plan
from kfp_placement_controller.extender.knowledge_store import KnowledgeStore, read_bare_node
from kfp_placement_controller.kinds import LOCATIONS, PLACEMENTS, POLICIES
from kfp_placement_controller.observed.claims import observe_claim
from kfp_placement_controller.observed.liveness import observe_held_lease
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.settings import ExtendSettings
from kfp_placement_controller.sources.source import RunSources
from kfp_placement_controller.watches.watch_group import WatchGroup
from kfp_placement_engine.contract.custom_resources import (
    Location,
    PlacementPolicy,
    read_resource,
    read_stored_policy,
)
from kfp_placement_kube.change import Change
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.events import EventRecorder
from kfp_placement_kube.kinds import CLAIMS, LEASES, NODES, PODS


@dataclass
class ExtendObserver:
    """Receiver of changes, which passes each to the parts of `extend` that it concerns.

    Each watch calls it in a thread of its own.

    Attributes:
        store: store of the extender, which keeps the objects.
        notes: decisions about pods, until they are bound.
        guard: guard over our scheduler and the planner.
        events: recorder of events about pods.
    """

    store: KnowledgeStore
    notes: DeviationNotes
    guard: Guard
    events: EventRecorder

    def watches(
        self, client: KubeClient, sources: RunSources, settings: ExtendSettings
    ) -> WatchGroup:
        """Return the watches of the process; none has started.

        Args:
            client: the API server.
            sources: sources of runs, which read the pods.
            settings: settings of the process.
        """
        store, watches = self.store, WatchGroup(client)
        watches.add(NODES, read_bare_node, store.node_changed)
        watches.add(
            LOCATIONS, lambda raw: read_resource(Location, raw).stated(), store.location_changed
        )
        watches.add(POLICIES, lambda raw: read_stored_policy(raw).policy, self._policy_changed)
        watches.add(CLAIMS, observe_claim, store.claim_changed)
        watches.add(PLACEMENTS, read_plan, store.plan_changed)
        watches.add(PODS, sources.observe_pod, self._pod_changed)
        leases = self.guard.lease_changed
        watches.add(LEASES, observe_held_lease, leases, namespace=settings.own_namespace)
        return watches

    def _policy_changed(self, change: Change[PlacementPolicy]) -> None:
        self.store.policy_changed(change)
        show_policy(self.store.knowledge.policy)

    def _pod_changed(self, change: Change[ObservedPod]) -> None:
        self.store.pod_changed(change)
        deviation = self.notes.pod_changed(change)
        if deviation is not None:
            report_deviation(self.events, deviation)
        self.guard.pod_changed(change)
        count_rejection(change, self.store.knowledge.rules.scheduler_names)
