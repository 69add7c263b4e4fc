"""What waits for what, each step in the colour of its node, as SVG."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kfp_placement.report import summary, values
from kfp_placement.report.labels import fit, short_name, short_task
from kfp_placement.report.layering import (
    Layout,
    layered,
    longest_path_layers,
    without_shortcuts,
)
from kfp_placement.report.limits import Limits
from kfp_placement.report.markup import NOTHING, Markup, number, tag, text
from kfp_placement.report.palette import NodeColours
from kfp_placement_engine.model.plan import Plan, PlannedStep

_BOX_WIDTH = 190.0
_BOX_HEIGHT = 42.0
_COLUMN = _BOX_WIDTH + 52.0
_ROW = _BOX_HEIGHT + 14.0
_MARGIN = 8.0
_TEXT_WIDTH = _BOX_WIDTH - 24.0
_LEVEL_BARS = 120


@dataclass(frozen=True)
class Drawing:
    """A picture and what people should know about it.

    Attributes:
        svg: the picture.
        width: its natural width in pixels.
        note: what is summed up or left out, or "".
    """

    svg: Markup
    width: float
    note: str = ""


@dataclass(frozen=True)
class _Box:
    """A step, or all steps of one task."""

    label: str
    note: str
    title: str
    colour: str
    conditional: bool = False
    assumed: bool = False
    missing: bool = False


def dag(plan: Plan, colours: NodeColours, limits: Limits, prefix: str) -> Drawing:
    """Draw the graph; `prefix` keeps its ids apart from those of other reports on the page."""
    parents: dict[str, list[str]] = {step.name: list(step.depends_on) for step in plan.steps}
    waiting = summary.waiting_for(plan)
    boxes = {step.name: _step_box(step, colours, waiting.get(step.name)) for step in plan.steps}
    note = ""
    if len(boxes) > limits.boxes:
        boxes, parents = _by_task(plan, colours)
        note = f"Of {len(plan.steps):,} steps, those of one task share a box."
    known = {node: [p for p in before if p in boxes] for node, before in parents.items()}
    if len(boxes) > limits.boxes:
        return _levels(plan, known, prefix)
    drawn = without_shortcuts(known)
    layout = layered(drawn)
    if layout is None:
        return Drawing(NOTHING, 0.0, "The steps wait for each other in a circle; no picture of it.")
    left_out = sum(map(len, known.values())) - sum(map(len, drawn.values()))
    if left_out:
        note += f" {left_out:,} dependencies that others imply are not drawn."
    return _graph(plan, boxes, drawn, layout, prefix, note.strip())


def _step_box(step: PlannedStep, colours: NodeColours, cause: PlannedStep | None = None) -> _Box:
    where = summary.where(step)
    times = (
        f", {values.duration(step.start_seconds)} to {values.duration(step.finish_seconds)}"
        if step.node is not None
        else ""
    )
    waits = f"; {summary.waits(cause)}" if cause is not None else ""
    return _Box(
        label=short_name(step),
        note=where if cause is None else f"{where} · never starts",
        title=f"{step.name} on {where}{times}. {step.reason}{waits}",
        colour=colours.css_class(step.node),
        conditional=step.conditional,
        assumed=step.assumed,
        missing=step.node is None and not step.cached,
    )


def _by_task(plan: Plan, colours: NodeColours) -> tuple[dict[str, _Box], dict[str, list[str]]]:
    members: dict[str, list[PlannedStep]] = defaultdict(list)
    task_of = {step.name: step.task for step in plan.steps}
    parents: dict[str, dict[str, None]] = defaultdict(dict)
    for step in plan.steps:
        members[step.task].append(step)
        for parent in step.depends_on:
            task = task_of.get(parent, parent)
            if task != step.task:
                parents[step.task][task] = None
    boxes = {task: _task_box(task, steps, colours) for task, steps in members.items()}
    return boxes, {task: list(parents[task]) for task in members}


def _task_box(task: str, steps: Sequence[PlannedStep], colours: NodeColours) -> _Box:
    if len(steps) == 1:
        return _step_box(steps[0], colours)
    nodes = Counter(map(summary.where, steps))
    most, _ = nodes.most_common(1)[0]
    places = most if len(nodes) == 1 else values.counted(len(nodes), "node")
    note = f"{len(steps):,} steps on {places}"
    return _Box(
        label=short_task(task),
        note=note,
        title=f"{task}: {note}",
        colour=colours.css_class(most if len(nodes) == 1 else None),
        conditional=all(step.conditional for step in steps),
        assumed=all(step.assumed for step in steps),
        missing=any(step.node is None and not step.cached for step in steps),
    )


def _graph(
    plan: Plan,
    boxes: Mapping[str, _Box],
    parents: Mapping[str, Sequence[str]],
    layout: Layout,
    prefix: str,
    note: str,
) -> Drawing:
    width = layout.layers * _COLUMN - (_COLUMN - _BOX_WIDTH) + 2 * _MARGIN
    height = layout.height * _ROW - (_ROW - _BOX_HEIGHT) + 2 * _MARGIN
    edges = [
        _edge(layout, parent, node, prefix) for node, before in parents.items() for parent in before
    ]
    parts = [*edges, *(_draw_box(box, layout, node, prefix) for node, box in boxes.items())]
    levels = values.counted(layout.layers, "level")
    described = f"Arrows go from what ends first to what waits for it; {levels}."
    svg = _svg(plan, parts, width, height, prefix, described)
    return Drawing(svg, width, note)


def _svg(
    plan: Plan, parts: Sequence[Markup], width: float, height: float, prefix: str, described: str
) -> Markup:
    marker = tag(
        "marker",
        tag("path", d="M0 0L7 3.5L0 7z", class_="arrow"),
        id=f"{prefix}-arrow",
        markerWidth="7",
        markerHeight="7",
        refX="6.5",
        refY="3.5",
        orient="auto",
    )
    return tag(
        "svg",
        tag("title", text(f"Steps of {plan.run_name} and their nodes"), id=f"{prefix}-dag-title"),
        tag("desc", text(described), id=f"{prefix}-dag-desc"),
        tag("defs", marker),
        *parts,
        class_="dag",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        role="img",
        aria_labelledby=f"{prefix}-dag-title",
        aria_describedby=f"{prefix}-dag-desc",
    )


def _edge(layout: Layout, source: str, target: str, prefix: str) -> Markup:
    start = (_box_x(layout.x[source]) + _BOX_WIDTH, _middle(layout.y[source]))
    end = (_box_x(layout.x[target]) - 2.0, _middle(layout.y[target]))
    path = [f"M{number(start[0])} {number(start[1])}"]
    at = start
    for layer, y in layout.routes.get((source, target), ()):
        # Pass the layer between its boxes, level, then bend on towards the next.
        entry, leave = (_box_x(layer), _middle(y)), (_box_x(layer) + _BOX_WIDTH, _middle(y))
        path += [_curve(at, entry), f"H{number(leave[0])}"]
        at = leave
    path.append(_curve(at, end))
    return tag("path", d="".join(path), class_="edge", marker_end=f"url(#{prefix}-arrow)")


def _curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    middle = (start[0] + end[0]) / 2
    return (
        f"C{number(middle)} {number(start[1])} {number(middle)} {number(end[1])}"
        f" {number(end[0])} {number(end[1])}"
    )


def _draw_box(box: _Box, layout: Layout, node: str, prefix: str) -> Markup:
    x, y = _box_x(layout.x[node]), _middle(layout.y[node]) - _BOX_HEIGHT / 2
    outline = "box missing" if box.missing else "box"
    parts = [
        tag("title", text(box.title)),
        tag("rect", x=x, y=y, width=_BOX_WIDTH, height=_BOX_HEIGHT, rx=6.0, class_="back"),
        tag("rect", x=x, y=y, width=_BOX_WIDTH, height=_BOX_HEIGHT, rx=6.0, class_=outline),
        tag("path", d=_strip(x, y), class_="strip"),
    ]
    for flag, kind in ((box.conditional, "conditional"), (box.assumed, "assumed")):
        if flag:
            parts.append(tag("path", d=_strip(x, y), fill=f"url(#{prefix}-{kind})"))
    name = text(fit(box.label, _TEXT_WIDTH, 12.5, bold=True))
    words = [word for flag, word in ((box.conditional, "if"), (box.assumed, "assumed")) if flag]
    note = fit(" · ".join([box.note, *words]), _TEXT_WIDTH, 11.0)
    parts.append(tag("text", name, x=x + 18, y=y + 18, class_="box-name"))
    parts.append(tag("text", text(note), x=x + 18, y=y + 33, class_="box-note"))
    return tag("g", *parts, class_=box.colour)


def _strip(x: float, y: float) -> str:
    """The coloured left edge of a box, rounded like it."""
    return (
        f"M{number(x + 10)} {number(y)}h-4a6 6 0 0 0 -6 6v{number(_BOX_HEIGHT - 12)}"
        "a6 6 0 0 0 6 6h4z"
    )


def _box_x(layer: int) -> float:
    return _MARGIN + layer * _COLUMN


def _middle(y: float) -> float:
    return _MARGIN + y * _ROW + _BOX_HEIGHT / 2


def _levels(plan: Plan, parents: Mapping[str, Sequence[str]], prefix: str) -> Drawing:
    """Too many boxes for any picture: how many steps each level of the graph has."""
    note = f"{len(plan.steps):,} steps are too many to draw one by one."
    layers = longest_path_layers(parents)
    if layers is None:
        return Drawing(NOTHING, 0.0, note)
    counts = Counter(layers.values())
    depth = len(counts)
    # Neighbouring levels share a bar where there are more levels than bars.
    share = -(-depth // _LEVEL_BARS)
    sums = [sum(counts[i] for i in range(a, min(a + share, depth))) for a in range(0, depth, share)]
    step = 960.0 / len(sums)
    parts = []
    for index, count in enumerate(sums):
        height = max(110.0 * count / max(sums), 1.0)
        x = 20.0 + index * step
        title = tag("title", Markup(f"level {index * share + 1}: {count:,}"))
        bar = {"x": x, "y": 130.0 - height, "width": max(step - 2.0, 1.0), "height": height}
        parts.append(tag("rect", title, class_="level", **bar))
    widest = max(counts.values())
    words = f"{depth:,} levels, at most {widest:,} wide: number of steps by level, left to right."
    svg = _svg(plan, parts, 1000.0, 140.0, prefix, words)
    return Drawing(svg, 1000.0, f"{note} {words}")
