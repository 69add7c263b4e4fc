"""Branches of a run, which exclude each other, and limits of how much is under way at once.

A module of its own because readers, planner and views say this of steps in the same words.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Branch(NamedTuple):
    """One of the ways in which a run can go on, of which it takes one at most.

    Attributes:
        choice: name of what is decided, with concrete loop indexes; all its branches have it, and
            all are in the same branches of other choices.
        name: name of the branch, unique among those of its choice.
    """

    choice: str
    name: str


def exclude_each_other(one: Sequence[Branch], other: Sequence[Branch]) -> bool:
    """Return whether no run can take both: they are in different branches of one choice.

    Args:
        one: branches around a step, outermost first.
        other: branches around another step.
    """
    taken = dict(one)
    return any(taken.get(branch.choice, branch.name) != branch.name for branch in other)


def alternatives(paths: Iterable[Sequence[Branch]]) -> list[str]:
    """Return in words the branches of each choice of which steps are in several: `heads | tails`.

    Args:
        paths: branches around each step.
    """
    names: dict[str, dict[str, None]] = {}
    for choice, name in (branch for path in paths for branch in path):
        names.setdefault(choice, {})[name] = None
    return list(dict.fromkeys(" | ".join(each) for each in names.values() if len(each) > 1))


@dataclass(frozen=True)
class ConcurrencyLimit:
    """Limit of how much of a run is under way at once, such as `parallelism` or a mutex.

    Attributes:
        name: text for people, such as `parallelism of the Workflow` or `mutex deploy`.
        most: largest number of holders that are under way at once.
        holders: names of the steps of each holder, which is under way from the start of the first
            of them to the end of the last.
        waits_with_place: whether a holder keeps its place while it waits for a place of another
            limit, as a child of an Argo template does; locks are all taken at once.
    """

    name: str
    most: int
    holders: tuple[tuple[str, ...], ...]
    waits_with_place: bool = False

    def held_back(self, begun: Container[str], ended: Container[str]) -> Iterator[str]:
        """Yield the steps that cannot begin before a holder that is under way has ended.

        Args:
            begun: names of the steps whose pods are there, or were.
            ended: names of the steps that have ended.
        """
        under_way, waiting = 0, []
        for steps in self.holders:
            if not any(name in begun for name in steps):
                waiting.append(steps)
            elif not all(name in ended for name in steps):
                under_way += 1
        if under_way >= self.most:
            for steps in waiting:
                yield from steps
