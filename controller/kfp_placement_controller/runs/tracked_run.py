"""State of one run: its object, its pods, the statuses of its steps, and its plan."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from kfp_placement_controller.histories.known_pasts import KnownPast
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.runs.attach_failures import AttachFailures
from kfp_placement_controller.runs.current_plan import CurrentPlan, as_placed
from kfp_placement_controller.runs.drift import DriftWatch
from kfp_placement_controller.runs.planner_parameters import PlanningParams
from kfp_placement_controller.runs.run_pods import RunPods
from kfp_placement_controller.runs.run_promises import RunPromises
from kfp_placement_controller.runs.run_reading import FindPast, RunReader, RunReading, no_past
from kfp_placement_controller.runs.step_statuses import RunSituation, StepStatus, step_statuses
from kfp_placement_controller.sources.source import ObservedRun, RunState
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.contract.run_request import NodeGroups
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.readers.tree.run_outcomes import PodRole, RunOutcome


@dataclass
class HoldWatch:
    """Detector of whether something holds a run back.

    Attributes:
        why: reason why the run is held back, as of the last evaluation; "" = it is not.
        last_at: time of the last evaluation at which it was held back; None = it never was.
    """

    why: str = ""
    last_at: datetime | None = None
    _evaluated_since: float = math.inf

    def evaluate(
        self, state: RunState, now: datetime, monotonic_seconds: float, begin_seconds: float
    ) -> bool:
        """Evaluate the run; return whether it was held back and no longer is.

        Args:
            state: state of the run, as last observed.
            now: the time.
            monotonic_seconds: the time on the monotonic clock. The wait counts from the first
                evaluation, so that only our clock counts.
            begin_seconds: longest time until the run begins, unless something holds it back;
                infinite if it has begun.
        """
        self._evaluated_since = min(self._evaluated_since, monotonic_seconds)
        before = self.why
        may_wait = lasts(begin_seconds, self._evaluated_since, monotonic_seconds)
        self.why = state.blocked or ("" if may_wait else state.idle)
        if self.why:
            self.last_at = now
        return bool(before) and not self.why


@dataclass(eq=False)
class TrackedRun:
    """A run that has our mark, or counts as marked.

    Attributes:
        observed: object of the run, as last seen.
        reading: the run as read, with its graph; None = it cannot be read, or is still to be read.
        nodes: groups of nodes that its queue has assigned to the run; () = any.
        attach_failures: volumes that could not be attached, of the pods of all runs.
        refusal: reason why the run is not planned, or no longer; "" = it is planned.
        problem: reason why there is no plan, or no better one; "" = there is no problem.
        pods: pods of the run.
        plan: plan in force, or the last one before the run was refused; None = it has none yet.
        is_whole: whether the plan has a row for every step; a loop may have got more iterations.
        statuses: statuses of its steps, as of the last evaluation.
        first_makespan_seconds: makespan of its first plan; None = it had none.
        promises: promises of the ends of the run and its steps.
        pending: whether the run must be planned again.
        crashes: number of its searches that crashed a worker process.
        changed: whether something has been observed since the last evaluation.
        outdated: whether the plan was made while the run was held back, or for other nodes.
        hold: watch on whether the run is held back.
        learned_end: last end of the run that was learned from; None = none yet.
        peaks: peak memory of pods in bytes, by uid; None = the answer has not come yet.
        outcome: outcome of the steps by the run's object, as of the last evaluation.
        stale: whether it must be read, or read again, when its turn comes.
        steps: number of its steps, as last read.
        left_out: reason why the run is not read for now, as others of its namespace are; "" = it
            is.
        announced: whether an event about that has been decided.
    """

    observed: ObservedRun
    reading: RunReading | None
    nodes: NodeGroups = ()
    attach_failures: AttachFailures = field(default_factory=AttachFailures)
    refusal: str = ""
    problem: str = ""
    pods: RunPods = field(default_factory=RunPods)
    plan: CurrentPlan | None = None
    is_whole: bool = False
    statuses: Mapping[str, StepStatus] = field(default_factory=dict)
    first_makespan_seconds: float | None = None
    promises: RunPromises = field(default_factory=RunPromises)
    pending: bool = False
    crashes: int = 0
    changed: bool = True
    outdated: bool = False
    hold: HoldWatch = field(default_factory=HoldWatch)
    learned_end: datetime | None = None
    peaks: Mapping[str, float] | None = None
    _content_changed: bool = True
    outcome: RunOutcome = field(default_factory=RunOutcome)
    stale: bool = False
    steps: int = 0
    left_out: str = ""
    announced: bool = False
    _drift: DriftWatch = field(default_factory=DriftWatch)

    def __post_init__(self) -> None:
        """Assign pods to the steps of the graph."""
        if self.reading is not None:
            self.steps = len(self.reading.graph.steps)
            self.pods.use_index(self.reading.index)

    @property
    def key(self) -> RunKey:
        """Namespace and name."""
        return self.observed.key

    @property
    def is_open(self) -> bool:
        """True if steps of the run are left to plan, and they can be planned."""
        return self.reading is not None and not self.refusal and not self.observed.ended

    @property
    def is_unread(self) -> bool:
        """True if the run has not been read yet."""
        return self.stale and self.reading is None

    @property
    def held(self) -> bool:
        """True if the run is held back, as of the last evaluation."""
        return bool(self.hold.why)

    @property
    def waits_to_begin(self) -> bool:
        """True if the run is held back, and no pod of it exists."""
        return self.held and not self.pods

    @property
    def held_seconds(self) -> float:
        """Seconds from the submission until the run was last seen held back; 0 = never seen."""
        if self.hold.last_at is None:
            return 0.0
        return max(0.0, (self.hold.last_at - self.observed.submitted_at).total_seconds())

    def refuse(self, why: str) -> None:
        """Stop planning the run, for a reason that people can read."""
        self.refusal = why

    def read(self, policy: PlacementPolicySpec, find_past: FindPast = no_past) -> None:
        """Read the graph, or read it again: the policy, assigned nodes or its content are others.

        A refusal counts until then. One whose searches crash is refused again after the next crash.
        """
        self.stale, self.changed, self.refusal = False, True, ""
        reader, before = RunReader(self.observed, policy, self.nodes), self.reading
        try:
            self._use(
                reader.read(find_past=find_past) if before is None else reader.read_again(before)
            )
        except InputError as error:
            self.refuse(str(error))

    def use_past(self, past: KnownPast | None) -> None:
        """Read the graph with these past runs from now on; None = without any, to free memory."""
        if self.reading is not None and self.reading.past is not past:
            self.reading = replace(self.reading, past=past)

    def assign(self, nodes: NodeGroups) -> None:
        """Plan the run on these groups of nodes only from now on; () = any."""
        if nodes != self.nodes:
            self.nodes = nodes
            self._outdate()
            self.stale = True

    def observe(self, observed: ObservedRun) -> None:
        """Take in that the object of the run has changed."""
        if self.observed.ended and not observed.ended:
            # Somebody has retried the run. An answer on its pods may have come since it ended.
            self.promises, self.peaks = RunPromises(), None
            # A run that has ended is seen without what it takes from other objects.
            self.stale = True
        self._content_changed |= observed.content != self.observed.content
        self.observed = observed
        self.changed = True
        if observed.ended:
            # The object may stay for days, and an ended run does not need past runs.
            self.use_past(None)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None, now: datetime) -> None:
        """Take in that a pod of the run is new, has changed or is gone."""
        if new is not None:
            self.pods.observe(new, now)
        elif old is not None:
            self.pods.forget(old)
        self.changed = True

    def evaluate(
        self,
        policy: PlacementPolicySpec,
        now: datetime,
        monotonic_seconds: float,
        params: PlanningParams,
    ) -> bool:
        """Update the statuses of the steps; return whether the run must be planned again."""
        reading = self.reading
        self.changed = False
        if reading is None:
            return False
        was_held = self.held
        begin_seconds = math.inf if self.pods else params.begin_seconds
        if self.hold.evaluate(self.observed.state, now, monotonic_seconds, begin_seconds):
            self._outdate()
        elif self.held != was_held:
            self.promises.tried_at = None
        is_other = False
        if self._content_changed:
            newest = self._read_on(reading, policy)
            is_other, reading = newest is not reading, newest
        self._content_changed = False
        situation = RunSituation(
            self.outcome, self.observed.state, policy.gate_deadline_seconds, self.attach_failures
        )
        self.statuses = step_statuses(reading.graph, self.pods, situation, now)
        if self.plan is not None and self.is_open:
            attempts = {name: len(self.pods.executors(name)) for name in self.statuses}
            is_other |= self._drift.evaluate(
                self.plan, self.statuses, attempts, self.observed.submitted_at, now, params
            )
            self.plan = as_placed(self.plan, self.statuses)
        return is_other and self.is_open

    def put_into_force(self, plan: CurrentPlan) -> None:
        """Follow a plan from now on, and keep the makespan of the first plan."""
        self.plan = plan
        self.is_whole = self._is_covered()
        self.outdated = False
        self.promises.tried_at = None
        if self.first_makespan_seconds is None:
            self.first_makespan_seconds = plan.makespan_seconds

    def adopt(self, plan: CurrentPlan, first_makespan_seconds: float | None) -> None:
        """Follow an earlier planner's plan of the run, which must be evaluated first.

        The plan may lack steps that have ended.
        """
        self.plan = plan
        statuses = self.statuses.items()
        self.is_whole = all(name in plan.rows or status.ended for name, status in statuses)
        self.first_makespan_seconds = first_makespan_seconds

    def planned_step(self, pod: ObservedPod) -> str:
        """Return the step that a pod executes; "" = the plan in force has no node for it.

        A step has one pod, that of its last attempt.
        """
        if self.plan is None or self.reading is None:
            return ""
        identity = self.reading.index.of_pod(pod)
        if identity is None or identity.role is PodRole.DRIVER:
            return ""
        last = self.pods.executor(identity.name)
        is_last = last is not None and last.pod.uid == pod.uid
        return identity.name if is_last and self.plan.node_of(identity.name) else ""

    def unstarted(self) -> bool:
        """Return whether any step has not started."""
        return any(status.unstarted for status in self.statuses.values())

    def awaits_pod(self, step: str) -> bool:
        """Return whether a step waits for a pod, which does not come while the run is held back."""
        pod = self.pods.executor(step)
        return self.held and (pod is None or pod.ended)

    def _outdate(self) -> None:
        """Mark the plan as outdated, and drop the promises."""
        self.outdated = True
        self.promises = RunPromises()

    def _use(self, reading: RunReading) -> None:
        self.reading, self.steps = reading, len(reading.graph.steps)
        self.is_whole = self._is_covered()
        self.pods.use_index(reading.index)
        self._content_changed = True

    def _is_covered(self) -> bool:
        """Return whether the plan has a row for every step."""
        if self.plan is None or self.reading is None:
            return False
        rows = self.plan.rows
        return all(step.name in rows for step in self.reading.graph.steps)

    def _read_on(self, reading: RunReading, policy: PlacementPolicySpec) -> RunReading:
        """Update the outcome of the steps; return the current reading of the run."""
        now = RunReader(self.observed, policy, self.nodes).as_of_now(reading)
        self.outcome = now.outcome
        if now.reading is not reading:
            self._use(now.reading)
        if now.problem:
            self.refuse(now.problem)
        return now.reading
