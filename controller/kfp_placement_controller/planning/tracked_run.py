"""One run: its object, its pods, what happened to its steps, and whether it is planned."""

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field, replace
from datetime import datetime, timedelta

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.planning.attach_failures import AttachFailures
from kfp_placement_controller.planning.current_plan import CurrentPlan, as_placed
from kfp_placement_controller.planning.known_pasts import KnownPast
from kfp_placement_controller.planning.parameters import PlanningParams
from kfp_placement_controller.planning.run_pods import RunPods
from kfp_placement_controller.planning.run_promises import RunPromises
from kfp_placement_controller.planning.run_reading import Refusal, RunReading, read_again, read_on
from kfp_placement_controller.planning.run_variants import (
    OpenRun,
    PlannedRun,
    RefusedRun,
    RunVariant,
    UnplannedRun,
)
from kfp_placement_controller.planning.step_states import RunSituation, StepStatus, step_statuses
from kfp_placement_controller.planning.triggers import DriftWatch, Trigger
from kfp_placement_controller.sources.source import ObservedRun, RunState
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.contract.run_request import NodeGroups
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.promise import Promise
from kfp_placement_engine.readers.run_outcomes import PodRole, RunOutcome


@dataclass
class HoldWatch:
    """Follows whether one run is held back.

    Attributes:
        why: it is, as of the last evaluation, or "".
        last_at: the last evaluation that found it so; None = none.
    """

    why: str = ""
    last_at: datetime | None = None
    _known_since: datetime | None = None

    def evaluate(
        self,
        state: RunState,
        now: datetime,
        *,
        has_pods: bool,
        begin_seconds: float,
    ) -> bool:
        """Evaluate again; returns whether a run that had been held back goes on.

        Args:
            state: of the run, as last observed.
            now: the time. Ages count from the first evaluation, so that only our clock counts.
            has_pods: there are pods of it.
            begin_seconds: within these a run is begun, unless something keeps it from that.
        """
        self._known_since = self._known_since or now
        before = self.why
        self.why = state.held
        if not has_pods and now - self._known_since > timedelta(seconds=begin_seconds):
            self.why = state.held or state.idle
        if self.why:
            self.last_at = now
        return bool(before) and not self.why


