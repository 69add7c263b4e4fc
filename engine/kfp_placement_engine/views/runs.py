"""View of a run in the cluster, read once from its objects."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from typing import Any

from kfp_placement_engine.contract.custom_resources import (
    Condition,
    PipelinePlacement,
    read_resource,
)
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
from kfp_placement_engine.contract.rows import StateRow
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.model.promise import CONFIDENCE, Promise, TimeRange
from kfp_placement_engine.model.step_state import StepState, waiting_text
from kfp_placement_engine.readers.argo.step_pods import StepPod
from kfp_placement_engine.readers.text.place import mapping_or_empty, text_or_empty
from kfp_placement_engine.views.formatting import shown
from kfp_placement_engine.views.queues import QueueView
from kfp_placement_engine.views.steps import NOT_BEGUN, UNKNOWN_STATE, StepView, step_view

FAILED_PHASES = frozenset({Phase.FAILED, Phase.REFUSED})
ENDED_PHASES = FAILED_PHASES | {Phase.SUCCEEDED}

UNREADABLE = "Unreadable"
"""Phase of a run whose object cannot be read."""

_MAX_WHY = 120


@dataclass(frozen=True)
class NamedRun:
    """Names of a run, from the metadata of one of its objects.

    Attributes:
        namespace: namespace of the Workflow.
        name: name of the Workflow.
        run_name, run_id: KFP's name and id of the run; "" = not known.
        raw: PipelinePlacement of the run; None = it has none, or it was not read.
    """

    namespace: str
    name: str
    run_name: str = ""
    run_id: str = ""
    raw: dict[str, Any] | None = None

    @property
    def key(self) -> RunKey:
        """Key of the run, unique in a cluster."""
        return RunKey(self.namespace, self.name)


def named_run(raw: Mapping[str, Any]) -> NamedRun:
    """Read the names of a run from a Workflow or PipelinePlacement; never fail."""
    metadata = mapping_or_empty(raw.get("metadata"))
    labels = mapping_or_empty(metadata.get("labels"))
    annotations = mapping_or_empty(metadata.get("annotations"))
    return NamedRun(
        namespace=_name(metadata.get("namespace")),
        name=_name(metadata.get("name")),
        run_name=_name(annotations.get(RUN_NAME_ANNOTATION)),
        run_id=_name(labels.get(RUN_ID_LABEL)),
    )


def _name(value: object) -> str:
    return text_or_empty(value)[:MAX_RUN_NAME_CHARACTERS]


@dataclass(frozen=True)
class RunView:
    """State of a run at one moment; if it cannot be read, only its name and the problem.

    Attributes:
        name: name of the Workflow.
        namespace: namespace of the Workflow.
        seen_at: moment of the view.
        run_id, run_name: KFP's id and name of the run; "" = not known.
        phase: phase of the run; "" = it has no plan, `Unreadable` = its object cannot be read.
        progress: number of ended steps and of all: `3/7`; "" = not known.
        counts: steps by state, including those without a row; None = not known.
        folded_steps: number of ended steps that have no row any more.
        submitted_at: time of the submission, zero of all times of the run; None = not known.
        planned_at: time of the plan in force; None = there is no plan.
        makespan_seconds, first_makespan_seconds: makespan of the plan in force, and of the first.
        actual_makespan_seconds: duration of the run, once it has ended.
        promise: promised end, or the reason why none is; None = no promise, or the run has ended.
        first_promise: first promised end; None = there was none.
        confidence: share of cases in which promised ranges of its steps hold.
        dispatch, revision: dispatch and revision of the plan in force.
        basis: basis of that plan: `outline` if the run does not say requests; "" = it says them.
        conditions: conditions of the PipelinePlacement.
        problems: errors of reading, or reasons why there is no plan.
        steps: steps in the plan's order.
        workflow_message: message of the Workflow on why the run failed; "" = none, or not read.
        queue: the run in its queue; None = in no queue, or not read.
        missing: texts on data of the cluster that could not be read.
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
    basis: str = ""
    conditions: tuple[Condition, ...] = ()
    problems: tuple[str, ...] = ()
    steps: tuple[StepView, ...] = ()
    workflow_message: str = ""
    queue: QueueView | None = None
    missing: tuple[str, ...] = ()

    @property
    def key(self) -> RunKey:
        """Key of the run, unique in a cluster."""
        return RunKey(self.namespace, self.name)

    @property
    def has_plan(self) -> bool:
        """True if the run has a plan that can be read."""
        return self.planned_at is not None

    @property
    def ended(self) -> bool:
        """True if the run succeeded, failed or was refused."""
        return self.phase in ENDED_PHASES

    @property
    def failed(self) -> bool:
        """True if the run failed or was refused."""
        return self.phase in FAILED_PHASES

    def count(self, state: StepState) -> int:
        """Return the number of steps in a state, including those without a row."""
        return 0 if self.counts is None else int(getattr(self.counts, state))

    @property
    def age_seconds(self) -> float | None:
        """Time since the submission; None = not known."""
        if self.submitted_at is None:
            return None
        return max(0.0, (self.seen_at - self.submitted_at).total_seconds())

    @property
    def is_after_start(self) -> bool:
        """True if the promise counts from the start of the run, which is held back."""
        return self.promise is not None and self.promise.after_start

    @property
    def ends(self) -> TimeRange | None:
        """Promised range of the end since the submission; None = there is none."""
        return None if self.promise is None or self.is_after_start else self.promise.ends

    @property
    def alarms(self) -> tuple[Condition, ...]:
        """Conditions that should hold and do not."""
        wanted = set(ConditionType) - {ConditionType.FINISHED, ConditionType.SPEC_READ}
        return tuple(
            each for each in self.conditions if each.type in wanted and each.status == "False"
        )

    @property
    def missing_package(self) -> Condition | None:
        """Condition that says why the run is planned by its outline; None = it is not."""
        of_kind = (each for each in self.conditions if each.type == ConditionType.SPEC_READ)
        return next((each for each in of_kind if each.status == "False"), None)

    @property
    def waiting(self) -> tuple[StepView, ...]:
        """Steps that wait for something."""
        return tuple(step for step in self.steps if step.waiting is not None)

    def waits(self, step: StepView) -> str:
        """Describe what a step waits for, since and until when; "" = it does not wait."""
        return "" if step.waiting is None else waiting_text(step.waiting, self.age_seconds or 0.0)

    def in_queue(self, queue: QueueView | None) -> "RunView":
        """Return the run with its state in a queue.

        While it waits, times that count from the submission are left out, as the start is not
        known: promised ends, and planned times of steps that have not begun.
        """
        run = replace(self, queue=queue)
        if queue is None or not queue.is_waiting:
            return run
        promise = self.promise if self.ends is None else None
        return replace(run, promise=promise, steps=tuple(map(_without_times, self.steps)))

    def with_states_of(self, before: "RunView | None") -> "RunView":
        """Return the run with states from an earlier view for steps whose status has none yet.

        A replan is written before the status that follows it.
        """
        old_steps = {} if before is None else {step.name: step for step in before.steps}
        steps = tuple(step.with_state_of(old_steps.get(step.name)) for step in self.steps)
        return replace(self, steps=steps)


