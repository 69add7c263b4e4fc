"""Two folders of cases, side by side."""

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from tests.comparison.cases import case_names
from tests.comparison.masks import Masked, masked

MOST_DIFF_LINES = 400
"""Of one case; a report that differs everywhere is not worth more."""


@dataclass
class GroupComparison:
    """What has come of a group.

    Attributes:
        name: of the group.
        identical: cases that are the same on both sides, but for what is masked.
        renamed: those of them that have another name now, as (base, present).
        different: cases that are not, with their difference.
        only_base: cases that the present tree does not have.
        only_present: cases that the base does not have.
        masks: how often each mask was used, on both sides.
        masked_lines: (case, line of the base) of all lines in which something was masked.
    """

    name: str
    identical: int = 0
    renamed: list[tuple[str, str]] = field(default_factory=list)
    different: dict[str, list[str]] = field(default_factory=dict)
    only_base: list[str] = field(default_factory=list)
    only_present: list[str] = field(default_factory=list)
    masks: Counter[str] = field(default_factory=Counter)
    masked_lines: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        """Whether nothing differs, and there was something to compare."""
        return self.identical > 0 and not (self.different or self.only_base or self.only_present)

    @property
    def cases(self) -> int:
        """How many there are on either side."""
        lone = len(self.only_base) + len(self.only_present)
        return self.identical + len(self.different) + lone


def compare(name: str, base: Path, present: Path) -> GroupComparison:
    """Compare the cases of a group."""
    found = GroupComparison(name)
    before, after = set(case_names(base)), set(case_names(present))
    for case in sorted(before & after):
        old, new = _read(base / case), _read(present / case)
        _count(found, case, old, new)
        if old.text == new.text:
            found.identical += 1
        else:
            found.different[case] = list(_difference(case, old.text, new.text))
    _pair(found, base, present, sorted(before - after), sorted(after - before))
    return found


def _pair(
    found: GroupComparison,
    base: Path,
    present: Path,
    before: Sequence[str],
    after: Sequence[str],
) -> None:
    """Cases of which only the name has changed are the same."""
    lone: dict[str, list[str]] = {}
    for case in after:
        lone.setdefault(_read(present / case).text, []).append(case)
    for case in before:
        old = _read(base / case)
        if same := lone.get(old.text):
            found.identical += 1
            found.renamed.append((case, same[0]))
            _count(found, case, old, _read(present / same.pop(0)))
        else:
            found.only_base.append(case)
    found.only_present.extend(sorted(case for cases in lone.values() for case in cases))


def _count(found: GroupComparison, case: str, *sides: Masked) -> None:
    for side in sides:
        found.masks.update(side.counts)
    found.masked_lines.extend((case, line) for line in sides[0].lines)


def _read(path: Path) -> Masked:
    return masked(path.read_bytes().decode("utf-8"))


def _difference(case: str, old: str, new: str) -> Iterator[str]:
    names = (f"base/{case}", f"present/{case}")
    lines = difflib.unified_diff(_lines(old), _lines(new), *names, n=2, lineterm="")
    yield from islice(lines, MOST_DIFF_LINES)


def _lines(text: str) -> list[str]:
    """Lines; those of HTML are broken between elements. What differs at the end of a line shows."""
    shown = text.replace("><", ">\n<")
    return [line.replace("\r", "\\r") for line in shown.split("\n")]
