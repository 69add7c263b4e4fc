"""The PipelinePlacement of a run: the plan in force, and what has happened to the steps."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kfp_placement_controller.planning.conditions import conditions, findings, phase
from kfp_placement_controller.runs.current_plan import CurrentPlan, with_named_nodes
from kfp_placement_controller.runs.step_statuses import last_end
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_engine.contract.custom_resources import (
    Condition,
    ObjectMetadata,
    PipelinePlacement,
)
from kfp_placement_engine.contract.keys import (
    ALL_PIPELINES,
    PIPELINES_LABEL,
    RUN_ID_LABEL,
    RUN_NAME_ANNOTATION,
)
from kfp_placement_engine.contract.placement import (
    MAX_UNKNOWN_CHARACTERS,
    EndRange,
    FirstEnds,
    PipelinePlacementSpec,
    PipelinePlacementStatus,
    StepCounts,
    bounded_seconds,
)
from kfp_placement_engine.contract.placement_size import (
    HARD_LIMIT_BYTES,
    FittedRows,
    fit_rows,
    json_bytes,
)
from kfp_placement_engine.contract.rows import PlannedRow, StateRow, planned_row, state_row
from kfp_placement_engine.model.promise import CONFIDENCE
from kfp_placement_engine.model.run_graph import OUTLINE
from kfp_placement_engine.model.step_state import ENDED_STATES, StepState, Waiting, WaitingFor

OTHER_BYTES = 30_000
"""Bytes kept free for what is neither rows nor node names: metadata, conditions, counts."""


@dataclass(frozen=True)
class PlacementState:
    """State of a run's object as last written, so that only changes are written.

    Attributes:
        revision: revision of the plan; 0 = there is none.
        steps: steps that have a row, in their order.
        folded: ended steps whose rows are left out.
        without_alternatives: whether the alternatives of steps are left out too.
        conditions: conditions as last written.
    """

    revision: int = 0
    steps: tuple[str, ...] = ()
    folded: frozenset[str] = frozenset()
    without_alternatives: bool = False
    conditions: tuple[Condition, ...] = ()

    @property
    def rows_problem(self) -> str:
        """Text about what is left out; "" = nothing is."""
        texts = [f"{len(self.folded)} ended steps are only counted"] if self.folded else []
        texts += ["alternatives are left out"] if self.without_alternatives else []
        return f"the object would be too large: {', '.join(texts)}" if texts else ""


@dataclass(frozen=True)
class BuiltPlacement:
    """PipelinePlacement of a run, ready to be written, with the plan and the state that it shows.

    Attributes:
        placement: the object.
        plan: plan in the object; None = there is none.
        state: state of the object once it is written.
    """

    placement: PipelinePlacement
    plan: CurrentPlan | None
    state: PlacementState


def placement_of(
    run: TrackedRun, state: PlacementState, epoch: int, now: datetime
) -> BuiltPlacement:
    """Return the object of a run; leaving out rows that do not fit makes another plan.

    Args:
        run: run as of its last evaluation.
        state: state of the object as last written.
        epoch: epoch of the planner's Lease.
        now: the time.

    Raises:
        LimitError: the steps that have not ended are too many.
    """
    plan, state, rows = _fitted(run, state)
    all_findings = findings(run, plan, state.rows_problem)
    state = replace(state, conditions=conditions(all_findings, state.conditions, now))
    placement = PipelinePlacement(
        metadata=_metadata(run),
        spec=_spec(run, plan, rows.planned, epoch, now),
        status=_status(run, plan, state, rows.states),
    )
    return BuiltPlacement(placement, plan, state)


def _metadata(run: TrackedRun) -> ObjectMetadata:
    run_name = run.observed.display_name
    namespace, name = run.key
    run_id = "" if run.reading is None else run.reading.graph.run_id
    # By this label later planners go on with an unmarked run, whatever its namespace says then.
    pipelines = ALL_PIPELINES if run.observed.all_marked else ""
    labels = {RUN_ID_LABEL: run_id, PIPELINES_LABEL: pipelines}
    return ObjectMetadata(
        name=name,
        namespace=namespace,
        # People find the objects of runs by these labels.
        labels={key: value for key, value in labels.items() if value} or None,
        annotations={RUN_NAME_ANNOTATION: run_name} if run_name else None,
        owner_references=(run.observed.owner.reference(block_owner_deletion=False),),
    )


def _fitted(
    run: TrackedRun, state: PlacementState
) -> tuple[CurrentPlan | None, PlacementState, FittedRows]:
    """Return the plan and the state that an object shows, and the rows that fit into it.

    Where other rows were written before, this counts as another plan.

    Rows of plan and status belong together by position. They change without a new plan where rows
    are left out, where a loop turns out narrower as its run ends, and where a run is refused.
    """
    if run.plan is None:
        return None, state, FittedRows()
    plan = with_named_nodes(run.plan, [status.node for status in run.statuses.values()])
    fitted = FittedRows() if run.refusal else _fitted_rows(run, plan, state)
    steps = tuple(row.name for row in fitted.planned)
    without_alternatives = state.without_alternatives or fitted.without_alternatives
    are_others = (steps, without_alternatives) != (state.steps, state.without_alternatives)
    if plan.revision == state.revision and are_others:
        plan = replace(plan, revision=plan.revision + 1)
    folded = state.folded
    if fitted.folded_steps:
        folded |= run.statuses.keys() - set(steps)
    state = replace(
        state,
        revision=plan.revision,
        steps=steps,
        folded=folded,
        without_alternatives=without_alternatives,
    )
    return plan, state, fitted


def _fitted_rows(run: TrackedRun, plan: CurrentPlan, state: PlacementState) -> FittedRows:
    """Return the rows of the steps that still have one, shortened until they fit."""
    names = [name for name in run.statuses if name not in state.folded]
    positions = {name: position for position, name in enumerate(plan.nodes)}
    planned = [plan.rows.get(name, PlannedRow(name)) for name in names]
    if state.without_alternatives:
        planned = [replace(row, alternatives=()) for row in planned]
    states = [_state(run, name, plan, positions) for name in names]
    limit = HARD_LIMIT_BYTES - OTHER_BYTES - json_bytes(list(plan.nodes))
    return fit_rows(planned, states, limit)


def _state(run: TrackedRun, name: str, plan: CurrentPlan, positions: Mapping[str, int]) -> StateRow:
    status = run.statuses[name]
    waiting = status.waiting
    last = run.promises.last
    promise = None if status.ended or last is None else last.steps.get(name)
    return StateRow(
        state=str(status.state),
        node=positions.get(status.node),
        start_seconds=_since(run, status.started_at),
        end_seconds=_since(run, status.ended_at),
        waiting=None
        if waiting is None
        else Waiting(
            what=str(_waits_for(waiting.what, plan.rows.get(name))),
            since_seconds=_since(run, waiting.since) or 0.0,
            until_seconds=_since(run, waiting.until),
            detail=waiting.detail,
        ),
        promise=promise,
    )


def _waits_for(what: WaitingFor, row: PlannedRow | None) -> WaitingFor:
    """Return what a step waits for: for its limit, if it fits no node and its limit excludes some.

    Its turn may never come, since pods that end make no room within the limit.
    """
    may_be_limit = what in (WaitingFor.NODE, WaitingFor.PLAN)
    reason = row.reason if may_be_limit and row is not None else None
    against = None if reason is None else reason.value_of("objections")
    is_beyond = any(objection.code in ("latency", "no-latency") for _, objection in against or ())
    return WaitingFor.LIMIT if is_beyond else what


def _since(run: TrackedRun, moment: datetime | None) -> float | None:
    if moment is None:
        return None
    return max(0.0, (moment - run.observed.submitted_at).total_seconds())


def _spec(
    run: TrackedRun, plan: CurrentPlan | None, rows: Iterable[PlannedRow], epoch: int, now: datetime
) -> PipelinePlacementSpec:
    bare = PipelinePlacementSpec(
        workflow_uid=run.observed.uid,
        submitted_at=run.observed.submitted_at,
        epoch=epoch,
        first_makespan_seconds=_bounded(run.first_makespan_seconds),
        **_first_ends(run),
        revision=1 if plan is None else plan.revision,
        planned_at=now.replace(microsecond=0),
    )
    if plan is None or run.refusal:
        return bare
    return bare.model_copy(
        update={
            "planned_at": plan.planned_at.replace(microsecond=0),
            "dispatch": plan.dispatch,
            "basis": OUTLINE if plan.is_outline else None,
            "seed": plan.seed,
            "generations": plan.generations,
            "makespan_seconds": _bounded(plan.makespan_seconds),
            "nodes": plan.nodes,
            "steps": tuple(tuple(planned_row(row)) for row in rows),
        }
    )


def _status(
    run: TrackedRun, plan: CurrentPlan | None, state: PlacementState, states: Iterable[StateRow]
) -> PipelinePlacementStatus:
    counts = Counter(status.state for status in run.statuses.values())
    ended = sum(counts[each] for each in ENDED_STATES)
    return PipelinePlacementStatus(
        conditions=state.conditions,
        phase=str(phase(run)),
        progress=f"{ended}/{len(run.statuses)}" if run.statuses else None,
        counts=StepCounts(**{str(each): counts[each] for each in StepState}),
        folded_steps=len(state.folded) or None,
        revision=1 if plan is None else plan.revision,
        makespan_seconds=_bounded(actual_makespan_seconds(run)),
        **_ends(run),
        steps=tuple(tuple(state_row(row)) for row in states),
    )


def _first_ends(run: TrackedRun) -> dict[str, Any]:
    """Return the first promise of the run's end, by field of the spec."""
    first = run.promises.first
    if first is None or first.ends is None or first.planned_seconds is None:
        return {}
    ends = FirstEnds.of(
        first.ends, planned=first.planned_seconds, promised_after=first.made_seconds
    )
    return {"first_ends": ends, "confidence": first.confidence}


def _ends(run: TrackedRun) -> dict[str, Any]:
    """Return the promise of the end of a run that goes on, by field of the status."""
    promise, first = run.promises.last, run.promises.first
    if promise is None or run.observed.ended:
        return {}
    if promise.ends is None:
        return {"ends_unknown": promise.unknown[:MAX_UNKNOWN_CHARACTERS]}
    as_first = promise.confidence == (CONFIDENCE if first is None else first.confidence)
    return {
        "ends_after_start" if promise.after_start else "ends": EndRange.of(promise.ends),
        "confidence": None if as_first else promise.confidence,
    }


def _bounded(seconds: float | None) -> float | None:
    return None if seconds is None else bounded_seconds(seconds)


def actual_makespan_seconds(run: TrackedRun) -> float | None:
    """Return how long an ended run took; None = it goes on, or no step of it has run."""
    return _since(run, last_end(run.statuses.values())) if run.observed.ended else None
