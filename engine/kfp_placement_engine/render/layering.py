"""Layered layout of an acyclic graph: columns by longest path, few crossings, straight long edges.

The classical way in three passes (Sugiyama): layers, order within layers by barycentres, positions
by least displacement. Edges over several layers get a bend point in each layer between.
"""

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_SWEEPS = 8
_MAX_BENDS = 4_000
_GRID_COLUMNS = 5
_BEND_SHARE = 0.35
"""Room that an edge passing through a layer takes, as a share of a box's."""


@dataclass(frozen=True)
class Layout:
    """Where everything goes, in units of one box: `x` is the layer, `y` the place in it.

    Attributes:
        x: layer of each node.
        y: vertical position of each node.
        routes: points between the ends of each edge (from, to); empty for most.
        layers: number of layers.
        height: largest y plus one box.
    """

    x: Mapping[str, int]
    y: Mapping[str, float]
    routes: Mapping[tuple[str, str], tuple[tuple[int, float], ...]]
    layers: int
    height: float


@dataclass
class _Graph:
    """The graph with bend points as nodes of their own (numbers, for speed)."""

    layer: list[int] = field(default_factory=list)
    is_bend: list[bool] = field(default_factory=list)
    before: list[list[int]] = field(default_factory=list)
    after: list[list[int]] = field(default_factory=list)

    def add(self, layer: int, *, is_bend: bool) -> int:
        self.layer.append(layer)
        self.is_bend.append(is_bend)
        self.before.append([])
        self.after.append([])
        return len(self.layer) - 1

    def connect(self, source: int, target: int) -> None:
        self.after[source].append(target)
        self.before[target].append(source)


def longest_path_layers(parents: Mapping[str, Sequence[str]]) -> dict[str, int] | None:
    """The layer of each node: 0, or one beyond its last parent's; None: there is a cycle."""
    waiting = {node: len(before) for node, before in parents.items()}
    children: dict[str, list[str]] = {node: [] for node in parents}
    for node, before in parents.items():
        for parent in before:
            children[parent].append(node)
    ready = [node for node, count in waiting.items() if count == 0]
    layers = dict.fromkeys(ready, 0)
    for node in ready:
        for child in children[node]:
            layers[child] = max(layers.get(child, 0), layers[node] + 1)
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append(child)
    return layers if len(ready) == len(parents) else None


