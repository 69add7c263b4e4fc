"""The plan over time, a row for each node, as SVG."""

from collections import defaultdict
from collections.abc import Sequence

from kfp_placement.report import summary, values
from kfp_placement.report.bars import LEFT, RIGHT, WIDTH, Scale, bar_of, draw_bar
from kfp_placement.report.labels import fit
from kfp_placement.report.limits import Limits
from kfp_placement.report.markup import Markup, name, number, tag, text
from kfp_placement.report.palette import NodeColours
from kfp_placement.report.timeline import Interval, lanes, load, ticks
from kfp_placement_engine.model.plan import Plan, PlannedDriver, PlannedStep

_TOP = 30.0
_BOTTOM = 26.0
_ROW_PADDING = 7.0
_MIN_ROW = 38.0
_DRIVER_HEIGHT = 5.0
_DRIVERS_EACH = 4
"""Drivers that may be drawn for each bar that may; a KFP step has one, loops have some more."""
_LOAD_HEIGHT = 30.0
_LOAD_BUCKETS = 180
_PACKED_BARS = 200
"""Up to so many bars, labels get room of their own beside bars too short to hold them."""


def gantt(plan: Plan, colours: NodeColours, limits: Limits, prefix: str) -> Markup:
    """The drawing; `prefix` keeps its ids apart from those of other reports on the same page."""
    scale = Scale(_end(plan))
    by_node: dict[str, list[PlannedStep]] = defaultdict(list)
    for step in plan.steps:
        if step.node is not None:
            by_node[step.node].append(step)
    drivers: dict[str, list[PlannedDriver]] = defaultdict(list)
    for driver in plan.drivers:
        drivers[driver.node].append(driver)
    nodes = nodes_shown(plan, limits)
    single = not is_summed_up(plan, limits)
    rows, y = [], _TOP
    for node in nodes:
        if single:
            row, height = _node_row(
                node, by_node[node], drivers[node], scale, y, colours.css_class(node), prefix
            )
        else:
            row, height = _load_row(node, by_node[node], scale, y, colours.css_class(node))
        rows.append(row)
        y += height
    return _drawing(plan, scale, y, rows, prefix)


def nodes_shown(plan: Plan, limits: Limits) -> list[str]:
    """Nodes with steps or drivers in the cluster's order; beyond the limit those busiest."""
    busy = nodes_busy(plan)
    chosen = set(sorted(busy, key=lambda node: -busy[node])[: limits.nodes])
    order = dict.fromkeys((*plan.cluster_nodes, *sorted(busy)))
    return [node for node in order if node in chosen]


def nodes_busy(plan: Plan) -> dict[str, float]:
    """Nodes with steps or drivers, and how much they work, in seconds."""
    busy: dict[str, float] = defaultdict(float)
    for step in plan.steps:
        if step.node is not None:
            busy[step.node] += (step.finish_seconds or 0.0) - (step.start_seconds or 0.0) + 1.0
    for driver in plan.drivers:
        busy[driver.node] += driver.finish_seconds - driver.start_seconds
    return busy


def _end(plan: Plan) -> float:
    ends = [step.finish_seconds for step in plan.steps if step.finish_seconds is not None]
    return max([*ends, *(driver.finish_seconds for driver in plan.drivers)], default=0.0)


def _drawing(
    plan: Plan, scale: Scale, bottom: float, rows: Sequence[Markup], prefix: str
) -> Markup:
    height = bottom + _BOTTOM
    title = tag("title", text(f"Time line of {plan.run_name} by node"), id=f"{prefix}-gantt-title")
    described = (
        f"{values.counted(summary.placed(plan), 'step')} on"
        f" {values.counted(len(summary.steps_by_node(plan)), 'node')},"
        f" {_ending(plan)}."
        " The step table holds the same figures."
    )
    return tag(
        "svg",
        title,
        tag("desc", text(described), id=f"{prefix}-gantt-desc"),
        hatches(prefix),
        *_axis(scale, bottom),
        *_bound(plan, scale, bottom),
        *rows,
        class_="gantt",
        viewBox=f"0 0 {number(WIDTH)} {number(height)}",
        role="img",
        aria_labelledby=f"{prefix}-gantt-title",
        aria_describedby=f"{prefix}-gantt-desc",
    )


def _ending(plan: Plan) -> str:
    if not summary.ends(plan):
        return "of a run that does not end"
    return f"ending after {values.duration(plan.figures.makespan_seconds)}"


def hatches(prefix: str) -> Markup:
    """The two patterns: conditional steps, and iterations that are assumed."""
    patterns = []
    for kind, path in (
        ("conditional", "M-1 7L7 -1M-1 1L1 -1M5 7L7 5"),
        ("assumed", "M-1 -1L7 7M5 -1L7 1M-1 5L1 7"),
    ):
        patterns.append(
            tag(
                "pattern",
                tag("path", d=path, class_="hatch"),
                id=f"{prefix}-{kind}",
                width="6",
                height="6",
                patternUnits="userSpaceOnUse",
            )
        )
    return tag("defs", *patterns)


def _axis(scale: Scale, bottom: float) -> list[Markup]:
    parts = []
    for second in ticks(scale.end):
        x = scale.x(second)
        anchor = "end" if x > RIGHT - 20 else "middle"
        parts.append(
            tag("path", d=f"M{number(x)} {number(_TOP - 6)}V{number(bottom)}", class_="grid")
        )
        label = Markup(values.duration(second))
        parts.append(tag("text", label, x=x, y=_TOP - 12, text_anchor=anchor, class_="tick"))
    return parts


