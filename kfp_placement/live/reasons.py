"""Why a step goes where it goes, and what comes next, from a row of its plan; pure."""

from collections.abc import Sequence

from kfp_placement_engine.contract.rows import PlannedRow
from kfp_placement_engine.contract.texts import reason_text
from kfp_placement_engine.model.plan import Alternative
from kfp_placement_engine.model.reasons import (
    Cached,
    FarFromUsers,
    NearUsers,
    OnlyNode,
    RunLater,
    Unschedulable,
)

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
    if is_bound and isinstance(row.reason, Unschedulable):
        return f"at the time of the plan: {text}"
    return text


def is_ruled(row: PlannedRow) -> bool:
    """The latency rule decided where it goes."""
    return isinstance(row.reason, NearUsers | FarFromUsers)


def is_compared(row: PlannedRow) -> bool:
    """There may be other nodes for it, and the plan may name some."""
    return row.node is not None and not isinstance(row.reason, Cached | OnlyNode)


def loss_seconds(row: PlannedRow, other: Alternative) -> float:
    """What another node costs the run: as the reason has it where it names that node."""
    reason = row.reason
    if not isinstance(reason, RunLater) or reason.node != other.node:
        return other.loss_seconds
    is_same = abs(reason.seconds - other.loss_seconds) <= _ROUNDED_SECONDS
    return float(reason.seconds) if is_same else other.loss_seconds
