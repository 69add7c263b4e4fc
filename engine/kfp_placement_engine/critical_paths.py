"""What must lie before and after each activity of a run, whatever the plan.

Along the dependencies every activity takes at least its shortest time. Loops that limit how many
iterations run at once take more: while so many run, they can together do only so many seconds of
iteration each second.
"""

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
    head, tail = arrays.release_seconds.astype(np.float64), np.zeros(problem.activities)
    loops = _LimitedLoops(problem, shortest)
    for activity in problem.topological:
        first, last = arrays.predecessors_start[activity : activity + 2]
        before = arrays.predecessors[first:last]
        if before.size:
            earliest = max(float((head[before] + shortest[before]).max()), loops.end(before))
            head[activity] = max(head[activity], earliest)
        loops.pass_through(int(activity), before, float(head[activity]))
    for activity in problem.topological[::-1]:
        first, last = arrays.successors_start[activity : activity + 2]
        after = arrays.successors[first:last]
        if after.size:
            tail[activity] = max(float((shortest[after] + tail[after]).max()), loops.rest(after))
        loops.pass_back(int(activity), float(tail[activity]))
    return Paths(shortest, head, tail)


class _LimitedLoops:
    """How long the iterations of loops with a limit take together."""

    def __init__(self, problem: PlacementProblem, shortest: Floats) -> None:
        arrays = problem.arrays
        self._arrays = arrays
        self._shortest = shortest
        iterations = arrays.iteration_size.size
        self._any = iterations > 0
        # [A] longest path from the iteration's first activity to the end of this one.
        self._inside = np.zeros(problem.activities)
        self._span = np.zeros(iterations)
        self._entered = np.zeros(iterations)
        self._after = np.full(iterations, np.inf)

    def pass_through(self, activity: int, before: Integers, head: float) -> None:
        """Note an activity whose predecessors are known."""
        if not self._any or (iteration := self._arrays.iteration[activity]) < 0:
            return
        same = before[self._arrays.iteration[before] == iteration]
        longest = float(self._inside[same].max(initial=0.0)) + float(self._shortest[activity])
        self._inside[activity] = longest
        self._span[iteration] = max(self._span[iteration], longest)
        if (entered := self._arrays.entry_iteration[activity]) >= 0:
            self._entered[entered] = head

    def pass_back(self, activity: int, tail: float) -> None:
        """Note what must follow an activity, and so the iterations it is in."""
        iteration = self._arrays.iteration[activity] if self._any else -1
        while iteration >= 0:
            self._after[iteration] = min(self._after[iteration], tail)
            iteration = self._arrays.iteration_parent[iteration]

    def end(self, before: Integers) -> float:
        """No earlier than this all of the activities have ended, as far as loops say."""
        if not self._any:
            return 0.0
        spans: dict[int, float] = {}
        for activity in before[self._arrays.iteration[before] >= 0]:
            iteration = int(self._arrays.iteration[activity])
            spans[iteration] = max(spans.get(iteration, 0.0), float(self._inside[activity]))
        return max(
            (
                min(float(self._entered[each]) for each in members)
                + sum(spans[each] for each in members) / limit
                for limit, members in self._crowded(list(spans))
            ),
            default=0.0,
        )

    def rest(self, after: Integers) -> float:
        """At least this much time passes from now on, if these activities are yet to start."""
        if not self._any:
            return 0.0
        entered = [int(each) for each in self._arrays.entry_iteration[after] if each >= 0]
        return max(
            (
                sum(float(self._span[each]) for each in members) / limit
                + min(float(self._after[each]) for each in members)
                for limit, members in self._crowded(entered)
            ),
            default=0.0,
        )

    def _crowded(self, iterations: list[int]) -> list[tuple[int, list[int]]]:
        """The iterations by loop, of loops that cannot run them all at once, with the limits."""
        by_loop: dict[int, list[int]] = {}
        for iteration in iterations:
            by_loop.setdefault(int(self._arrays.iteration_loop[iteration]), []).append(iteration)
        limits = {loop: int(self._arrays.loop_parallelism[loop]) for loop in by_loop}
        return [
            (limits[loop], members)
            for loop, members in by_loop.items()
            if len(members) > limits[loop]
        ]
