"""Limits of how much is under way at once: loops with parallelism, and those that a run states."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from kfp_placement_engine.lowering.activities import Activity
from kfp_placement_engine.lowering.edges import edge_arrays
from kfp_placement_engine.lowering.remaining import has_begun
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.run_graph import GroupKind, RunGraph
from kfp_placement_engine.problem.problem import Booleans, Integers


class LimitArrays(NamedTuple):
    """The limits of all runs and their holders; arrays as in `problem.ProblemArrays`."""

    holders_start: Integers
    holders: Integers
    held_together: Booleans
    holder_limit: Integers
    holder_size: Integers
    holder_started: Booleans
    limit_start: Integers
    limit_most: Integers


class LimitName(NamedTuple):
    """The name of a limit, for people.

    Attributes:
        name: name of the loop, or text such as `parallelism of the Workflow`.
        is_loop: whether it is the parallelism of a loop.
    """

    name: str
    is_loop: bool


class Limits(NamedTuple):
    """The limits of all runs, as arrays and with their names."""

    arrays: LimitArrays
    names: tuple[LimitName, ...]


class _Holder(NamedTuple):
    """A holder of a limit.

    Attributes:
        members: activities of the holder that have not ended.
        started: whether it was under way before time zero.
        waits_with_place: whether it keeps its place while it waits for a place of another limit.
    """

    members: list[int]
    started: bool
    waits_with_place: bool = True


class _Limit(NamedTuple):
    name: LimitName
    most: int
    holders: list[_Holder]


def limits_of(runs: Sequence[ActiveRun], activities: Sequence[Activity]) -> Limits:
    """Find the limits of the runs, and the activities of each of their holders.

    Args:
        runs: runs, whose limits are numbered one after another.
        activities: activities that are left of the runs, run after run.
    """
    of_run: list[list[int]] = [[] for _ in runs]
    for index, activity in enumerate(activities):
        of_run[activity.run].append(index)
    limits = [
        limit
        for run, own in zip(runs, of_run, strict=True)
        for limit in (*_limited_loops(run.graph, activities, own), *_stated(run, activities, own))
    ]
    holders = [holder for limit in limits for holder in limit.holders]
    rows = _rows(holders, len(activities))
    starts, uses = edge_arrays(rows)
    arrays = LimitArrays(
        holders_start=starts,
        holders=uses,
        held_together=np.array(
            [*chain.from_iterable(_together(row, holders) for row in rows)], np.bool_
        ),
        holder_limit=np.repeat(np.arange(len(limits)), [len(limit.holders) for limit in limits]),
        holder_size=np.array([len(holder.members) for holder in holders], np.int64),
        holder_started=np.array(
            [bool(each.members) and each.started for each in holders], np.bool_
        ),
        limit_start=np.cumsum([0, *(len(limit.holders) for limit in limits)], dtype=np.int64),
        limit_most=np.array([limit.most for limit in limits], np.int64),
    )
    return Limits(arrays, tuple(limit.name for limit in limits))


def _rows(holders: Sequence[_Holder], activities: int) -> list[list[int]]:
    """Return the holders that each activity is part of, outermost first."""
    rows: list[list[int]] = [[] for _ in range(activities)]
    for number, holder in enumerate(holders):
        for activity in holder.members:
            rows[activity].append(number)
    for row in rows:
        if len(row) > 1:
            row.sort(
                key=lambda each: (-len(holders[each].members), not holders[each].waits_with_place)
            )
    return rows


def _together(row: Sequence[int], holders: Sequence[_Holder]) -> Iterator[bool]:
    """Yield for each holder of a row whether it takes its place only with the one before it.

    Those do that are the same activities, such as the locks of one template.
    """
    before: _Holder | None = None
    for number in row:
        holder = holders[number]
        yield (
            before is not None
            and len(before.members) == len(holder.members)
            and not (before.waits_with_place or holder.waits_with_place)
        )
        before = holder


def _limited_loops(
    graph: RunGraph, activities: Sequence[Activity], own: Sequence[int]
) -> Iterator[_Limit]:
    """Yield the loops with parallelism; each iteration is a holder."""
    groups = graph.groups
    limited = {group.name: group.parallelism for group in groups if group.parallelism > 0}
    if not limited:
        return
    index_of = {group.name: index for index, group in enumerate(groups)}
    members: dict[int, list[int]] = {
        index: []
        for index, group in enumerate(groups)
        if group.kind is GroupKind.ITERATION and group.parent in limited
    }
    # By group: the limited iterations around it; a group comes after the one around it.
    around: list[tuple[int, ...]] = []
    for index, group in enumerate(groups):
        outer = around[index_of[group.parent]] if group.name else ()
        around.append((*outer, index) if index in members else outer)
    to_come = set()
    for index in own:
        activity = activities[index]
        for iteration in around[activity.group] if activity.group >= 0 else ():
            members[iteration].append(index)
        if activity.running is None:
            to_come.add(activity.entered_group)
    of_loop: dict[str, list[_Holder]] = {name: [] for name in limited}
    for iteration, inside in members.items():
        holder = _Holder(inside, started=iteration not in to_come)
        of_loop[groups[iteration].parent].append(holder)
    for name, holders in of_loop.items():
        if holders:
            yield _Limit(LimitName(name, is_loop=True), limited[name], holders)


def _stated(run: ActiveRun, activities: Sequence[Activity], own: Sequence[int]) -> Iterator[_Limit]:
    """Yield the limits that a run states beside its loops."""
    if not run.graph.limits:
        return
    # A step's driver, which has its name, is under way with it.
    of_step: dict[str, list[int]] = {}
    for index in own:
        activity = activities[index]
        if activity.name and activity.entered_group < 0:
            of_step.setdefault(activity.name, []).append(index)
    for limit in run.graph.limits:
        yield _Limit(
            LimitName(limit.name, is_loop=False),
            limit.most,
            [
                _Holder(
                    [index for name in steps for index in of_step.get(name, ())],
                    any(has_begun(run.progress.get(name)) for name in steps),
                    limit.waits_with_place,
                )
                for steps in limit.holders
            ],
        )
