"""PipelinePlacement: the plan of one run and what happened to it; written by the planner alone.

Anybody with the right to write one may have written it: what cannot be read is said, never raised
but as `InputError`.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, Field

from kfp_placement_engine.contract.rows import MAX_ROWS, PlannedRow, StateRow
from kfp_placement_engine.contract.rows_reading import ReadRows, read_planned_rows, read_state_rows
from kfp_placement_engine.contract.shared_parts import (
    Count,
    Makespan,
    ObjectName,
    Resource,
    ResourceModel,
    ResourceStatus,
    Seed,
    WorkflowUid,
    one_of,
)
from kfp_placement_engine.model.promise import (
    CONFIDENCE,
    LEAST_CONFIDENCE,
    MOST_CONFIDENCE,
    Promise,
    TimeRange,
)
from kfp_placement_engine.model.run_graph import OUTLINE
from kfp_placement_engine.units.durations import MAX_DURATION_SECONDS

RawRow = Annotated[tuple[Any, ...], Field(max_length=32)]
"""One step in a list of values; see `contract.rows`."""

RawRows = Annotated[tuple[RawRow, ...], Field(max_length=MAX_ROWS)]

Share = Annotated[float, Field(ge=LEAST_CONFIDENCE, le=MOST_CONFIDENCE)]
"""Share of cases in which ranges are to hold."""

MAX_UNKNOWN_CHARACTERS = 256
"""Longest text that says why nothing is promised, in characters."""


class Phase(StrEnum):
    """State of a run."""

    PLANNING = "Planning"
    PLANNED = "Planned"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    """The run has ended in another way."""
    REFUSED = "Refused"
    """The run cannot be planned: it cannot be read, or is too large."""


class ConditionType(StrEnum):
    """Conditions of a PipelinePlacement; Kueue's words where the meaning is the same."""

    PLANNED = "Planned"
    """The run has a plan that is up to date."""

    SCHEDULABLE = "Schedulable"
    """The run has a node for every step."""

    LATENCY_SATISFIED = "LatencySatisfied"
    """The plan keeps the latency rule of every step that has one."""

    ROWS_COMPLETE = "RowsComplete"
    """The object has a row for every step; False = too large, or Argo cannot be read."""

    SPEC_READ = "SpecRead"
    """The run is planned with its package; only of runs whose Workflow is an outline (KFP 3)."""

    FINISHED = "Finished"
    """The run has ended."""


class ConditionReason(StrEnum):
    """Reasons of these conditions; the first eight are Kueue's words or ours modelled on them."""

    PENDING_EVALUATION = "PendingEvaluation"
    MISCONFIGURED = "Misconfigured"
    SUSPENDED = "Suspended"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    WAITING_FOR_PODS_READY = "WaitingForPodsReady"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    NO_MATCHING_NODE = "NoMatchingNode"
    PLANNED = "Planned"
    REPLANNED = "Replanned"
    LATENCY_RULE_UNSATISFIED = "LatencyRuleUnsatisfied"
    TOO_LARGE = "TooLarge"
    COMPLETE = "Complete"
    STATUS_UNREADABLE = "StatusUnreadable"
    """Reason of RowsComplete: Argo's nodes cannot be read, and rows follow pods alone."""
    SEARCH_FAILED = "SearchFailed"
    """Reason of Planned: a search ended abnormally; the plan is the one made at once."""
    READ = "Read"
    """Reason of SpecRead, as are those below: the package has come, and it is of this run."""
    NOT_INSTALLED = "NotInstalled"
    NOT_FOUND = "NotFound"
    FORBIDDEN = "Forbidden"
    UNREACHABLE = "Unreachable"
    MALFORMED = "Malformed"
    OTHER_PACKAGE = "OtherPackage"
    NO_ROOM = "NoRoom"
    """The packages of other runs fill the memory that is meant for packages."""


def bounded_seconds(seconds: float) -> float:
    """Return a time, cut to the longest that an object may state."""
    return min(max(0.0, seconds), MAX_DURATION_SECONDS)


class EndRange(ResourceModel):
    """Range of the end of the run, since its submission or its start."""

    low: Makespan
    """Earliest end: the run ends no earlier with probability (1 + confidence) / 2."""

    typical: Makespan
    """The median."""

    high: Makespan
    """Latest end: the run has ended by then with probability (1 + confidence) / 2."""

    @classmethod
    def of(cls, times: TimeRange, **others: float) -> Self:
        """Return the range as it is written, within its bounds.

        Args:
            times: end of the run.
            others: values of further fields.
        """
        ends = dict(zip(("low", "typical", "high"), times.moments, strict=True)) | others
        return cls(**{name: bounded_seconds(seconds) for name, seconds in ends.items()})

    @property
    def times(self) -> TimeRange:
        """Range of the end as a noun of the model: the inverse of `of`."""
        return TimeRange(self.low, self.typical, self.high)


class FirstEnds(EndRange):
    """First promise of the end of a run, with the end and the moment that it was made from."""

    planned: Makespan
    """The end by the plan alone; what whole runs take beyond it is learned."""

    promised_after: Makespan
    """Moment of the promise, in seconds since the submission."""