def _without_times(step: StepView) -> StepView:
    step = replace(step, promise=None)
    if step.state not in NOT_BEGUN:
        return step
    return replace(step, planned_start_seconds=None, planned_finish_seconds=None)


def run_view(
    raw: Mapping[str, Any],
    now: datetime,
    pods: Mapping[str, StepPod] | None = None,
    run_name: str = "",
) -> RunView:
    """Read a PipelinePlacement; never fail, as anybody may have written it.

    Args:
        raw: object as the API server prints it.
        now: present time.
        pods: pods of the run by step.
        run_name: KFP's name of the run from another object; "" = not known.
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
        basis=spec.basis or "",
        conditions=status.conditions,
        problems=(*planned.problems, *states.problems),
        steps=tuple(
            step_view(
                placement, row, state or StateRow(state=UNKNOWN_STATE), (pods or {}).get(row.name)
            )
            for row, state in zip_longest(planned.rows, states.rows)
            if row is not None
        ),
    )


def waiting_run(view: QueueView, now: datetime) -> RunView:
    """Return the view of a run in a queue without a plan, such as one without marked steps."""
    return RunView(
        name=view.key.name,
        namespace=view.key.namespace,
        seen_at=now,
        run_name=view.run_name,
        submitted_at=view.submitted_at,
        queue=view,
    )
