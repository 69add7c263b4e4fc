"""Lower bounds of the time that the iterations of a loop with a limit take together.

While at most p iterations run at once, p runners could do them one after another: iterations that
overlap go to different runners, and no more than p overlap at any time. So the iterations take at
least as long as jobs of these lengths on p equal machines. An iteration is as long as the longest
chain inside it. A loop inside an iteration makes it longer by the same rule, from the innermost
loop outwards.
"""

from collections.abc import Collection, Iterable
from itertools import accumulate

import numpy as np

from kfp_placement_engine.problem.problem import PlacementProblem

RUN = -1
"""Index that stands for the run as a whole, in place of an iteration's."""


def together_seconds(limit: int, spans: Iterable[float]) -> float:
    """Return the least time for iterations of which only some run at once.

    It is the larger of two bounds for equal machines (Dell'Amico and Martello 1995, section 2): the
    sum shared evenly; and some runner gets k + 1 of the k p + 1 longest iterations, which take at
    least as long as the k + 1 shortest of them. For n iterations of one length that is this length
    times n / p, rounded up.

    Args:
        limit: number of iterations that run at once, 1 or more.
        spans: seconds that each iteration takes.
    """
    longest_first = sorted(spans, reverse=True)
    until = [0.0, *accumulate(longest_first)]
    rounds = range(1, -(-len(longest_first) // limit))
    crowded = [until[k * limit + 1] - until[k * limit - k] for k in rounds]
    return max(until[-1] / limit, max(longest_first, default=0.0), *crowded)


class LimitedLoops:
    """The bounds that limited loops add to the paths of a run.

    Call `forward` for the activities in topological order, then `measure_iterations`, then `tail`
    and `backward` for each of them in the reverse order.
    """

    def __init__(self, problem: PlacementProblem, shortest: list[float]) -> None:
        arrays = problem.arrays
        self._shortest = shortest
        self._entry: list[int] = arrays.entry_iteration.tolist()
        self._loop: list[int] = arrays.iteration_loop.tolist()
        # More may have been started than the limit allows; none is stopped.
        started = np.bincount(
            arrays.iteration_loop[arrays.iteration_started], minlength=arrays.loop_parallelism.size
        )
        self._limit: list[int] = np.maximum(arrays.loop_parallelism, started).tolist()
        parents: list[int] = arrays.iteration_parent.tolist()
        chains = {RUN: (RUN,)} | {at: _chain(at, parents) for at in range(len(parents))}
        # By activity: the iterations around it, outermost (the run) first.
        self._around = [chains[iteration] for iteration in arrays.iteration.tolist()]
        # By iteration and activity inside: least time from the iteration's start to the activity's.
        self._start: dict[int, dict[int, float]] = {iteration: {} for iteration in chains}
        # By iteration: least time from the start of the iteration around it to its own.
        self._begin = [0.0] * len(parents)
        self._span = [0.0] * len(parents)
        self._after = [float("inf")] * len(parents)

    def forward(self, activity: int, before: list[int], head: float) -> float:
        """Add an activity after its predecessors, and return its head, which loops may raise."""
        around = self._around[activity]
        for depth, iteration in enumerate(around):
            inside = [
                earlier
                for earlier in before
                if self._around[earlier][depth : depth + 1] == (iteration,)
            ]
            start = self._end(iteration, depth, inside)
            self._start[iteration][activity] = max(start, head) if iteration == RUN else start
        entered = self._entry[activity]
        if entered >= 0:
            self._begin[entered] = self._start[around[-2]][activity]
        return self._start[RUN][activity]

    def measure_iterations(self) -> None:
        """Compute the length of each iteration, after every activity was passed."""
        for around in set(self._around):
            iteration = around[-1]  # each has an activity of its own: its driver
            if iteration != RUN:
                self._span[iteration] = self._end(
                    iteration, len(around) - 1, self._start[iteration]
                )

    def backward(self, activity: int, tail: float) -> None:
        """Record the least time after an activity, and so after the iterations that it is in."""
        for iteration in self._around[activity][1:]:
            self._after[iteration] = min(self._after[iteration], tail)

    def tail(self, after: list[int]) -> float:
        """Return the least time from now to the end of the run, if these activities start next."""
        longest = 0.0
        iterations = [self._entry[activity] for activity in after if self._entry[activity] >= 0]
        for limit, members in self._crowded(iterations):
            together = together_seconds(limit, (self._span[member] for member in members))
            longest = max(longest, together + min(self._after[member] for member in members))
        return longest

    def _end(self, iteration: int, depth: int, activities: Collection[int]) -> float:
        """Return the least time from an iteration's start to the end of activities inside it.

        Args:
            iteration: index of the iteration, or `RUN`.
            depth: place of the iteration in `_around` of each of the activities.
            activities: activities inside the iteration.
        """
        if len(activities) == 1:
            return self._end_of_one(depth, next(iter(activities)))
        start, latest, deeper = self._start[iteration], 0.0, depth + 1
        inner: dict[int, list[int]] = {}
        for activity in activities:
            latest = max(latest, start[activity] + self._shortest[activity])
            around = self._around[activity]
            if deeper < len(around):
                inner.setdefault(around[deeper], []).append(activity)
        if not inner:
            return latest
        spans = {nested: self._end(nested, deeper, members) for nested, members in inner.items()}
        for nested, span in spans.items():
            latest = max(latest, self._begin[nested] + span)
        for limit, members in self._crowded(list(spans)):
            together = together_seconds(limit, (spans[member] for member in members))
            latest = max(latest, min(self._begin[member] for member in members) + together)
        return latest

    def _end_of_one(self, depth: int, activity: int) -> float:
        """Return the least end of one activity; with a single one no limit of a loop matters."""
        around, seconds = self._around[activity], self._shortest[activity]
        end = self._start[around[-1]][activity] + seconds
        for place in range(len(around) - 2, depth - 1, -1):
            inside = self._begin[around[place + 1]] + end
            end = max(0.0, self._start[around[place]][activity] + seconds, inside)
        return end

    def _crowded(self, iterations: list[int]) -> list[tuple[int, list[int]]]:
        """Return limit and iterations of each loop that cannot run its iterations all at once."""
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


def _chain(iteration: int, parents: list[int]) -> tuple[int, ...]:
    """Return the run, then the iterations around an iteration, outermost first, then itself."""
    chain: list[int] = []
    while iteration >= 0:
        chain.append(iteration)
        iteration = parents[iteration]
    return (RUN, *reversed(chain))