def without_shortcuts(parents: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Leave out edges that longer paths imply: they say nothing new and cross the picture."""
    layers = longest_path_layers(parents)
    if layers is None:
        return {node: list(before) for node, before in parents.items()}
    ancestors: dict[str, set[str]] = {}
    kept: dict[str, list[str]] = {node: [] for node in parents}
    for node in sorted(parents, key=lambda item: layers[item]):
        before = set(parents[node])
        implied: set[str] = set().union(*(ancestors[parent] for parent in before))
        kept[node] = [parent for parent in dict.fromkeys(parents[node]) if parent not in implied]
        ancestors[node] = implied | before
    return kept


def layered(parents: Mapping[str, Sequence[str]]) -> Layout:
    """Lay out an acyclic graph given by each node's parents.

    Nodes without any edge wait for nobody and nobody for them: they fill a grid below the others
    instead of one endless column.
    """
    layer_of = longest_path_layers(parents)
    assert layer_of is not None  # it has no cycle
    linked = {node for node, before in parents.items() if before}
    linked |= {parent for before in parents.values() for parent in before}
    layout = _layered({node: parents[node] for node in parents if node in linked}, layer_of)
    alone = [node for node in parents if node not in linked]
    return _with_grid(layout, alone) if alone else layout


def _layered(parents: Mapping[str, Sequence[str]], layer_of: Mapping[str, int]) -> Layout:
    graph, numbers = _Graph(), {}
    for node in parents:
        numbers[node] = graph.add(layer_of[node], is_bend=False)
    bends = _connect(graph, parents, numbers)
    order = _ordered(graph)
    y = _positions(graph, order)
    lowest = min(y, default=0.0)
    y = [value - lowest for value in y]
    return Layout(
        x={node: layer_of[node] for node in parents},
        y={node: y[index] for node, index in numbers.items()},
        routes={
            edge: tuple((graph.layer[index], y[index]) for index in chain)
            for edge, chain in bends.items()
        },
        layers=len(order),
        height=max(y) + 1.0 if y else 0.0,
    )


def _with_grid(layout: Layout, alone: Sequence[str]) -> Layout:
    columns = max(layout.layers, min(_GRID_COLUMNS, len(alone)))
    places = {node: divmod(index, columns) for index, node in enumerate(alone)}
    rows = -(-len(alone) // columns)
    return Layout(
        x={**layout.x, **{node: column for node, (_, column) in places.items()}},
        y={**layout.y, **{node: layout.height + row for node, (row, _) in places.items()}},
        routes=layout.routes,
        layers=columns,
        height=layout.height + rows,
    )


def _connect(
    graph: _Graph, parents: Mapping[str, Sequence[str]], numbers: Mapping[str, int]
) -> dict[tuple[str, str], list[int]]:
    edges = [(parent, node) for node, before in parents.items() for parent in before]
    total = sum(graph.layer[numbers[b]] - graph.layer[numbers[a]] - 1 for a, b in edges)
    chains: dict[tuple[str, str], list[int]] = {}
    for source, target in edges:
        last, chain = numbers[source], []
        if total <= _MAX_BENDS:
            for layer in range(graph.layer[last] + 1, graph.layer[numbers[target]]):
                bend = graph.add(layer, is_bend=True)
                graph.connect(last, bend)
                chain.append(bend)
                last = bend
        graph.connect(last, numbers[target])
        chains[source, target] = chain
    return chains


def _ordered(graph: _Graph) -> list[list[int]]:
    """Sort each layer by the mean place of its neighbours, forth and back; keep the best."""
    layers: list[list[int]] = [[] for _ in range(max(graph.layer, default=-1) + 1)]
    for index, layer in enumerate(graph.layer):
        layers[layer].append(index)
    best, least = [list(layer) for layer in layers], _crossings(graph, layers)
    for sweep in range(_SWEEPS):
        if least == 0:
            break
        forward = sweep % 2 == 0
        neighbours = graph.before if forward else graph.after
        place = [0.0] * len(graph.layer)
        for members in layers if forward else reversed(layers):
            _sort_layer(members, neighbours, place)
        crossings = _crossings(graph, layers)
        if crossings < least:
            best, least = [list(layer) for layer in layers], crossings
    return best


def _sort_layer(layer: list[int], neighbours: list[list[int]], place: list[float]) -> None:
    """Order one layer by barycentre; `place` holds the places of the layer sorted before."""
    keys = {}
    for rank, index in enumerate(layer):
        around = neighbours[index]
        keys[index] = sum(place[n] for n in around) / len(around) if around else float(rank)
    layer.sort(key=lambda index: keys[index])
    for rank, index in enumerate(layer):
        place[index] = float(rank)


def _crossings(graph: _Graph, layers: list[list[int]]) -> int:
    """Edges that cross between neighbouring layers: of two, one begins earlier and ends later."""
    total = 0
    for left, right in pairwise(layers):
        rank = {index: place for place, index in enumerate(right)}
        ends: list[int] = []
        for index in left:
            for end in sorted(rank[after] for after in graph.after[index] if after in rank):
                total += len(ends) - bisect_right(ends, end)
                insort(ends, end)
    return total


def _positions(graph: _Graph, order: list[list[int]]) -> list[float]:
    """Vertical places that keep the order and bring neighbours level with each other."""
    y = [0.0] * len(graph.layer)
    for layer in order:
        for index, place in zip(layer, _stacked(graph, layer), strict=True):
            y[index] = place
    for sweep in range(_SWEEPS):
        neighbours = graph.before if sweep % 2 == 0 else graph.after
        for layer in order if sweep % 2 == 0 else reversed(order):
            wanted = [
                sum(y[n] for n in neighbours[index]) / len(neighbours[index])
                if neighbours[index]
                else y[index]
                for index in layer
            ]
            for index, place in zip(layer, _spread(graph, layer, wanted), strict=True):
                y[index] = place
    return y


def _stacked(graph: _Graph, layer: list[int]) -> list[float]:
    """Places of a layer's members one below the other, from 0."""
    places, at = [], 0.0
    for previous, index in zip([None, *layer], layer, strict=False):
        if previous is not None:
            at += _separation(graph, previous, index)
        places.append(at)
    return places


def _separation(graph: _Graph, above: int, below: int) -> float:
    sizes = [_BEND_SHARE if graph.is_bend[index] else 1.0 for index in (above, below)]
    return sum(sizes) / 2


def _spread(graph: _Graph, layer: list[int], wanted: list[float]) -> list[float]:
    """The places nearest to those wanted (least squares) that keep order and separation.

    With the separations taken off it is isotonic regression: neighbours that would overlap are
    pooled and share the mean.
    """
    offsets = _stacked(graph, layer)
    pools: list[list[float]] = []
    for want, offset in zip(wanted, offsets, strict=True):
        pools.append([want - offset, 1.0])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            total, count = pools.pop()
            pools[-1][0] += total
            pools[-1][1] += count
    means = [total / count for total, count in pools for _ in range(int(count))]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
