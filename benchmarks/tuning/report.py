"""Results of tuning, as tables and figures; and the shipped values that a page names."""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from benchmarks.tables import Page, Table, machine
from benchmarks.tuning.constants import NOT_TUNED, OPERATORS, shipped_values
from benchmarks.tuning.instances import KINDS
from benchmarks.tuning.study import LEAST_PERCENT, Comparison, Interval, Study
from benchmarks.tuning.trials import Measurement, Trial

HEADING = "Constants of the search"

WIDTH = 100

SHIPPED = "shipped"
"""Verdict about the value in the code."""

Verdict = Callable[[Comparison], str]


@dataclass(frozen=True)
class Part:
    """A study, and what its trials gave."""

    study: Study
    measurements: Mapping[Trial, Measurement]

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Comparison of each setting."""
        return self.study.compare(self.measurements)


def value_verdict(comparison: Comparison) -> str:
    """Return whether a value should replace the shipped one."""
    if comparison.worse:
        return f"worse in {_titles(comparison.worse)}"
    return "better" if comparison.overall.is_better else "not better"


def operator_verdict(comparison: Comparison) -> str:
    """Return whether an operator stays, by the results of the search without it."""
    if comparison.better:
        return f"goes: loses in {_titles(comparison.better)}"
    if comparison.worse:
        return f"stays: gains in {_titles(comparison.worse)}"
    return "goes: gains in none"


def page(values: Part | None, operators: Part | None) -> Page:
    """Return the page of both studies, or of one of them."""
    parts: list[Table | Sequence[str]] = []
    if values is not None:
        parts += [_about_values(values.study), value_table(values)]
        parts += [Table("Not tuned", ["constant", "why"], list(NOT_TUNED.items()), words=2)]
    if operators is not None:
        parts += [_about_operators(operators.study), operator_table(operators)]
    figures = {
        "benchmark": "tune",
        "machine": machine(),
        "values": None if values is None else _figures(values, value_verdict),
        "operators": None if operators is None else _figures(operators, operator_verdict),
    }
    return Page(HEADING, parts, figures)


def _about_values(study: Study) -> list[str]:
    return _wrapped(
        f"One constant at a time has another value: {_measured(study)}. Differences are those of "
        "the completion time from that with the shipped values, in percent, with 95% intervals; "
        f"below 0 is better. A value is `better` if the mean over the kinds is better by "
        f"{LEAST_PERCENT}% or more with its interval below 0, and in no kind it is worse by as "
        "much with its interval above 0. One value in forty looks so by chance. All are compared "
        "with the same searches with the shipped values: if these have bad luck, many values look "
        "better together. So a value replaces the shipped one only if it is better on other "
        "instances too (`--first`)."
    )


def _about_operators(study: Study) -> list[str]:
    return _wrapped(
        f"One operator at a time is switched off: {_measured(study)}. Differences are those of the "
        "completion time without the operator from that with it, in percent, with 95% intervals: "
        f"above 0 the operator gains. It stays if it gains {LEAST_PERCENT}% or more in one kind "
        "with the interval above 0, and loses as much in none with the interval below 0."
    )


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH)


def _measured(study: Study) -> str:
    first, last = study.instances[0], study.instances[-1]
    seeds = study.seeds
    words = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    return (
        f"{len(study.instances)} instances of a kind (numbers {first} to {last}), {words}, "
        f"{study.budget.text} each, one thread; {machine()}"
    )


def value_table(values: Part) -> Table:
    """Return a row for every constant and value, the shipped one among them."""
    kinds = values.study.kinds
    rows = []
    shipped = shipped_values(values.study.shipped)
    for name in dict.fromkeys(each.setting.name for each in values.comparisons):
        some = [
            (each.setting.value or 0, _row(each, kinds, value_verdict(each)))
            for each in values.comparisons
            if each.setting.name == name
        ]
        some.append((shipped[name], [*[""] * (len(kinds) + 1), SHIPPED]))
        rows += [[name, str(value), *cells] for value, cells in sorted(some)]
    return Table("Values", ["constant", "value", *_headings(kinds), "verdict"], rows, words=2)


def operator_table(operators: Part) -> Table:
    """Return a row for every operator."""
    kinds = operators.study.kinds
    titles = {each.name: each.title for each in OPERATORS}
    rows = [
        [titles[each.setting.name], *_row(each, kinds, operator_verdict(each))]
        for each in operators.comparisons
    ]
    return Table("Without an operator", ["operator", *_headings(kinds), "verdict"], rows)


def _headings(kinds: Iterable[str]) -> list[str]:
    return [*(f"{KINDS[kind].title}, %" for kind in kinds), "mean, %"]


def _row(comparison: Comparison, kinds: Iterable[str], verdict: str) -> list[str]:
    cells = [_cell(comparison.by_kind.get(kind)) for kind in kinds]
    return [*cells, _cell(comparison.overall), verdict]


def _cell(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    return f"{interval.mean:+.2f} [{interval.low:+.2f}, {interval.high:+.2f}]"


def _titles(kinds: Iterable[str]) -> str:
    return ", ".join(KINDS[kind].title for kind in kinds)


def shipped_in(text: str) -> dict[str, str]:
    """Return constants and shipped values that a page in Markdown names, as written there."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    return {row[0]: row[1] for row in rows if row[-1] == SHIPPED}


def _figures(part: Part, verdict: Verdict) -> dict[str, Any]:
    study = part.study
    return {
        "budget": study.budget.figures,
        "instances": list(study.instances),
        "seeds": list(study.seeds),
        "shipped": shipped_values(study.shipped),
        "settings": [_comparison_figures(each, verdict(each)) for each in part.comparisons],
        "trials": [
            {
                "kind": trial.kind,
                "instance": trial.instance,
                "seed": trial.seed,
                "params": asdict(trial.params),
                **asdict(part.measurements[trial]),
            }
            for trial in study.trials()
        ],
    }


def _comparison_figures(comparison: Comparison, verdict: str) -> dict[str, Any]:
    return {
        "name": comparison.setting.name,
        "value": comparison.setting.value,
        "percentByKind": {kind: asdict(each) for kind, each in comparison.by_kind.items()},
        "percent": asdict(comparison.overall),
        "verdict": verdict,
    }
