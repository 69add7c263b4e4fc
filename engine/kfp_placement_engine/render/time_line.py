"""A time line as a drawing: a row for each lane, and schedules below each other on one scale."""

from collections.abc import Mapping, Sequence
from typing import Any

from kfp_placement_engine.render.drawing import Drawing
from kfp_placement_engine.render.environment import coordinate
from kfp_placement_engine.render.palette import PlaceColours
from kfp_placement_engine.render.scale import Scale, lanes
from kfp_placement_engine.render.shortening import fit, fit_all
from kfp_placement_engine.render.widths import text_width
from kfp_placement_engine.views.drawings import Bar, Lane, TimeLine
from kfp_placement_engine.views.plans.promises import plan_moment

Shape = dict[str, Any]
"""Shapes for the template, by the names that it uses."""

_Drawn = tuple[list[Shape], float]
"""Shapes, and where they end."""

_TOP, _BOTTOM = 30.0, 26.0
_HEADING = 30.0
_PADDING = 7.0
_LEAST_ROW = 38.0
_NAMES_SHARE, _LEAST_NAMES, _NAME_GAP, _RIGHT_MARGIN = 0.16, 140.0, 14.0, 14.0
"""Room for names of lanes, left of the bars, and room right of them."""

_TICK_PIXELS = 110.0
_KEY_ROW, _SWATCH, _KEY_GAP = 20.0, 22.0, 18.0
_NAME_SIZE, _LABEL_SIZE = 12.0, 11.0
"""Font sizes."""

_LABEL_GAP, _LABEL_PIXELS = 5.0, 220.0
_LABEL_LINE, _LABEL_LINES = 14.0, 5
"""Height of a line of labels below the bars, and how many there may be."""

_LABELLED_BARS = 200
"""Largest number of bars in a lane for which labels are also put beside or below the bars."""

_THIN_LINE, _THIN_LINES = 6.0, 6
"""A thousand drivers at once are a band, not a tower."""

_BAR_LINES = ((12, 24.0), (40, 15.0))
"""Largest number of lines of bars in a lane, and height of each; more lines get the least height.

The bars are lower by the gap between two lines.
"""

_LEAST_BAR_LINE, _BAR_GAP = 7.0, 3.0
_LEVELS_HEIGHT = 30.0
_LEAST_PIXELS = 2.0
"""Width of a bar, however short it is."""

_STRETCH = 1.3


def draw_time_line(line: TimeLine, colours: PlaceColours, width: float) -> Drawing:
    """Draw a time line as wide as this many pixels."""
    left = max(_LEAST_NAMES, width * _NAMES_SHARE)
    scale = Scale(line.end_seconds, left, width - _RIGHT_MARGIN)
    key, above = _key(line.key, width)
    y = top = above + _TOP
    rows: list[Shape] = []
    headings: list[Shape] = []
    for schedule in line.schedules:
        if schedule.title:
            headings.append(
                {"y": y, "title": fit(schedule.title, width - 4, _NAME_SIZE, bold=True)}
            )
            y += _HEADING
        names = fit_all(
            (lane.name for lane in schedule.lanes), left - _NAME_GAP, _NAME_SIZE, bold=True
        )
        bars = [bar.label for lane in schedule.lanes for bar in lane.bars]
        labels = fit_all(bars, _LABEL_PIXELS, _LABEL_SIZE)
        for lane in schedule.lanes:
            content, bottom = _content(lane, labels, scale, y + _PADDING)
            height = max(bottom - y + _PADDING, _LEAST_ROW)
            rows.append(
                {
                    **content,
                    "name": names[lane.name],
                    "whole": lane.name,
                    "note": fit(lane.note, left - _NAME_GAP, _LABEL_SIZE),
                    "whole_note": lane.note,
                    "css_class": colours.css_class(lane.name),
                    "middle": y + height / 2,
                    "bottom": y + height,
                }
            )
            y += height
    shapes = {
        "key": key,
        "headings": headings,
        "rows": rows,
        "ticks": [_tick(each, scale, line) for each in scale.ticks(_TICK_PIXELS)],
        "limit": _limit(line, scale),
        "top": top,
        "bottom": y,
    }
    return Drawing(
        kind="time-line",
        name=line.name,
        description=line.description,
        width=width,
        height=y + _BOTTOM,
        shapes=shapes,
        stretch=_STRETCH,
        notes=line.notes,
    )


def _key(items: Sequence[tuple[str, str]], width: float) -> _Drawn:
    """Return the key of the shades in rows, and their height."""
    shapes: list[Shape] = []
    x, y = 1.0, 0.0
    for kind, words in items:
        taken = _SWATCH + 7 + text_width(words, _LABEL_SIZE)
        if x > 1.0 and x + taken > width:
            x, y = 1.0, y + _KEY_ROW
        shapes.append({"kind": kind, "words": words, "x": x, "y": y})
        x += taken + _KEY_GAP
    return shapes, y + _KEY_ROW


def _tick(seconds: float, scale: Scale, line: TimeLine) -> Shape:
    x = scale.x(seconds)
    anchor = "end" if x > scale.right - 20 else "middle"
    return {"x": x, "anchor": anchor, "text": plan_moment(seconds, line.begin).removesuffix(":00")}


def _limit(line: TimeLine, scale: Scale) -> Shape | None:
    limit = line.limit
    if limit is None or limit.seconds > line.end_seconds:
        return None
    x = scale.x(limit.seconds)
    return {
        "x": x,
        "anchor": "end" if x > (scale.left + scale.right) / 2 else "start",
        "text": limit.text,
    }


