"""The pattern linear program: a bound on packing that sees how pods fit together.

Classes are steps with the same requests and the same usable nodes; a pattern is a set of pods that
fit on one node together. Choose for each type of node how long it holds each pattern, so that every
class gets its work done, and minimise the time the busiest type needs (planning of cutting stock,
Gilmore and Gomory 1961). Work is run time at speed 1, so patterns count by the node's speed.
"""

from collections.abc import Iterator

import numpy as np

from kfp_placement_engine.problem import Booleans, Floats, Integers, PlacementProblem

MAX_PATTERNS = 20_000
"""Beyond so many patterns over all types of node the program is not built."""


def pattern_bound_seconds(problem: PlacementProblem, usable: Booleans) -> float | None:
    """The bound, or None where the LP solver is missing or there are too many patterns."""
    try:
        import highspy
    except ImportError:
        return None
    arrays = problem.arrays
    steps = np.flatnonzero((arrays.gene >= 0) & (arrays.duration_seconds > 0) & arrays.scales)
    if steps.size == 0:
        return None
    keys = np.concatenate([arrays.requests[steps], usable[steps].astype(np.int64)], axis=1)
    classes, member = np.unique(keys, axis=0, return_inverse=True)
    members = np.bincount(member.ravel())
    work = np.bincount(member.ravel(), weights=arrays.duration_seconds[steps]).astype(np.float64)
    requests = classes[:, : arrays.requests.shape[1]]
    open_to = classes[:, arrays.requests.shape[1] :].astype(np.bool_)
    columns: list[tuple[int, float, tuple[int, ...]]] = []
    counts: list[int] = []
    for room, speed, fitting, count in _node_types(problem, open_to):
        for pattern in _maximal_patterns(room, requests, fitting, members):
            columns.append((len(counts), speed, pattern))
            if len(columns) > MAX_PATTERNS:
                return None
        counts.append(count)
    return _solve(highspy, columns, counts, work)


def _node_types(
    problem: PlacementProblem, open_to: Booleans
) -> Iterator[tuple[Integers, float, Booleans, int]]:
    """Distinct (room, speed, classes that may use it) and how many nodes are of each."""
    arrays = problem.arrays
    types: dict[tuple[bytes, float, bytes], list[int]] = {}
    for node in range(problem.nodes):
        fitting = np.ascontiguousarray(open_to[:, node])
        key = (arrays.free[node].tobytes(), float(arrays.speed[node]), fitting.tobytes())
        types.setdefault(key, []).append(node)
    for nodes in types.values():
        yield arrays.free[nodes[0]], float(arrays.speed[nodes[0]]), open_to[:, nodes[0]], len(nodes)


def _maximal_patterns(
    room: Integers, requests: Integers, fitting: Booleans, available: Integers
) -> Iterator[tuple[int, ...]]:
    """Counts of each class that fit together and leave no room for one more of the last classes."""
    classes = [int(index) for index in np.flatnonzero(fitting)]

    def extend(position: int, left: Integers, chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if position == len(classes):
            yield chosen
            return
        index = classes[position]
        most = _most(left, requests[index], int(available[index]))
        # The last class is always filled up: leaving room for it would only be a worse pattern.
        least = most if position == len(classes) - 1 else 0
        for count in range(most, least - 1, -1):
            yield from extend(position + 1, left - count * requests[index], (*chosen, count))

    padding = {index: position for position, index in enumerate(classes)}
    for counts in extend(0, room, ()):
        yield tuple(
            counts[padding[index]] if index in padding else 0 for index in range(len(requests))
        )


def _most(left: Integers, request: Integers, available: int) -> int:
    asked = request > 0
    return max(0, min(available, int((left[asked] // request[asked]).min(initial=available))))


def _solve(
    highspy: object,
    columns: list[tuple[int, float, tuple[int, ...]]],
    counts: list[int],
    work: Floats,
) -> float | None:
    """Minimise T: each class gets its work; no type of node is busy longer than its nodes x T."""
    solver = highspy.Highs()  # type: ignore[attr-defined]
    solver.setOptionValue("output_flag", False)
    infinity = highspy.kHighsInf  # type: ignore[attr-defined]
    solver.addVar(0.0, infinity)
    solver.changeColCost(0, 1.0)
    for _ in columns:
        solver.addVar(0.0, infinity)
    for index, amount in enumerate(work):
        entries = [
            (number + 1, speed * p[index])
            for number, (_, speed, p) in enumerate(columns)
            if p[index]
        ]
        if not entries:
            continue
        indexes = np.array([number for number, _ in entries], np.int32)
        values = np.array([value for _, value in entries])
        solver.addRow(float(amount), infinity, len(entries), indexes, values)
    for kind, count in enumerate(counts):
        held = [number + 1 for number, (owner, _, _) in enumerate(columns) if owner == kind]
        names = np.array([0, *held], np.int32)
        solver.addRow(
            0.0, infinity, len(names), names, np.array([float(count), *([-1.0] * len(held))])
        )
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:  # type: ignore[attr-defined]
        return None
    # The solver's answer may exceed the optimum by its tolerance.
    return float(solver.getInfo().objective_function_value) * (1 - 1e-7)
