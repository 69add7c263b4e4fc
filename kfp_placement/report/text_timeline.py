"""The time line as plain text: one line for what runs at the same time on a node."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from kfp_placement.report.timeline import ticks
from kfp_placement.report.values import duration
from kfp_placement.report.visible import clip_columns, visible, width
from kfp_placement_engine.model.limits import ScheduledStep
from kfp_placement_engine.model.plan import Plan

_GAP = 3
_TICK_COLUMNS = 12
_LONGEST_NAME = 24
_LEAST_COLUMNS = 20
_MOST_SHIFT = 2
"""Columns by which a step is drawn too late at most, to share a line with one before it."""

_SAME_MOMENT_SECONDS = 1e-9


@dataclass(frozen=True)
class TimeLine:
    """What one schedule does.

    Attributes:
        title: a line above it.
        steps: where and when each step runs.
    """

    title: str
    steps: Sequence[ScheduledStep]


def planned(plan: Plan) -> list[ScheduledStep]:
    """The steps of a plan that take time on a node."""
    return [
        ScheduledStep(step.name, step.node, step.start_seconds, step.finish_seconds)
        for step in plan.steps
        if step.node is not None
        and step.start_seconds is not None
        and step.finish_seconds is not None
    ]


def time_lines(lines: Sequence[TimeLine], columns: int = 100) -> list[str]:
    """Time lines below each other, on one scale.

    A step is its name, then dashes, up to `|`: from its bind to the end of its uploads. A step that
    is too short for its name shows the beginning of it.

    Args:
        lines: the schedules.
        columns: how wide they may be.

    Returns:
        The lines of text; the axis is the last.
    """
    steps = [step for line in lines for step in line.steps]
    names = _node_names(steps)
    left = max(map(width, names.values()), default=0) + _GAP
    scale = _Scale(max((step.finish_seconds for step in steps), default=0.0), columns - left)
    text = []
    for line in lines:
        text.append(line.title)
        on_node = sorted(line.steps, key=lambda step: list(names).index(step.node))
        for node, there in groupby(on_node, key=lambda step: step.node):
            heading = names[node] + " " * (left - width(names[node]))
            for drawn in _lanes(list(there), scale):
                text.append((heading + drawn).rstrip())
                heading = " " * left
        text.append("")
    return [*text, (" " * left + scale.axis()).rstrip()]


class _Scale:
    """Seconds to columns of text."""

    def __init__(self, end: float, columns: int) -> None:
        self.columns = max(columns, _LEAST_COLUMNS)
        self._end = end

    def column(self, seconds: float) -> int:
        """The column in which a moment lies."""
        if self._end <= 0:
            return 0
        return round(min(max(seconds / self._end, 0.0), 1.0) * self.columns)

    def axis(self) -> str:
        """Round times, each from the column on in which it lies."""
        text = ""
        for seconds in ticks(self._end, max(self.columns // _TICK_COLUMNS, 1)):
            text = text.ljust(self.column(seconds)) + duration(seconds) + " "
        return text


def _node_names(steps: Iterable[ScheduledStep]) -> dict[str, str]:
    """Nodes in the order of their names -> the names, short enough to stand before a line."""
    nodes = sorted({step.node for step in steps})
    return {node: clip_columns(visible(node), _LONGEST_NAME) for node in nodes}


def _lanes(steps: Sequence[ScheduledStep], scale: _Scale) -> list[str]:
    """As few lines as hold the steps of a node; those that follow each other share one."""
    drawn: list[str] = []
    ends: list[float] = []
    for step in sorted(steps, key=lambda step: step.start_seconds):
        begin, first = step.start_seconds, scale.column(step.start_seconds)
        latest = min(first + _MOST_SHIFT, scale.columns)
        free = (
            lane
            for lane, end in enumerate(ends)
            if end <= begin + _SAME_MOMENT_SECONDS and width(drawn[lane]) <= latest
        )
        lane = next(free, len(drawn))
        drawn += [""] * (lane + 1 - len(drawn))
        ends += [0.0] * (lane + 1 - len(ends))
        before = drawn[lane] + " " * (first - width(drawn[lane]))
        last = max(scale.column(step.finish_seconds), width(before) + 1)
        drawn[lane] = before + _bar(visible(step.name), last - width(before))
        ends[lane] = step.finish_seconds
    return drawn


def _bar(name: str, columns: int) -> str:
    """A step that takes this many columns."""
    label = name[: columns - 1]
    while width(label) > columns - 1:
        label = label[:-1]
    return label + "-" * (columns - 1 - width(label)) + "|"
