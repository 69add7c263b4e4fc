"""What must lie before and after each activity of a run, whatever the plan.

Along the dependencies every activity takes at least its shortest time. Loops that limit how many
iterations run at once take more: while so many run, they can together do only so many seconds of
iteration each second.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.problem import Floats, Integers, PlacementProblem


@dataclass(frozen=True)
class Paths:
    """The longest paths through each activity.

    Attributes:
        shortest: [A] least time from bind to end.
        head: [A] it cannot be bound earlier.
        tail: [A] least time from its end to the end of the run.
    """

    shortest: Floats
    head: Floats
    tail: Floats

    @property
    def critical_seconds(self) -> float:
        """The longest chain with every activity at its quickest."""
        return float((self.head + self.shortest + self.tail).max(initial=0.0))


def paths_of(problem: PlacementProblem, shortest: Floats) -> Paths:
    """Heads and tails, given the [A] shortest times."""
    arrays = problem.arrays
    before = _rows(arrays.predecessors_start, arrays.predecessors)
    after = _rows(arrays.successors_start, arrays.successors)
    # Lists: most rows hold a few numbers, for which arrays are slow.
    seconds: list[float] = shortest.tolist()
    head: list[float] = arrays.release_seconds.tolist()
    tail = [0.0] * problem.activities
    order: list[int] = problem.topological.tolist()
    loops = _LimitedLoops(problem, seconds) if arrays.iteration_size.size else None
    for activity in order:
        for each in before[activity]:
            head[activity] = max(head[activity], head[each] + seconds[each])
        if loops is not None:
            head[activity] = max(head[activity], loops.end(before[activity]))
            loops.pass_through(activity, before[activity], head[activity])
    for activity in reversed(order):
        for each in after[activity]:
            tail[activity] = max(tail[activity], seconds[each] + tail[each])
        if loops is not None:
            tail[activity] = max(tail[activity], loops.rest(after[activity]))
            loops.pass_back(activity, tail[activity])
    return Paths(shortest, np.array(head, np.float64), np.array(tail, np.float64))


def _rows(starts: Integers, values: Integers) -> list[list[int]]:
    """Row i is values[starts[i]:starts[i + 1]]."""
    first, flat = starts.tolist(), values.tolist()
    return [flat[low:high] for low, high in itertools.pairwise(first)]


class _LimitedLoops:
    """How long the iterations of loops with a limit take together."""

    def __init__(self, problem: PlacementProblem, shortest: list[float]) -> None:
        arrays = problem.arrays
        self._shortest = shortest
        self._iteration: list[int] = arrays.iteration.tolist()
        self._entry: list[int] = arrays.entry_iteration.tolist()
        self._parent: list[int] = arrays.iteration_parent.tolist()
        self._loop: list[int] = arrays.iteration_loop.tolist()
        self._limit: list[int] = arrays.loop_parallelism.tolist()
        iterations = len(self._loop)
        # By activity: the longest path from its iteration's first activity to its own end.
        self._inside = [0.0] * problem.activities
        self._span = [0.0] * iterations
        self._entered = [0.0] * iterations
        self._after = [float("inf")] * iterations

    def pass_through(self, activity: int, before: list[int], head: float) -> None:
        """Note an activity whose predecessors are known."""
        iteration = self._iteration[activity]
        if iteration < 0:
            return
        same = [self._inside[each] for each in before if self._iteration[each] == iteration]
        self._inside[activity] = max(same, default=0.0) + self._shortest[activity]
        self._span[iteration] = max(self._span[iteration], self._inside[activity])
        if self._entry[activity] >= 0:
            self._entered[self._entry[activity]] = head

    def pass_back(self, activity: int, tail: float) -> None:
        """Note what must follow an activity, and so the iterations it is in."""
        iteration = self._iteration[activity]
        while iteration >= 0:
            self._after[iteration] = min(self._after[iteration], tail)
            iteration = self._parent[iteration]

    def end(self, before: list[int]) -> float:
        """No earlier than this all of the activities have ended, as far as loops say."""
        spans: dict[int, float] = {}
        for activity in before:
            iteration = self._iteration[activity]
            if iteration >= 0:
                spans[iteration] = max(spans.get(iteration, 0.0), self._inside[activity])
        latest = 0.0
        for limit, members in self._crowded(list(spans)):
            together = sum(spans[each] for each in members) / limit
            latest = max(latest, min(self._entered[each] for each in members) + together)
        return latest

    def rest(self, after: list[int]) -> float:
        """At least this much time passes from now on, if these activities are yet to start."""
        longest = 0.0
        entered = [self._entry[activity] for activity in after if self._entry[activity] >= 0]
        for limit, members in self._crowded(entered):
            together = sum(self._span[each] for each in members) / limit
            longest = max(longest, together + min(self._after[each] for each in members))
        return longest

    def _crowded(self, iterations: list[int]) -> list[tuple[int, list[int]]]:
        """The iterations by loop, of loops that cannot run them all at once, with the limits."""
        if len(iterations) < 2:
            return []
        by_loop: dict[int, list[int]] = {}
        for iteration in iterations:
            by_loop.setdefault(self._loop[iteration], []).append(iteration)
        return [
            (self._limit[loop], members)
            for loop, members in by_loop.items()
            if len(members) > self._limit[loop]
        ]
