"""Reactions of plans and RunRequests to changes of the cluster, the policy and joined runs."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.observed.claims import ObservedClaim, ObservedVolume
from kfp_placement_controller.observed.namespaces import ObservedNamespace
from kfp_placement_controller.planning.cluster_state import ClusterState, matters, takes_less
from kfp_placement_controller.planning.needs.run_requests import RunRequests
from kfp_placement_controller.planning.planner import Planner
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.sources.source import ObservedRun
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.keys import ClaimKey
from kfp_placement_engine.model.node_rules.round_trips import StatedPlace
from kfp_placement_kube.change import Change


@dataclass
class Reactions:
    """Reactions to changes: they update the state of the cluster, and trigger new plans.

    Attributes:
        registry: all runs.
        cluster: state of the cluster.
        planner: planner of the runs.
        requests: needs of runs, which depend on the cluster as well.
    """

    registry: RunRegistry
    cluster: ClusterState
    planner: Planner
    requests: RunRequests
    _claims_of: defaultdict[str, set[ClaimKey]] = field(default_factory=lambda: defaultdict(set))
    """Claims by the name of the volume that they name, as many volumes are seen at the start."""

    def node_changed(self, change: Change[Node]) -> None:
        """Take in that a node is new, has changed or is gone."""
        name = change.key[1]
        change.apply_to(self.cluster.nodes, name)
        if not matters(change.old, change.new):
            return
        self.requests.conditions_changed()
        # A change may be both: with another label, some steps no longer fit, and others do now.
        is_less = takes_less(change.old, change.new)
        is_more = not is_less or takes_less(change.new, change.old)
        for planned in self.registry.planned():
            if (is_less and planned.waits_on(name)) or (is_more and planned.waits_on(None)):
                self.planner.trigger(planned.tracked)
        if is_more:
            self.planner.may_gain()

    def claim_changed(self, change: Change[ObservedClaim]) -> None:
        """Take in that a claim is new, has changed or is gone."""
        key = ClaimKey(*change.key)
        change.apply_to(self.cluster.claims, key)
        if change.old is not None:
            self._claims_of[change.old.volume_name].discard(key)
        if change.new is not None:
            self._claims_of[change.new.volume_name].add(key)
        if change.old != change.new:
            self._plan_users(key)

    def volume_changed(self, change: Change[ObservedVolume]) -> None:
        """Take in that a volume is new, has changed or is gone; its claim may have come before."""
        change.apply_to(self.cluster.volumes, change.key[1])
        if change.old != change.new:
            for key in self._claims_of[change.key[1]]:
                self._plan_users(key)

    def location_changed(self, change: Change[StatedPlace]) -> None:
        """Take in that a Location is new, has changed or is gone."""
        change.apply_to(self.cluster.locations, change.key[1])
        self._replan_all()
        self.requests.conditions_changed()

    def namespace_changed(self, change: Change[ObservedNamespace]) -> None:
        """Take in that a namespace has changed; whether it takes part counts for its next runs."""
        self.registry.namespaces.changed(change)
        if change.old != change.new:
            self.requests.conditions_changed()

    def policy_changed(self, before: PlacementPolicySpec, after: PlacementPolicySpec) -> None:
        """Take in that another policy is in force."""
        if (before.defaults, before.history) != (after.defaults, after.history):
            for active in self.registry.active():
                active.tracked.stale = True
                active.tracked.promises.tried_at = None
        if before != after:
            self._replan_all()
            self.requests.conditions_changed()

    def run_joined(self, observed: ObservedRun, now: datetime) -> None:
        """Take in a run with another package or other templates, or why it has no package."""
        run = self.registry.runs.get(observed.key)
        if run is None and observed.is_planned:
            # No step of it was marked, without what has come now.
            self.registry.run_changed(Change(observed.key, None, observed), now)
        elif run is not None and run.observed.uid == observed.uid:
            has_other_content = run.observed.content != observed.content
            run.observe(observed)
            self.registry.unsettled.add(run)
            if has_other_content:
                run.stale = True
                self.planner.trigger(run)
        self.requests.package_changed(observed)

    def _plan_users(self, claim: ClaimKey) -> None:
        """Plan the runs again that mount a claim; plans with it stay while it does not exist."""
        self.requests.claim_changed(claim)
        for active in self.registry.active() if claim in self.cluster.claims else ():
            names = {each.name for each in active.graph.claims}
            if active.key.namespace == claim.namespace and claim.name in names:
                self.planner.trigger(active.tracked)

    def _replan_all(self) -> None:
        """Trigger new plans of all runs that have a step left to start."""
        for planned in self.registry.planned():
            if planned.tracked.unstarted():
                self.planner.trigger(planned.tracked)
