"""What a queue of whole runs costs and brings: a day of runs, with and without it.

`python -m benchmarks.queue --help`. Runs of four kinds arrive on six nodes (`queue_day`); the
controller's own decision admits them, or they all start at once.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benchmarks.command import Echo, add_output, exit_code_of, parser_of, show
from benchmarks.queue_day.admission import Queue
from benchmarks.queue_day.runs import Run, draw_day
from benchmarks.queue_day.simulation import AtOnce, PodOrder, simulate
from benchmarks.tables import Page, Table, machine, percent
from kfp_placement.cli.output import check_target

DAYS = 20
RATES_WITH_GANGS = (3, 4, 5)
RATES_WITHOUT_GANGS = (4, 6)
_LARGE_GPUS = 6
_MOST_LONGER_WITH_GANGS = 0.12
_MOST_LONGER_WITHOUT_GANGS = 0.03
_MOST_WAITING = {4: 0.6, 6: 0.3}


@dataclass(frozen=True)
class Way:
    """One way to start runs.

    Attributes:
        name: for the tables.
        overcommit: of the RunQueue; None = every run starts at once.
        whole_gangs: a step and its workers get their nodes together.
        packs_gangs: whether the queue knows which pods must run together.
    """

    name: str
    overcommit: float | None = None
    whole_gangs: bool = False
    packs_gangs: bool = True


ALONE = Way("pods alone")
WHOLE = Way("pods alone, gangs begin whole", whole_gangs=True)
QUEUED = Way("queued, overcommit 2", overcommit=2.0)
STRICT = Way("queued, overcommit 1", overcommit=1.0)
UNPACKED = Way("queued, overcommit 2, gangs not packed", overcommit=2.0, packs_gangs=False)
WITH_GANGS = (ALONE, WHOLE, QUEUED, STRICT, UNPACKED)
WITHOUT_GANGS = (ALONE, QUEUED, STRICT)


@dataclass(frozen=True)
class Day:
    """A day that was simulated.

    Attributes:
        seed: of the day, and of the orders in which its pods are tried.
        runs: how many were submitted.
        unfinished: how many of them never end.
        completion_seconds: from submission to end, the mean over runs that ended.
        waiting_pods: that have no node yet, the mean over time.
        large_runs: how many can use six GPUs or more at once, of those that ended.
        large_completion_seconds: of these, the mean; 0 if there are none.
    """

    seed: int
    runs: int
    unfinished: int
    completion_seconds: float
    waiting_pods: float
    large_runs: int = 0
    large_completion_seconds: float = 0.0


@dataclass(frozen=True)
class Series:
    """The days of one way at one rate.

    Attributes:
        gangs: whether steps make workers.
        runs_per_hour: the mean rate of arrivals.
        way: how runs start.
        days: by seed.
    """

    gangs: bool
    runs_per_hour: int
    way: Way
    days: tuple[Day, ...]

    @property
    def stuck(self) -> int:
        """How many days have runs that never end."""
        return sum(day.unfinished > 0 for day in self.days)

    @property
    def completion_seconds(self) -> float:
        """The mean over the runs of all days."""
        runs = sum(day.runs for day in self.days)
        return sum(day.runs * day.completion_seconds for day in self.days) / runs

    @property
    def large_completion_seconds(self) -> float:
        """The mean over the large runs of all days; 0 if there are none."""
        total = sum(day.large_runs * day.large_completion_seconds for day in self.days)
        return total / max(1, sum(day.large_runs for day in self.days))

    @property
    def waiting_pods(self) -> float:
        """The mean over the days."""
        return fmean(day.waiting_pods for day in self.days)

    def longer_than(self, other: "Series") -> float:
        """How much longer runs take, as a share; of series without stuck days."""
        return self.completion_seconds / other.completion_seconds - 1

    def error_beside(self, other: "Series") -> float:
        """The standard error of the days' own ratios."""
        ratios = [
            mine.completion_seconds / its.completion_seconds
            for mine, its in zip(self.days, other.days, strict=True)
        ]
        return float(stdev(ratios) / len(ratios) ** 0.5) if len(ratios) > 1 else 0.0


def measure(runs_per_hour: int, way: Way, *, gangs: bool, days: int) -> Series:
    """Simulate the days of one way."""
    return Series(
        gangs=gangs,
        runs_per_hour=runs_per_hour,
        way=way,
        days=tuple(_day(seed, runs_per_hour, way, gangs=gangs) for seed in range(days)),
    )


