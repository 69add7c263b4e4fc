"""How much of a plan is drawn one by one; what is beyond is summed up."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Caps of one kind of report.

    Attributes:
        rows: steps in the step table.
        bars: steps drawn one by one on the time line; beyond, each node's load is drawn.
        nodes: nodes on the time line and in legends, those with most work first.
        boxes: steps in the graph; beyond, steps of one task share a box; beyond that, levels.
        lines: warnings, unschedulable steps and assumptions.
        width: of the time line, in pixels.
    """

    rows: int
    bars: int
    nodes: int
    boxes: int
    lines: int
    width: float


REPORT = Limits(rows=5_000, bars=1_500, nodes=80, boxes=300, lines=500, width=1100.0)
"""A file of its own: large, but still light for a browser."""

NOTEBOOK = Limits(rows=200, bars=250, nodes=40, boxes=120, lines=50, width=690.0)
"""Kept in the notebook with every saved cell: some 200 kB, below 1 MB whatever the names."""

FOLDED = 8
"""Items of a loop that are shown one by one; more of them are folded."""