@dataclass
class TrackedRun:
    """A run that carries our mark.

    Attributes:
        observed: its object, as last seen.
        read: its graph, or why there is none.
        nodes: that its queue has assigned to it; () = any.
        attach_failures: volumes that could not be attached, of all pods.
        pods: of the run.
        variant: what it is now: refused, without a plan yet, or planned.
        statuses: what happened to its steps, as of the last evaluation.
        outcome: what its object says of them, likewise.
        first_makespan_seconds: of its first plan.
        promises: of its end, and of its steps.
        pending: why it must be planned again.
        crashes: searches of it that ended a worker.
        changed: something has been observed since the last evaluation.
        outdated: its plan is of a time when it was held back, or could use other nodes.
        hold: whether it is held back.
    """

    observed: ObservedRun
    read: InitVar[RunReading | Refusal]
    nodes: NodeGroups = ()
    attach_failures: AttachFailures = field(default_factory=AttachFailures)
    pods: RunPods = field(init=False, default_factory=RunPods)
    variant: RunVariant = field(init=False)
    statuses: Mapping[str, StepStatus] = field(init=False, default_factory=dict)
    first_makespan_seconds: float | None = field(init=False, default=None)
    promises: RunPromises = field(init=False, default_factory=RunPromises)
    pending: set[Trigger] = field(init=False, default_factory=set)
    crashes: int = field(init=False, default=0)
    changed: bool = field(init=False, default=True)
    outdated: bool = field(init=False, default=False)
    hold: HoldWatch = field(init=False, default_factory=HoldWatch)
    _content_changed: bool = field(init=False, default=True)
    outcome: RunOutcome = field(init=False, default_factory=RunOutcome)
    _drift: DriftWatch = field(init=False, default_factory=DriftWatch)

    def __post_init__(self, read: RunReading | Refusal) -> None:
        """Without a plan, or refused."""
        if isinstance(read, Refusal):
            self.variant = RefusedRun(self, read.why)
        else:
            self.variant = UnplannedRun(self, read)
            self.pods.use_index(read.index)

    @property
    def key(self) -> RunKey:
        """Namespace and name."""
        return self.observed.key

    @property
    def open(self) -> OpenRun | None:
        """The run as it can be planned; None = there is nothing left to plan."""
        if self.observed.ended or isinstance(self.variant, RefusedRun):
            return None
        return self.variant

    @property
    def plan(self) -> CurrentPlan | None:
        """In force, or None."""
        return self.variant.plan

    @property
    def held(self) -> bool:
        """Whether it is held back, as of the last evaluation."""
        return bool(self.hold.why)

    @property
    def waits_to_begin(self) -> bool:
        """Whether it is held back, and nothing of it has begun."""
        return self.held and not any(True for _ in self.pods)

    @property
    def held_seconds(self) -> float:
        """How long after its submission it was held back last, as far as that is known."""
        if self.hold.last_at is None:
            return 0.0
        return max(0.0, (self.hold.last_at - self.observed.submitted_at).total_seconds())

    @property
    def promised_now(self) -> Promise | None:
        """What is promised of its end: since its start if it waits for that."""
        return self.promises.now(is_halted=self.held and not self.waits_to_begin)

    def refuse(self, why: str) -> None:
        """It is not planned from now on."""
        self.variant = self.variant.refused(why)

    def reread(self, policy: PlacementPolicySpec) -> None:
        """Read the graph again, as other things are assumed."""
        try:
            self._use(read_again(self.observed, self.variant.reading, policy, self.nodes))
        except InputError as error:
            self.refuse(str(error))

    def use_past(self, past: KnownPast | None) -> None:
        """Its graph is read with this from now on; None = with none, so that it is let go."""
        reading = self.variant.reading
        if reading is not None and reading.past is not past:
            # The graph stays, and with it what its plan covers.
            self.variant = replace(self.variant, reading=replace(reading, past=past))

    def assign(self, nodes: NodeGroups, policy: PlacementPolicySpec) -> None:
        """It may use these nodes from now on; () = any."""
        if nodes != self.nodes:
            self.nodes, self.outdated, self.changed = nodes, True, True
            self.reread(policy)

    def observe(self, observed: ObservedRun) -> None:
        """Its object has changed."""
        if self.observed.ended and not observed.ended:
            # It is tried again.
            self.promises.begin_again()
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

    def evaluate(
        self, policy: PlacementPolicySpec, now: datetime, params: PlanningParams
    ) -> set[Trigger]:
        """Work out what happened to the steps; returns why the run must be planned again."""
        reading = self.variant.reading
        self.changed = False
        if reading is None:
            return set()
        has_pods = any(True for _ in self.pods)
        self.outdated |= self.hold.evaluate(
            self.observed.state, now, has_pods=has_pods, begin_seconds=params.begin_seconds
        )
        if not self.waits_to_begin:
            self.promises.begun()
        triggers: set[Trigger] = set()
        if self._content_changed:
            known = self._read_on(reading, policy)
            if known is not reading:
                triggers.add(Trigger.WIDTH)
            reading = known
        self._content_changed = False
        self.statuses = step_statuses(reading.graph, self.pods, self._situation(policy), now)
        if isinstance(self.open, PlannedRun):
            attempts = {name: self.pods.attempts(name) for name in self.statuses}
            triggers |= self._drift.evaluate(
                self.open.plan, self.statuses, attempts, self.observed.submitted_at, now, params
            )
            placed = as_placed(self.open.plan, self.statuses)
            if placed is not self.open.plan:
                self.variant = self.open.with_plan(placed)
        return triggers if self.open is not None else set()

    def put_into_force(self, plan: CurrentPlan) -> None:
        """This is the plan from now on; of the first one the makespan is kept."""
        self.variant = self.variant.with_plan(plan)
        if self.outdated:
            self.promises.begin_again()
        self.outdated = False
        if self.first_makespan_seconds is None:
            self.first_makespan_seconds = plan.makespan_seconds

    def promised(self, promise: Promise, now: datetime) -> None:
        """Take what is promised of it now, since its submission."""
        # The first steps of a run start while its first plan is being made.
        is_early = not any(each.ended for each in self.statuses.values())
        made_seconds = (now - self.observed.submitted_at).total_seconds()
        self.promises.take(promise, made_seconds, self.held_seconds, may_be_first=is_early)

    def adopt(self, plan: CurrentPlan, first_makespan_seconds: float | None) -> None:
        """Go on with what an earlier planner has planned; evaluate it first, for its states."""
        self.variant = self.variant.adopted(plan)
        self.first_makespan_seconds = first_makespan_seconds

    def planned_step(self, pod: ObservedPod) -> str:
        """The step that a pod executes, if the plan in force has a node for it, else ""."""
        plan, reading = self.variant.plan, self.variant.reading
        if plan is None or reading is None:
            return ""
        identity = reading.index.of_pod(pod)
        if identity is None or identity.role is PodRole.DRIVER:
            return ""
        return identity.name if plan.node_of(identity.name) else ""

    def unstarted(self) -> bool:
        """Whether any step has not started."""
        return any(each.unstarted for each in self.statuses.values())

    def awaits_pod(self, step: str) -> bool:
        """Whether a step cannot start, as the run is held back and no pod of it is there."""
        pod = self.pods.executor(step)
        return self.held and (pod is None or pod.ended)

    def _use(self, reading: RunReading) -> None:
        self.variant = self.variant.reread(reading)
        self.pods.use_index(reading.index)
        self._content_changed = True

    def _read_on(self, reading: RunReading, policy: PlacementPolicySpec) -> RunReading:
        """Read what happened to the steps; returns the graph as it is known now."""
        found = read_on(self.observed, reading, policy, self.nodes)
        self.outcome = found.outcome
        if found.reading is not reading:
            self._use(found.reading)
        if found.problem:
            self.refuse(found.problem)
        return found.reading

    def _situation(self, policy: PlacementPolicySpec) -> RunSituation:
        return RunSituation(
            outcome=self.outcome,
            state=self.observed.state,
            gate_deadline_seconds=policy.gate_deadline_seconds,
            attach_failures=self.attach_failures,
        )
