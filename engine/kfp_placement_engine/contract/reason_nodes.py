"""Nodes in rows: they are positions in a plan's list, which may be rewritten."""

import re
from collections.abc import Callable
from dataclasses import replace

from kfp_placement_engine.contract.rows import Argument, PlannedRow, Reason
from kfp_placement_engine.contract.texts import REASON_TEXTS

_NODE = re.compile(r"\{([0-9]):(?:node|other)\}")


def renumbered_reason(reason: Reason, translate: Callable[[int], int]) -> Reason:
    """The reason with its nodes at other positions.

    Args:
        reason: of a code that is known; others are left as they are.
        translate: old position to new.
    """
    positions = {int(found) for found in _NODE.findall(REASON_TEXTS.get(reason.code, ""))}
    if not positions:
        return reason
    arguments = tuple(
        _translated(argument, translate) if position in positions else argument
        for position, argument in enumerate(reason.arguments)
    )
    return Reason(reason.code, arguments)


def renumbered_row(row: PlannedRow, translate: Callable[[int], int]) -> PlannedRow:
    """The row with its nodes at other positions: its own, the alternatives', the reason's."""
    return replace(
        row,
        node=None if row.node is None else translate(row.node),
        reason=None if row.reason is None else renumbered_reason(row.reason, translate),
        alternatives=tuple(
            replace(other, node=translate(other.node)) for other in row.alternatives
        ),
    )


def _translated(argument: Argument, translate: Callable[[int], int]) -> Argument:
    if isinstance(argument, bool | str | tuple):
        return argument
    return translate(int(argument))
