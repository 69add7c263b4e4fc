"""One run: its object, its pods, what became of its steps, and the plan in force."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.planning.attach_failures import AttachFailures
from kfp_placement_controller.planning.current_plan import CurrentPlan
from kfp_placement_controller.planning.holds import HoldWatch
from kfp_placement_controller.planning.parameters import PlanningParams
from kfp_placement_controller.planning.run_pods import RunPods
from kfp_placement_controller.planning.run_reading import new_widths, read_graph
from kfp_placement_controller.planning.step_states import (
    RunSituation,
    StepStatus,
    group_progress,
    step_progress,
    step_statuses,
)
from kfp_placement_controller.planning.triggers import DriftWatch, Trigger
from kfp_placement_controller.sources.source import ObservedRun, StepIndex
from kfp_placement_engine.contract.policy import PlacementPolicySpec, planning_policy
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.lowering.pods import requests_of
from kfp_placement_engine.model.active_runs import ActiveRun, ReservedRoom, ReservedRun
from kfp_placement_engine.model.assumptions import Assumptions
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.policy_options import with_type_defaults
from kfp_placement_engine.readers.run_outcomes import PodRole, RunOutcome


@dataclass
class TrackedRun:
    """A run that carries our mark.

    Attributes:
        observed: its object, as last seen.
        pods: of the run.
        attach_failures: volumes that could not be attached, of all pods.
        graph: what is planned; None = it cannot be read.
        refused: why it is not planned, or "".
        statuses: what became of its steps, as of the last look.
        plan: in force, or None.
        first_makespan_seconds: of its first plan.
        pending: why it is to be planned again.
        crashes: searches of it that ended a worker.
        changed: something has been observed since the last look.
        plan_is_whole: the plan has a row for every step; loops may have become wider.
        hold: whether it is held back.
    """

    observed: ObservedRun
    pods: RunPods = field(default_factory=RunPods)
    attach_failures: AttachFailures = field(default_factory=AttachFailures)
    graph: RunGraph | None = None
    refused: str = ""
    statuses: Mapping[str, StepStatus] = field(default_factory=dict)
    plan: CurrentPlan | None = None
    first_makespan_seconds: float | None = None
    pending: set[Trigger] = field(default_factory=set)
    crashes: int = 0
    changed: bool = True
    plan_is_whole: bool = False
    hold: HoldWatch = field(default_factory=HoldWatch)
    _goes_on: bool = False
    """It is no longer held back, and its plan is of a time before."""
    _content_changed: bool = True
    _index: StepIndex | None = None
    _outcome: RunOutcome = field(default_factory=RunOutcome)
    _widths: Mapping[str, int] = field(default_factory=dict)
    _drift: DriftWatch = field(default_factory=DriftWatch)

    @property
    def key(self) -> RunKey:
        """Namespace and name."""
        return self.observed.key

    @property
    def active(self) -> bool:
        """Whether there is something left to plan."""
        return self.graph is not None and not self.refused and not self.observed.ended

    @property
    def held(self) -> bool:
        """Whether it is held back, as of the last look."""
        return bool(self.hold.why)

    @property
    def needs_plan(self) -> bool:
        """Whether it has no plan that can be gone by."""
        return not self.plan_is_whole or self._goes_on

    @property
    def weight(self) -> float:
        """Of its completion among other runs: by the highest priority of its steps."""
        if self.graph is None:
            return 1.0
        return 1.0 + max((step.priority for step in self.graph.steps), default=0.0)

    def read(self, policy: PlacementPolicySpec) -> bool:
        """Read the graph; returns whether the run carries our mark on any step."""
        try:
            self._use(self._graph(policy))
        except InputError as error:
            self.refused = str(error)
            return True
        assert self.graph is not None
        return any(step.scheduler for step in self.graph.steps)

    def observe(self, observed: ObservedRun) -> None:
        """Its object has changed."""
        self._content_changed |= observed.content != self.observed.content
        self.observed = observed
        self.changed = True

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None, now: datetime) -> None:
        """A pod of the run is new, has changed or is gone."""
        if new is not None:
            self.pods.observe(new, now)
        elif old is not None:
            self.pods.forget(old)
        self.changed = True

    def look(
        self, policy: PlacementPolicySpec, now: datetime, params: PlanningParams
    ) -> set[Trigger]:
        """Work out what became of the steps; returns why the run is to be planned again."""
        if self.graph is None or self._index is None:
            self.changed = False
            return set()
        has_pods = any(True for _ in self.pods)
        self._goes_on |= self.hold.look(
            self.observed.state, now, has_pods=has_pods, begin_seconds=params.begin_seconds
        )
        found = self._read_outcome(policy) if self._content_changed else set()
        self.changed = self._content_changed = False
        self.statuses = step_statuses(self.graph, self.pods, self._situation(policy), now)
        if self.plan is not None and self.active:
            attempts = {name: self.pods.attempts(name) for name in self.statuses}
            found |= self._drift.look(
                self.plan, self.statuses, attempts, self.observed.submitted_at, now, params
            )
        return found if self.active else set()

    def put_into_force(self, plan: CurrentPlan) -> None:
        """This is the plan from now on; of the first one the makespan is kept."""
        self.plan, self._goes_on = plan, False
        assert self.graph is not None
        self.plan_is_whole = all(step.name in plan.rows for step in self.graph.steps)
        if self.first_makespan_seconds is None:
            self.first_makespan_seconds = plan.makespan_seconds

    def adopt(self, plan: CurrentPlan, first_makespan_seconds: float | None) -> None:
        """Go on with what an earlier planner has planned; look before, so that states are known."""
        self.plan, self.first_makespan_seconds = plan, first_makespan_seconds
        self.plan_is_whole = all(
            name in plan.rows or status.ended for name, status in self.statuses.items()
        )

    def planned_step(self, pod: ObservedPod) -> str:
        """The step that a pod executes, if the plan in force has a node for it, else ""."""
        if self.plan is None or self.pods.index is None:
            return ""
        identity = self.pods.index.of_pod(pod)
        if identity is None or identity.role is PodRole.DRIVER:
            return ""
        return identity.name if self.plan.node_of(identity.name) else ""

    def waits_on(self, nodes: Sequence[str]) -> bool:
        """Whether a step that has not started is planned on one of these nodes."""
        if self.plan is None:
            return False
        wanted = set(nodes)
        return any(
            self.plan.node_of(name) in wanted
            for name, status in self.statuses.items()
            if status.started_at is None and not status.ended
        )

    def has_unplaced(self) -> bool:
        """Whether a step that has not started is planned nowhere."""
        return self.plan is not None and any(
            self.plan.node_of(name) is None
            for name, status in self.statuses.items()
            if status.started_at is None and not status.ended
        )

    def unstarted(self) -> bool:
        """Whether any step has not started."""
        return any(each.started_at is None and not each.ended for each in self.statuses.values())

    def awaits_pod(self, step: str) -> bool:
        """Whether a step cannot start, as the run is held back and no pod of it is there."""
        if not self.held:
            return False
        pod = self.pods.executor(step)
        return pod is None or pod.ended

    def first_start(self) -> float | None:
        """Planned start of the next step, since the submission; None = none is left."""
        if self.plan is None:
            return None
        starts = [
            start
            for name, status in self.statuses.items()
            if status.started_at is None
            and not status.ended
            and (start := self.plan.start_of(name)) is not None
        ]
        return min(starts, default=None)

    def active_run(self, now: datetime) -> ActiveRun:
        """The run as the engine plans it from now on."""
        assert self.graph is not None
        return ActiveRun(
            key=key_text(self.key),
            graph=self.graph,
            release_seconds=-(now - self.observed.submitted_at).total_seconds(),
            weight=self.weight,
            progress={name: step_progress(each, now) for name, each in self.statuses.items()},
            group_progress=group_progress(self.graph, self.pods, now),
        )

    def reserved(
        self, now: datetime, overrun_share: float = Assumptions().overrun_share
    ) -> ReservedRun:
        """The room that the plan in force takes from now on; none for what awaits its pod.

        Args:
            now: the time.
            overrun_share: of its planned time that an overdue step is taken to need still.
        """
        assert self.graph is not None
        rooms: list[ReservedRoom] = []
        elapsed = (now - self.observed.submitted_at).total_seconds()
        for step in self.graph.steps:
            status = self.statuses.get(step.name)
            room = None if status is None else self._room(step.name, status, elapsed, overrun_share)
            if room is not None:
                node, start, end = room
                rooms.append(ReservedRoom(node, start, end, requests_of(self.graph, step)))
        return ReservedRun(key_text(self.key), tuple(rooms), self.weight)

    def _room(
        self, name: str, status: StepStatus, elapsed: float, overrun_share: float
    ) -> tuple[str, float, float] | None:
        """Node, start and end from now of a step that has not ended."""
        plan = self.plan
        if plan is None or status.ended or self.awaits_pod(name):
            return None
        start, finish = plan.start_of(name), plan.finish_of(name)
        node = status.node or plan.node_of(name)
        if not node or start is None or finish is None:
            return None
        seconds = finish - start
        if status.started_at is None:
            begin = max(0.0, start - elapsed)
            return node, begin, begin + seconds
        running = elapsed - (status.started_at - self.observed.submitted_at).total_seconds()
        return node, 0.0, max(seconds - running, overrun_share * seconds)

    def _graph(self, policy: PlacementPolicySpec) -> RunGraph:
        width = policy.defaults.loop_width or Assumptions().loop_width
        graph = read_graph(self.observed, width, self._widths)
        return with_type_defaults(graph, planning_policy(policy))

    def _use(self, graph: RunGraph) -> None:
        self.graph = graph
        self.plan_is_whole = self.plan is not None and all(
            step.name in self.plan.rows for step in graph.steps
        )
        self._content_changed = True
        self._index = self.observed.content.index(graph)
        self.pods.use_index(self._index)

    def _read_outcome(self, policy: PlacementPolicySpec) -> set[Trigger]:
        """Read what became of the steps, and the graph again where a loop turns out otherwise."""
        found: set[Trigger] = set()
        for _ in range(_MAX_READINGS):
            assert self._index is not None
            assert self.graph is not None
            self._outcome = self.observed.content.outcome(self.graph, self._index)
            widths = new_widths(self.graph, self._widths, self._outcome)
            if widths is None:
                break
            self._widths = widths
            found.add(Trigger.WIDTH)
            try:
                self._use(self._graph(policy))
            except InputError as error:
                self.refused = str(error)
                break
        return found

    def _situation(self, policy: PlacementPolicySpec) -> RunSituation:
        return RunSituation(
            outcome=self._outcome,
            state=self.observed.state,
            gate_deadline_seconds=policy.gate_deadline_seconds,
            attach_failures=self.attach_failures,
        )


_MAX_READINGS = 4
"""Loops within loops: each reading shows the next level."""


def key_text(key: RunKey) -> str:
    """The key as the engine knows it."""
    return f"{key[0]}/{key[1]}"
