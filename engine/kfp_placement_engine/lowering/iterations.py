"""Iterations of loops that limit how many of them run at once."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.lowering.activities import Activity
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.run_graph import Group, GroupKind
from kfp_placement_engine.problem.problem import Booleans, Integers


@dataclass(frozen=True)
class LimitedIterations:
    """Iterations of loops with a parallelism limit; see `problem.ProblemArrays` for the arrays."""

    iteration: Integers
    entry_iteration: Integers
    parent: Integers
    loop: Integers
    size: Integers
    started: Booleans
    parallelism: Integers


def limited_iterations(
    runs: Sequence[ActiveRun], activities: Sequence[Activity]
) -> LimitedIterations:
    """Find the iterations that a loop's parallelism holds back, and what is inside them.

    Args:
        runs: the runs, whose iterations are numbered one after another.
        activities: what is left of them, run after run.
    """
    run_of = [activity.run for activity in activities]
    bounds = np.searchsorted(run_of, np.arange(len(runs) + 1)).tolist()
    return _joined(
        [
            _iterations_of(run.graph.groups, activities[first:last])
            for run, (first, last) in zip(runs, itertools.pairwise(bounds), strict=True)
        ]
    )


def _iterations_of(groups: tuple[Group, ...], activities: Sequence[Activity]) -> LimitedIterations:
    """The iterations of one run, from its groups and what is left of it."""
    index_of = {group.name: index for index, group in enumerate(groups)}
    number: dict[int, int] = {}
    loops: dict[int, int] = {}
    loop_of: list[int] = []
    for index, group in enumerate(groups):
        around = index_of.get(group.parent, -1)
        if group.kind is GroupKind.ITERATION and around >= 0 and groups[around].parallelism > 0:
            number[index] = len(number)
            loop_of.append(loops.setdefault(around, len(loops)))

    def innermost(group: int) -> int:
        while group >= 0 and group not in number:
            group = index_of[groups[group].parent] if groups[group].name else -1
        return number.get(group, -1)

    parents = [innermost(index_of[groups[index].parent]) for index in number]
    # By group; the last row is for -1, no group.
    rows = range(len(groups))
    iteration_of = np.array([*(innermost(group) for group in rows), -1], np.int64)
    entered_by = np.array([*(number.get(group, -1) for group in rows), -1], np.int64)
    inside = iteration_of[[activity.group for activity in activities]]
    entry = entered_by[[activity.entered_group for activity in activities]]
    size = _sizes(inside, parents)
    started = size > 0
    to_come = np.array([activity.running is None for activity in activities], np.bool_)
    started[entry[to_come & (entry >= 0)]] = False
    return LimitedIterations(
        iteration=inside,
        entry_iteration=entry,
        parent=np.array(parents, np.int64),
        loop=np.array(loop_of, np.int64),
        size=size,
        started=started,
        parallelism=np.array([groups[index].parallelism for index in loops], np.int64),
    )


def _sizes(inside: Integers, parents: Sequence[int]) -> Integers:
    """[L] activities inside each iteration, those of nested iterations included."""
    size = np.bincount(inside[inside >= 0], minlength=len(parents))
    for iteration, count in enumerate(size.tolist()):
        while (iteration := parents[iteration]) >= 0:
            size[iteration] += count
    return size


def _joined(parts: Sequence[LimitedIterations]) -> LimitedIterations:
    """The iterations of several runs, numbered one after another."""
    iterations = np.cumsum([0] + [part.size.size for part in parts])
    loops = np.cumsum([0] + [part.parallelism.size for part in parts])

    def shifted(name: str, offsets: Integers) -> Integers:
        rows = [getattr(part, name) for part in parts]
        return np.concatenate(
            [np.where(row >= 0, row + by, -1) for row, by in zip(rows, offsets[:-1], strict=True)]
        )

    return LimitedIterations(
        iteration=shifted("iteration", iterations),
        entry_iteration=shifted("entry_iteration", iterations),
        parent=shifted("parent", iterations),
        loop=shifted("loop", loops),
        size=np.concatenate([part.size for part in parts]),
        started=np.concatenate([part.started for part in parts]),
        parallelism=np.concatenate([part.parallelism for part in parts]),
    )
