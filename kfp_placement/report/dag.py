"""What waits for what, each step in the colour of its node, as SVG."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from kfp_placement.report import promises, summary, values
from kfp_placement.report.drawing import Drawing, Pen
from kfp_placement.report.labels import fit, short_name, short_task, unlike
from kfp_placement.report.layering import (
    Layout,
    layered,
    longest_path_layers,
    without_shortcuts,
)
from kfp_placement.report.limits import FOLDED, Limits
from kfp_placement.report.markup import Markup, number, plain, tag
from kfp_placement.report.palette import NodeColours
from kfp_placement_engine.model.plan import Plan, PlannedStep

_BOX_WIDTH = 190.0
_BOX_HEIGHT = 42.0
_COLUMN = _BOX_WIDTH + 52.0
_ROW = _BOX_HEIGHT + 14.0
_MARGIN = 8.0
_TEXT_WIDTH = _BOX_WIDTH - 24.0
_NAME_SIZE = 12.5
_LEVEL_BARS = 120


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


def dag(plan: Plan, colours: NodeColours, limits: Limits, pen: Pen) -> Drawing:
    """Draw the graph; items of a long loop share a box, in a large run the steps of any task."""
    sizes = Counter(step.task for step in plan.steps)
    shared = {task for task, size in sizes.items() if size > FOLDED}
    note = ""
    if len(shared) + sum(size for size in sizes.values() if size <= FOLDED) > limits.boxes:
        shared = set(sizes)
        note = f"Of {len(plan.steps):,} steps, those of one task share a box."
    elif shared:
        note = f"Loops of more than {FOLDED} items share a box."
    boxes, parents = _boxes(plan, colours, shared)
    known = {node: [p for p in before if p in boxes] for node, before in parents.items()}
    if len(boxes) > limits.boxes:
        return _levels(plan, known, pen)
    drawn = without_shortcuts(known)
    layout = layered(drawn)
    if layout is None:
        return _drawing(plan, note="The steps wait for each other in a circle; no picture of it.")
    left_out = sum(map(len, known.values())) - sum(map(len, drawn.values()))
    if left_out:
        note += f" Not drawn: {values.counted(left_out, 'arrow')} that others imply."
    if colours.repeat:
        note += " Several nodes have the same colour."
    return _graph(plan, _told_apart(boxes), drawn, layout, pen, note.strip())


def _told_apart(boxes: Mapping[str, _Box]) -> dict[str, _Box]:
    """The boxes with labels that fit into them, no two alike."""
    labels = {name: box.label for name, box in boxes.items()}
    short = unlike(labels, _TEXT_WIDTH, _NAME_SIZE, bold=True)
    return {name: replace(box, label=short[name]) for name, box in boxes.items()}


def _step_box(
    plan: Plan, step: PlannedStep, colours: NodeColours, cause: PlannedStep | None = None
) -> _Box:
    where, times = summary.where(step), ""
    if step.node is not None:
        moments = (step.start_seconds, step.finish_seconds)
        times = f", {' to '.join(promises.moment(plan, each) for each in moments)}"
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


def _boxes(
    plan: Plan, colours: NodeColours, shared: Set[str]
) -> tuple[dict[str, _Box], dict[str, list[str]]]:
    """The boxes, by the step's name or by that of a task whose steps share one; their parents."""
    waiting = summary.waiting_for(plan)
    box_of = {step.name: step.task if step.task in shared else step.name for step in plan.steps}
    members: dict[str, list[PlannedStep]] = defaultdict(list)
    parents: dict[str, dict[str, None]] = {box: {} for box in box_of.values()}
    for step in plan.steps:
        box = box_of[step.name]
        members[box].append(step)
        before = (box_of.get(parent, parent) for parent in step.depends_on)
        parents[box].update((parent, None) for parent in before if parent != box)
    boxes = {
        box: _step_box(plan, steps[0], colours, waiting.get(steps[0].name))
        if len(steps) == 1
        else _task_box(box, steps, colours)
        for box, steps in members.items()
    }
    return boxes, {box: list(before) for box, before in parents.items()}


