"""The bound by a linear program over patterns, which sees how pods fit together on a node.

Groups are steps with the same requests and the same usable nodes; a pattern is a set of pods that
fit on one node together. Choose for each type of node how long it holds each pattern, so that every
group gets its work done, and minimise the time T the busiest type needs (planning of cutting stock,
Gilmore and Gomory 1961). Work is run time at speed 1, so patterns count by the node's speed.

There may be millions of patterns; they are generated as they are needed. Whatever prices the
program so far puts on the groups' work, no node does work of more value per second than its most
valuable pattern, so (value of all work) / (what all nodes do per second) bounds T (Farley 1990).
The bound needs no trust in the solver, whose prices are only good or bad choices, and holds
whenever the generation stops.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfp_placement_engine.bounds.solver import find_solvers, quiet_solver
from kfp_placement_engine.problem.problem import Booleans, Floats, Integers, PlacementProblem

MAX_GROUPS = 200
"""Largest number of groups and of types; with more the area bound is as good, and quicker."""

CALL_CELLS = 2_000
"""Cost of one operation on a table, in cells that could be computed in that time."""

MAX_CELLS = 20_000
"""Largest size of a table: the amounts of all resources that a pattern may take."""

MIN_ROUNDS, MAX_ROUNDS = 5, 200
"""Rounds of generation, each of which adds one pattern for each type of node."""

TOLERANCE = 1e-6
"""Relative precision of the bound where the generation ends on its own."""


@dataclass(frozen=True)
class StepGroups:
    """Groups of steps that are alike to every node; G groups, N nodes, R resources.

    Attributes:
        requests: [G, R] amounts that a step requests.
        usable: [G, N] nodes that the steps may go to.
        work_seconds: [G] sum of the run times at speed 1.
        members: [G] number of steps.
    """

    requests: Integers
    usable: Booleans
    work_seconds: Floats
    members: Integers


@dataclass(frozen=True)
class NodeType:
    """Nodes that are alike to every group: unlike a kind of `node_kinds`, with equal free room too.

    Attributes:
        room: [R] free amounts of one node.
        speed: speed of one node.
        count: number of nodes.
        most: [G] number of steps of each group that one node takes, without others.
    """

    room: Integers
    speed: float
    count: int
    most: Integers


def pattern_bound_seconds(
    problem: PlacementProblem, usable: Booleans, most_cells: int
) -> float | None:
    """Return the bound, or None where the solver is missing or the program would be too large.

    Args:
        problem: problem whose makespan is bounded.
        usable: [A, N] nodes that each activity may go to.
        most_cells: cells of tables to compute in total; after them the best bound so far is taken.
    """
    highspy = find_solvers()
    if highspy is None:
        return None
    groups = step_groups(problem, usable)
    if not 0 < len(groups.members) <= MAX_GROUPS:
        return None
    types = node_types(problem, groups)
    if not 0 < len(types) <= MAX_GROUPS:
        return None
    generation = _Generation(_Program(highspy, types, groups), types, groups, most_cells)
    return generation.bound_seconds() if generation.rounds >= MIN_ROUNDS else None


def step_groups(problem: PlacementProblem, usable: Booleans) -> StepGroups:
    """Group the steps that need time on a node."""
    arrays = problem.arrays
    steps = np.flatnonzero((arrays.gene >= 0) & (arrays.duration_seconds > 0) & arrays.scales)
    classes = arrays.class_of[steps].tolist()
    # Steps of a class are alike, so its first step stands for all.
    leader_of = dict(zip(reversed(classes), reversed(steps.tolist()), strict=True))
    groups: dict[tuple[bytes, bytes], list[int]] = {}
    for class_number, step in sorted(leader_of.items()):
        alike = (arrays.requests[step].tobytes(), usable[step].tobytes())
        groups.setdefault(alike, []).append(class_number)
    group_of = {
        class_number: group
        for group, members in enumerate(groups.values())
        for class_number in members
    }
    leaders = [leader_of[members[0]] for members in groups.values()]
    group = np.array([group_of[class_number] for class_number in classes], np.int64)
    return StepGroups(
        requests=arrays.requests[leaders],
        usable=usable[leaders],
        work_seconds=np.bincount(group, weights=arrays.duration_seconds[steps]).astype(np.float64),
        members=np.bincount(group),
    )


def node_types(problem: PlacementProblem, groups: StepGroups) -> list[NodeType]:
    """Return the types of the nodes that take any step: by room, speed, and groups that fit."""
    arrays = problem.arrays
    alike: dict[tuple[bytes, float, bytes], list[int]] = {}
    for node in np.flatnonzero(groups.usable.any(axis=0)):
        key = (
            arrays.free[node].tobytes(),
            float(arrays.speed[node]),
            groups.usable[:, node].tobytes(),
        )
        alike.setdefault(key, []).append(int(node))
    types = []
    for nodes in alike.values():
        room, takes = arrays.free[nodes[0]], groups.usable[:, nodes[0]]
        divisors = np.maximum(groups.requests, 1)
        fits = np.where(groups.requests > 0, room[None, :] // divisors, groups.members[:, None])
        most = np.where(takes, np.minimum(fits.min(axis=1), groups.members), 0)
        types.append(NodeType(room, float(arrays.speed[nodes[0]]), len(nodes), most))
    return types


class _Program:
    """The linear program over the patterns that are generated so far."""

    def __init__(self, highspy: Any, types: list[NodeType], groups: StepGroups) -> None:
        infinity = highspy.kHighsInf
        self._infinity = infinity
        self._solver = quiet_solver(highspy)
        self._types = types
        self._groups = len(groups.members)
        none = np.zeros(0, np.int32)
        for work in groups.work_seconds:
            self._solver.addRow(float(work), infinity, 0, none, np.zeros(0))
        for _ in types:
            self._solver.addRow(0.0, infinity, 0, none, np.zeros(0))
        rows = np.arange(self._groups, self._groups + len(types), dtype=np.int32)
        counts = np.array([node_type.count for node_type in types], np.float64)
        self._solver.addCol(1.0, 0.0, infinity, len(rows), rows, counts)

    def add(self, number: int, pattern: Integers) -> None:
        """Let nodes of the type with this number hold a pattern."""
        held = np.flatnonzero(pattern)
        rows = np.append(held, self._groups + number).astype(np.int32)
        rates = np.append(self._types[number].speed * pattern[held], -1.0)
        self._solver.addCol(0.0, 0.0, self._infinity, len(rows), rows, rates)

    def solve(self) -> tuple[float, Floats]:
        """Return the least makespan, and the price of a second's work of each group."""
        self._solver.run()
        duals = np.array(self._solver.getSolution().row_dual[: self._groups], np.float64)
        return float(self._solver.getInfo().objective_function_value), np.maximum(duals, 0.0)


