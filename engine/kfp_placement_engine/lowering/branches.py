"""Branches of runs: pods that never run in the same run, and what waits for what in spite of that.

A step that runs only after a failure is in a branch of its own, of a choice that is aside: its
pod gets the room that others leave, and others do not see it.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from kfp_placement_engine.model.concurrency import Branch, exclude_each_other
from kfp_placement_engine.model.run_graph import RunGraph, Step
from kfp_placement_engine.problem.problem import Booleans, Integers

Path = tuple[Branch, ...]
"""Branches around a pod, outermost first."""

AFTER_FAILURE = Branch("", "after a failure")
"""Branch of what runs only after a failure; choices of runs have names."""

_MOST_LOOKS = 500_000
"""Number of steps that are looked at for dependencies that do not count, to bound the time.

Beyond it steps wait for more than they must, and the plan ends no earlier than the run.
"""


class BranchArrays(NamedTuple):
    """The branches of activities; arrays as in `problem.ProblemArrays`."""

    branch: Integers
    branch_choice: Integers
    choice_around: Integers
    choice_aside: Booleans
    after_failure: Booleans


def branch_arrays(paths: Sequence[Path], runs: Sequence[int]) -> BranchArrays:
    """Return the branches of activities as numbers, by the path and the run of each."""
    choices: dict[tuple[int, int, str], int] = {}
    branches: dict[tuple[int, str], int] = {}
    innermost: list[int] = []
    for path, run in zip(paths, runs, strict=True):
        branch = -1
        for name, taken in path:
            choice = choices.setdefault((run, branch, name), len(choices))
            branch = branches.setdefault((choice, taken), len(branches))
        innermost.append(branch)
    return BranchArrays(
        branch=np.array(innermost, np.int64),
        branch_choice=np.array([choice for choice, _ in branches], np.int64),
        choice_around=np.array([around for _, around, _ in choices], np.int64),
        choice_aside=np.array([name == AFTER_FAILURE.choice for _, _, name in choices], np.bool_),
        after_failure=np.array([AFTER_FAILURE in path for path in paths], np.bool_),
    )


def path_of(step: Step) -> Path:
    """Return the branches around a step and its driver."""
    return (*step.branches, AFTER_FAILURE) if step.after_failure else step.branches


def has_branches(graph: RunGraph) -> bool:
    """Return whether some steps of a run may not run."""
    return any(step.branches or step.after_failure for step in graph.steps)


def paths_of_groups(graph: RunGraph) -> dict[str, Path]:
    """Return the branches around the driver of each group by the group's name.

    These are the branches that all steps of the group around it are in: a condition's own driver
    runs in any case, since it decides.
    """
    parents = {group.name: group.parent for group in graph.groups}
    shared: dict[str, Path] = {}

    def share(group: str, path: Path) -> None:
        own = shared.get(group, path)
        pairs = zip(own, path, strict=False)
        shared[group] = tuple(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    for step in graph.steps:
        share(step.group, path_of(step))
    # Parents come first.
    for name, parent in reversed(parents.items()):
        if name and name in shared:
            share(parent, shared[name])
    return {name: shared.get(parent, ()) if name else () for name, parent in parents.items()}


class Waits:
    """The steps that each step waits for in a run that goes well.

    A step that excludes it, or runs only after a failure, does not run before it. So it waits in
    its place for what that step waits for; and what waits for both waits for both.
    """

    def __init__(self, graph: RunGraph) -> None:
        self._steps = {step.name: step for step in graph.steps}
        self._left = _MOST_LOOKS
        self._passed: dict[str, tuple[str, ...]] = {}
        self._before: dict[tuple[str, ...], _Dependencies] = {}
        self._of: dict[str, tuple[str, ...]] = {}
        for step in graph.steps:
            kept, passed = self._split(step.depends_on, path_of(step))
            self._of[step.name] = kept
            if passed:
                self._passed[step.name] = passed

    def of_step(self, name: str) -> tuple[str, ...]:
        """Return the names of the steps that a step waits for, sorted."""
        return self._of[name]

    def of_group(self, depends_on: tuple[str, ...], path: Path) -> tuple[str, ...]:
        """Return the names of the steps that a group waits for, by its own and its branches."""
        return self._split(depends_on, path)[0]

    def _split(
        self, depends_on: tuple[str, ...], path: Path
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the steps that something in these branches waits for, and those it passes."""
        if not self._may_pass(depends_on, path):
            return depends_on, ()
        kept: list[str] = []
        passed: list[str] = []
        seen = set(depends_on)
        ahead = [*depends_on]
        while ahead and self._left > 0:
            name = ahead.pop()
            self._left -= 1
            before = self._steps.get(name)
            if before is not None and _is_passed(path_of(before), path):
                passed.append(name)
                more: tuple[str, ...] = before.depends_on
            else:
                kept.append(name)
                more = self._passed.get(name, ())
            ahead += [each for each in more if each not in seen]
            seen.update(more)
        if ahead:
            return depends_on, ()
        return tuple(sorted(kept)), tuple(passed)

    def _may_pass(self, depends_on: tuple[str, ...], path: Path) -> bool:
        """Return whether something in these branches may pass a step, without a look at each."""
        if depends_on not in self._before:
            self._before[depends_on] = self._dependencies(depends_on)
        before, own = self._before[depends_on], dict(path)
        fails = AFTER_FAILURE in path
        return before.have_passed or any(
            not fails
            if choice == AFTER_FAILURE.choice
            else choice in own and names != {own[choice]}
            for choice, names in before.taken.items()
        )

    def _dependencies(self, depends_on: tuple[str, ...]) -> "_Dependencies":
        taken: dict[str, set[str]] = {}
        for name in depends_on:
            for branch in path_of(self._steps[name]) if name in self._steps else ():
                taken.setdefault(branch.choice, set()).add(branch.name)
        return _Dependencies(taken, any(name in self._passed for name in depends_on))


class _Dependencies(NamedTuple):
    """The branches of a list of dependencies, in short.

    Attributes:
        taken: names of the branches that some of them are in, by choice.
        have_passed: whether some of them passed other steps.
    """

    taken: dict[str, set[str]]
    have_passed: bool


def _is_passed(before: Path, path: Path) -> bool:
    """Return whether what is in a path does not wait for what is in another one."""
    is_failure = AFTER_FAILURE in before and AFTER_FAILURE not in path
    return is_failure or exclude_each_other(before, path)