def _task_box(task: str, steps: Sequence[PlannedStep], colours: NodeColours) -> _Box:
    nodes = Counter(map(summary.where, steps))
    most, _ = nodes.most_common(1)[0]
    places = most if len(nodes) == 1 else values.counted(len(nodes), "node")
    note = f"{len(steps):,} steps on {places}"
    return _Box(
        label=short_task(steps[0]),
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
    pen: Pen,
    note: str,
) -> Drawing:
    width = layout.layers * _COLUMN - (_COLUMN - _BOX_WIDTH) + 2 * _MARGIN
    height = layout.height * _ROW - (_ROW - _BOX_HEIGHT) + 2 * _MARGIN
    edges = [
        _edge(layout, parent, node, pen) for node, before in parents.items() for parent in before
    ]
    parts = [
        _definitions(pen),
        *edges,
        *(_draw_box(box, layout, node, pen) for node, box in boxes.items()),
    ]
    levels = values.counted(layout.layers, "level")
    described = f"Arrows go from what ends first to what waits for it; {levels}."
    return _drawing(plan, parts, width, height, described, note)


def _drawing(
    plan: Plan,
    parts: Sequence[Markup] = (),
    width: float = 0.0,
    height: float = 0.0,
    description: str = "",
    note: str = "",
) -> Drawing:
    title = f"Steps of {plan.run_name} and their nodes"
    return Drawing("dag", title, description, width, height, parts, note=note)


def _definitions(pen: Pen) -> Markup:
    return tag(
        "defs",
        tag(
            "marker",
            tag("path", d="M0 0L7 3.5L0 7z", class_="arrow"),
            id=f"{pen.prefix}-arrow",
            markerWidth="7",
            markerHeight="7",
            refX="6.5",
            refY="3.5",
            orient="auto",
        ),
    )


def _edge(layout: Layout, source: str, target: str, pen: Pen) -> Markup:
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
    return tag("path", d="".join(path), class_="edge", marker_end=f"url(#{pen.prefix}-arrow)")


def _curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    middle = (start[0] + end[0]) / 2
    return (
        f"C{number(middle)} {number(start[1])} {number(middle)} {number(end[1])}"
        f" {number(end[0])} {number(end[1])}"
    )


def _draw_box(box: _Box, layout: Layout, node: str, pen: Pen) -> Markup:
    x, y = _box_x(layout.x[node]), _middle(layout.y[node]) - _BOX_HEIGHT / 2
    outline = "box missing" if box.missing else "box"
    parts = [
        pen.tooltip(box.title),
        tag("rect", x=x, y=y, width=_BOX_WIDTH, height=_BOX_HEIGHT, rx=6.0, class_="back"),
        tag("rect", x=x, y=y, width=_BOX_WIDTH, height=_BOX_HEIGHT, rx=6.0, class_=outline),
        tag("path", d=_strip(x, y), class_="strip"),
    ]
    for flag, kind in ((box.conditional, "conditional"), (box.assumed, "assumed")):
        if flag:
            parts.append(tag("path", d=_strip(x, y), fill=pen.hatch(kind)))
    name = plain(box.label)
    words = [word for flag, word in ((box.conditional, "if"), (box.assumed, "assumed")) if flag]
    note = fit(" · ".join([box.note, *words]), _TEXT_WIDTH, 11.0)
    parts.append(tag("text", name, x=x + 18, y=y + 18, class_="box-name"))
    parts.append(tag("text", plain(note), x=x + 18, y=y + 33, class_="box-note"))
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


def _levels(plan: Plan, parents: Mapping[str, Sequence[str]], pen: Pen) -> Drawing:
    """Too many boxes for any picture: how many steps each level of the graph has."""
    note = f"{len(plan.steps):,} steps are too many to draw one by one."
    layers = longest_path_layers(parents)
    if layers is None:
        return _drawing(plan, note=note)
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
        title = pen.tooltip(f"level {index * share + 1}: {count:,}")
        bar = {"x": x, "y": 130.0 - height, "width": max(step - 2.0, 1.0), "height": height}
        parts.append(tag("rect", title, class_="level", **bar))
    widest = max(counts.values())
    words = f"{depth:,} levels, at most {widest:,} wide: number of steps by level, left to right."
    return _drawing(plan, parts, 1000.0, 140.0, words, f"{note} {words}")
