"""Iterations of loops that limit how many of them run at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kfp_placement_engine.lowering.activities import Activity
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.run_graph import GroupKind
from kfp_placement_engine.problem.problem import Booleans, Integers


class LimitedIterations(NamedTuple):
    """The iterations of loops with a parallelism limit; arrays as in `problem.ProblemArrays`."""

    iteration: Integers
    entry_iteration: Integers
    iteration_parent: Integers
    iteration_loop: Integers
    iteration_size: Integers
    iteration_started: Booleans
    loop_parallelism: Integers


def limited_iterations(
    runs: Sequence[ActiveRun], activities: Sequence[Activity]
) -> LimitedIterations:
    """Find the iterations that a loop's parallelism holds back, and the activities inside them.

    Args:
        runs: runs, whose iterations are numbered one after another.
        activities: activities that are left of the runs, run after run.
    """
    groups = [group for run in runs for group in run.graph.groups]
    # By group of all runs: the one around it; -1 = none.
    around: list[int] = []
    first_of_run: list[int] = []
    for run in runs:
        first_of_run.append(len(around))
        index_of = {group.name: len(around) + at for at, group in enumerate(run.graph.groups)}
        around += [index_of[group.parent] if group.name else -1 for group in run.graph.groups]
    loops: dict[int, int] = {}
    loop_of: list[int] = []
    parents: list[int] = []
    # By group; the last row is for -1, no group.
    iteration_of, entered_by = np.full((2, len(groups) + 1), -1, np.int64)
    for index, group in enumerate(groups):
        # A group comes after the one around it.
        iteration_of[index] = iteration_of[around[index]]
        if group.kind is GroupKind.ITERATION and groups[around[index]].parallelism > 0:
            parents.append(int(iteration_of[index]))
            iteration_of[index] = entered_by[index] = len(loop_of)
            loop_of.append(loops.setdefault(around[index], len(loops)))

    def row(run: int, group: int) -> int:
        return first_of_run[run] + group if group >= 0 else -1

    inside = iteration_of[[row(each.run, each.group) for each in activities]]
    entry = entered_by[[row(each.run, each.entered_group) for each in activities]]
    size = _sizes(inside, parents)
    started = size > 0
    to_come = np.array([activity.running is None for activity in activities], np.bool_)
    started[entry[to_come & (entry >= 0)]] = False
    return LimitedIterations(
        iteration=inside,
        entry_iteration=entry,
        iteration_parent=np.array(parents, np.int64),
        iteration_loop=np.array(loop_of, np.int64),
        iteration_size=size,
        iteration_started=started,
        loop_parallelism=np.array([groups[index].parallelism for index in loops], np.int64),
    )


def _sizes(inside: Integers, parents: Sequence[int]) -> Integers:
    """Return [L] the number of activities inside each iteration, nested iterations included."""
    size = np.bincount(inside[inside >= 0], minlength=len(parents))
    for iteration, count in enumerate(size.tolist()):
        while (iteration := parents[iteration]) >= 0:
            size[iteration] += count
    return size
