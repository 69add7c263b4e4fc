"""What must lie before and after each activity of a run, whatever the plan.

Along the dependencies every activity takes at least its shortest time. Loops that limit how many
iterations run at once take more: while this many run, they can together do only this many seconds
of iteration each second.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.problem.limited_loops import LimitedLoops
from kfp_placement_engine.problem.problem import Floats, Integers, PlacementProblem


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
    loops = LimitedLoops(problem, seconds) if arrays.iteration_size.size else None
    for activity in order:
        for each in before[activity]:
            head[activity] = max(head[activity], head[each] + seconds[each])
        if loops is not None:
            head[activity] = loops.pass_through(activity, before[activity], head[activity])
    if loops is not None:
        loops.measure_iterations()
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
