"""The plan over time, a row for each node, and the default scheduler's schedule below it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from kfp_placement.report import axis, promises, summary, values
from kfp_placement.report.axis import Scale
from kfp_placement.report.bars import BELOW_PIXELS, Bar, bar_labels, bar_of, draw_bar
from kfp_placement.report.drawing import Drawing, Pen
from kfp_placement.report.labels import fit, fit_all
from kfp_placement.report.limits import Limits
from kfp_placement.report.markup import Markup, number, plain, tag
from kfp_placement.report.palette import NodeColours
from kfp_placement.report.timeline import Interval, lanes, load
from kfp_placement_engine.model.limits import Phases, PieceKind, ScheduledStep
from kfp_placement_engine.model.plan import Plan, PlannedDriver, PlannedStep
from kfp_placement_engine.model.promise import TimeRange

_TOP = 30.0
_BOTTOM = 26.0
_HEADING = 30.0
_ROW_PADDING = 7.0
_MIN_ROW = 38.0
_NAME_GAP = 14.0
_DRIVER_HEIGHT = 5.0
_DRIVERS_EACH = 4
"""Drivers that may be drawn for each bar that may; a KFP step has one, loops have some more."""
_LOAD_HEIGHT = 30.0
_LOAD_BUCKETS = 180
_ROOMY_LANES = 12
"""Up to this many lanes of a node, labels that bars cannot hold have room below each."""

_MOST_ROWS = 3
"""Rows of such labels below a lane; what has no room there is named in the table."""

_LEAST_PIXELS = 1.0
"""A step takes at least as much of its lane, so that what follows does not hide it."""

_STRETCH = 1.3


@dataclass(frozen=True)
class _Schedule:
    """One of the schedules drawn below each other, at the same scale."""

    heading: str
    steps: Sequence[PlannedStep]
    drivers: Sequence[PlannedDriver]
    nodes: Sequence[str]
    labels: Mapping[str, str]
    critical: frozenset[str] = frozenset()
    ends: Mapping[str, TimeRange] = field(default_factory=dict)


def gantt(plan: Plan, colours: NodeColours, limits: Limits, pen: Pen) -> Drawing:
    """The drawing."""
    schedules = _schedules(plan, limits)
    moments = (partial(promises.moment, plan), partial(promises.round_moment, plan))
    scale = Scale(_end(schedules), limits.width, *moments)
    legend, above = axis.key(legend_items(plan, limits), limits.width, pen)
    top = above + _TOP
    rows, y = [], top
    for schedule in schedules:
        drawn, y = _rows(schedule, colours, scale, y, pen, single=not is_summed_up(plan, limits))
        rows += drawn
    return Drawing(
        kind="gantt",
        title=f"Time line of {plan.run_name} by node",
        description=_description(plan),
        width=limits.width,
        height=y + _BOTTOM,
        parts=[
            hatches(pen),
            *legend,
            *axis.axis(scale, top, y),
            *axis.bound_line(plan.lower_bound.seconds, scale, top, y),
            *rows,
        ],
        stretch=_STRETCH,
    )


def default_steps(plan: Plan) -> list[PlannedStep]:
    """The steps as the default scheduler runs them."""
    return [_default_step(plan, scheduled) for scheduled in plan.default_schedule]


def _default_step(plan: Plan, scheduled: ScheduledStep) -> PlannedStep:
    whole = scheduled.finish_seconds - scheduled.start_seconds
    phases = scheduled.phases or Phases(0.0, 0.0, whole)
    return replace(
        plan.step(scheduled.name),
        node=scheduled.node,
        start_seconds=scheduled.start_seconds,
        finish_seconds=scheduled.finish_seconds,
        duration_seconds=phases.duration_seconds,
        image_pull_seconds=phases.image_pull_seconds,
        transfer_seconds=phases.transfer_seconds,
        reason="",
    )


def nodes_shown(plan: Plan, limits: Limits) -> list[str]:
    """Nodes with steps or drivers in the cluster's order; beyond the limit those busiest."""
    return _busiest(plan, nodes_busy(plan.steps, plan.drivers), limits)


