"""The table and figures of what-if: times, and gains beside what can be result."""

from collections.abc import Sequence
from typing import Any

from benchmarks.tables import Table, machine, percent
from benchmarks.what_if_case import NODES, STEPS
from benchmarks.what_if_search import REPEATS, UNCHANGED_SEEDS, SearchedCase
from kfp_placement_engine.plans.what_if import LEAST_GAIN


def about(budget_seconds: float, each_seconds: float, load: float) -> list[str]:
    """Return the lines above the table: what was measured, and how."""
    return [
        f"Made-up runs of {STEPS} steps on {NODES} nodes, seed 0 of each case; a plan by"
        f" {budget_seconds:g} s of search, then",
        "the best single changes. Beside them every single change there is, searched for"
        f" {each_seconds:g} s from the same plan.",
        "Gains are shares of the run, and count from the best plan without a change, of"
        f" {UNCHANGED_SEEDS} searches as long.",
        f"Times are the least of {REPEATS}; {machine()}; load {load:.1f} before the start.",
    ]


def table(results: Sequence[SearchedCase]) -> Table:
    """Return the table: times, and the gains of the first suggestion and of the best change."""
    rows = [
        [
            each.case.scarce,
            each.case.run,
            each.dispatch,
            each.first or "nothing",
            each.best if each.best_gain >= LEAST_GAIN else "nothing",
            f"{each.present_seconds:,.0f}",
            f"{each.tried} of {each.every}",
            f"{each.wall_seconds:.2f}",
            f"{each.cpu_seconds:.2f}",
            percent(each.first_gain),
            percent(each.best_gain),
            percent(each.share, 0),
        ]
        for each in results
    ]
    headings = [
        "scarce",
        "run",
        "dispatch",
        "first suggestion",
        "best found",
        "makespan, s",
        "changes tried",
        "wall, s",
        "CPU, s",
        "it gains, %",
        "best gains, %",
        "share, %",
    ]
    return Table("The first suggestion and the best change", headings, rows, words=5)


def figures_of(result: SearchedCase) -> dict[str, Any]:
    """Return the figures of one case for JSON."""
    return {
        "scarce": result.case.scarce,
        "run": result.case.run,
        "dispatch": result.dispatch,
        "presentSeconds": result.present_seconds,
        "tried": result.tried,
        "every": result.every,
        "wallSeconds": result.wall_seconds,
        "cpuSeconds": result.cpu_seconds,
        "first": result.first,
        "firstGain": result.first_gain,
        "best": result.best,
        "bestGain": result.best_gain,
    }
