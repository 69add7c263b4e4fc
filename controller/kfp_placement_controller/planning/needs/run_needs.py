"""Need of one run that waits, or has waited, in a queue: by a plan of the run alone.

The plan in force does not count. In a full cluster a run uses less at a time, for longer: if that
plan counted, a fuller cluster would admit more runs.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.planning.needs.planned_alone import (
    PlannedAlone,
    ReadFacts,
    Unfolded,
    demand_left,
)
from kfp_placement_controller.runs.run_reading import FindPast, RunReader, RunReading
from kfp_placement_controller.sources.source import ObservedRun
from kfp_placement_engine.contract.placement import bounded_seconds
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.contract.run_request import (
    MAX_MESSAGE_CHARACTERS,
    NodeGroups,
    RunDemand,
    RunRequestSpec,
)
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.step_state import ENDED_STATES, StepState
from kfp_placement_engine.planning.demand_profile import DemandProfile
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.readers.tree.run_outcomes import RunOutcome

LONGEST_WAIT_FOR_PAST_SECONDS = 60.0
"""Longest wait for a pipeline's past runs before a RunRequest is written without them."""

_MAX_NAMED_QUEUES = 5

_ESTIMATED = (
    "its need is estimated: its Workflow does not say what its steps request, so requests of past"
    " runs count, or assumed ones"
)