def nodes_busy(
    steps: Sequence[PlannedStep], drivers: Sequence[PlannedDriver] = ()
) -> dict[str, float]:
    """Nodes with steps or drivers, and how much they work, in seconds."""
    busy: dict[str, float] = defaultdict(float)
    for step in steps:
        if step.node is not None:
            busy[step.node] += (step.finish_seconds or 0.0) - (step.start_seconds or 0.0) + 1.0
    for driver in drivers:
        busy[driver.node] += driver.finish_seconds - driver.start_seconds
    return busy


def is_summed_up(plan: Plan, limits: Limits) -> bool:
    """The drawing shows each node's load, not each step."""
    counts = summary.steps_by_node(plan)
    bars = sum(counts[node] for node in nodes_shown(plan, limits)) + len(plan.default_schedule)
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
        ("critical", "what the end of the run waits for", bool(_critical(plan))),
        ("whisker", f"{promises.percent(plan)} range of the end, by past runs", bool(_ends(plan))),
    ]
    return [(css, words) for css, words, occurs in present if occurs]


def hatches(pen: Pen) -> Markup:
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
                id=f"{pen.prefix}-{kind}",
                width="6",
                height="6",
                patternUnits="userSpaceOnUse",
            )
        )
    return tag("defs", *patterns)


def _schedules(plan: Plan, limits: Limits) -> list[_Schedule]:
    compared = default_steps(plan)
    labels = {} if is_summed_up(plan, limits) else bar_labels(plan.steps)
    mine = _Schedule(
        heading=f"This plan: {summary.makespan(plan.figures)}" if compared else "",
        steps=plan.steps,
        drivers=plan.drivers,
        nodes=nodes_shown(plan, limits),
        labels=labels,
        critical=_critical(plan),
        ends={} if is_summed_up(plan, limits) else _ends(plan),
    )
    if not compared:
        return [mine]
    nodes = _busiest(plan, nodes_busy(compared), limits)
    return [mine, _Schedule(_default_heading(plan, compared), compared, (), nodes, labels)]


def _default_heading(plan: Plan, steps: Sequence[PlannedStep]) -> str:
    end = values.duration(max(step.finish_seconds or 0.0 for step in steps))
    figures = plan.baselines.get("kube-default")
    if figures is not None and figures.unplaced:
        return f"The default scheduler: {summary.makespan(figures)}"
    if figures is None or not summary.spread(figures):
        return f"The default scheduler: {end}"
    return f"The default scheduler: {end}, one of {figures.tie_breaks} tie-breaks"


def _critical(plan: Plan) -> frozenset[str]:
    return frozenset(piece.step for piece in plan.critical_path if piece.kind is PieceKind.RUNNING)


def _ends(plan: Plan) -> dict[str, TimeRange]:
    """When steps end by past runs, where that is known."""
    known = {step.name: promises.promise_of(plan, step) for step in plan.steps}
    return {name: promise.ends for name, promise in known.items() if promise is not None}


def _busiest(plan: Plan, busy: dict[str, float], limits: Limits) -> list[str]:
    chosen = set(sorted(busy, key=lambda node: -busy[node])[: limits.nodes])
    order = dict.fromkeys((*plan.cluster_nodes, *sorted(busy)))
    return [node for node in order if node in chosen]


def _end(schedules: Sequence[_Schedule]) -> float:
    steps = [step.finish_seconds or 0.0 for each in schedules for step in each.steps]
    drivers = [driver.finish_seconds for each in schedules for driver in each.drivers]
    latest = [times.high_seconds for each in schedules for times in each.ends.values()]
    return max([*steps, *drivers, *latest], default=0.0)


