"""Critical paths: the least time before and after each activity of a run, whatever the plan.

Along the dependencies every activity takes at least its shortest time. What a limit lets in only in
part takes more: p iterations of a loop at once do at most p seconds of iterations each second.

Images are pulled once per node, and on every node somebody has to be the first. Let f be the least
head of all users of an image. No user is bound before f, so a node that lacks the image at time
zero has it at f + pull at the earliest, whoever asks for it first. A user that is bound at h or
later and goes to such a node therefore ends no earlier than h + work, and no earlier than
f + pull + work. Taken over all nodes that hold the image, and over all that lack it, its end is at
least

    min(h + work where held, max(h + work where missing, f + (pull + work) where missing))

with the least of each sum over the nodes where it fits. Activities are looked at in the order of
their heads, so f is the head of the first user met: whatever comes later is bound later.
"""

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.bounds.nested_holders import NestedHolders
from kfp_placement_engine.problem.problem import Floats, Integers, PlacementProblem


@dataclass(frozen=True)
class LeastSeconds:
    """The least times from bind to end over the nodes where each activity fits.

    Attributes:
        shortest: [A] least time over all nodes, with the pull for the first user of an image.
        present: [A] least time over the nodes that hold its image at time zero, or over all nodes
            if it has no image; infinite where there is no such node.
        missing: [A] least time over the other nodes, without the pull; infinite likewise.
        pulling: [A] least time over the other nodes, with the pull.
    """

    shortest: Floats
    present: Floats
    missing: Floats
    pulling: Floats


@dataclass(frozen=True)
class Paths:
    """The longest paths through each activity.

    Attributes:
        shortest: [A] least time from bind to end.
        head: [A] earliest bind.
        end: [A] earliest end.
        tail: [A] least time from its end to the end of the run.
        held: [L] least time for which each holder of a limit is under way.
    """

    shortest: Floats
    head: Floats
    end: Floats
    tail: Floats
    held: Floats

    @property
    def critical_seconds(self) -> float:
        """Length of the longest chain, with every activity at its quickest."""
        return float((self.end + self.tail).max(initial=0.0))


def paths_of(problem: PlacementProblem, least: LeastSeconds) -> Paths:
    """Compute heads, ends and tails from the least times."""
    arrays = problem.arrays
    before = _rows(arrays.predecessors_start, arrays.predecessors)
    after = _rows(arrays.successors_start, arrays.successors)
    # Lists: most rows hold a few numbers, for which arrays are slow.
    seconds: list[float] = least.shortest.tolist()
    holders = NestedHolders(problem, seconds) if arrays.limit_most.size else None
    head, end = _heads_and_ends(problem, least, before, after, holders)
    tail = [0.0] * problem.activities
    if holders is not None:
        holders.measure_holders()
    for activity in reversed(problem.topological.tolist()):
        for later in after[activity]:
            tail[activity] = max(tail[activity], seconds[later] + tail[later])
        if holders is not None:
            tail[activity] = max(tail[activity], holders.tail(after[activity]))
            holders.backward(activity, tail[activity])
    held = holders.spans if holders is not None else []
    return Paths(least.shortest, *(np.array(each, np.float64) for each in (head, end, tail, held)))


def _heads_and_ends(
    problem: PlacementProblem,
    least: LeastSeconds,
    before: list[list[int]],
    after: list[list[int]],
    holders: NestedHolders | None,
) -> tuple[list[float], list[float]]:
    """Return the earliest binds and ends; activities are looked at in the order of their binds."""
    head: list[float] = problem.arrays.release_seconds.tolist()
    end = [0.0] * problem.activities
    earliest_end = _EarliestEnds(problem, least)
    open_before = [len(row) for row in before]
    next_bound: list[tuple[float, int]] = []

    def enter(activity: int) -> None:
        for earlier in before[activity]:
            head[activity] = max(head[activity], end[earlier])
        if holders is not None:
            head[activity] = holders.forward(activity, before[activity], head[activity])
        heapq.heappush(next_bound, (head[activity], activity))

    for activity, count in enumerate(open_before):
        if count == 0:
            enter(activity)
    while next_bound:
        earliest, activity = heapq.heappop(next_bound)
        end[activity] = earliest_end.of(activity, earliest)
        for later in after[activity]:
            open_before[later] -= 1
            if open_before[later] == 0:
                enter(later)
    return head, end


class _EarliestEnds:
    """Earliest ends by the earliest binds; it must be asked in the order of the binds."""

    def __init__(self, problem: PlacementProblem, least: LeastSeconds) -> None:
        self._image: list[int] = problem.arrays.image.tolist()
        self._present: list[float] = least.present.tolist()
        self._missing: list[float] = least.missing.tolist()
        self._pulling: list[float] = least.pulling.tolist()
        self._first_asked: dict[int, float] = {}

    def of(self, activity: int, head: float) -> float:
        """Return the earliest end of an activity that is bound at its head or later."""
        there, image = head + self._present[activity], self._image[activity]
        if image < 0:
            return there
        first = self._first_asked.setdefault(image, head)
        return min(there, max(head + self._missing[activity], first + self._pulling[activity]))


def _rows(starts: Integers, values: Integers) -> list[list[int]]:
    """Return the rows as lists: row i is values[starts[i]:starts[i + 1]]."""
    first, flat = starts.tolist(), values.tolist()
    return [flat[low:high] for low, high in itertools.pairwise(first)]
