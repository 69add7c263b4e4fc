"""Tasks of a DAG that exclude each other, by the values that their conditions need.

One task may need that an output is `heads`, another that it is anything but `heads`: no run takes
both. Such tasks are in different branches of one choice.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from types import MappingProxyType
from typing import Final

from kfp_placement_engine.model.concurrency import Branch

_MOST_NEEDS = 50
"""Number of subjects of which one task may need a value; more are left out."""

_MOST_VISITS = 500_000
"""Number of needs that are looked at in one DAG; then tasks are no longer told apart."""

_MOST_WIDE = 8
"""Number of needs of one subject that are left aside to tell the others apart."""

_ANY_OTHER, _NONE = "*", ""
"""Stand-ins for any value that is not listed, and for no value; values have other texts."""


@dataclass(frozen=True)
class ValueSet:
    """A set of values, or all values outside of one.

    Attributes:
        values: the values, as text that differs between values.
        excluded: whether all other values are meant.
    """

    values: frozenset[str]
    excluded: bool = False

    def opposite(self) -> "ValueSet":
        """Return all other values."""
        return ValueSet(self.values, not self.excluded)

    def __and__(self, other: "ValueSet") -> "ValueSet":
        """Return the values that are in both sets."""
        if self.excluded and other.excluded:
            return ValueSet(self.values | other.values, excluded=True)
        if self.excluded:
            return ValueSet(other.values - self.values)
        return ValueSet(
            self.values - other.values if other.excluded else self.values & other.values
        )

    def __or__(self, other: "ValueSet") -> "ValueSet":
        """Return the values that are in one of the sets."""
        return (self.opposite() & other.opposite()).opposite()


Needs = Mapping[str, ValueSet]
"""Values that a task needs to run, by subject: what has the value, such as an output of a task."""


NOTHING: Final[Needs] = MappingProxyType({})
"""Stand-in for the needs of what no run takes."""


def all_of(many: Iterable[Needs]) -> Needs:
    """Return what a task needs that needs all of these."""
    many = list(many)
    if any(needs is NOTHING for needs in many):
        return NOTHING
    joined: dict[str, ValueSet] = {}
    distinct = list({id(needs): needs for needs in many if needs}.values())
    if len(distinct) == 1:
        return distinct[0]
    for needs in distinct:
        for subject, values in needs.items():
            if subject in joined:
                joined[subject] &= values
            elif len(joined) < _MOST_NEEDS:
                joined[subject] = values
    return joined


def any_of(many: Iterable[Needs]) -> Needs:
    """Return what a task needs that needs one of these: what they have in common."""
    possible = [needs for needs in many if needs is not NOTHING]
    if not possible:
        return NOTHING
    first, *others = possible
    joined = dict(first)
    for needs in others:
        joined = {
            subject: values | needs[subject]
            for subject, values in joined.items()
            if subject in needs
        }
    return joined


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
        several = {each for each in needed.values() if each.excluded or len(each.values) > 1}
        wide = nsmallest(_MOST_WIDE, several, key=_narrowness)
        for count in range(len(wide) + 1):
            some = {task: each for task, each in needed.items() if each not in wide[:count]}
            parts = _parts(some)
            if len(parts) > 1:
                return subject, parts
    return "", []


def _narrowness(values: ValueSet) -> tuple[bool, int, list[str]]:
    """Return a key by which a set comes before narrower ones: all but few values come first."""
    count = len(values.values)
    return not values.excluded, count if values.excluded else -count, sorted(values.values)


def _parts(needed: Mapping[str, ValueSet]) -> list[list[str]]:
    """Return the tasks in parts: tasks whose values overlap, also by way of others, are in one."""
    excluding = [each.values for each in needed.values() if each.excluded]
    # Only a value that all of them exclude is surely not needed by any of them.
    apart = frozenset.intersection(*excluding) if excluding else None
    above: dict[str, str] = {}

    def top(value: str) -> str:
        while (higher := above.setdefault(value, value)) != value:
            above[value] = above[higher]
            value = above[value]
        return value

    def names(values: ValueSet) -> list[str]:
        if values.excluded:
            return [_ANY_OTHER]
        listed = values.values if apart is None else values.values & apart
        return sorted(listed) + [_ANY_OTHER] * (len(listed) < len(values.values))

    for values in needed.values():
        first, *others = names(values) or [_NONE]
        for other in others:
            above[top(other)] = top(first)
    parts: dict[str, list[str]] = {}
    for task, values in needed.items():
        parts.setdefault(top((names(values) or [_NONE])[0]), []).append(task)
    return list(parts.values())