def _description(plan: Plan) -> str:
    ending = "of a run that does not end"
    if summary.ends(plan):
        ending = f"ending after {values.duration(plan.figures.makespan_seconds)}"
    below = " The default scheduler's schedule below it." if plan.default_schedule else ""
    return (
        f"{values.counted(summary.placed(plan), 'step')} on"
        f" {values.counted(len(summary.steps_by_node(plan)), 'node')}, {ending}.{below}"
        " The step table holds the same figures."
    )


def _rows(
    schedule: _Schedule, colours: NodeColours, scale: Scale, top: float, pen: Pen, *, single: bool
) -> tuple[list[Markup], float]:
    """The rows of a schedule below `top`, and where they end."""
    by_node: dict[str, list[PlannedStep]] = defaultdict(list)
    for step in schedule.steps:
        if step.node is not None:
            by_node[step.node].append(step)
    drivers: dict[str, list[PlannedDriver]] = defaultdict(list)
    for driver in schedule.drivers:
        drivers[driver.node].append(driver)
    rows, y = [], top
    if schedule.heading:
        rows.append(_heading(schedule.heading, y, scale.width))
        y += _HEADING
    names = fit_all(schedule.nodes, scale.left - _NAME_GAP, 12.0, bold=True)
    for node in schedule.nodes:
        steps, colour = by_node[node], colours.css_class(node)
        if single:
            bars, height = _bars(steps, drivers[node], schedule, scale, y, pen)
            note = values.counted(len(steps), "step")
        else:
            bars, height, note = _load(steps, scale, y, pen, node)
        heading = _row_heading(node, names[node], note, y, height, scale, pen)
        rows.append(tag("g", *heading, tag("g", *bars, class_=colour)))
        y += height
    return rows, y


def _heading(words: str, top: float, width: float) -> Markup:
    label = plain(fit(words, width - 4, 12.0, bold=True))
    line = tag("path", d=f"M0 {number(top + _HEADING)}H{number(width)}", class_="row-line")
    return tag("g", line, tag("text", label, x=2.0, y=top + 19, class_="schedule"))


def _bars(
    steps: Sequence[PlannedStep],
    drivers: Sequence[PlannedDriver],
    schedule: _Schedule,
    scale: Scale,
    top: float,
    pen: Pen,
) -> tuple[list[Markup], float]:
    """Drivers and steps, one by one; also the height that they take."""
    in_lanes = _in_lanes(steps, scale)
    count = len(in_lanes)
    lane_height = 24.0 if count <= _ROOMY_LANES else 15.0 if count <= 40 else 7.0
    y = top + _ROW_PADDING
    parts = []
    if drivers:
        spans, driver_lanes = _driver_lanes(drivers)
        for driver, lane in zip(drivers, driver_lanes, strict=True):
            parts.append(_driver(driver, scale, y + lane * (_DRIVER_HEIGHT + 1), pen))
        y += spans * (_DRIVER_HEIGHT + 1) + 2
    for there in in_lanes:
        bars = _bars_of_lane(there, schedule, scale, below=count <= _ROOMY_LANES)
        for bar in bars:
            critical = bar.step.name in schedule.critical
            parts.append(draw_bar(bar, y, lane_height - 3, pen, critical=critical))
        label_rows = [bar.below_row + 1 for bar in bars if bar.below is not None]
        y += lane_height + BELOW_PIXELS * max(label_rows, default=0)
    return parts, max(y + _ROW_PADDING - top, _MIN_ROW)


def _in_lanes(steps: Sequence[PlannedStep], scale: Scale) -> list[list[PlannedStep]]:
    """The steps of a node by lane, one after another: only those at the same time need several."""
    spans = []
    for step in steps:
        left = scale.x(step.start_seconds or 0.0)
        spans.append(Interval(left, max(scale.x(step.finish_seconds or 0.0), left + _LEAST_PIXELS)))
    found: dict[int, list[PlannedStep]] = defaultdict(list)
    for step, lane in zip(steps, lanes(spans), strict=True):
        found[lane].append(step)
    return [
        sorted(found[lane], key=lambda step: step.start_seconds or 0.0) for lane in sorted(found)
    ]


