"""A run in the cluster as people see it: its objects are read once, into one value."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from typing import Any

from kfp_placement_engine.contract.keys import (
    MAX_RUN_NAME_CHARACTERS,
    RUN_ID_LABEL,
    RUN_NAME_ANNOTATION,
)
from kfp_placement_engine.contract.placement import (
    ConditionType,
    Phase,
    PipelinePlacementStatus,
    StepCounts,
)
from kfp_placement_engine.contract.resources import Condition, PipelinePlacement, read_resource
from kfp_placement_engine.contract.rows import StateRow
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.promise import CONFIDENCE, Promise, TimeRange
from kfp_placement_engine.model.step_state import StepState, waiting_text
from kfp_placement_engine.views.formatting import shown
from kfp_placement_engine.views.pods import PodView
from kfp_placement_engine.views.queues import QueueView
from kfp_placement_engine.views.steps import NOT_BEGUN, UNKNOWN_STATE, StepView, step_view

FAILED_PHASES = frozenset({Phase.FAILED, Phase.REFUSED})
ENDED_PHASES = FAILED_PHASES | {Phase.SUCCEEDED}

UNREADABLE = "Unreadable"
"""Phase of a run of which nobody can read more than its name."""

_MAX_WHY = 120


@dataclass(frozen=True)
class NamedRun:
    """A run as its objects' metadata name it.

    Attributes:
        namespace: where its Workflow is.
        name: the Workflow's.
        run_name, run_id: KFP's; "" = not known.
        raw: its PipelinePlacement; None = it has none, or it is not read yet.
    """

    namespace: str
    name: str
    run_name: str = ""
    run_id: str = ""
    raw: dict[str, Any] | None = None

    @property
    def key(self) -> RunKey:
        """What tells it apart from all others."""
        return RunKey(self.namespace, self.name)


def named_run(raw: Mapping[str, Any]) -> NamedRun:
    """What the metadata of a Workflow or PipelinePlacement say; never fails."""
    metadata = _mapping(raw.get("metadata"))
    labels, notes = _mapping(metadata.get("labels")), _mapping(metadata.get("annotations"))
    return NamedRun(
        namespace=_word(metadata.get("namespace")),
        name=_word(metadata.get("name")),
        run_name=_word(notes.get(RUN_NAME_ANNOTATION)),
        run_id=_word(labels.get(RUN_ID_LABEL)),
    )


@dataclass(frozen=True)
class RunView:
    """A run at a moment. Of one that cannot be read there is only its name, and a problem.

    Attributes:
        name: of its Workflow.
        namespace: where.
        seen_at: the moment.
        run_id, run_name: KFP's; "" = not said.
        phase: where it is; "" = it has no plan, `Unreadable` = nobody knows.
        progress: steps that have ended, of all; "" = not said.
        counts: steps by state, those without a row included; None = not said.
        folded_steps: ended steps that have no row any more.
        submitted_at: time zero of all its times; None = it cannot be read.
        planned_at: when the plan in force was made.
        makespan_seconds, first_makespan_seconds: by the plan in force, and by the first.
        actual_makespan_seconds: as it was, once the run has ended.
        promise: when it ends, or why that is not known; None = nothing is said, or it has ended.
        first_promise: what was promised first; None = nothing was known then.
        confidence: how often promised ranges of its steps hold.
        dispatch, revision: of the plan in force.
        conditions: of its object.
        problems: what cannot be read of it, or why it has no plan.
        steps: in the plan's order.
        workflow_message: why it failed, as its Workflow says; "" = not said, or not asked.
        queue: how it waits; None = in no queue, or nobody has looked.
        missing: what could not be read of the cluster.
    """

    name: str
    namespace: str
    seen_at: datetime
    run_id: str = ""
    run_name: str = ""
    phase: str = ""
    progress: str = ""
    counts: StepCounts | None = None
    folded_steps: int = 0
    submitted_at: datetime | None = None
    planned_at: datetime | None = None
    makespan_seconds: float | None = None
    first_makespan_seconds: float | None = None
    actual_makespan_seconds: float | None = None
    promise: Promise | None = None
    first_promise: Promise | None = None
    confidence: float = CONFIDENCE
    dispatch: str = ""
    revision: int | None = None
    conditions: tuple[Condition, ...] = ()
    problems: tuple[str, ...] = ()
    steps: tuple[StepView, ...] = ()
    workflow_message: str = ""
    queue: QueueView | None = None
    missing: tuple[str, ...] = ()

    @property
    def key(self) -> RunKey:
        """What tells it apart from all others."""
        return RunKey(self.namespace, self.name)

    @property
    def has_plan(self) -> bool:
        """Whether more than its name is known."""
        return self.planned_at is not None

    @property
    def ended(self) -> bool:
        """Nothing more will come of it."""
        return self.phase in ENDED_PHASES

    @property
    def failed(self) -> bool:
        """It has ended, and not well."""
        return self.phase in FAILED_PHASES

    def count(self, state: StepState) -> int:
        """Steps in that state, those without a row included."""
        return 0 if self.counts is None else int(getattr(self.counts, state))

    @property
    def age_seconds(self) -> float | None:
        """Time since its submission; None = not known."""
        if self.submitted_at is None:
            return None
        return max(0.0, (self.seen_at - self.submitted_at).total_seconds())

    @property
    def is_after_start(self) -> bool:
        """Whether the promise counts from its start, as it is held back."""
        return self.promise is not None and self.promise.after_start

    @property
    def ends(self) -> TimeRange | None:
        """When it ends, since its submission, as promised now; None = nothing is promised."""
        return None if self.promise is None or self.is_after_start else self.promise.ends

    @property
    def alarms(self) -> tuple[Condition, ...]:
        """Conditions that somebody should know of: what ought to hold and does not."""
        wanted = set(ConditionType) - {ConditionType.FINISHED}
        return tuple(
            each for each in self.conditions if each.type in wanted and each.status == "False"
        )

    @property
    def waiting(self) -> tuple[StepView, ...]:
        """Steps that wait for something."""
        return tuple(step for step in self.steps if step.waiting is not None)

    def waits(self, step: StepView) -> str:
        """What one of its steps waits for, since and until when; "" = nothing."""
        return "" if step.waiting is None else waiting_text(step.waiting, self.age_seconds or 0.0)

    def in_queue(self, queue: QueueView | None) -> "RunView":
        """The run with how it waits; while it does, without times that count from another moment.

        These are what is promised, and what is planned for steps that have not begun.
        """
        run = replace(self, queue=queue)
        if queue is None or not queue.is_waiting:
            return run
        promise = self.promise if self.ends is None else None
        return replace(run, promise=promise, steps=tuple(map(_without_times, self.steps)))

    def with_states_of(self, before: "RunView | None") -> "RunView":
        """The run, with the states seen before of steps of which its status does not speak yet.

        A replan is written before the status that follows it.
        """
        known = {} if before is None else {step.name: step for step in before.steps}
        steps = tuple(step.with_state_of(known.get(step.name)) for step in self.steps)
        return replace(self, steps=steps)


def _without_times(step: StepView) -> StepView:
    step = replace(step, promise=None)
    if step.state not in NOT_BEGUN:
        return step
    return replace(step, planned_start_seconds=None, planned_finish_seconds=None)


def run_view(
    raw: Mapping[str, Any],
    now: datetime,
    pods: Mapping[str, PodView] | None = None,
    run_name: str = "",
) -> RunView:
    """Read a PipelinePlacement, which anybody may have written; never fails.

    Args:
        raw: as the API server prints it.
        now: the time.
        pods: its pods by step.
        run_name: KFP's name of the run, where it is known from elsewhere.
    """
    named = named_run(raw)
    run = RunView(named.name, named.namespace, now, named.run_id, run_name or named.run_name)
    try:
        placement = read_resource(PipelinePlacement, dict(raw))
    except InputError as error:
        return replace(run, phase=UNREADABLE, problems=(str(error),))
    spec, status = placement.spec, placement.status or PipelinePlacementStatus()
    planned, states = placement.planned_rows(), placement.state_rows()
    phase = status.phase or Phase.PLANNING.value
    promise = placement.promise
    if promise is not None:
        promise = replace(promise, unknown=shown(promise.unknown, _MAX_WHY))
    return replace(
        run,
        phase=phase,
        progress=status.progress or "",
        counts=status.counts,
        folded_steps=status.folded_steps or 0,
        submitted_at=spec.submitted_at,
        planned_at=spec.planned_at,
        makespan_seconds=spec.makespan_seconds,
        first_makespan_seconds=spec.first_makespan_seconds,
        actual_makespan_seconds=status.makespan_seconds,
        promise=None if phase in ENDED_PHASES else promise,
        first_promise=placement.first_promise,
        confidence=placement.confidence,
        dispatch=spec.dispatch,
        revision=spec.revision,
        conditions=status.conditions,
        problems=(*planned.problems, *states.problems),
        steps=tuple(
            step_view(
                placement,
                row,
                state or StateRow(state=UNKNOWN_STATE),
                (pods or {}).get(row.name),
            )
            for row, state in zip_longest(planned.rows, states.rows)
            if row is not None
        ),
    )


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


def _word(value: object) -> str:
    return value[:MAX_RUN_NAME_CHARACTERS] if isinstance(value, str) else ""


def waiting_run(view: QueueView, now: datetime) -> RunView:
    """A run that waits in a queue and has no plan, such as one without a marked step."""
    return RunView(
        name=view.key.name,
        namespace=view.key.namespace,
        seen_at=now,
        run_name=view.run_name,
        submitted_at=view.submitted_at,
        queue=view,
    )
