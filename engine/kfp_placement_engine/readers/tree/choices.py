"""Tasks of a DAG that exclude each other, by the values that their conditions need.

One task may need that an output is `heads`, another that it is anything but `heads`: no run takes
both. Such tasks are in different branches of one choice.
"""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kfp_placement_engine.model.concurrency import Branch

_MOST_NEEDS = 50
"""Number of subjects of which one task may need a value; more are left out."""

_MOST_VISITS = 500_000
"""Number of needs that are looked at in one DAG; then tasks are no longer told apart."""

_MOST_WIDE = 8
"""Number of needs of one subject that are left aside to tell the others apart."""

_FIRST, _LAST = (0,), (9,)
"""Cuts before and after all values."""

_MIRRORED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
COMPARISONS: Final = frozenset(_MIRRORED)
"""Comparisons with a constant that hold for a set of values."""


@dataclass(frozen=True)
class ValueSet:
    """A set of values, such as one number, all text but two words, or all numbers above 5.

    Attributes:
        cuts: places in the order of all values, by kind, where the set begins and ends by turns.
    """

    cuts: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, values: Iterable[Any]) -> "ValueSet":
        """Return the set of some plain values."""
        return union([cls.where("==", value) for value in values])

    @classmethod
    def where(cls, comparison: str, value: Any, *, is_mirrored: bool = False) -> "ValueSet":
        """Return the values for which a comparison with another one holds.

        Args:
            comparison: one of `COMPARISONS`.
            value: the other value.
            is_mirrored: whether the other value stands before the comparison.
        """
        kind, key = _place(value)
        below, above = (kind, key, 0), (kind, key, 1)
        bounds = {
            "==": (below, above),
            "<": ((kind,), below),
            "<=": ((kind,), above),
            ">": (above, (kind + 1,)),
            ">=": (below, (kind + 1,)),
        }
        return cls(bounds[_MIRRORED[comparison] if is_mirrored else comparison])

    @property
    def is_single(self) -> bool:
        """True if the set has one value only."""
        return len(self.cuts) == 2 and self.cuts[0][:2] == self.cuts[1][:2]

    def opposite(self) -> "ValueSet":
        """Return all other values."""
        cuts = self.cuts
        cuts = cuts[1:] if cuts[:1] == (_FIRST,) else (_FIRST, *cuts)
        return ValueSet(cuts[:-1] if cuts[-1:] == (_LAST,) else (*cuts, _LAST))

    def has(self, value: Any) -> bool:
        """Return whether a plain value is in the set."""
        return bool(bisect_right(self.cuts, (*_place(value), 0)) % 2)


EVERYTHING: Final = ValueSet((_FIRST, _LAST))


def _place(value: Any) -> tuple[int, Any]:
    """Return the place of a plain value in the order of all: its kind, and a key within that."""
    if isinstance(value, bool):
        return 1, value
    if isinstance(value, int | float):
        return 2, value
    return (3, value) if isinstance(value, str) else (4, json.dumps(value, sort_keys=True))


def _met(sets: Collection[ValueSet], least: int) -> ValueSet:
    """Return the values that are in at least that many of the sets."""
    if len(sets) == 1:
        return next(iter(sets))
    changes: Counter[tuple[Any, ...]] = Counter()
    for values in sets:
        changes.update(values.cuts[::2])
        changes.subtract(values.cuts[1::2])
    count, cuts = 0, []
    for cut in sorted(changes):
        was_in = count >= least
        count += changes[cut]
        if (count >= least) is not was_in:
            cuts.append(cut)
    return ValueSet(tuple(cuts))


def union(sets: Iterable[ValueSet]) -> ValueSet:
    """Return the values that are in any of the sets."""
    return _met(set(sets), 1)


def common(sets: Iterable[ValueSet]) -> ValueSet:
    """Return the values that are in all of the sets."""
    distinct = set(sets)
    return _met(distinct, len(distinct))


Needs = Mapping[str, ValueSet]
"""Values that a task needs to run, by subject: what has the value, such as an output of a task."""


NOTHING: Final[Needs] = MappingProxyType({})
"""Stand-in for the needs of what no run takes."""


class Cases(NamedTuple):
    """The two ways in which a condition may end.

    Attributes:
        met: values that it needs to hold; `NOTHING` if it never holds.
        unmet: values that it needs not to hold.
    """

    met: Needs = MappingProxyType({})
    unmet: Needs = MappingProxyType({})

    @property
    def holds(self) -> bool | None:
        """True if the condition holds in any case, False if in none; None = that is not known."""
        return False if self.met is NOTHING else True if self.unmet is NOTHING else None