def _day(seed: int, runs_per_hour: int, way: Way, *, gangs: bool) -> Day:
    runs = draw_day(runs_per_hour, seed, gangs=gangs)
    # Without gangs nothing can wait for each other, and the order matters little.
    order = PodOrder(any_order=gangs, whole_gangs=way.whole_gangs, seed=seed)
    outcome = simulate(runs, _gatekeeper(runs, way), order)
    completion = outcome.completion_seconds
    large = [took for number, took in completion.items() if runs[number].most_gpus >= _LARGE_GPUS]
    return Day(
        seed=seed,
        runs=len(runs),
        unfinished=outcome.unfinished,
        completion_seconds=fmean(completion.values()),
        waiting_pods=outcome.waiting_pods,
        large_runs=len(large),
        large_completion_seconds=fmean(large) if large else 0.0,
    )


def _gatekeeper(runs: Sequence[Run], way: Way) -> AtOnce | Queue:
    if way.overcommit is None:
        return AtOnce()
    return Queue(runs, way.overcommit, packs_gangs=way.packs_gangs)


@dataclass(frozen=True)
class Target:
    """A stated aim.

    Attributes:
        text: what is to hold.
        reached: the figure.
        most: what it may be at most.
    """

    text: str
    reached: float
    most: float

    @property
    def is_met(self) -> bool:
        """Whether it is."""
        return self.reached <= self.most


def targets_of(series: Sequence[Series]) -> list[Target]:
    """The aims, and what was reached."""
    found = {(each.gangs, each.runs_per_hour, each.way): each for each in series}
    targets = []
    for rate in sorted({each.runs_per_hour for each in series if each.gangs}):
        queued, whole = found[True, rate, QUEUED], found[True, rate, WHOLE]
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
        queued, alone = found[False, rate, QUEUED], found[False, rate, ALONE]
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
    return targets


def parts_of(series: Sequence[Series]) -> list[Table | Sequence[str]]:
    """What was simulated, a table with gangs and one without, and the targets."""
    with_gangs = [each for each in series if each.gangs]
    without_gangs = [each for each in series if not each.gangs]
    return [
        _about(series),
        _table("With gangs, beside pods whose gangs begin whole", with_gangs, WHOLE),
        _table("Without gangs, beside pods alone", without_gangs, ALONE),
        _targets(series),
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
        f"ratios. `large`: mean completion of runs that can use {_LARGE_GPUS} of the eight GPUs or"
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


def _targets(series: Sequence[Series]) -> list[str]:
    return [
        f"- {'Met' if each.is_met else 'MISSED'}: {each.text}: {_figure(each, each.reached)}"
        f" (at most {_figure(each, each.most)})."
        for each in targets_of(series)
    ]


def _figure(target: Target, figure: float) -> str:
    return f"{figure:g}" if target.most == 0 else f"{percent(figure)}%"


def main(
    echo: Echo,
    *,
    days: int = DAYS,
    form: str = "table",
    output: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> int:
    """Simulate and print the tables.

    Args:
        echo: prints a line.
        days: how many for each way and rate.
        form: one of `FORMATS`.
        output: also write the tables as Markdown to this file.
        progress: told what is being done.

    Returns:
        The exit code: 1 if a target is missed, else 0.

    Raises:
        RunError: the output cannot be written.
    """
    series = []
    for gangs, rates, ways in (
        (True, RATES_WITH_GANGS, WITH_GANGS),
        (False, RATES_WITHOUT_GANGS, WITHOUT_GANGS),
    ):
        for rate in rates:
            for way in ways:
                progress(f"{'with' if gangs else 'without'} gangs, {rate} runs/h, {way.name}")
                series.append(measure(rate, way, gangs=gangs, days=days))
    targets = targets_of(series)
    figures: dict[str, Any] = {
        "machine": machine(),
        "series": [asdict(each) for each in series],
        "targets": [{**asdict(each), "met": each.is_met} for each in targets],
    }
    show(Page("Queues of whole runs", parts_of(series), figures), echo, form, output)
    return 0 if all(each.is_met for each in targets) else 1


def _days(text: str) -> int:
    try:
        days = int(text)
    except ValueError:
        days = 0
    if days < 1:
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not a number of days; give 1 or more")
    return days


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "queue",
        "A day of runs, each started at once or by a queue of whole runs.",
        examples=["", "--days 3", "--output benchmarks/results/queue.md"],
        exit_codes="0 done, 1 a target is missed.",
    )
    parser.add_argument(
        "--days",
        type=_days,
        default=DAYS,
        metavar="N",
        help=f"days of each way and rate [default: {DAYS}]",
    )
    add_output(parser)
    return parser


def command(arguments: Sequence[str] | None = None) -> int:
    """What `python -m benchmarks.queue` does; returns the exit code."""
    asked = _parser().parse_args(arguments)

    def measured() -> int:
        check_target(asked.output)
        return main(
            print,
            days=asked.days,
            form=asked.form,
            output=asked.output,
            progress=lambda text: print(text, file=sys.stderr),
        )

    return exit_code_of(measured)


if __name__ == "__main__":
    raise SystemExit(command())