def _bars_of_lane(
    steps: Sequence[PlannedStep], schedule: _Schedule, scale: Scale, *, below: bool
) -> list[Bar]:
    """The bars of a lane; labels are where no other step and no other label is."""
    bars: list[Bar] = []
    free_from = scale.left
    next_starts = [scale.x(step.start_seconds or 0.0) for step in steps[1:]]
    for step, free_until in zip(steps, [*next_starts, scale.right], strict=True):
        label, ends = schedule.labels[step.name], schedule.ends.get(step.name)
        bars.append(bar_of(step, scale, label, Interval(free_from, free_until), below, ends))
        free_from = bars[-1].extent.end
    rows = iter(lanes([bar.below for bar in bars if bar.below is not None]))
    placed = [bar if bar.below is None else replace(bar, below_row=next(rows)) for bar in bars]
    return [
        replace(bar, label="", below=None) if bar.below_row >= _MOST_ROWS else bar for bar in placed
    ]


def _driver_lanes(drivers: Sequence[PlannedDriver]) -> tuple[int, list[int]]:
    driver_lanes = lanes(
        [Interval(driver.start_seconds, driver.finish_seconds) for driver in drivers]
    )
    # A thousand drivers at once are a band, not a tower.
    capped = [min(lane, 5) for lane in driver_lanes]
    return max(capped) + 1, capped


def _row_heading(
    node: str, label: str, note: str, top: float, height: float, scale: Scale, pen: Pen
) -> list[Markup]:
    middle = top + height / 2
    below = plain(fit(note, scale.left - _NAME_GAP, 11.0))
    return [
        tag("path", d=f"M0 {number(top + height)}H{number(scale.width)}", class_="row-line"),
        tag("text", pen.tooltip(node), plain(label), x=2.0, y=middle - 2, class_="row-name"),
        tag("text", below, x=2.0, y=middle + 13, class_="row-note"),
    ]


def _driver(driver: PlannedDriver, scale: Scale, y: float, pen: Pen) -> Markup:
    left, right = scale.x(driver.start_seconds), scale.x(driver.finish_seconds)
    what = f"driver of {driver.name or 'the run'}"
    times = f"{scale.written(driver.start_seconds)} to {scale.written(driver.finish_seconds)}"
    return tag(
        "rect",
        pen.tooltip(f"{what}: {times}"),
        x=left,
        y=y,
        width=max(right - left, 1.0),
        height=_DRIVER_HEIGHT,
        class_="driver",
    )


def _load(
    steps: Sequence[PlannedStep], scale: Scale, top: float, pen: Pen, node: str
) -> tuple[list[Markup], float, str]:
    """Too many steps to draw each: how many run on the node at any time; height and words."""
    spans = [Interval(step.start_seconds or 0.0, step.finish_seconds or 0.0) for step in steps]
    levels = load(spans, scale.end, _LOAD_BUCKETS)
    peak = max(levels, default=0)
    base = top + _ROW_PADDING + _LOAD_HEIGHT
    pixels = (scale.right - scale.left) / _LOAD_BUCKETS
    points = [f"M{number(scale.left)} {number(base)}"]
    for index, level in enumerate(levels):
        points.append(f"V{number(base - level / (peak or 1) * _LOAD_HEIGHT)}")
        points.append(f"H{number(scale.left + (index + 1) * pixels)}")
    points.append(f"V{number(base)}Z")
    note = f"{values.counted(len(steps), 'step')}, {peak} at once"
    path = tag("path", pen.tooltip(f"{node}: {note}"), d="".join(points), class_="load")
    return [path], _LOAD_HEIGHT + 2 * _ROW_PADDING, note