@dataclass
class RunNeed:
    """Need of a run, which shrinks as its steps end.

    Attributes:
        observed: object of the run, as last seen.
        planned_for: version of the cluster and the policy for which the run was planned last; None
            = it has not been planned.
        nodes: groups of nodes that its queue has assigned to the run; () = any.
        problem: reason why the run cannot be planned; "" = it can.
        lacks_past: whether it was last planned without the past runs of its pipeline.
        has_news: whether the estimates from past runs have changed since then.
        is_rewritten: whether the object has described another run since then.
        awaited_since: time since which past runs are waited for; None = they are not.
    """

    observed: ObservedRun
    planned_for: int | None = None
    nodes: NodeGroups = ()
    problem: str = ""
    lacks_past: bool = False
    has_news: bool = False
    is_rewritten: bool = False
    awaited_since: float | None = None
    _facts: ReadFacts = field(default_factory=ReadFacts)
    """The run as it was read for `_planned`."""
    _planned: PlannedAlone | None = None
    _unfolded: Unfolded | None = None
    """Graph and profile for `_planned`; None = they are not kept."""
    _planned_nodes: NodeGroups = ()
    """Value of `nodes` for `_planned`."""
    _outcome: RunOutcome = field(default_factory=RunOutcome)
    """States of its steps, as last read."""

    @property
    def key(self) -> RunKey:
        """Namespace and name of the run."""
        return self.observed.key

    def observe(self, observed: ObservedRun) -> None:
        """Take in that the object of the run has changed."""
        self.is_rewritten |= observed.content.is_rewritten(self.observed.content)
        self.observed = observed

    def must_plan(self, policy: PlacementPolicySpec) -> bool:
        """Read what has happened; return whether the run must be planned as it is now."""
        if self.planned_for is None or self.has_news or self.is_rewritten:
            return True
        if self.nodes != self._planned_nodes:
            return True
        if self._unfolded is None:
            return False
        reading = self._unfolded.reading
        now = RunReader(self.observed, policy, self.nodes).as_of_now(reading)
        self._outcome = now.outcome
        return now.reading is not reading

    def read(
        self, policy: PlacementPolicySpec, version: int, find_past: FindPast
    ) -> RunReading | None:
        """Read the run as it is now, to be planned; None = it cannot be, or need not be.

        `problem` says why it cannot be.

        Args:
            policy: policy in force, with what is assumed of steps.
            version: version of the cluster and the policy.
            find_past: function that returns the past of a pipeline.

        Raises:
            InputError: malformed, or beyond a limit.
        """
        is_same_place = (self.planned_for, self._planned_nodes) == (version, self.nodes)
        is_only_text = is_same_place and self.is_rewritten and not self.has_news
        before = (self._unfolded, self._planned) if is_only_text else (None, None)
        self._forget_plan(version)
        self.planned_for, self.problem = version, ""
        self.lacks_past = self.has_news = self.is_rewritten = False
        self._planned_nodes = self.nodes
        widths = self._facts.widths or {}
        reader = RunReader(self.observed, policy, self.nodes)
        now = reader.as_of_now(reader.read(widths, find_past))
        self._outcome = now.outcome
        if now.problem:
            self.refuse(now.problem)
            return None
        self.lacks_past = now.reading.past is None
        if not self.lacks_past:
            self.awaited_since = None
        # The run may wait for days, and its past takes much memory.
        reading = replace(now.reading, forecast=None, past=None)
        if before[0] is None or before[1] is None or before[0].reading.graph != reading.graph:
            return reading
        # Nothing is new to plan: Argo writes a spec again in its own form.
        self._unfolded, self._planned = replace(before[0], reading=reading), before[1]
        return None

    def _forget_plan(self, version: int) -> None:
        """Forget the last plan, unless only the estimates of known past runs have changed.

        Then `take` keeps the last plan if the new one hardly differs.
        """
        is_only_news = self.has_news and not self.lacks_past
        same = (self.planned_for, self._planned_nodes, self.problem) == (version, self.nodes, "")
        if not (is_only_news and same):
            self._planned = None

    def take(self, plan: Plan, reading: RunReading) -> None:
        """Keep the plan of the run alone, unless it hardly differs from the last one, if any."""
        profile = DemandProfile(plan, reading.graph)
        planned = PlannedAlone.of(plan, profile)
        if self._planned is None or self._unfolded is None or not planned.is_like(self._planned):
            self._facts, self._planned = ReadFacts.of(reading), planned
            self._unfolded = Unfolded(reading, profile)

    def fold(self) -> None:
        """Forget the graph; the demand is that of the whole run from now on."""
        self._unfolded, self._outcome = None, RunOutcome()

    @property
    def is_unfolded(self) -> bool:
        """True if the graph is kept, so that the demand shrinks as steps end."""
        return self._unfolded is not None

    @property
    def is_folded(self) -> bool:
        """True if the run has begun, and its demand does not shrink since its graph is not kept."""
        return self.has_begun and self._planned is not None and self._unfolded is None

    def refuse(self, problem: str) -> None:
        """Note that the run cannot be planned, and why."""
        self._planned, self.problem = None, problem[:MAX_MESSAGE_CHARACTERS]

    @property
    def steps(self) -> int:
        """Number of its steps, as far as it has been read."""
        return self._facts.steps

    @property
    def pipeline(self) -> str:
        """Name of its pipeline; "" = the run could not be read."""
        return self._facts.pipeline

    def mounts(self, claim: str) -> bool:
        """Return whether the run mounts a volume claim, and the claim may matter to its steps."""
        return self.may_fit_later and claim in self._facts.claims

    @property
    def has_begun(self) -> bool:
        """True if the run no longer waits for its start."""
        return self.observed.state.started_at is not None

    @property
    def may_fit_later(self) -> bool:
        """True if another state of the cluster could change what its RunRequest says."""
        planned = self._planned
        # Without a plan and without a problem, the cluster had no nodes.
        lacks_node = not self.problem if planned is None else bool(planned.unschedulable)
        return not self.has_begun or lacks_node

    def awaits_past(self, monotonic_seconds: float) -> bool:
        """Return whether past runs are still waited for; the wait begins with the first call."""
        if self.awaited_since is None:
            self.awaited_since = monotonic_seconds
        return lasts(LONGEST_WAIT_FOR_PAST_SECONDS, self.awaited_since, monotonic_seconds)

    def spec(self, makespan_seconds: float | None) -> RunRequestSpec:
        """Return the spec of its RunRequest.

        Args:
            makespan_seconds: makespan of the plan in force, since the submission; None = there is
                no plan.
        """
        observed = self.observed
        queue, notes = self._queue()
        demand, problem = self._demand()
        planned = self._planned
        return RunRequestSpec(
            workflow_uid=observed.uid,
            submitted_at=observed.submitted_at,
            display_name=observed.display_name,
            queue=queue,
            priority=self._facts.priority,
            demand=demand,
            makespan_seconds=None if planned is None else planned.makespan_seconds,
            finishes_at=self._finishes_at(makespan_seconds),
            unschedulable="" if planned is None else planned.unschedulable,
            problem=problem,
            planned_nodes=self._planned_nodes,
            notes=(*notes, *self._estimates()),
        )

    def _estimates(self) -> tuple[str, ...]:
        """Return the note for people that the demand is not what the run says."""
        return (_ESTIMATED,) if self._facts.is_outline else ()

    def _demand(self) -> tuple[RunDemand | None, str]:
        """Return the known demand that is left, and the reason why not all of it is known."""
        planned = self._planned
        if planned is None:
            return None, self.problem
        demand, problem = planned.demand, planned.problem
        if self._unfolded is not None:
            states = self._outcome.steps.items()
            ended = {name for name, step in states if step.state in ENDED_STATES}
            running = {name for name, step in states if step.state is StepState.RUNNING}
            demand, problem = demand_left(self._unfolded.profile, ended, running)
        return demand, problem or self._facts.unknown

    def _queue(self) -> tuple[str, tuple[str, ...]]:
        """Return the RunQueue that its steps name, and notes for people about the choice."""
        named = self._facts.queues
        if len(named) < 2:
            return (*named, DEFAULT_QUEUE)[0], ()
        listed = ", ".join(named[:_MAX_NAMED_QUEUES])
        more = ", ..." if len(named) > _MAX_NAMED_QUEUES else ""
        note = f"its steps name several RunQueues ({listed}{more}): it waits in {DEFAULT_QUEUE}"
        return DEFAULT_QUEUE, (note[:MAX_MESSAGE_CHARACTERS],)

    def _finishes_at(self, makespan_seconds: float | None) -> datetime | None:
        begun_at = self.observed.state.started_at
        if begun_at is None:
            return None
        since = self.observed.submitted_at
        if makespan_seconds is None and self._planned is not None:
            since, makespan_seconds = begun_at, self._planned.makespan_seconds
        if makespan_seconds is None:
            return None
        return (since + timedelta(seconds=bounded_seconds(makespan_seconds))).replace(microsecond=0)
