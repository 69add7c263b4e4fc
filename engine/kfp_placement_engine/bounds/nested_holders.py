"""Lower bounds of the time that the holders of a limit take together.

While at most p holders, such as iterations of a loop, are under way at once, p runners could do
them one after another: holders that overlap go to different runners, and no more than p overlap at
any time. So the holders take at least as long as jobs of these lengths on p equal machines. A
holder is as long as the longest chain inside it. Holders inside a holder make it longer by the same
rule, from the innermost ones outwards.
"""

from collections.abc import Collection, Iterable
from itertools import accumulate, pairwise

import numpy as np

from kfp_placement_engine.problem.problem import PlacementProblem, owners

RUN = -1
"""Index that stands for the run as a whole, in place of a holder's."""


def together_seconds(most: int, spans: Iterable[float]) -> float:
    """Return the least time for holders of which only some are under way at once.

    It is the larger of two bounds for equal machines (Dell'Amico and Martello 1995, section 2): the
    sum shared evenly; and some runner gets k + 1 of the k p + 1 longest holders, which take at
    least as long as the k + 1 shortest of them. For n holders of one length that is this length
    times n / p, rounded up.

    Args:
        most: number of holders that are under way at once, 1 or more.
        spans: seconds that each holder takes.
    """
    longest_first = sorted(spans, reverse=True)
    until = [0.0, *accumulate(longest_first)]
    rounds = range(1, -(-len(longest_first) // most))
    crowded = [until[k * most + 1] - until[k * most - k] for k in rounds]
    return max(until[-1] / most, max(longest_first, default=0.0), *crowded)


class NestedHolders:
    """The bounds that holders of limits add to the paths of a run.

    Each activity is in one holder after another, from the run inwards. Holders that overlap others
    without being inside of them are left out.

    Call `forward` for the activities in topological order, then `measure_holders`, then `tail` and
    `backward` for each of them in the reverse order.
    """

    def __init__(self, problem: PlacementProblem, shortest: list[float]) -> None:
        arrays = problem.arrays
        self._shortest = shortest
        self._limit_of: list[int] = arrays.holder_limit.tolist()
        # More may have been started than the limit allows; none is stopped.
        started = np.bincount(
            arrays.holder_limit[arrays.holder_started], minlength=arrays.limit_most.size
        )
        self._most: list[int] = np.maximum(arrays.limit_most, started).tolist()
        # By activity: the holders around it, outermost (the run) first.
        self._around = _nested(problem)
        # By activity: the holders that begin with it, since all others inside follow it.
        self._entered = _entered(problem)
        count = arrays.holder_limit.size
        # By holder and activity inside: least time from the holder's start to the activity's.
        self._start: dict[int, dict[int, float]] = {at: {} for at in range(RUN, count)}
        # By holder: least time from the start of the holder around it to its own.
        self._begin = [0.0] * count
        # By holder: least time from its start to the end of the last activity inside.
        self.spans = [0.0] * count
        self._after = [float("inf")] * count

    def forward(self, activity: int, before: list[int], head: float) -> float:
        """Add an activity after its predecessors, and return its head, which limits may raise."""
        around = self._around[activity]
        for depth, holder in enumerate(around):
            inside = [
                earlier
                for earlier in before
                if self._around[earlier][depth : depth + 1] == (holder,)
            ]
            start = self._end(holder, depth, inside)
            self._start[holder][activity] = max(start, head) if holder == RUN else start
        for outer, holder in pairwise(around):
            if holder in self._entered.get(activity, ()):
                self._begin[holder] = self._start[outer][activity]
        return self._start[RUN][activity]

    def measure_holders(self) -> None:
        """Compute the length of each holder, after every activity was passed."""
        for around in set(self._around):
            for depth, holder in enumerate(around[1:], start=1):
                if self._start[holder] and not self.spans[holder]:
                    self.spans[holder] = self._end(holder, depth, self._start[holder])

    def backward(self, activity: int, tail: float) -> None:
        """Record the least time after an activity, and so after the holders that it is in."""
        for holder in self._around[activity][1:]:
            self._after[holder] = min(self._after[holder], tail)

    def tail(self, after: list[int]) -> float:
        """Return the least time from now to the end of the run, if these activities start next."""
        longest = 0.0
        entered = [
            holder
            for activity in after
            for holder in self._entered.get(activity, ())
            if holder in self._around[activity]
        ]
        for most, members in self._crowded(entered):
            together = together_seconds(most, (self.spans[member] for member in members))
            longest = max(longest, together + min(self._after[member] for member in members))
        return longest

    def _end(self, holder: int, depth: int, activities: Collection[int]) -> float:
        """Return the least time from a holder's start to the end of activities inside it.

        Args:
            holder: index of the holder, or `RUN`.
            depth: place of the holder in `_around` of each of the activities.
            activities: activities inside the holder.
        """
        if len(activities) == 1:
            return self._end_of_one(depth, next(iter(activities)))
        start, latest, deeper = self._start[holder], 0.0, depth + 1
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
        for most, members in self._crowded(list(spans)):
            together = together_seconds(most, (spans[member] for member in members))
            latest = max(latest, min(self._begin[member] for member in members) + together)
        return latest

    def _end_of_one(self, depth: int, activity: int) -> float:
        """Return the least end of one activity; with a single one no limit matters."""
        around, seconds = self._around[activity], self._shortest[activity]
        end = self._start[around[-1]][activity] + seconds
        for place in range(len(around) - 2, depth - 1, -1):
            inside = self._begin[around[place + 1]] + end
            end = max(0.0, self._start[around[place]][activity] + seconds, inside)
        return end

    def _crowded(self, holders: list[int]) -> list[tuple[int, list[int]]]:
        """Return the places and the holders of each limit that has too few places for them."""
        if len(holders) < 2:
            return []
        by_limit: dict[int, list[int]] = {}
        for holder in holders:
            by_limit.setdefault(self._limit_of[holder], []).append(holder)
        return [
            (self._most[limit], members)
            for limit, members in by_limit.items()
            if len(members) > self._most[limit]
        ]


def _members(problem: PlacementProblem) -> list[list[int]]:
    """Return the activities of each holder."""
    arrays = problem.arrays
    members: list[list[int]] = [[] for _ in range(arrays.holder_limit.size)]
    inside = owners(arrays.holders_start)
    for activity, holder in zip(inside.tolist(), arrays.holders.tolist(), strict=True):
        members[holder].append(activity)
    return members


def _nested(problem: PlacementProblem) -> list[tuple[int, ...]]:
    """Return for each activity the run, then the holders around it, each inside the one before."""
    around: list[tuple[int, ...]] = [(RUN,)] * problem.activities
    members = _members(problem)
    for holder in sorted(range(len(members)), key=lambda each: -len(members[each])):
        outside = {around[activity] for activity in members[holder]}
        if len(outside) == 1:
            chain = (*outside.pop(), holder)
            for activity in members[holder]:
                around[activity] = chain
    return around


def _entered(problem: PlacementProblem) -> dict[int, tuple[int, ...]]:
    """Return for each activity the holders that begin with it: all others inside follow it."""
    arrays, places = problem.arrays, problem.places
    entered: dict[int, tuple[int, ...]] = {}
    for holder, members in enumerate(_members(problem)):
        if not members:
            continue
        inside = set(members)
        first = min(members, key=places.__getitem__)
        others = (activity for activity in members if activity != first)
        if all(not inside.isdisjoint(arrays.before(each).tolist()) for each in others):
            entered[first] = (*entered.get(first, ()), holder)
    return entered
