"""Layered layout of an acyclic graph: columns by longest path, few crossings, straight long edges.

The classical way in three passes (Sugiyama): layers, order within layers by barycentres, positions
by least displacement. Edges over several layers get a bend point in each layer between.
"""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate, pairwise

_SWEEPS = 4
"""Number of sweeps through the layers in each direction."""

_MAX_BENDS = 4_000
_GRID_COLUMNS = 5
_BEND_SHARE = 0.35
"""Room that an edge passing through a layer takes, as a share of a box's."""

Parents = Mapping[str, Sequence[str]]
"""The parents of each node."""

Edge = tuple[str, str]

Point = str | tuple[str, str, int]
"""A node, or where an edge (from, to) passes through a layer."""

Layers = list[list[Point]]
Neighbours = Mapping[Point, Sequence[Point]]
Sweeps = Sequence[tuple[Layers, Neighbours]]
"""Sweeps through the layers, forward and backward in turn.

Of each sweep: the layers in its order, and each point's neighbours in the layer before.
"""


@dataclass(frozen=True)
class Layout:
    """Positions in units of one box: `x` is the layer, `y` the place in it.

    Attributes:
        x: layer of each node.
        y: vertical position of each node.
        routes: points between the ends of each edge (from, to); empty for most.
        layers: number of layers.
        height: largest y plus one box.
    """

    x: Mapping[str, int]
    y: Mapping[str, float]
    routes: Mapping[Edge, Sequence[tuple[int, float]]]
    layers: int
    height: float


def longest_path_layers(parents: Parents) -> dict[str, int] | None:
    """Return the layer of each node: 0, or one beyond its last parent's; None: there is a cycle."""
    layers: dict[str, int] = {}
    try:
        for node in TopologicalSorter(parents).static_order():
            layers[node] = max((layers[parent] + 1 for parent in parents[node]), default=0)
    except CycleError:
        return None
    return layers


def without_shortcuts(parents: Parents) -> dict[str, list[str]]:
    """Leave out edges that longer paths imply: they say nothing new and cross the picture."""
    ancestors: dict[str, set[str]] = {}
    kept: dict[str, list[str]] = {node: [] for node in parents}
    for node in TopologicalSorter(parents).static_order():
        implied: set[str] = set().union(*(ancestors[parent] for parent in parents[node]))
        kept[node] = [parent for parent in parents[node] if parent not in implied]
        ancestors[node] = implied.union(parents[node])
    return kept


def layered(parents: Parents) -> Layout:
    """Lay out an acyclic graph given by each node's parents.

    Nodes without any edge wait for nobody and nobody for them: they fill a grid below the others
    instead of one endless column.
    """
    layer_of = longest_path_layers(parents)
    assert layer_of is not None  # it has no cycle
    edges = [(parent, node) for node, before in parents.items() for parent in before]
    bends = _bends(edges, layer_of)
    linked = {node for edge in edges for node in edge}
    layers: Layers = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for node in parents:
        if node in linked:
            layers[layer_of[node]].append(node)
    before, after = defaultdict[Point, list[Point]](list), defaultdict[Point, list[Point]](list)
    for (source, target), passed in bends.items():
        for bend in passed:
            layers[bend[2]].append(bend)
        path: list[Point] = [source, *passed, target]
        for left, right in pairwise(path):
            after[left].append(right)
            before[right].append(left)
    sweeps: Sweeps = [(layers, before), (layers[::-1], after)] * _SWEEPS
    _sort(layers, sweeps, after)
    places = _positions(layers, sweeps)
    lowest = min(places.values(), default=0.0)
    x = {node: layer_of[node] for node in parents}
    y = {node: places[node] - lowest for node in parents if node in linked}
    height = max((each - lowest + 1.0 for each in places.values()), default=0.0)
    alone = [node for node in parents if node not in linked]
    columns = max(len(layers), min(_GRID_COLUMNS, len(alone)))
    for index, node in enumerate(alone):
        row, x[node] = divmod(index, columns)
        y[node] = height + row
    return Layout(
        x=x,
        y=y,
        routes={
            edge: [(bend[2], places[bend] - lowest) for bend in passed]
            for edge, passed in bends.items()
        },
        layers=columns,
        height=max([height, *(each + 1.0 for each in y.values())]),
    )


