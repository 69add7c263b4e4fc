"""How large PipelinePlacements become, and what gives way when one is too large."""

import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kfp_placement_engine.contract.placement import (
    PipelinePlacement,
    PipelinePlacementSpec,
    PipelinePlacementStatus,
)
from kfp_placement_engine.contract.placement_size import (
    HARD_LIMIT_BYTES,
    fit_rows,
    json_bytes,
    rows_bytes,
)
from kfp_placement_engine.contract.rows import PlannedRow, StateRow, planned_row, state_row
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.reasons import reason
from kfp_placement_engine.model.step_state import StepState
from kfp_placement_engine.plans.planned_step import Alternative

CLUSTER = 200


def a_plan(steps):
    """Rows as a large loop has them: long names, three alternatives, times to a tenth."""
    rng = random.Random(steps)

    def row(number):
        start = round(rng.uniform(0, 20_000), 1)
        node, *others = rng.sample(range(CLUSTER), 4)
        lost = sorted(round(rng.uniform(0, 500), 1) for _ in others)
        return PlannedRow(
            f"for-loop-1[{number}].print-text",
            node,
            start,
            round(start + rng.uniform(10, 900), 1),
            reason("run-later", seconds=lost[0], node=others[0]),
            tuple(map(Alternative, others, lost)),
        )

    return [row(number) for number in range(steps)]


def states_of(plan, ended):
    """The first so many have ended, the next runs, the others are to come."""
    states = [
        StateRow(StepState.SUCCEEDED, row.node, row.start_seconds, row.finish_seconds)
        for row in plan[:ended]
    ]
    states += [
        StateRow(StepState.RUNNING, row.node, row.start_seconds) for row in plan[ended : ended + 1]
    ]
    return states + [StateRow(StepState.PENDING)] * (len(plan) - len(states))


def an_object(plan, states):
    now = datetime(2026, 11, 20, 10, tzinfo=UTC)
    spec = PipelinePlacementSpec(
        workflow_uid="0d4a9f0e-0a58-4c0b-9e8e-7f1f0d3b6a55",
        revision=1,
        submitted_at=now,
        planned_at=now,
        nodes=tuple(f"gke-pool-a-1b2c3d4e-{number:04}" for number in range(CLUSTER)),
        steps=tuple(tuple(planned_row(row)) for row in plan),
    )
    status = PipelinePlacementStatus(
        revision=1, steps=tuple(tuple(state_row(row)) for row in states)
    )
    return PipelinePlacement(spec=spec, status=status).to_object()


@pytest.mark.parametrize(
    ("steps", "most"),
    # Measured with these seeds: 12, 72 and 669 kB with 200 nodes, reasons and three alternatives
    # in every row and all steps ended, the largest state there is; + 10%.
    [(50, 13_600), (500, 79_000), (5_000, 736_000)],
)
def test_sizes(steps, most):
    plan = a_plan(steps)
    size = json_bytes(an_object(plan, states_of(plan, steps)))
    assert size < most < HARD_LIMIT_BYTES


def test_round_trips_leave_room_in_5000_rows():
    """As in a plan of nothing but steps under a latency rule."""
    rng = random.Random(7)
    plan = [
        replace(
            row,
            alternatives=tuple(
                replace(each, latency_ms=rng.uniform(10, 200)) for each in row.alternatives
            ),
        )
        for row in a_plan(5_000)
    ]
    # Measured: 780 kB.
    size = json_bytes(an_object(plan, states_of(plan, 5_000)))
    assert size < 860_000 < HARD_LIMIT_BYTES


def test_what_fits_stays():
    plan = a_plan(500)
    fitted = fit_rows(plan, states_of(plan, 100))
    assert fitted.planned == tuple(plan)
    assert fitted.folded_steps == 0


def test_ended_steps_become_counts():
    plan = a_plan(12_000)
    states = states_of(plan, 5_000)
    states[0] = replace(states[0], state=StepState.FAILED)
    fitted = fit_rows(plan, states)
    assert rows_bytes(fitted.planned, fitted.states) <= HARD_LIMIT_BYTES
    assert fitted.folded_steps == 5_000
    assert fitted.planned == tuple(plan[5_000:])
    assert fitted.states[0].state == StepState.RUNNING


def test_then_alternatives_give_way():
    plan = a_plan(12_000)
    fitted = fit_rows(plan, states_of(plan, 0), limit_bytes=1_100_000)
    assert fitted.without_alternatives
    assert len(fitted.planned) == 12_000
    assert fitted.planned[0].reason is not None


def test_what_never_fits_is_refused():
    plan = a_plan(1_000)
    with pytest.raises(LimitError, match=r"1000 steps that have not ended .* split the pipeline"):
        fit_rows(plan, states_of(plan, 0), limit_bytes=10_000)