class _Generation:
    """The generation of patterns until none is worth adding; it keeps the best bound.

    Attributes:
        rounds: number of rounds that the effort allows.
    """

    def __init__(
        self, program: _Program, types: list[NodeType], groups: StepGroups, most_cells: int
    ) -> None:
        self._program = program
        self._types = types
        self._groups = groups
        self._by_load = _by_load(types, groups)
        self._knapsacks = [
            _Knapsack(node_type, groups.requests, self._by_load) for node_type in types
        ]
        self.rounds = most_cells // sum(knapsack.work for knapsack in self._knapsacks)
        self._best = 0.0

    def bound_seconds(self) -> float:
        self._add_single_groups()
        for resource in self._by_load[:2]:
            self._add_patterns(self._groups.requests[:, resource].astype(np.float64))
        for _ in range(min(MAX_ROUNDS, self.rounds)):
            least, prices = self._program.solve()
            if not self._add_patterns(prices) or self._best >= least * (1 - TOLERANCE):
                break
        # Sums of prices and capacities are rounded.
        return self._best * (1 - 1e-9)

    def _add_single_groups(self) -> None:
        """Add one pattern for every group, so that the program has a solution."""
        for group in range(len(self._groups.members)):
            most = [int(node_type.most[group]) for node_type in self._types]
            number = most.index(max(most))
            pattern = np.zeros(len(self._groups.members), np.int64)
            pattern[group] = most[number]
            self._program.add(number, pattern)

    def _add_patterns(self, prices: Floats) -> bool:
        """Add each type's most valuable pattern, and return whether to go on."""
        per_second = 0.0
        for number, knapsack in enumerate(self._knapsacks):
            value, pattern = knapsack.search(prices)
            per_second += self._types[number].count * self._types[number].speed * value
            self._program.add(number, pattern)
        if per_second > 0.0:
            self._best = max(self._best, float(prices @ self._groups.work_seconds) / per_second)
        return per_second > 0.0


