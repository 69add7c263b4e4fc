"""Levels of detail of a plan: the usual table, everything, or a page with drawings."""

from dataclasses import dataclass, replace

_ALL = 10**9


@dataclass(frozen=True)
class Detail:
    """Level of detail.

    Attributes:
        wide: whether all columns are shown, and every warning.
        reasons: whether each step has its reason.
        draws: whether there are figures and drawings.
        folded_above: largest number of items of a loop that are shown one by one; more of them are
            one row or box.
        rows: largest number of steps in the table.
        bars: largest number of steps on the time line one by one; beyond, each node's load is
            shown.
        nodes: largest number of nodes on the time line, those with most work first.
        boxes: largest number of boxes in the graph; beyond, steps of one task share a box; beyond
            that, levels.
        lines: largest number of remarks under one heading.
    """

    wide: bool = False
    reasons: bool = False
    draws: bool = False
    folded_above: int = 1
    rows: int = _ALL
    bars: int = 0
    nodes: int = 0
    boxes: int = 0
    lines: int = _ALL


TEXT = Detail()
"""The usual table."""

WITH_REASONS = Detail(reasons=True, folded_above=_ALL)
"""The usual table, and the reason of every step."""

WIDE = Detail(wide=True, reasons=True, folded_above=_ALL)
"""Level with all columns of every step."""

PAGE = Detail(
    wide=True,
    reasons=True,
    draws=True,
    folded_above=8,
    rows=5_000,
    bars=1_500,
    nodes=80,
    boxes=300,
    lines=500,
)
"""A file of its own: large, but still light for a browser."""

NOTEBOOK = replace(PAGE, rows=200, bars=250, nodes=40, boxes=120, lines=50)
"""Kept in the notebook with every saved cell: some 200 kB, below 1 MB whatever the names."""