def _bound(plan: Plan, scale: Scale, bottom: float) -> list[Markup]:
    seconds = plan.lower_bound.seconds
    if not 0 < seconds <= scale.end:
        return []
    x = scale.x(seconds)
    anchor = "end" if x > (LEFT + RIGHT) / 2 else "start"
    label = text(f"no plan ends before {values.duration(seconds)} (lower bound)")
    return [
        tag("path", d=f"M{number(x)} {number(_TOP - 6)}V{number(bottom + 6)}", class_="bound"),
        tag("text", label, x=x, y=bottom + 19, text_anchor=anchor, class_="tick"),
    ]


def _node_row(
    node: str,
    steps: Sequence[PlannedStep],
    drivers: Sequence[PlannedDriver],
    scale: Scale,
    top: float,
    colour: str,
    prefix: str,
) -> tuple[Markup, float]:
    bars = [bar_of(step, scale, labelled=len(steps) <= _PACKED_BARS) for step in steps]
    bar_lanes = lanes([bar.extent for bar in bars])
    count = max(bar_lanes, default=-1) + 1
    lane_height = 24.0 if count <= 12 else 15.0 if count <= 40 else 7.0
    y = top + _ROW_PADDING
    parts = []
    if drivers:
        spans, driver_lanes = _driver_lanes(drivers)
        for driver, lane in zip(drivers, driver_lanes, strict=True):
            parts.append(_driver(driver, scale, y + lane * (_DRIVER_HEIGHT + 1)))
        y += spans * (_DRIVER_HEIGHT + 1) + 2
    for bar, lane in zip(bars, bar_lanes, strict=True):
        parts.append(draw_bar(bar, y + lane * lane_height, lane_height - 3, prefix))
    height = max(y + count * lane_height + _ROW_PADDING - top, _MIN_ROW)
    heading = _row_heading(node, f"{values.counted(len(steps), 'step')}", top, height)
    return tag("g", *heading, tag("g", *parts, class_=colour)), height


def _driver_lanes(drivers: Sequence[PlannedDriver]) -> tuple[int, list[int]]:
    driver_lanes = lanes(
        [Interval(driver.start_seconds, driver.finish_seconds) for driver in drivers]
    )
    # A thousand drivers at once are a band, not a tower.
    capped = [min(lane, 5) for lane in driver_lanes]
    return max(capped) + 1, capped


def _row_heading(node: str, note: str, top: float, height: float) -> list[Markup]:
    middle = top + height / 2
    full = tag("title", name(node))
    label = text(fit(node, LEFT - 14, 12.0, bold=True))
    return [
        tag("path", d=f"M0 {number(top + height)}H{number(WIDTH)}", class_="row-line"),
        tag("text", full, label, x=2.0, y=middle - 2, class_="row-name"),
        tag("text", Markup(note), x=2.0, y=middle + 13, class_="row-note"),
    ]


def _driver(driver: PlannedDriver, scale: Scale, y: float) -> Markup:
    left, right = scale.x(driver.start_seconds), scale.x(driver.finish_seconds)
    what = f"driver of {driver.name or 'the run'}"
    times = f"{values.duration(driver.start_seconds)} to {values.duration(driver.finish_seconds)}"
    return tag(
        "rect",
        tag("title", text(f"{what}: {times}")),
        x=left,
        y=y,
        width=max(right - left, 1.0),
        height=_DRIVER_HEIGHT,
        class_="driver",
    )


def _load_row(
    node: str, steps: Sequence[PlannedStep], scale: Scale, top: float, colour: str
) -> tuple[Markup, float]:
    """Too many steps to draw each: how many run on the node at any time."""
    spans = [Interval(step.start_seconds or 0.0, step.finish_seconds or 0.0) for step in steps]
    levels = load(spans, scale.end, _LOAD_BUCKETS)
    peak = max(levels, default=0) or 1
    base = top + _ROW_PADDING + _LOAD_HEIGHT
    pixels = (RIGHT - LEFT) / _LOAD_BUCKETS
    points = [f"M{number(LEFT)} {number(base)}"]
    for index, level in enumerate(levels):
        points.append(f"V{number(base - level / peak * _LOAD_HEIGHT)}")
        points.append(f"H{number(LEFT + (index + 1) * pixels)}")
    points.append(f"V{number(base)}Z")
    height = _LOAD_HEIGHT + 2 * _ROW_PADDING
    note = f"{values.counted(len(steps), 'step')}, {max(levels, default=0)} at once"
    title = tag("title", text(f"{node}: {note}"))
    return (
        tag(
            "g",
            *_row_heading(node, note, top, height),
            tag("path", title, d="".join(points), class_=f"load {colour}"),
        ),
        height,
    )


def is_summed_up(plan: Plan, limits: Limits) -> bool:
    """The drawing shows each node's load, not each step."""
    counts = summary.steps_by_node(plan)
    bars = sum(counts[node] for node in nodes_shown(plan, limits))
    return bars > limits.bars or len(plan.drivers) > _DRIVERS_EACH * limits.bars


def legend_items(plan: Plan, limits: Limits) -> list[tuple[str, str]]:
    """CSS class and words of what the drawing shows, only what occurs."""
    if is_summed_up(plan, limits):
        return [("load", "steps running at the same time, each row scaled to its own peak")]
    present = [
        (
            "pull",
            "image pull",
            any(values.noticeable(step.image_pull_seconds) for step in plan.steps),
        ),
        (
            "transfer",
            "transfers (in and out)",
            any(values.noticeable(step.transfer_seconds) for step in plan.steps),
        ),
        ("run", "run", True),
        ("driver", "driver pod", bool(plan.drivers)),
        ("conditional", "conditional", any(step.conditional for step in plan.steps)),
        ("assumed", "assumed iteration", any(step.assumed for step in plan.steps)),
    ]
    return [(css, words) for css, words, occurs in present if occurs]
