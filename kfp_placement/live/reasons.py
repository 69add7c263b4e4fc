"""Why a step goes where it goes, and what comes next, from a row of its plan; pure."""

from collections.abc import Sequence

from kfp_placement_engine.contract.rows import Alternative, PlannedRow
from kfp_placement_engine.contract.texts import ReasonCode, reason_text

NEAR = frozenset({ReasonCode.LATENCY_BEST, ReasonCode.LATENCY_NEAR})
FAR = frozenset({ReasonCode.LATENCY_MISSED, ReasonCode.LATENCY_SEARCHED})
"""The latency rule decided: for a node within its tolerance, or beyond it."""

_ALONE = frozenset({ReasonCode.CACHED, ReasonCode.ONLY_NODE})
"""Reasons that leave no other node."""

_ROUNDED_SECONDS = 0.5
"""Rows keep seconds to a tenth, long times to whole ones."""


def reason_of(row: PlannedRow, nodes: Sequence[str], *, is_bound: bool) -> str:
    """Why there, in a sentence; "" = not said.

    Args:
        row: the plan's.
        nodes: of the plan.
        is_bound: it has got a node, so that none can take it held only before.
    """
    if row.reason is None:
        return ""
    text = reason_text(row.reason, nodes)
    if is_bound and row.reason.code == ReasonCode.UNSCHEDULABLE:
        return f"at the time of the plan: {text}"
    return text


def is_ruled(row: PlannedRow) -> bool:
    """The latency rule decided where it goes."""
    return row.reason is not None and row.reason.code in NEAR | FAR


def is_compared(row: PlannedRow) -> bool:
    """There may be other nodes for it, and the plan may name some."""
    return row.node is not None and (row.reason is None or row.reason.code not in _ALONE)


def loss_seconds(row: PlannedRow, other: Alternative) -> float:
    """What another node costs the run: as the reason has it where it speaks of that node."""
    if row.reason is not None and row.reason.code == ReasonCode.RUN_LATER:
        match row.reason.arguments:
            case (int() | float() as seconds, other.node, *_) if (
                abs(seconds - other.loss_seconds) <= _ROUNDED_SECONDS
            ):
                return float(seconds)
            case _:
                pass
    return other.loss_seconds
