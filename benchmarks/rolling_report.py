"""Results of rolling series, as tables and figures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean
from typing import Any

from benchmarks.budget import Budget
from benchmarks.rolling_runs.arms import Arm
from benchmarks.rolling_runs.outcomes import Outcome
from benchmarks.tables import Page, Table, machine, percent

HEADING = "Runs whose steps do not take as long as planned"
_WAYS = ((False, False), (False, True), (True, False), (True, True))
"""Replanning on drift and a deadline of gates, column by column."""


@dataclass(frozen=True)
class Row:
    """One case, seed, budget and arm; times in seconds.

    Attributes:
        case: name of the case.
        seed: seed by which the series is drawn, and seed of the searches.
        input_hash: hash of the runs, their arrivals and true times.
        budget: budget of each plan; None = 20 generations.
        arm: way in which the series was run.
        arrivals: arrivals of its runs, since the first.
        outcome: outcome of the series.
        oracle: outcome where plans knew the true run times.
        large_cores: steps of more cores are large; 0 = all steps are alike.
        cpu_seconds: CPU time that it took.
    """

    case: str
    seed: int
    input_hash: str
    budget: Budget | None
    arm: Arm
    arrivals: tuple[float, ...]
    outcome: Outcome
    oracle: Outcome
    large_cores: int
    cpu_seconds: float

    @property
    def figures(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "case": self.case,
            "seed": self.seed,
            "input": self.input_hash,
            "budget": None if self.budget is None else self.budget.figures,
            "spent": {"plans": self.outcome.plans, "cpuSeconds": round(self.cpu_seconds, 3)},
            "rule": self.arm.rule_name or self.arm.name,
            "replans": self.arm.replans,
            "hasDeadline": self.arm.has_deadline,
            "arrivalSeconds": list(self.arrivals),
            "makespanSeconds": self.outcome.makespan_seconds,
            "completionSeconds": list(self.outcome.completion_seconds),
            "oracleCompletionSeconds": list(self.oracle.completion_seconds),
        }


def above_oracle(rows: Sequence[Row]) -> float:
    """Return the gap of mean completions to the oracle's: ratio of geometric means, less one."""
    ours = geometric_mean([each.outcome.mean_completion_seconds for each in rows])
    return ours / geometric_mean([each.oracle.mean_completion_seconds for each in rows]) - 1


def page_of(rows: Sequence[Row], skipped: Sequence[str]) -> Page:
    """Return the page: a table for each case and budget, and the waits of large steps."""
    groups: dict[tuple[str, Budget | None], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.case, row.budget), []).append(row)
    tables = [_table(case, budget, group) for (case, budget), group in groups.items()]
    waits = [_waits(case, group) for (case, _), group in groups.items() if group[0].large_cores]
    figures = {
        "benchmark": "rolling",
        "machine": machine(),
        "skipped": list(skipped),
        "totals": [
            {
                "case": case,
                "budget": None if budget is None else budget.figures,
                "arm": arm,
                "seeds": len(some),
                "aboveOracle": above_oracle(some),
            }
            for (case, budget), group in groups.items()
            for arm, some in _by_arm(group).items()
        ],
        "rows": [row.figures for row in rows],
    }
    return Page(HEADING, [_about(rows), *([skipped] if skipped else []), *tables, *waits], figures)


def _by_arm(rows: Sequence[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.arm.name, []).append(row)
    return groups


def _about(rows: Sequence[Row]) -> list[str]:
    seeds = sorted({row.seed for row in rows})
    drift = sorted({row.seed for row in rows if row.arm.replans})
    replanned = f"; on drift {drift[0]} to {drift[-1]}" if drift else ""
    return [
        "Mean completion above that of plans that know the true run times, in %: ratios of",
        "geometric means over seeds. Eight runs on four nodes of speeds 0.5, 1, 1 and 2, gaps",
        "exponential with a mean of 60 s; a plan of all runs when one arrives, or on drift too;",
        "gates without a deadline, or with one of 60 s. `until now` is the controller's rule until",
        "2026-11, when a step that overran was planned to need a tenth of its time more.",
        f"Seeds {seeds[0]} to {seeds[-1]}{replanned}; one thread; {machine()}.",
    ]


def _table(case: str, budget: Budget | None, rows: Sequence[Row]) -> Table:
    cells = {
        rule: [_cell(rows, rule, replans, has_deadline) for replans, has_deadline in _WAYS]
        for rule in dict.fromkeys(row.arm.rule_name or row.arm.name for row in rows)
    }
    headings = ["gates", "at arrivals", "with deadline", "on drift", "with deadline"]
    title = case if budget is None else f"{case}, {budget.text} a plan"
    return Table(title, headings, [[rule, *values] for rule, values in cells.items()])


def _cell(rows: Sequence[Row], rule: str, replans: bool, has_deadline: bool) -> str:
    some = [
        row
        for row in rows
        if (row.arm.rule_name or row.arm.name) == rule
        and (row.arm.replans, row.arm.has_deadline) == (replans, has_deadline)
    ]
    return percent(above_oracle(some)) if some else ""


def _waits(case: str, rows: Sequence[Row]) -> Table:
    """Return a table of pods' waits, with the large ones apart."""
    most = rows[0].large_cores
    cells = [
        [
            arm,
            *(
                f"{_mean([row.outcome.mean_wait_seconds(*cores) for row in some]):.0f}"
                for cores in ((0, most), (most + 0.001, math.inf))
            ),
        ]
        for arm, some in _by_arm(rows).items()
    ]
    headings = ["gates", f"up to {most} cores, s", f"more than {most}, s"]
    return Table(f"{case}: how long pods wait for their start, means", headings, cells)


def _mean(waits: Sequence[float]) -> float:
    ended = [wait for wait in waits if not math.isnan(wait)]
    return fmean(ended) if ended else math.nan