def _by_load(types: list[NodeType], groups: StepGroups) -> list[int]:
    """Return the resources in order of the share of the room that the work takes, largest first."""
    room = sum(each.count * np.maximum(each.room, 0).astype(np.float64) for each in types)
    load = (groups.work_seconds @ groups.requests) / np.maximum(room, 1.0)
    return [int(resource) for resource in np.argsort(-load, kind="stable")]


class _Knapsack:
    """A search for a node type's most valuable pattern at given prices, by dynamic programming.

    Room and requests are counted in units. Where they do not divide, or would be too many, requests
    are rounded down, which only allows more patterns.

    Attributes:
        work: number of cells that one search computes.
    """

    def __init__(self, node_type: NodeType, requests: Integers, by_load: list[int]) -> None:
        groups = np.flatnonzero(node_type.most > 0)
        self._size = len(node_type.most)
        resources, units = _counted(node_type.room, requests[groups], by_load)
        self._shape = tuple(int(amount) + 1 for amount in node_type.room[resources] // units)
        # Up to `most` steps of a group are bundles of 1, 2, 4, ... steps and the rest.
        self._bundles = [
            (int(group), count, tuple(int(count * amount) for amount in row))
            for group, row in zip(groups, requests[groups][:, resources] // units, strict=True)
            for count in _doubling(int(node_type.most[group]))
        ]
        self.work = (1 + len(self._bundles)) * (CALL_CELLS + math.prod(self._shape))

    def search(self, prices: Floats) -> tuple[float, Integers]:
        """Return the value of the most valuable pattern, and the pattern."""
        tables = [np.zeros(self._shape)]
        for group, count, amounts in self._bundles:
            table = tables[-1].copy()
            into = tuple(slice(amount, None) for amount in amounts)
            rest = tuple(
                slice(0, size - amount) for size, amount in zip(self._shape, amounts, strict=True)
            )
            table[into] = np.maximum(table[into], tables[-1][rest] + count * prices[group])
            tables.append(table)
        cell = tuple(size - 1 for size in self._shape)
        pattern = np.zeros(self._size, np.int64)
        for index in range(len(self._bundles) - 1, -1, -1):
            if tables[index + 1][cell] != tables[index][cell]:
                group, count, amounts = self._bundles[index]
                pattern[group] += count
                cell = tuple(at - amount for at, amount in zip(cell, amounts, strict=True))
        return float(tables[-1][tuple(size - 1 for size in self._shape)]), pattern


def _counted(room: Integers, requests: Integers, by_load: list[int]) -> tuple[list[int], Integers]:
    """Return the resources whose amounts are counted, and the unit of each.

    They are the resources that may run out, most wanted first, as long as the table stays small. To
    leave one out only allows more patterns.
    """
    counted: list[int] = []
    units: list[int] = []
    cells = 1
    for resource in by_load:
        if not _may_run_out(resource, room, requests):
            continue
        unit = int(np.gcd.reduce(requests[:, resource]))
        if not counted:
            unit = max(unit, math.ceil(int(room[resource]) / MAX_CELLS))
        if cells * (int(room[resource]) // unit + 1) <= MAX_CELLS + 1:
            cells *= int(room[resource]) // unit + 1
            counted.append(resource)
            units.append(unit)
    return counted, np.array(units, np.int64)


def _may_run_out(resource: int, room: Integers, requests: Integers) -> bool:
    """Return whether steps can run out of the resource before they run out of another one."""
    most = int(requests[:, resource].max(initial=0))
    steps = [
        int(room[other] // requests[:, other].min())
        for other in range(len(room))
        if other != resource and len(requests) and requests[:, other].min() > 0
    ]
    return most > 0 and (not steps or most * min(steps) > room[resource])


def _doubling(most: int) -> list[int]:
    """Return sizes of bundles from which every number up to `most` can be made."""
    sizes, size = [], 1
    while most > 0:
        sizes.append(min(size, most))
        most -= sizes[-1]
        size *= 2
    return sizes
