"""The dependencies between activities as arrays: predecessors and successors of each."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.lowering.activities import Activity
from kfp_placement_engine.problem.problem import Integers, owners


class Edges(NamedTuple):
    """The dependencies between activities; arrays as in `problem.ProblemArrays`."""

    predecessors_start: Integers
    predecessors: Integers
    successors_start: Integers
    successors: Integers


def edge_arrays(lists: Sequence[Sequence[int]]) -> tuple[Integers, Integers]:
    """Return lists of indexes as (starts, values): row i is values[starts[i]:starts[i + 1]]."""
    starts = _starts(np.fromiter(map(len, lists), np.int64, len(lists)))
    return starts, np.fromiter(chain.from_iterable(lists), np.int64, starts[-1])


def edges_between(activities: Sequence[Activity]) -> Edges:
    """Return the edges: predecessors in the order of the activity's list, successors by index."""
    starts, before = edge_arrays([activity.predecessors for activity in activities])
    after = owners(starts)
    return Edges(
        predecessors_start=starts,
        predecessors=before,
        successors_start=_starts(np.bincount(before, minlength=len(activities))),
        successors=after[np.argsort(before, kind="stable")],
    )


def topological_order(edges: Edges, names: Sequence[str]) -> Integers:
    """Return the activities sorted so that predecessors come first.

    Raises:
        PlanningError: the dependencies form a cycle; the message names steps of it, or steps that
            wait for it.
    """
    # Plain lists: numpy takes longer for a few successors than Python does.
    waiting = np.diff(edges.predecessors_start).tolist()
    bounds, successors = edges.successors_start.tolist(), edges.successors.tolist()
    order = [index for index, count in enumerate(waiting) if count == 0]
    for index in order:
        for after in successors[bounds[index] : bounds[index + 1]]:
            waiting[after] -= 1
            if waiting[after] == 0:
                order.append(after)
    if len(order) < len(waiting):
        stuck = [names[index] for index, count in enumerate(waiting) if count > 0]
        raise PlanningError(f"these steps form a cycle, or wait for one: {', '.join(stuck[:5])}")
    return np.array(order, np.int64)


def _starts(counts: Integers) -> Integers:
    """Return the start of each row, and at the end of the array the end of the last row."""
    return np.concatenate([[0], np.cumsum(counts)])
