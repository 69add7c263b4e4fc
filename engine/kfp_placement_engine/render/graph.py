"""A graph as a drawing: boxes in columns, each right of those that it waits for."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kfp_placement_engine.render.drawing import Drawing
from kfp_placement_engine.render.environment import coordinate
from kfp_placement_engine.render.layering import (
    Layout,
    layered,
    longest_path_layers,
    without_shortcuts,
)
from kfp_placement_engine.render.palette import PlaceColours
from kfp_placement_engine.render.shortening import fit, fit_all
from kfp_placement_engine.views.drawings import Box, Graph
from kfp_placement_engine.views.formatting import counted

_BOX_WIDTH, _BOX_HEIGHT = 190.0, 42.0
_COLUMN, _ROW = _BOX_WIDTH + 52.0, _BOX_HEIGHT + 14.0
_MARGIN = 8.0
_TEXT_WIDTH = _BOX_WIDTH - 24.0
_NAME_SIZE, _NOTE_SIZE = 12.5, 11.0
_LEVEL_BARS, _LEVELS_WIDTH, _LEVEL_HEIGHT = 120, 960.0, 110.0

_MARKS = {"conditional": "if", "assumed": "assumed"}
"""Marks in a word."""

Coordinates = tuple[float, float]


def draw_graph(graph: Graph, colours: PlaceColours) -> Drawing:
    """Draw a graph; of too many boxes how many each level has, and nothing of what has a cycle."""
    parents = {box.key: box.parents for box in graph.boxes}
    levels = longest_path_layers(parents)
    if levels is None:
        circle = "The steps wait for each other in a circle; no picture of it."
        return Drawing("graph", graph.name, notes=(circle,))
    if graph.is_summed_up:
        return _levels(graph, Counter(levels.values()))
    drawn = without_shortcuts(parents)
    layout = layered(drawn)
    notes = list(graph.notes)
    left_out = sum(map(len, parents.values())) - sum(map(len, drawn.values()))
    if left_out:
        notes.append(f"Not drawn: {counted(left_out, 'arrow')} that others imply.")
    if colours.repeat:
        notes.append("Several nodes have the same colour.")
    labels = fit_all((box.label for box in graph.boxes), _TEXT_WIDTH, _NAME_SIZE, bold=True)
    return Drawing(
        kind="graph",
        name=graph.name,
        description="Arrows go from what ends first to what waits for it;"
        f" {counted(layout.layers, 'level')}.",
        width=layout.layers * _COLUMN - (_COLUMN - _BOX_WIDTH) + 2 * _MARGIN,
        height=layout.height * _ROW - (_ROW - _BOX_HEIGHT) + 2 * _MARGIN,
        shapes={
            "edges": [
                _edge(layout, parent, key) for key, before in drawn.items() for parent in before
            ],
            "boxes": [_box(box, layout, labels, colours) for box in graph.boxes],
            "width": _BOX_WIDTH,
            "height": _BOX_HEIGHT,
        },
        notes=notes,
    )


def _box(
    box: Box, layout: Layout, labels: Mapping[str, str], colours: PlaceColours
) -> dict[str, object]:
    words = [box.note, *(_MARKS[mark] for mark in box.marks)]
    return {
        "x": _left(layout.x[box.key]),
        "y": _middle(layout.y[box.key]) - _BOX_HEIGHT / 2,
        "label": labels[box.label],
        "note": fit(" · ".join(words), _TEXT_WIDTH, _NOTE_SIZE),
        "details": box.details,
        "css_class": colours.css_class(box.place),
        "marks": box.marks,
        "is_missing": box.is_missing,
    }


def _edge(layout: Layout, source: str, target: str) -> str:
    at = (_left(layout.x[source]) + _BOX_WIDTH, _middle(layout.y[source]))
    path = [f"M{_written(at)}"]
    for layer, y in layout.routes.get((source, target), ()):
        # Pass the layer between its boxes, level, then bend on towards the next.
        path.append(_curve(at, (_left(layer), _middle(y))))
        at = (_left(layer) + _BOX_WIDTH, _middle(y))
        path.append(f"H{coordinate(at[0])}")
    end = (_left(layout.x[target]) - 2.0, _middle(layout.y[target]))
    return "".join([*path, _curve(at, end)])


def _curve(start: Coordinates, end: Coordinates) -> str:
    middle = (start[0] + end[0]) / 2
    return f"C{_written((middle, start[1]))} {_written((middle, end[1]))} {_written(end)}"


def _written(point: Coordinates) -> str:
    return f"{coordinate(point[0])} {coordinate(point[1])}"


def _left(layer: int) -> float:
    return _MARGIN + layer * _COLUMN


def _middle(y: float) -> float:
    return _MARGIN + y * _ROW + _BOX_HEIGHT / 2


def _levels(graph: Graph, counts: Mapping[int, int]) -> Drawing:
    """Draw the number of boxes of each level, if there are too many for a picture."""
    depth = len(counts)
    # Neighbouring levels share a bar where there are more levels than bars.
    share = -(-depth // _LEVEL_BARS)
    sums = [sum(counts[i] for i in range(a, min(a + share, depth))) for a in range(0, depth, share)]
    step = _LEVELS_WIDTH / len(sums)
    bars: Sequence[dict[str, object]] = [
        {
            "x": 20.0 + index * step,
            "width": max(step - 2.0, 1.0),
            "height": max(_LEVEL_HEIGHT * count / max(sums), 1.0),
            "details": f"level {index * share + 1}: {count:,}",
        }
        for index, count in enumerate(sums)
    ]
    words = (
        f"{depth:,} levels, at most {max(counts.values()):,} wide: number of steps by level, left"
        " to right."
    )
    notes = (*graph.notes, words)
    return Drawing("graph", graph.name, words, 1000.0, 140.0, {"levels": bars}, notes=notes)
