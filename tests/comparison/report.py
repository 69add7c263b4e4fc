"""What people see of a comparison, and what is kept of it in files."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.comparison.comparing import GroupComparison
from tests.comparison.groups import GROUPS

SHOWN_LINES = 80
DIFFERENCES = "differences.diff"
MASKED = "masked-lines.txt"

_HEADS = ("GROUP", "CASES", "IDENTICAL", "RENAMED", "DIFFERENT", "ONLY BASE", "ONLY NOW", "MASKED")


def report(found: Sequence[GroupComparison], folder: Path) -> Iterator[str]:
    """The lines to print; the whole differences and all masked lines go into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = list(_differences(found))
    (folder / DIFFERENCES).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    kept = [f"{each.name}/{case}: {line}\n" for each in found for case, line in each.masked_lines]
    (folder / MASKED).write_text("".join(kept), "utf-8")
    yield from _table(found)
    masks: Counter[str] = sum((each.masks for each in found), Counter())
    for name, number in sorted(masks.items()):
        yield f"masked: {name}: {number} times on both sides together"
    yield f"masked lines of the base: {len(kept)}, all in {folder / MASKED}"
    for each in found:
        for reason in GROUPS[each.name].leaves_out:
            yield f"left out of {each.name}: {reason}"
    if lines:
        yield f"\ndifferences, all {len(lines)} lines of them in {folder / DIFFERENCES}:"
        yield from (line[:300] for line in lines[:SHOWN_LINES])


def _differences(found: Sequence[GroupComparison]) -> Iterator[str]:
    for each in found:
        for case in each.only_base:
            yield f"only in base: {each.name}/{case}"
        for case in each.only_present:
            yield f"only in the present tree: {each.name}/{case}"
        for lines in each.different.values():
            yield from lines


def _table(found: Sequence[GroupComparison]) -> Iterator[str]:
    rows = [_row(each) for each in found]
    total = [sum(int(row[column]) for row in rows) for column in range(1, len(_HEADS))]
    shown = [list(_HEADS), *rows, ["all", *map(str, total)]]
    widths = [max(len(row[column]) for row in shown) for column in range(len(_HEADS))]
    for row in shown:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join(cells)


def _row(each: GroupComparison) -> list[str]:
    numbers = (
        each.cases,
        each.identical,
        len(each.renamed),
        len(each.different),
        len(each.only_base),
        len(each.only_present),
        len(each.masked_lines),
    )
    return [each.name, *map(str, numbers)]
