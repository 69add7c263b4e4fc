"""The page of the queues of a day: tables, targets, and what the words mean."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.queue_series import ALONE, LARGE_GPUS, QUEUED, WHOLE, Ranges, Series, Way
from benchmarks.tables import Table, machine, percent

_MOST_LONGER_WITH_GANGS = 0.12
_MOST_LONGER_WITHOUT_GANGS = 0.03
_MOST_WAITING = {4: 0.6, 6: 0.3}
_LEAST_KEPT, _MOST_KEPT = 0.7, 0.9


@dataclass(frozen=True)
class Target:
    """A stated aim.

    Attributes:
        text: sentence about the aim.
        reached: the figure.
        most: largest allowed value.
        least: smallest allowed value.
    """

    text: str
    reached: float
    most: float
    least: float = -math.inf

    @property
    def is_met(self) -> bool:
        """True if the aim is reached; a figure without a measurement does not reach it."""
        return self.least <= self.reached <= self.most

    def figures(self) -> dict[str, Any]:
        """Return the aim for other programs."""
        limits = {"atMost": self.most, "atLeast": self.least}
        finite = {name: limit for name, limit in limits.items() if math.isfinite(limit)}
        return {"text": self.text, "reached": self.reached, **finite, "met": self.is_met}


def targets_of(series: Sequence[Series], ranges: Sequence[Ranges]) -> list[Target]:
    """Return the aims, and the reached values."""
    by_way = {(each.gangs, each.runs_per_hour, each.way): each for each in series}
    targets = []
    for rate in sorted({each.runs_per_hour for each in series if each.gangs}):
        queued, whole = by_way[True, rate, QUEUED], by_way[True, rate, WHOLE]
        where = f"with gangs, {rate} runs/h"
        targets += [
            Target(f"{where}: days on which queued runs are stuck", queued.stuck, 0),
            Target(
                f"{where}: queued runs take longer than where gangs begin whole",
                queued.longer_than(whole),
                _MOST_LONGER_WITH_GANGS,
            ),
        ]
    for rate in sorted({each.runs_per_hour for each in series if not each.gangs}):
        queued, alone = by_way[False, rate, QUEUED], by_way[False, rate, ALONE]
        where = f"without gangs, {rate} runs/h"
        targets += [
            Target(
                f"{where}: queued runs take longer than pods alone",
                queued.longer_than(alone),
                _MOST_LONGER_WITHOUT_GANGS,
            ),
            Target(
                f"{where}: waiting pods, as a share of pods alone's",
                queued.waiting_pods / alone.waiting_pods,
                _MOST_WAITING[rate],
            ),
        ]
    return targets + [
        Target(
            f"{_where(each)}: runs that began within the range that was said first",
            each.kept,
            _MOST_KEPT,
            _LEAST_KEPT,
        )
        for each in ranges
    ]


def _where(each: Series | Ranges) -> str:
    return f"{'with' if each.gangs else 'without'} gangs, {each.runs_per_hour} runs/h"


def parts_of(series: Sequence[Series], ranges: Sequence[Ranges]) -> list[Table | Sequence[str]]:
    """Return the page: the method, a table with gangs and one without, and the targets."""
    with_gangs = [each for each in series if each.gangs]
    without_gangs = [each for each in series if not each.gangs]
    return [
        _about(series),
        _table("With gangs, beside pods whose gangs begin whole", with_gangs, WHOLE),
        _table("Without gangs, beside pods alone", without_gangs, ALONE),
        _about_ranges(),
        _ranges(ranges),
        target_lines(targets_of(series, ranges)),
    ]


def _about(series: Sequence[Series]) -> list[str]:
    days = max(len(each.days) for each in series)
    return [
        f"{machine()}. {days} days, seeds 0 to {days - 1}, each until its last run has ended;"
        " ways at one rate have the same days.",
        "`stuck`: days with runs that never end, since gangs wait for each other; they have no mean"
        " completion that could be",
        "compared. `longer`: mean completion over all runs beside the reference, with the standard"
        " error of the days' own",
        f"ratios. `large`: mean completion of runs that can use {LARGE_GPUS} of the eight GPUs or"
        " more at once. `waiting`: pods",
        "without a node, the mean over time.",
    ]


def _table(title: str, series: Sequence[Series], reference: Way) -> Table:
    beside = {each.runs_per_hour: each for each in series if each.way == reference}
    headings = [
        "runs/h", "way", "runs", "stuck", "completion (min)", "longer (%)", "large (min)",
        "waiting",
    ]  # fmt: skip
    rows = [
        [
            str(each.runs_per_hour),
            each.way.name,
            str(sum(day.runs for day in each.days)),
            str(each.stuck),
            "" if each.stuck else f"{each.completion_seconds / 60:.1f}",
            _longer(each, beside[each.runs_per_hour]),
            "" if each.stuck else f"{each.large_completion_seconds / 60:.0f}",
            f"{each.waiting_pods:.2f}",
        ]
        for each in series
    ]
    return Table(title, headings, rows, words=2)


def _longer(series: Series, reference: Series) -> str:
    if series.stuck or reference.stuck or series is reference:
        return ""
    error = percent(series.error_beside(reference))
    return f"{percent(series.longer_than(reference))} ± {error}"


def _about_ranges() -> list[str]:
    return [
        "A queue tells runs that wait when they are likely to start: four of five are to begin"
        " within the range. `told`: with a",
        "range, of those that waited; it tells none before it has seen 20 waits. `kept`: began"
        " within the range that was said first.",
        "`later kept`: of what was said after that, the mean over runs. `width`: of the range"
        " beside the wait, the median.",
    ]


def _ranges(ranges: Sequence[Ranges]) -> Table:
    headings = [
        "runs/h", "gangs", "way", "waited", "told", "kept (%)", "early (%)", "late (%)",
        "later kept (%)", "width",
    ]  # fmt: skip
    rows = [
        [
            str(each.runs_per_hour),
            "yes" if each.gangs else "no",
            each.way.name,
            str(each.waits),
            str(each.ranged),
            percent(each.kept),
            percent(each.early),
            percent(1 - each.kept - each.early),
            percent(each.later_kept),
            f"{each.width:.1f}",
        ]
        for each in ranges
    ]
    return Table("When runs start, and what was said of it", headings, rows, words=3)


def target_lines(targets: Sequence[Target]) -> list[str]:
    """Return a line about each aim."""
    return [
        f"- {'Met' if each.is_met else 'MISSED'}: {each.text}: {_figure(each, each.reached)}"
        f" ({_limits(each)})."
        for each in targets
    ]


def _limits(target: Target) -> str:
    most = _figure(target, target.most)
    if math.isinf(target.least):
        return f"at most {most}"
    return f"{_figure(target, target.least)} to {most}"


def _figure(target: Target, figure: float) -> str:
    return f"{figure:g}" if target.most == 0 else f"{percent(figure)}%"
