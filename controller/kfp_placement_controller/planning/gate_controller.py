"""Gated pods and the queued steps of planned runs; remembers which gates are being opened."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from kfp_placement_controller.observed.latency_limits import hard_limit, limit_ms
from kfp_placement_controller.observed.pods import ObservedPod, is_overdue
from kfp_placement_controller.planning.cluster_state import ClusterState, RoundTrips
from kfp_placement_controller.planning.current_plan import CurrentPlan
from kfp_placement_controller.planning.gates import (
    Cause,
    GatedPod,
    Occupied,
    QueuedStep,
    Release,
    releases,
)
from kfp_placement_controller.planning.run_registry import RunRegistry
from kfp_placement_controller.planning.run_variants import PlannedRun
from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.lowering.pods import requests_of


@dataclass
class GateController:
    """Decides which gates come off.

    Attributes:
        registry: the runs.
        cluster: where they run.
        retry_seconds: after this an opening that was not seen to work is tried again.
    """

    registry: RunRegistry
    cluster: ClusterState
    retry_seconds: float = 2.0
    _opened_at: dict[str, datetime] = field(default_factory=dict)
    _gated: dict[str, ObservedPod] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read no round trips before a pod asks for them."""
        self._round_trips = RoundTrips(self.cluster)

    def pod_changed(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        """A pod is new, has changed or is gone."""
        if new is not None and PLAN_GATE in new.gates:
            self._gated[new.uid] = new
            return
        for pod in (old, new):
            if pod is not None:
                self._gated.pop(pod.uid, None)
                self._opened_at.pop(pod.uid, None)

    def overdue(self, policy: PlacementPolicySpec, now: datetime) -> list[Release]:
        """Gates past their deadline: every replica takes them off, whoever leads."""
        deadline = policy.gate_deadline_seconds
        late = [pod for pod in self._gated.values() if is_overdue(pod, now, deadline)]
        due = [Release(pod, Cause.OVERDUE) for pod in late]
        return self._new(self._limited(due, policy), now)

    def due(self, policy: PlacementPolicySpec, now: datetime) -> list[Release]:
        """Gates that come off now; while the policy is paused all of them, and no limit applies."""
        if not self._gated:
            return []
        if policy.paused:
            return self._new((Release(pod, Cause.PAUSED) for pod in self._gated.values()), now)
        runs = list(self.registry.planned())
        used = self.cluster.load.by_node()
        nodes = {name: self.cluster.with_load(name, used) for name in self.cluster.nodes}
        gated = [self._identified(pod) for pod in self._gated.values()]
        queued_steps = [queued for run in runs for queued in _queued_steps(run)]
        occupied = [each for run in runs for each in _occupied(run)]
        due = releases(gated, queued_steps, nodes, now, policy.gate_deadline_seconds, occupied)
        return self._new(self._limited(due, policy), now)

    def next_deadline(self, policy: PlacementPolicySpec) -> datetime | None:
        """When the next gate is overdue."""
        created = [pod.created_at for pod in self._gated.values() if pod.created_at is not None]
        if not created:
            return None
        return min(created) + timedelta(seconds=policy.gate_deadline_seconds)

    def _limited(
        self, candidates: Iterable[Release], policy: PlacementPolicySpec
    ) -> Iterator[Release]:
        """The same, with the nodes that hard latency limits leave.

        A pod that no node is left for keeps its gate until its deadline: a node may come yet, and
        what a pod requires cannot be changed later.
        """
        for release in candidates:
            limit = None
            if limit_ms(release.pod, policy) is not None:
                trips = self._round_trips.to(release.pod.location)
                labels = self._round_trips.labels
                limit = hard_limit(release.pod, policy, trips, labels, release.node)
            if limit is None:
                yield release
            elif limit.hosts or release.cause is Cause.OVERDUE:
                yield replace(release, hosts=limit.required)

    def _new(self, candidates: Iterable[Release], now: datetime) -> list[Release]:
        """Those that are not being opened already."""
        retry = timedelta(seconds=self.retry_seconds)
        due = [
            release
            for release in candidates
            if (opened_at := self._opened_at.get(release.pod.uid)) is None
            or now - opened_at >= retry
        ]
        for release in due:
            self._opened_at[release.pod.uid] = now
        return due

    def _identified(self, pod: ObservedPod) -> GatedPod:
        run = self.registry.run_of(pod)
        if run is None or run.open is None:
            return GatedPod(pod)
        return GatedPod(pod, run.key, run.planned_step(pod))


def _queued_steps(planned: PlannedRun) -> Iterable[QueuedStep]:
    """Steps of a run that are not bound yet and can be, in seconds of one clock for all runs."""
    run, graph, plan = planned.run, planned.graph, planned.plan
    submitted = run.observed.submitted_at.timestamp()
    for step in graph.steps:
        status = run.statuses.get(step.name)
        node, start = plan.node_of(step.name), plan.start_of(step.name)
        begun = status is not None and (status.ended or status.started_at is not None)
        if begun or node is None or start is None or run.awaits_pod(step.name):
            continue
        pod = run.pods.executor(step.name)
        yield QueuedStep(
            run.key,
            step.name,
            node,
            submitted + start,
            requests_of(graph, step),
            seconds=_planned_seconds(plan, step.name),
            goes=pod is not None and not pod.ended and PLAN_GATE not in pod.pod.gates,
        )


def _occupied(planned: PlannedRun) -> Iterable[Occupied]:
    """Steps of a run that take room now, with their ends as the plan expects them."""
    run, graph, plan = planned.run, planned.graph, planned.plan
    for step in graph.steps:
        status = run.statuses.get(step.name)
        if status is None or not status.bound or status.started_at is None:
            continue
        started, finish = status.started_at.timestamp(), plan.finish_of(step.name)
        if finish is not None and status.started_at < plan.planned_at:
            end = run.observed.submitted_at.timestamp() + finish
        else:
            end = started + _planned_seconds(plan, step.name)
        yield Occupied(status.node, end, requests_of(graph, step))


def _planned_seconds(plan: CurrentPlan, step: str) -> float:
    start, finish = plan.start_of(step), plan.finish_of(step)
    return math.inf if start is None or finish is None else finish - start
