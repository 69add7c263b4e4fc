"""The table of resources: what of them our plans use, on average until the latest end."""

from collections.abc import Sequence
from statistics import fmean

from benchmarks.found import use_figures
from benchmarks.outcomes import Outcome, by_budget
from benchmarks.tables import Table, percent

_SLOTS = "pods"
"""Counts pods, not what they use."""


def use_parts(outcomes: Sequence[Outcome]) -> list[Table]:
    """Means over the cases that have a resource; for each budget a row."""
    names = [
        name
        for name in dict.fromkeys(name for each in outcomes for name in each.use)
        if name != _SLOTS
    ]
    if not names:
        return []
    rows = []
    for budget, group in by_budget(outcomes).items():
        weighted = [use_figures(each.use)["weightedUse"] for each in group]
        rows.append(
            [
                budget.text,
                *(_mean([each.use.get(name) for each in group]) for name in names),
                _mean(weighted),
            ]
        )
    headings = ["budget", *names, "CPU and memory as one"]
    return [Table("Use of resources until the latest end, %", headings, rows)]


def _mean(shares: Sequence[float | None]) -> str:
    known = [share for share in shares if share is not None]
    return percent(fmean(known)) if known else "-"