def _content(lane: Lane, labels: Mapping[str, str], scale: Scale, y: float) -> tuple[Shape, float]:
    """Return what a lane shows, drawn below `y`, and where that ends."""
    thin, y = _thin_bars(lane.thin, scale, y)
    if lane.levels:
        bottom = y + _LEVELS_HEIGHT
        return {"thin": thin, "levels": _levels(lane.levels, scale, bottom), "bars": []}, bottom
    bars, bottom = _bars(lane, labels, scale, y)
    return {"thin": thin, "levels": "", "bars": bars}, bottom


def _thin_bars(thin: Sequence[Bar], scale: Scale, y: float) -> _Drawn:
    """Return the thin bars, drawn below `y`, and where they end."""
    shapes: list[Shape] = []
    spans = lanes([(bar.start_seconds, bar.finish_seconds) for bar in thin])
    for line, indexes in enumerate(spans):
        at = y + min(line, _THIN_LINES - 1) * _THIN_LINE
        shapes += [_extent(thin[index], scale, 1.0) | {"y": at} for index in indexes]
    if spans:
        y += min(len(spans), _THIN_LINES) * _THIN_LINE + 2
    return shapes, y


def _bars(lane: Lane, labels: Mapping[str, str], scale: Scale, y: float) -> _Drawn:
    """Return the bars with their labels, drawn below `y`, and where they end."""
    bars: list[Shape] = []
    pixels = [(scale.x(bar.start_seconds), scale.x(bar.finish_seconds)) for bar in lane.bars]
    # A pixel at least: what follows does not hide it.
    spans = lanes([(start, max(end, start + 1.0)) for start, end in pixels])
    heights = (height for most, height in _BAR_LINES if len(spans) <= most)
    height = next(heights, _LEAST_BAR_LINE)
    label_lines = _LABEL_LINES if len(lane.bars) <= _LABELLED_BARS else 0
    for indexes in spans:
        drawn = [_bar(lane.bars[index], scale) for index in indexes]
        texts = [labels[lane.bars[index].label] for index in indexes]
        lines = _label(drawn, texts, scale, label_lines)
        bars += [each | {"y": y, "height": height - _BAR_GAP} for each in drawn]
        y += height + lines * _LABEL_LINE
    return bars, y


def _extent(bar: Bar, scale: Scale, least: float) -> Shape:
    left, right = scale.x(bar.start_seconds), scale.x(bar.finish_seconds)
    return {"left": left, "width": max(right - left, least), "details": bar.details}


def _bar(bar: Bar, scale: Scale) -> Shape:
    """Draw a bar with its phases, and the range of its end by past runs."""
    shape = _extent(bar, scale, _LEAST_PIXELS)
    left, right = shape["left"], shape["left"] + shape["width"]
    phases, at = [], left
    for kind, until_seconds in bar.phases:
        until = min(max(scale.x(until_seconds), at), right)
        phases.append({"kind": kind, "x": at, "width": until - at})
        at = until
    if phases:
        phases[-1]["width"] = right - phases[-1]["x"]
    ends = bar.ends and [scale.x(each) for each in bar.ends.moments]
    return shape | {"phases": phases, "marks": bar.marks, "ends": ends, "right": right}


def _label(bars: Sequence[Shape], texts: Sequence[str], scale: Scale, most: int) -> int:
    """Put each label on its bar, right of it, or on a line below; returns how many lines there are.

    The tints before a run are too light for a label's colour: on a bar it is on the last phase.
    """
    ends: list[float] = []
    next_lefts = [*(bar["left"] for bar in bars[1:]), scale.right]
    for bar, text, next_left in zip(bars, texts, next_lefts, strict=True):
        start = bar["phases"][-1]["x"] if bar["phases"] else bar["left"]
        inside = bar["right"] - start
        needed = text_width(text, _LABEL_SIZE) + 2 * _LABEL_GAP
        below = min(bar["left"], scale.right - needed)
        bar |= {"label": text, "label_class": "label-out", "line": None}
        if needed <= inside:
            bar |= {"label_class": "label-in", "label_x": start + _LABEL_GAP}
        elif most and needed <= next_left - bar["right"]:
            bar["label_x"] = bar["right"] + _LABEL_GAP
        elif (line := _free_line(below, ends, most)) is not None:
            ends[line:] = [below + needed, *ends[line + 1 :]]
            bar |= {"label_x": below + _LABEL_GAP, "line": line}
        else:
            text = fit(text, inside - 2 * _LABEL_GAP, _LABEL_SIZE)
            bar |= {"label": text, "label_class": "label-in", "label_x": start + _LABEL_GAP}
    return len(ends)


def _free_line(x: float, ends: Sequence[float], most: int) -> int | None:
    """Return the first line with room, which may be new; None = there is none."""
    lines = (line for line, end in enumerate(ends) if end <= x)
    return next(lines, len(ends) if len(ends) < most else None)


def _levels(levels: Sequence[int], scale: Scale, base: float) -> str:
    """Draw the number that run at a time, as an area scaled to its peak."""
    peak, pixels = max(levels) or 1, (scale.right - scale.left) / len(levels)
    points = [f"M{coordinate(scale.left)} {coordinate(base)}"]
    for index, level in enumerate(levels):
        points.append(f"V{coordinate(base - level / peak * _LEVELS_HEIGHT)}")
        points.append(f"H{coordinate(scale.left + (index + 1) * pixels)}")
    return "".join([*points, f"V{coordinate(base)}Z"])