def _bends(
    edges: Sequence[Edge], layer_of: Mapping[str, int]
) -> dict[Edge, list[tuple[str, str, int]]]:
    """Return the bend points of each edge; none if they would be too many to lay out."""
    passed = {(a, b): range(layer_of[a] + 1, layer_of[b]) for a, b in edges}
    if sum(map(len, passed.values())) > _MAX_BENDS:
        return {edge: [] for edge in edges}
    return {edge: [(*edge, layer) for layer in layers] for edge, layers in passed.items()}


def _mean(point: Point, neighbours: Neighbours, places: Mapping[Point, float], own: float) -> float:
    """Return the mean place of a point's neighbours, or its own if it has none."""
    around = neighbours.get(point)
    return sum(places[each] for each in around) / len(around) if around else own


def _sort(layers: Layers, sweeps: Sweeps, after: Neighbours) -> None:
    """Sort each layer by the mean place of its neighbours, forward and backward; keep the best."""
    best, least = [list(layer) for layer in layers], _crossings(layers, after)
    for sweep, neighbours in sweeps:
        if least == 0:
            break
        places: dict[Point, float] = {}
        for layer in sweep:
            wanted = {
                point: _mean(point, neighbours, places, rank) for rank, point in enumerate(layer)
            }
            layer.sort(key=wanted.__getitem__)
            places.update((point, rank) for rank, point in enumerate(layer))
        crossings = _crossings(layers, after)
        if crossings < least:
            best, least = [list(layer) for layer in layers], crossings
    for layer, points in zip(layers, best, strict=True):
        layer[:] = points


def _crossings(layers: Layers, after: Neighbours) -> int:
    """Edges that cross between neighbouring layers: of two, one begins earlier and ends later."""
    total = 0
    for left, right in pairwise(layers):
        rank = {point: place for place, point in enumerate(right)}
        ends: list[int] = []
        for point in left:
            for end in sorted(rank[each] for each in after.get(point, ()) if each in rank):
                total += len(ends) - bisect_right(ends, end)
                insort(ends, end)
    return total


def _positions(layers: Layers, sweeps: Sweeps) -> dict[Point, float]:
    """Vertical places that keep the order and bring neighbours level with each other."""
    y: dict[Point, float] = {}
    for layer in layers:
        y.update(zip(layer, _stacked(layer), strict=False))
    for sweep, neighbours in sweeps:
        for layer in sweep:
            wanted = [_mean(point, neighbours, y, y[point]) for point in layer]
            y.update(zip(layer, _spread(layer, wanted), strict=True))
    return y


def _stacked(layer: Sequence[Point]) -> list[float]:
    """Places of a layer's points one below the other, from 0."""
    sizes = [1.0 if isinstance(point, str) else _BEND_SHARE for point in layer]
    return list(accumulate(((a + b) / 2 for a, b in pairwise(sizes)), initial=0.0))


def _spread(layer: Sequence[Point], wanted: Sequence[float]) -> list[float]:
    """Return the places nearest to those wanted (least squares) that keep order and separation.

    With the separations taken off it is isotonic regression: neighbours that would overlap are
    pooled and share the mean.
    """
    offsets = _stacked(layer)
    pools: list[list[float]] = []
    for want, offset in zip(wanted, offsets, strict=False):
        pools.append([want - offset, 1.0])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            total, count = pools.pop()
            pools[-1][0] += total
            pools[-1][1] += count
    means = [total / count for total, count in pools for _ in range(int(count))]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]
