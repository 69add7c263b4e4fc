"""The room that pods take over time, where some are in branches that exclude each other."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kfp_placement_engine.problem.problem import Booleans, Floats, Integers

Amounts = NDArray[Any]
"""Amounts of resources, or shares of them."""

Combine = Callable[[Amounts, Amounts], Amounts]


class Use(NamedTuple):
    """Amounts that are in use over time; row i holds from time i on.

    Attributes:
        times: [T] times, ascending.
        amounts: [T, R] amounts.
    """

    times: Floats
    amounts: Amounts

    def at(self, times: Floats) -> Amounts:
        """Return [times, R] the amounts in use at some times, from the first of its own on."""
        return self.amounts[np.searchsorted(self.times, times, side="right") - 1]


class Pods(NamedTuple):
    """Pods that take room from a start to an end.

    Attributes:
        start, end: [P] times.
        amounts: [P, R] amounts.
        branch: [P] innermost branch around each, -1 = none.
    """

    start: Floats
    end: Floats
    amounts: Amounts
    branch: Integers

    def rows(self, rows: Booleans | Integers) -> "Pods":
        """Return some of the pods."""
        return Pods(self.start[rows], self.end[rows], self.amounts[rows], self.branch[rows])


class BranchTree(Protocol):
    """Branches and choices, as `ProblemArrays` has them."""

    @property
    def branch_choice(self) -> Integers: ...  # noqa: D102
    @property
    def choice_around(self) -> Integers: ...  # noqa: D102
    @property
    def choice_aside(self) -> Booleans: ...  # noqa: D102


def largest_use(pods: Pods, tree: BranchTree) -> Use:
    """Return what the outcome that takes most takes at each time, by resource.

    A choice takes as much as the branch that takes most at that time. What runs only after a
    failure is left out.

    Args:
        pods: pods of all outcomes.
        tree: the branches and choices of the problem, or of the run.
    """
    by_branch = np.argsort(pods.branch, kind="stable")
    branches, first = np.unique(pods.branch[by_branch], return_index=True)
    rows = dict(zip(branches.tolist(), np.split(by_branch, first[1:]), strict=False))
    uses: dict[int, list[Use]] = {}  # by choice, of its branches
    inner: dict[int, list[int]] = {}  # by branch, the choices in it
    for choice, around in enumerate(tree.choice_around.tolist()):
        inner.setdefault(around, []).append(choice)

    def inside(branch: int) -> Use:
        own = [_sum_of(pods.rows(rows[branch]))] if branch in rows else []
        own += [_joined(uses[each], np.maximum) for each in inner.get(branch, ()) if each in uses]
        return _joined(own or [_sum_of(pods.rows(np.empty(0, np.int64)))], np.add)

    # From the inside out: a branch comes after the one around it.
    for branch, choice in reversed([*enumerate(tree.branch_choice.tolist())]):
        if not tree.choice_aside[choice]:
            uses.setdefault(choice, []).append(inside(branch))
    return inside(-1)


def beside(branch: int, tree: BranchTree) -> Booleans:
    """Return [B + 1] the branches that may be taken beside one; the last row is for none."""
    own: dict[int, int] = {}
    choices: list[int] = tree.branch_choice.tolist()
    around: list[int] = tree.choice_around.tolist()
    while branch >= 0:
        own[choices[branch]] = branch
        branch = around[choices[branch]]
    result = np.ones(len(choices) + 1, np.bool_)
    for number, choice in enumerate(choices):
        result[number] = own.get(choice, number) == number and result[around[choice]]
    return result


def _sum_of(pods: Pods) -> Use:
    """Return what pods take together if all of them run."""
    lasting = pods.rows(pods.start < pods.end)
    times = np.concatenate([[-np.inf], lasting.end, lasting.start])
    nothing = np.zeros_like(pods.amounts, shape=(1, pods.amounts.shape[1]))
    changes = np.concatenate([nothing, -lasting.amounts, lasting.amounts])
    order = np.argsort(times, kind="stable")
    is_last = np.append(np.diff(times[order]) > 0, True)
    return Use(times[order][is_last], changes[order].cumsum(axis=0)[is_last])


def _joined(uses: Sequence[Use], combine: Combine) -> Use:
    """Return the uses combined at each time: in pairs, so that many take little time."""
    left = [*uses]
    while len(left) > 1:
        pairs = zip(left[::2], left[1::2], strict=False)
        odd = left[-1:] if len(left) % 2 else []
        left = [_combined(one, other, combine) for one, other in pairs] + odd
    return left[0]


def _combined(one: Use, other: Use, combine: Combine) -> Use:
    times = np.unique(np.concatenate([one.times, other.times]))
    return Use(times, combine(one.at(times), other.at(times)))