def all_of(many: Iterable[Needs]) -> Needs:
    """Return what a task needs that needs all of these."""
    distinct: dict[int, Needs] = {}
    for needs in many:
        if needs is NOTHING:
            return NOTHING
        if needs:
            distinct[id(needs)] = needs
    if len(distinct) == 1:
        return distinct.popitem()[1]
    gathered: dict[str, list[ValueSet]] = {}
    for needs in distinct.values():
        for subject, values in needs.items():
            if subject in gathered or len(gathered) < _MOST_NEEDS:
                gathered.setdefault(subject, []).append(values)
    joined = {
        subject: common(sets) if len(sets) > 1 else sets[0] for subject, sets in gathered.items()
    }
    return joined if all(values.cuts for values in joined.values()) else NOTHING


def any_of(many: Iterable[Needs]) -> Needs:
    """Return what a task needs that needs one of these: what they have in common."""
    possible = [needs for needs in many if needs is not NOTHING]
    if not possible:
        return NOTHING
    shared = set(possible[0]).intersection(*possible[1:])
    joined = {subject: union([needs[subject] for needs in possible]) for subject in shared}
    return {
        subject: joined[subject]
        for subject in possible[0]
        if joined.get(subject, EVERYTHING) != EVERYTHING
    }


def branches_by_needs(needs: Mapping[str, Needs], prefix: str) -> dict[str, tuple[Branch, ...]]:
    """Return the branches of those tasks that are in any, outermost first.

    Args:
        needs: values that each task needs, by name of the task.
        prefix: beginning of the names of choices.
    """
    branches: dict[str, tuple[Branch, ...]] = {}
    visits = 0
    # Tasks among which none is told apart yet, with the branches that all of them are in.
    open_parts: list[tuple[list[str], tuple[Branch, ...]]] = [(list(needs), ())]
    while open_parts:
        tasks, outer = open_parts.pop()
        branches.update(dict.fromkeys(tasks, outer) if outer else {})
        visits += sum(len(needs[task]) for task in tasks)
        if len(tasks) < 2 or visits > _MOST_VISITS:
            continue
        subject, parts = _split(tasks, needs)
        choice = prefix + subject + "".join(f" in {branch.name}" for branch in outer)
        apart = {task for part in parts for task in part}
        if parts:
            open_parts.append(([task for task in tasks if task not in apart], outer))
        open_parts.extend((part, (*outer, Branch(choice, part[0]))) for part in parts)
    return branches


def _split(tasks: list[str], needs: Mapping[str, Needs]) -> tuple[str, list[list[str]]]:
    """Return the subject that tells most tasks apart, and the tasks of each of its branches."""
    subjects = Counter(subject for task in tasks for subject in needs[task])
    for subject, count in subjects.most_common():
        if count == 1:
            break
        needed = {task: needs[task][subject] for task in tasks if subject in needs[task]}
        # Those that take many values may overlap others that exclude each other.
        wide = nsmallest(_MOST_WIDE, set(needed.values()), key=_narrowness)
        for count in range(len(wide) + 1):
            some = {task: each for task, each in needed.items() if each not in wide[:count]}
            parts = _parts(some)
            if len(parts) > 1:
                return subject, parts
    return "", []


def _narrowness(values: ValueSet) -> tuple[bool, int, tuple[tuple[Any, ...], ...]]:
    """Return a key by which a set comes before narrower ones: all but few values come first."""
    is_closed, count = values.cuts[:1] != (_FIRST,), len(values.cuts)
    return is_closed, -count if is_closed else count, values.cuts


def _parts(needed: Mapping[str, ValueSet]) -> list[list[str]]:
    """Return the tasks in parts: tasks whose values overlap, also by way of others, are in one."""
    above = {task: task for task in needed}

    def top(task: str) -> str:
        while (higher := above[task]) != task:
            above[task] = above[higher]
            task = above[task]
        return task

    furthest, holder = _FIRST, ""
    pieces = (
        (begin, end, task)
        for task, values in needed.items()
        for begin, end in zip(values.cuts[::2], values.cuts[1::2], strict=True)
    )
    for begin, end, task in sorted(pieces):
        if begin < furthest:
            above[top(task)] = top(holder)
        if end > furthest:
            furthest, holder = end, task
    parts: dict[str, list[str]] = {}
    for task in needed:
        parts.setdefault(top(task), []).append(task)
    return list(parts.values())
