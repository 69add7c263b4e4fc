"""Results of the benchmark of speed, as tables and as figures for JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.speed_case import CHILDREN, FIRST_PLAN, SpeedCase
from benchmarks.tables import Table, machine

Measurements = Sequence[Mapping[str, Any]]
"""Figures of processes, see `speed_case.measure`."""


@dataclass(frozen=True)
class Outcome:
    """One case.

    Attributes:
        case: measured case.
        present: measurements of this checkout.
        base: measurements of the base, as many; empty without a base.
    """

    case: SpeedCase
    present: Measurements
    base: Measurements = ()

    @property
    def ratio(self) -> float:
        """Speed of this checkout over the base's: ratio of medians of CPU time."""
        return _median(self.base, "cpu_seconds") / _median(self.present, "cpu_seconds")

    @property
    def difference(self) -> str:
        """Text about results that differ; "" = none."""
        if len(_fingerprints(self.present)) > 1:
            return "its results are not always the same"
        if self.base and _fingerprints(self.base) != _fingerprints(self.present):
            return "its results are not those of the base"
        return ""


def _median(side: Measurements, key: str) -> float:
    return float(median(each[key] for each in side))


def _fingerprints(side: Measurements) -> set[str]:
    return {each["fingerprint"] for each in side}


def _rates(side: Measurements) -> list[float]:
    """Children a second."""
    return sorted(each["children"] / each["cpu_seconds"] for each in side)


def parts_of(outcomes: Sequence[Outcome]) -> list[Table | Sequence[str]]:
    """Return the paragraphs about the measurement, and the tables."""
    searches = [each for each in outcomes if each.case.measure == CHILDREN]
    plans = [each for each in outcomes if each.case.measure == FIRST_PLAN]
    parts: list[Table | Sequence[str]] = [_about(outcomes)]
    if searches:
        parts.append(search_table(searches))
    if plans:
        parts.append(first_plan_table(plans))
    return parts


def _about(outcomes: Sequence[Outcome]) -> list[str]:
    lines = [
        "Made-up runs, seed 0, on one thread; CPU time, a process each; the number of generations",
        f"is fixed and counts from the plans that a search starts from. {machine()}.",
    ]
    if any(each.base for each in outcomes):
        pairs = len(outcomes[0].base)
        lines += [
            f"`base` is another checkout, measured in turn with this one: medians of {pairs}, and",
            "the range of this one. `x` is the ratio of medians, above 1 where this one is faster.",
        ]
    return lines


def search_table(outcomes: Sequence[Outcome]) -> Table:
    """Children that searches try."""
    rows = []
    for each in outcomes:
        rates, shape = _rates(each.present), each.case.shape
        row = [
            shape.kind,
            shape.dispatch,
            f"{shape.steps:,}",
            f"{shape.nodes:,}",
            f"{each.case.generations:,}",
            f"{each.present[0]['children']:,}",
            _rate(median(rates)),
        ]
        if each.base:
            row += [f"{_rate(rates[0])}-{_rate(rates[-1])}", _rate(median(_rates(each.base)))]
        rows.append(row + _compared(each))
    headings = ["run", "dispatch", "steps", "nodes", "generations", "children", "children/s"]
    if any(each.base for each in outcomes):
        headings += ["range", "base", "x", "results"]
    return Table("Children that the search tries in a second", headings, rows, words=2)


def first_plan_table(outcomes: Sequence[Outcome]) -> Table:
    """Return a table of times to the first plan."""
    rows = []
    for each in outcomes:
        shape, keys = each.case.shape, ("lowering_seconds", "cpu_seconds")
        row = [shape.kind, shape.dispatch, f"{shape.steps:,}", f"{shape.nodes:,}"]
        row += [f"{_median(each.present, key):.2f}" for key in keys]
        if each.base:
            seconds = sorted(measured["cpu_seconds"] for measured in each.present)
            row.append(f"{seconds[0]:.2f}-{seconds[-1]:.2f}")
            row += [f"{_median(each.base, key):.2f}" for key in keys]
        rows.append(row + _compared(each))
    headings = ["run", "dispatch", "steps", "nodes", "lowering, s", "first plan, s"]
    if any(each.base for each in outcomes):
        headings += ["range", "base's lowering, s", "base, s", "x", "results"]
    return Table("Time to a first plan, lowering included", headings, rows, words=2)


def _rate(children: float) -> str:
    return f"{children:,.0f}" if children >= 100 else f"{children:.1f}"


def _compared(outcome: Outcome) -> list[str]:
    if not outcome.base:
        return []
    return [f"{outcome.ratio:.2f}", "DIFFERENT" if outcome.difference else "the same"]


def figures_of(outcome: Outcome) -> dict[str, Any]:
    """Return a case for JSON."""
    case = outcome.case
    figures = {
        "name": case.name,
        "measure": case.measure,
        "kind": case.shape.kind,
        "dispatch": case.shape.dispatch,
        "steps": case.shape.steps,
        "nodes": case.shape.nodes,
        "generations": case.generations,
        "present": _figures(outcome.present),
    }
    if outcome.base:
        figures |= {"base": _figures(outcome.base), "ratio": outcome.ratio}
    return {**figures, "same": not outcome.difference}


def _figures(side: Measurements) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "cpuSeconds": [each["cpu_seconds"] for each in side],
        "fingerprints": sorted(_fingerprints(side)),
    }
    if "children" in side[0]:
        return {
            **figures,
            "children": side[0]["children"],
            "childrenPerSecond": [each["children"] / each["cpu_seconds"] for each in side],
        }
    return {**figures, "loweringSeconds": [each["lowering_seconds"] for each in side]}
