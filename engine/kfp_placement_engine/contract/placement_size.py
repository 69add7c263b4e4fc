"""Keeps a PipelinePlacement within what etcd takes: ended steps become counts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kfp_placement_engine.contract.rows import PlannedRow, StateRow, planned_row, state_row
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.step_state import ENDED_STATES

HARD_LIMIT_BYTES = 1_000_000
"""A PipelinePlacement is never larger; etcd refuses 1.5 MB."""


@dataclass(frozen=True)
class FittedRows:
    """Rows that fit.

    Attributes:
        planned: planned rows of the steps that keep theirs.
        states: state rows of the same steps, in the same order.
        folded_steps: number of the other steps, which have ended.
        without_alternatives: alternatives were left out too.
    """

    planned: tuple[PlannedRow, ...] = ()
    states: tuple[StateRow, ...] = ()
    folded_steps: int = 0
    without_alternatives: bool = False


def json_bytes(value: object) -> int:
    """Return the size of a value as the compact JSON that etcd stores."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def rows_bytes(planned: Sequence[PlannedRow], states: Sequence[StateRow]) -> int:
    """Return the size of the rows of plan and status."""
    return json_bytes([planned_row(row) for row in planned]) + json_bytes(
        [state_row(row) for row in states]
    )


def fit_rows(
    planned: Sequence[PlannedRow], states: Sequence[StateRow], limit_bytes: int = HARD_LIMIT_BYTES
) -> FittedRows:
    """Make the rows fit: promises go first, then rows of ended steps, then alternatives.

    Args:
        planned: planned rows of all steps.
        states: state rows of the same steps, in the same order.
        limit_bytes: room for the rows.

    Raises:
        LimitError: the steps that have not ended are too many.
    """
    rows = FittedRows(tuple(planned), tuple(states))
    for step in (lambda whole: whole, _without_promises, _folded, _without_alternatives):
        rows = step(rows)
        size = rows_bytes(rows.planned, rows.states)
        if size <= limit_bytes:
            return rows
    raise LimitError(
        f"{len(rows.planned)} steps that have not ended take {size} bytes; at most {limit_bytes} "
        "fit into a PipelinePlacement: split the pipeline"
    )


def _without_promises(rows: FittedRows) -> FittedRows:
    return replace(rows, states=tuple(replace(row, promise=None) for row in rows.states))


def _folded(rows: FittedRows) -> FittedRows:
    kept = [
        (planned, state)
        for planned, state in zip(rows.planned, rows.states, strict=True)
        if state.state not in ENDED_STATES
    ]
    return replace(
        rows,
        planned=tuple(planned for planned, _ in kept),
        states=tuple(state for _, state in kept),
        folded_steps=len(rows.planned) - len(kept),
    )


def _without_alternatives(rows: FittedRows) -> FittedRows:
    bare = tuple(replace(row, alternatives=()) for row in rows.planned)
    return replace(rows, planned=bare, without_alternatives=True)
