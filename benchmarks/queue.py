"""Costs and gains of a queue of whole runs: a day of runs, with and without it.

`python -m benchmarks.queue --help`. Runs of four kinds arrive on six nodes (`queue_day`); the
controller's own decision admits them, or they all start at once. With `--namespaces`, three
namespaces share more nodes, and one of them harms the others (`queue_fairness`).
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.command import Echo, add_output, exit_code_of, parser_of, show
from benchmarks.queue_fairness import (
    fairness_parts,
    fairness_targets,
    measure_fair_days,
    measure_shares,
)
from benchmarks.queue_report import parts_of, targets_of
from benchmarks.queue_series import QUEUED, WITH_GANGS, WITHOUT_GANGS, measure, measure_ranges
from benchmarks.tables import Page, machine
from kfp_placement.cli.output import check_target

DAYS = 20
RATES_WITH_GANGS = (3, 4, 5)
RATES_WITHOUT_GANGS = (4, 6)
FAIR_DAYS = 3


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
        echo: function that prints a line.
        days: number of days for each way and rate.
        form: one of `FORMATS`.
        output: file for the tables as Markdown, beside printing them; None = no file.
        progress: callback for the progress of the benchmark.

    Returns:
        The exit code: 1 if a target is missed, else 0.

    Raises:
        RunError: the output cannot be written.
    """
    series, ranges = [], []
    for gangs, rates, ways in (
        (True, RATES_WITH_GANGS, WITH_GANGS),
        (False, RATES_WITHOUT_GANGS, WITHOUT_GANGS),
    ):
        for rate in rates:
            for way in ways:
                progress(f"{'with' if gangs else 'without'} gangs, {rate} runs/h, {way.name}")
                series.append(measure(rate, way, gangs=gangs, days=days))
            progress(f"{'with' if gangs else 'without'} gangs, {rate} runs/h, start ranges")
            ranges.append(measure_ranges(rate, QUEUED, gangs=gangs, days=days))
    targets = targets_of(series, ranges)
    figures: dict[str, Any] = {
        "machine": machine(),
        "series": [asdict(each) for each in series],
        "ranges": [asdict(each) for each in ranges],
        "targets": [each.figures() for each in targets],
    }
    show(Page("Queues of whole runs", parts_of(series, ranges), figures), echo, form, output)
    return 0 if all(each.is_met for each in targets) else 1


def namespaces(
    echo: Echo,
    *,
    days: int = FAIR_DAYS,
    form: str = "table",
    output: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> int:
    """Simulate three namespaces and print the tables; arguments and result as of `main`."""
    progress("three namespaces, always waiting")
    shares = measure_shares(range(days))
    fair_days = measure_fair_days(range(days), progress)
    targets = fairness_targets(fair_days, shares)
    figures: dict[str, Any] = {
        "machine": machine(),
        "namespaces": [asdict(each) for each in fair_days],
        "shares": asdict(shares),
        "targets": [each.figures() for each in targets],
    }
    parts = fairness_parts(fair_days, shares, targets, range(days))
    show(Page("Queues of several namespaces", parts, figures), echo, form, output)
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
        examples=["", "--days 3", "--namespaces", "--output benchmarks/results/queue.md"],
        exit_codes="0 done, 1 a target is missed.",
    )
    parser.add_argument(
        "--days",
        type=_days,
        metavar="N",
        help=f"days of each way and rate [default: {DAYS}, with --namespaces {FAIR_DAYS}]",
    )
    parser.add_argument(
        "--namespaces", action="store_true", help="three namespaces, one of them hostile"
    )
    add_output(parser)
    return parser


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.queue` and return the exit code."""
    asked = _parser().parse_args(arguments)

    def measured() -> int:
        check_target(asked.output)
        measure_all, usual = (namespaces, FAIR_DAYS) if asked.namespaces else (main, DAYS)
        return measure_all(
            print,
            days=asked.days or usual,
            form=asked.form,
            output=asked.output,
            progress=lambda text: print(text, file=sys.stderr),
        )

    return exit_code_of(measured)


if __name__ == "__main__":
    raise SystemExit(command())
