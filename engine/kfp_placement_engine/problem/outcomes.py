"""Outcomes of runs: in each, a run takes one branch of each choice that it comes to, or none.

A module of its own because lower bounds and the kernel's tables rest on the same outcome.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from kfp_placement_engine.problem.problem import (
    Booleans,
    Floats,
    Integers,
    PlacementProblem,
    ProblemArrays,
    owners,
    shares_of,
)

BranchPath = tuple[tuple[int, int], ...]
"""Branches around a place in a run, innermost first, each after its choice."""


def branch_paths(arrays: ProblemArrays) -> dict[int, BranchPath]:
    """Return the path of each branch, itself included; that of -1, no branch, is empty."""
    paths: dict[int, BranchPath] = {-1: ()}
    around: list[int] = arrays.choice_around.tolist()
    # Branches come after those around them.
    for branch, choice in enumerate(arrays.branch_choice.tolist()):
        paths[branch] = ((choice, branch), *paths[around[choice]])
    return paths


class PlacesTaken:
    """The places of a limit that are taken in the outcome that takes most (`branches.h`)."""

    def __init__(self, paths: Mapping[int, BranchPath], aside: Booleans) -> None:
        self._paths = paths
        self._aside = aside
        self._total = 0
        self._most: Counter[int] = Counter()
        # By choice: what each of its branches takes.
        self._taken: dict[int, Counter[int]] = defaultdict(Counter)

    def change(self, branch: int, times: int) -> None:
        """Let a holder in a branch have a place (times 1), or no longer (times -1)."""
        for choice, own in self._paths[branch]:
            taken, most = self._taken[choice], self._most[choice]
            taken[own] += times
            is_same = taken[own] <= most if times > 0 else most in taken.values()
            if is_same or self._aside[choice]:
                return
            self._most[choice] += times
        self._total += times

    def beside(self, branch: int) -> int:
        """Return how many places are taken if a branch is."""
        path = self._paths[branch]
        return self._total - sum(self._most[at] - self._taken[at][own] for at, own in path)


def branches_of_holders(arrays: ProblemArrays) -> Integers:
    """Return [L] the innermost branch around all activities of each holder, -1 = none.

    Args:
        arrays: arrays of the problem.
    """
    shared = np.full(arrays.holder_limit.size, -1)
    if not arrays.branch_choice.size:
        return shared
    parents = arrays.choice_around[arrays.branch_choice].tolist()
    common: dict[int, int] = {}
    inner: list[int] = arrays.branch[owners(arrays.holders_start)].tolist()
    for holder, other in zip(arrays.holders.tolist(), inner, strict=True):
        branch = common.get(holder, other)
        # Branches come after those around them.
        while branch != other:
            branch, other = min(branch, other), parents[max(branch, other)]
        common[holder] = branch
    shared[[*common]] = [*common.values()]
    return shared


def one_outcome(arrays: ProblemArrays, amounts: Floats) -> Booleans:
    """Return [A] the activities of the outcome that takes most, without what is after failures.

    Args:
        arrays: arrays of the problem.
        amounts: [A, R] amounts that activities take; of each choice the branch is taken whose sums
            have the largest share of all.
    """
    if not arrays.branch_choice.size:
        return ~arrays.after_failure
    inside = np.flatnonzero(arrays.branch >= 0)
    sums = np.zeros((arrays.branch_choice.size, amounts.shape[1]))
    np.add.at(sums, arrays.branch[inside], shares_of(amounts[inside], amounts.sum(axis=0)))
    return taken_activities(arrays, _largest_branches(arrays, sums, np.add))


def longest_outcome(arrays: ProblemArrays, seconds: Floats) -> Booleans:
    """Return [A] the activities of the outcome that takes longest, without what is after failures.

    Args:
        arrays: arrays of the problem.
        seconds: [A] length of the longest path through each; of each choice the branch is taken
            that the longest of them leads through.
    """
    inside = np.flatnonzero(arrays.branch >= 0)
    longest = np.zeros((arrays.branch_choice.size, 1))
    np.maximum.at(longest[:, 0], arrays.branch[inside], seconds[inside])
    return taken_activities(arrays, _largest_branches(arrays, longest, np.maximum))


def taken_activities(arrays: ProblemArrays, chosen: Sequence[int]) -> Booleans:
    """Return [A] the activities of a run that goes well.

    Args:
        arrays: arrays of the problem.
        chosen: [C] branch that each choice takes, -1 = none.
    """
    taken = np.zeros(arrays.branch_choice.size + 1, np.bool_)
    # The last row is for -1, no branch.
    taken[-1] = True
    for branch, choice in enumerate(arrays.branch_choice.tolist()):
        taken[branch] = chosen[choice] == branch and taken[arrays.choice_around[choice]]
    return np.asarray(taken[arrays.branch] & ~arrays.after_failure)


def without(problem: PlacementProblem, activities: Booleans) -> PlacementProblem:
    """Return the problem in which some activities, [A], need no pod, no time and no place."""
    arrays = problem.arrays
    if not activities.any():
        return problem
    inside = owners(arrays.holders_start)
    stay = ~activities[inside]
    sizes = np.bincount(arrays.holders[stay], minlength=arrays.holder_limit.size)
    left_out = arrays._replace(
        virtual=arrays.virtual | activities,
        duration_seconds=np.where(activities, 0.0, arrays.duration_seconds),
        gene=np.where(activities, -1, arrays.gene),
        image=np.where(activities, -1, arrays.image),
        holders_start=np.append(0, np.cumsum(np.bincount(inside[stay], minlength=activities.size))),
        holders=arrays.holders[stay],
        held_together=arrays.held_together[stay],
        holder_size=sizes,
        holder_started=arrays.holder_started & (sizes > 0),
    )
    return replace(problem, arrays=left_out)


def _largest_branches(arrays: ProblemArrays, sums: Floats, combine: np.ufunc) -> list[int]:
    """Return [C] the branch of the largest sum of each choice.

    Args:
        arrays: arrays of the problem.
        sums: [B, R] sums of what is right inside each branch.
        combine: function that adds the sums of inner choices.
    """
    largest = [-1] * arrays.choice_around.size
    inside: dict[int, list[int]] = {}
    for choice, around in enumerate(arrays.choice_around.tolist()):
        inside.setdefault(around, []).append(choice)
    choices = arrays.branch_choice.tolist()
    # All at once, as most of thousands of branches have no choice inside.
    most: list[float] = sums.max(axis=1).tolist()
    # From the inside out: a branch comes before all branches inside it.
    for branch in reversed(range(len(choices))):
        for choice in inside.get(branch, ()):
            sums[branch] = combine(sums[branch], sums[largest[choice]])
            most[branch] = float(sums[branch].max())
        rival = largest[choices[branch]]
        if rival < 0 or most[branch] >= most[rival]:
            largest[choices[branch]] = branch
    return largest
