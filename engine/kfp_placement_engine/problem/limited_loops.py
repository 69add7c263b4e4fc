"""How long the iterations of loops with a limit take together, loops inside loops included.

While at most p iterations run at once, p runners could do them one after another: iterations that
overlap go to different runners, and no more than p overlap at any time. So iterations take together
no less than jobs of these lengths on p equal machines. An iteration is as long as the longest chain
inside it; a loop inside it makes it longer by the same rule, from the innermost loop outwards.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import accumulate

import numpy as np

from kfp_placement_engine.problem.problem import PlacementProblem

RUN = -1
"""The run as a whole, where an iteration is asked for."""


def together_seconds(limit: int, spans: Iterable[float]) -> float:
    """The least time for iterations of which only some run at once.

    The larger of two bounds for equal machines (Dell'Amico and Martello 1995, section 2): the sum
    shared evenly; and, since among the k p + 1 longest one runner has k + 1, the k + 1 shortest of
    these. For n iterations of one length that is this length times n / p rounded up.

    Args:
        limit: how many run at once, 1 or more.
        spans: seconds that each iteration takes.
    """
    longest_first = sorted(spans, reverse=True)
    until = [0.0, *accumulate(longest_first)]
    rounds = range(1, -(-len(longest_first) // limit))
    crowded = [until[k * limit + 1] - until[k * limit - k] for k in rounds]
    return max(until[-1] / limit, max(longest_first, default=0.0), *crowded)


class LimitedLoops:
    """Bounds that limits of parallelism add to the paths of a run.

    Activities are passed in topological order, then the other way round.
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
        chains = {RUN: (RUN,)} | {each: _chain(each, parents) for each in range(len(parents))}
        # By activity: the iterations around it, outermost (the run) first.
        self._around = [chains[iteration] for iteration in arrays.iteration.tolist()]
        # By iteration and activity inside: least time from the iteration's start to the activity's.
        self._start: dict[int, dict[int, float]] = {iteration: {} for iteration in chains}
        # The same to the start of an iteration, from that of the one around it.
        self._entered = [0.0] * len(parents)
        self._span = [0.0] * len(parents)
        self._after = [float("inf")] * len(parents)

    def pass_through(self, activity: int, before: list[int], head: float) -> float:
        """Note an activity whose predecessors are known; returns its head, no less than given."""
        around = self._around[activity]
        for depth, iteration in enumerate(around):
            inside = [
                each for each in before if self._around[each][depth : depth + 1] == (iteration,)
            ]
            start = self._end(iteration, depth, inside)
            self._start[iteration][activity] = max(start, head) if iteration == RUN else start
        entered = self._entry[activity]
        if entered >= 0:
            self._entered[entered] = self._start[around[-2]][activity]
        return self._start[RUN][activity]

    def measure_iterations(self) -> None:
        """Take each iteration as long as all of it takes, once every activity was passed."""
        for around in set(self._around):
            iteration = around[-1]  # each has an activity of its own: its driver
            if iteration != RUN:
                self._span[iteration] = self._end(
                    iteration, len(around) - 1, self._start[iteration]
                )

    def pass_back(self, activity: int, tail: float) -> None:
        """Note what must follow an activity, and so the iterations it is in."""
        for iteration in self._around[activity][1:]:
            self._after[iteration] = min(self._after[iteration], tail)

    def rest(self, after: list[int]) -> float:
        """At least this much time passes from now on, if these activities are yet to start."""
        longest = 0.0
        entered = [self._entry[activity] for activity in after if self._entry[activity] >= 0]
        for limit, members in self._crowded(entered):
            together = together_seconds(limit, (self._span[each] for each in members))
            longest = max(longest, together + min(self._after[each] for each in members))
        return longest

    def _end(self, iteration: int, depth: int, activities: Iterable[int]) -> float:
        """Least time from the iteration's start to the end of these activities inside it.

        `depth` is the iteration's place in `_around` of each of them.
        """
        start, latest = self._start[iteration], 0.0
        inner: defaultdict[int, list[int]] = defaultdict(list)
        for activity in activities:
            latest = max(latest, start[activity] + self._shortest[activity])
            if depth + 1 < len(self._around[activity]):
                inner[self._around[activity][depth + 1]].append(activity)
        spans = {each: self._end(each, depth + 1, members) for each, members in inner.items()}
        for each, span in spans.items():
            latest = max(latest, self._entered[each] + span)
        for limit, members in self._crowded(list(spans)):
            together = together_seconds(limit, (spans[each] for each in members))
            latest = max(latest, min(self._entered[each] for each in members) + together)
        return latest

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


def _chain(iteration: int, parents: list[int]) -> tuple[int, ...]:
    """The run, then the iterations around one, outermost first, and itself."""
    chain: list[int] = []
    while iteration >= 0:
        chain.append(iteration)
        iteration = parents[iteration]
    return (RUN, *reversed(chain))