class PipelinePlacementSpec(ResourceModel):
    """The plan in force. Times in rows are seconds since `submittedAt`."""

    workflow_uid: WorkflowUid
    """The Workflow that is planned."""

    revision: int = Field(ge=1, le=2**53)
    """Number of this plan among those of the run."""

    epoch: int = Field(default=0, ge=0, le=2**53)
    """Transitions of the planner's Lease; a plan of a higher epoch is never overwritten."""

    submitted_at: AwareDatetime
    """Creation of the Workflow: time zero of all rows."""

    planned_at: AwareDatetime
    """Moment at which this revision was planned."""

    dispatch: Annotated[str, one_of(("ready", "ordered"))] = "ready"
    """Way in which ready pods get to their nodes."""

    basis: Annotated[str, one_of((OUTLINE,))] | None = None
    """Basis of the plan, if the run does not say requests and images of its steps."""

    seed: Seed = 0
    """Seed of the random generator; with `generations` it gives the same plan again."""

    generations: Seed = 0
    """Number of generations of the search; the limits of a seed hold for it too."""

    makespan_seconds: Makespan | None = None
    """End of the last step by this plan."""

    first_makespan_seconds: Makespan | None = None
    """End of the last step by the run's first plan; what happened is compared with this."""

    first_ends: FirstEnds | None = None
    """First promise of the run's end; None = nothing could be promised then."""

    confidence: Share | None = None
    """Share of cases in which promised ranges are to hold; None = 0.9."""

    nodes: tuple[ObjectName, ...] = Field(default=(), max_length=5000)
    """Nodes that rows name by their index here."""

    steps: RawRows = ()
    """Rows [name, node, start, finish, reason, alternatives, source of the run time]."""


class StepCounts(ResourceModel):
    """Steps by state, those without a row included."""

    pending: Count = 0
    waiting: Count = 0
    running: Count = 0
    succeeded: Count = 0
    failed: Count = 0
    cached: Count = 0
    skipped: Count = 0


class PipelinePlacementStatus(ResourceStatus):
    """State of a run and its steps."""

    phase: Annotated[str, one_of(Phase)] | None = None
    """Phase of the run."""

    progress: str | None = Field(default=None, max_length=32)
    """Steps that have ended, of all: `3/7`."""

    counts: StepCounts | None = None
    """Steps by state."""

    folded_steps: Count | None = None
    """Ended steps that are counted but have no row, because the object would be too large."""

    revision: int | None = Field(default=None, ge=1, le=2**53)
    """Revision of the plan whose steps the rows follow."""

    makespan_seconds: Makespan | None = None
    """End of the last step, once the run has ended."""

    ends: EndRange | None = None
    """Current promise of the run's end."""

    ends_after_start: EndRange | None = None
    """Promise of the time from start to end, while the run is held and nothing of it has begun."""

    ends_unknown: str | None = Field(default=None, max_length=MAX_UNKNOWN_CHARACTERS)
    """Reason why nothing is promised."""

    confidence: Share | None = None
    """Share of cases in which the current promise is to hold, if it differs from the spec."""

    steps: RawRows = ()
    """Rows [state, node, start, end, waiting for, promise], in the order of the plan's."""


class PipelinePlacement(Resource):
    """The plan of one run; named like its Workflow, owned by it."""

    kind: Literal["PipelinePlacement"] = "PipelinePlacement"
    spec: PipelinePlacementSpec
    status: PipelinePlacementStatus | None = None

    def planned_rows(self) -> ReadRows[PlannedRow]:
        """Return the rows of the plan; None in place of each that cannot be read."""
        return read_planned_rows(self.spec.steps, len(self.spec.nodes))

    def state_rows(self) -> ReadRows[StateRow]:
        """Return the rows of the steps' states; none while the status is of another revision."""
        if self.status is None or self.status.revision != self.spec.revision:
            return ReadRows()
        return read_state_rows(self.status.steps, len(self.spec.nodes))

    @property
    def first_confidence(self) -> float:
        """Confidence of the first promise."""
        return CONFIDENCE if self.spec.confidence is None else self.spec.confidence

    @property
    def confidence(self) -> float:
        """Confidence of the current promise."""
        stated = None if self.status is None else self.status.confidence
        return self.first_confidence if stated is None else stated

    @property
    def promise(self) -> Promise | None:
        """Current promise of the run's end now or after its start, or the reason why there is none.

        None = nothing is said.

        What is promised of its steps is in their rows.
        """
        status = self.status
        if status is None:
            return None
        ends = status.ends_after_start or status.ends
        if ends is None and not status.ends_unknown:
            return None
        return Promise(
            self.confidence,
            None if ends is None else ends.times,
            unknown=status.ends_unknown or "",
            after_start=status.ends_after_start is not None,
        )

    @property
    def first_promise(self) -> Promise | None:
        """First promise of the run's end; None = nothing could be promised then."""
        ends = self.spec.first_ends
        if ends is None:
            return None
        return Promise(
            self.first_confidence,
            ends.times,
            planned_seconds=ends.planned,
            made_seconds=ends.promised_after,
        )

    def node_name(self, index: int | None) -> str | None:
        """Return the name of the node at an index, or None if there is no such node."""
        if index is None or not 0 <= index < len(self.spec.nodes):
            return None
        return self.spec.nodes[index]
