"""Schedules as plain text: one line for what runs at the same time in one place."""

from collections.abc import Sequence

from kfp_placement_engine.render.scale import Scale
from kfp_placement_engine.render.shortening import clip_columns
from kfp_placement_engine.render.widths import width
from kfp_placement_engine.views.drawings import DrawnSchedule, Lane
from kfp_placement_engine.views.formatting import duration, visible

_GAP = 3
_TICK_COLUMNS = 12
_LONGEST_NAME = 24
_LEAST_COLUMNS = 20
_MOST_SHIFT = 2
"""Columns by which a bar is drawn too late at most, to share a line with one before it."""

_SAME_MOMENT_SECONDS = 1e-9


def time_lines(schedules: Sequence[DrawnSchedule], columns: int = 100) -> list[str]:
    """Return schedules as lines of text below each other, on one scale.

    A bar is its label, then dashes, up to `|`. One that is too short shows the beginning of it.

    Args:
        schedules: schedules to show, each with a title.
        columns: largest width of a line; one more if a bar begins at the very end. The scale has 20
            columns at least.

    Returns:
        The lines of text; the axis is the last.
    """
    all_lanes = [lane for schedule in schedules for lane in schedule.lanes]
    names = {lane.name: clip_columns(visible(lane.name), _LONGEST_NAME) for lane in all_lanes}
    left = max(map(width, names.values()), default=0) + _GAP
    end = max((bar.finish_seconds for lane in all_lanes for bar in lane.bars), default=0.0)
    right = max(columns - left, _LEAST_COLUMNS)
    scale = Scale(end, 0, right)
    lines = []
    for schedule in schedules:
        lines.append(schedule.title)
        for lane in schedule.lanes:
            heading = names[lane.name] + " " * (left - width(names[lane.name]))
            for drawn in _drawn(lane, scale):
                lines.append((heading + drawn).rstrip())
                heading = " " * left
        lines.append("")
    axis = " " * left
    for seconds in scale.ticks(_TICK_COLUMNS):
        text = duration(seconds)
        axis = axis.ljust(left + min(round(scale.x(seconds)), right - len(text))) + text + " "
    return [*lines, axis.rstrip()]


def _drawn(lane: Lane, scale: Scale) -> list[str]:
    """Return as few lines as hold the bars of a lane; bars in sequence share one."""
    drawn: list[str] = []
    ends: list[float] = []
    for bar in sorted(lane.bars, key=lambda bar: bar.start_seconds):
        begin, first = bar.start_seconds, round(scale.x(bar.start_seconds))
        latest = min(first + _MOST_SHIFT, scale.right)
        free = (
            at
            for at, end in enumerate(ends)
            if end <= begin + _SAME_MOMENT_SECONDS and width(drawn[at]) <= latest
        )
        line = next(free, len(drawn))
        if line == len(drawn):
            drawn.append("")
            ends.append(0.0)
        before = drawn[line].ljust(first + len(drawn[line]) - width(drawn[line]))
        last = max(round(scale.x(bar.finish_seconds)), width(before) + 1)
        drawn[line] = before + _bar(visible(bar.label), last - width(before))
        ends[line] = bar.finish_seconds
    return drawn


def _bar(label: str, columns: int) -> str:
    """Return a bar of a number of columns."""
    label = label[: columns - 1]
    while width(label) > columns - 1:
        label = label[:-1]
    return label + "-" * (columns - 1 - width(label)) + "|"
