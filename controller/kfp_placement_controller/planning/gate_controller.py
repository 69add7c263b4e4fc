"""Decisions about gates: gated pods, the queued steps of planned runs, and gates being opened."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from kfp_placement_controller.observed.gate_deadlines import (
    StartWindow,
    gate_ends_at,
    is_overdue,
)
from kfp_placement_controller.observed.latency_limits import hard_limit, limit_ms
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.planning.cluster_state import ClusterState, RoundTrips
from kfp_placement_controller.planning.deviations import DeviationWatch
from kfp_placement_controller.planning.gates import Cause, GatedPod, OpenGate, UnboundStep, releases
from kfp_placement_controller.runs.open_runs import PlannedRun
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.waiting import start_window
from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.lowering.branches import path_of
from kfp_placement_engine.lowering.pods import requests_of
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.planning.starts.expected_times import (
    ExpectedTimes,
    StepSpan,
    expected_times,
)
from kfp_placement_engine.planning.starts.node_queue import QueuedStep, RunningStep
from kfp_placement_kube.change import Change

FIRST_PLAN_SECONDS = 2.0
"""Age up to which a pod is kept though its run is not known, or has no plan yet: Argo makes the
first pod of a plain Workflow as soon as it begins. Kubernetes writes ages in whole seconds."""


@dataclass
class GateController:
    """Controller of the gates: decides which come off, and reports pods that deviate.

    Attributes:
        registry: all runs.
        cluster: cluster in which they run.
        retry_seconds: pause until a gate that is still on is opened again.
    """

    registry: RunRegistry
    cluster: ClusterState
    retry_seconds: float = 2.0
    _opened_at: dict[str, float] = field(default_factory=dict)
    _gated: dict[str, ObservedPod] = field(default_factory=dict)
    _windows: dict[str, StartWindow | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read no round trips before a pod asks for them."""
        self._round_trips = RoundTrips(self.cluster)
        self.deviations = DeviationWatch(self.registry, self.cluster)

    def pod_changed(self, change: Change[ObservedPod]) -> None:
        """Take in a change of a pod; one that is being deleted keeps its gate."""
        old, new = change.old, change.new
        if new is not None and PLAN_GATE in new.gates and not new.deleting:
            self._gated[new.uid] = new
            return
        for pod in (old, new):
            if pod is not None:
                self._gated.pop(pod.uid, None)
                self._opened_at.pop(pod.uid, None)

    def overdue(
        self, policy: PlacementPolicySpec, now: datetime, monotonic_seconds: float
    ) -> list[OpenGate]:
        """Return the gates past their deadline: every replica takes them off, whoever leads."""
        deadline = policy.gate_deadline_seconds
        due = [
            OpenGate(pod, Cause.OVERDUE)
            for pod in self._gated.values()
            if is_overdue(pod, now, deadline)
        ]
        return self._new(self._limited(due, policy), monotonic_seconds)

    def due(
        self, policy: PlacementPolicySpec, now: datetime, monotonic_seconds: float
    ) -> list[OpenGate]:
        """Return the gates that come off now; while the policy is paused, all without limits."""
        if not self._gated:
            return []
        if policy.paused:
            paused = (OpenGate(pod, Cause.PAUSED) for pod in self._gated.values())
            return self._new(paused, monotonic_seconds)
        runs = list(self.registry.planned())
        used = self.cluster.load.by_node()
        nodes = {name: self.cluster.with_load(name, used) for name in self.cluster.nodes}
        steps, running = _steps_by_progress(runs, now)
        windows = {step.key: step.window for step in steps if step.window is not None}
        gated = [self._identified(pod, windows, now) for pod in self._gated.values()]
        self._windows = {entry.pod.uid: entry.window for entry in gated}
        due = releases(gated, steps, nodes, now, policy.gate_deadline_seconds, running)
        return self._new(self._limited(due, policy), monotonic_seconds)

    def next_at(self, policy: PlacementPolicySpec, now: datetime) -> datetime | None:
        """Return when to check gates next; None = no gates.

        It is the earliest deadline, or in 100 ms if that has passed.
        """
        seconds, windows = policy.gate_deadline_seconds, self._windows
        ends = [gate_ends_at(pod, seconds, windows.get(uid)) for uid, pod in self._gated.items()]
        deadline = min((end for end in ends if end is not None), default=None)
        return None if deadline is None else max(deadline, now + timedelta(milliseconds=100))

    def _limited(
        self, candidates: Iterable[OpenGate], policy: PlacementPolicySpec
    ) -> Iterator[OpenGate]:
        """Yield the same gates, with the nodes that hard latency limits leave.

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

    def _new(self, candidates: Iterable[OpenGate], monotonic_seconds: float) -> list[OpenGate]:
        """Return the gates that are not being opened already, and remember that they are now."""
        due = [
            release
            for release in candidates
            if not lasts(
                self.retry_seconds, self._opened_at.get(release.pod.uid), monotonic_seconds
            )
        ]
        for release in due:
            self._opened_at[release.pod.uid] = monotonic_seconds
        self.deviations.released(due)
        return due

    def _identified(
        self, pod: ObservedPod, windows: Mapping[tuple[RunKey, str], StartWindow], now: datetime
    ) -> GatedPod:
        run = self.registry.run_of(pod)
        is_new = not is_overdue(pod, now, FIRST_PLAN_SECONDS)
        if run is None or not run.is_open:
            # A new leader may find many runs, which it reads in turn.
            return GatedPod(pod, awaits_plan=is_new if run is None else run.is_unread)
        step, is_new = run.planned_step(pod), is_new and run.plan is None
        return GatedPod(pod, run.key, step, windows.get((run.key, step)), is_new)


def _steps_by_progress(
    runs: Iterable[PlannedRun], now: datetime
) -> tuple[list[UnboundStep], dict[str, list[RunningStep]]]:
    """Return the steps that are not bound yet and can be, and by node those that take room now."""
    waiting: list[UnboundStep] = []
    running: dict[str, list[RunningStep]] = {}
    for run in runs:
        times, order = run.planned_times(), run.reading.order
        # Nothing is expected of a run whose steps have no known order.
        expected = (
            ExpectedTimes() if order is None else expected_times(order, times, now.timestamp())
        )
        waiting += _waiting_steps(run, times, expected)
        for node, step in _running_steps(run, times):
            running.setdefault(node, []).append(step)
    return waiting, running


def _waiting_steps(
    planned: PlannedRun, times: Mapping[str, StepSpan], expected: ExpectedTimes
) -> Iterable[UnboundStep]:
    run, graph, plan = planned.tracked, planned.graph, planned.plan
    held_back = _held_back(planned)
    for step in graph.steps:
        name, node = step.name, plan.node_of(step.name)
        planned_times = times.get(name)
        if planned_times is None or planned_times.runs or node is None or run.awaits_pod(name):
            continue
        if name in held_back:
            # Its pod is made only once others have ended: they must not wait for it.
            continue
        pod = run.pods.executor(name)
        queued = QueuedStep(
            requests_of(graph, step),
            planned_times.start_seconds,
            planned_times.seconds,
            expected_start_seconds=expected.starts.get(name, planned_times.start_seconds),
            latest_start_seconds=expected.latest_starts.get(name, planned_times.start_seconds),
            is_allowed=pod is not None and not pod.ended and PLAN_GATE not in pod.pod.gates,
            path=tuple(
                branch._replace(choice=f"{run.key}: {branch.choice}" if branch.choice else "")
                for branch in path_of(step)
            ),
        )
        window = start_window(step, run.outcome.steps.get(name), pod)
        if window is not None:
            window = replace(window, pull_seconds=plan.pull_seconds.get(name, 0.0))
        yield UnboundStep(run.key, name, node, queued, window)


def _held_back(planned: PlannedRun) -> set[str]:
    """Return the steps whose pods cannot be made yet, since a limit has no place for them."""
    run, limits = planned.tracked, planned.graph.limits
    if not limits:
        return set()
    ended = {name for name, status in run.statuses.items() if status.ended}
    begun = {
        name
        for name, status in run.statuses.items()
        if status.started_at is not None or run.pods.executor(name) is not None
    }
    return {name for limit in limits for name in limit.held_back(begun | ended, ended)}


def _running_steps(
    planned: PlannedRun, times: Mapping[str, StepSpan]
) -> Iterable[tuple[str, RunningStep]]:
    """Yield the steps of a run that take room now, each with its node."""
    run, graph = planned.tracked, planned.graph
    for step in graph.steps:
        planned_times, status = times.get(step.name), run.statuses.get(step.name)
        if planned_times is None or status is None:
            continue
        if planned_times.runs and status.bound:
            requests = requests_of(graph, step)
            start, end = planned_times.start_seconds, planned_times.end_seconds
            yield status.node, RunningStep(requests, start, end)
