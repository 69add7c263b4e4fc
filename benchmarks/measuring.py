"""The command line of the benchmarks that search cases: options, the measurement, what is printed.

A benchmark says which cases it has and what its tables show; cases, seeds, budgets, formats and
schedules are the same for all, and so are progress, messages and exit codes.
"""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.budget import Budget, budget
from benchmarks.cases import Case, chosen
from benchmarks.command import Echo, add_output, exit_code_of, parser_of, show
from benchmarks.outcomes import Outcome, measure, references_of
from benchmarks.tables import Page, Table, machine
from kfp_placement.cli.output import check_target
from kfp_placement.cli.progress import LiveLine
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.progress import Progress, no_progress

MOST_SEEDS = 10_000
MOST_CASES = 1_000_000

_SEEDS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)

Parts = Sequence[Table | Sequence[str]]


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    Attributes:
        name: of its module.
        heading: of its page.
        summary: one line for `--help`.
        examples: arguments, as people write them.
        cases: all its cases, made from the options.
        parts: its tables.
        totals: the figures of its tables, for JSON.
        seeds, budgets: unless others are asked for.
        add_options: adds further options.
        prepare: completes the cases that were chosen, where that takes a while.
    """

    name: str
    heading: str
    summary: str
    examples: Sequence[str]
    cases: Callable[[argparse.Namespace], Sequence[Case]]
    parts: Callable[[Sequence[Outcome]], Parts]
    totals: Callable[[Sequence[Outcome]], Any]
    seeds: range
    budgets: Sequence[Budget]
    add_options: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    prepare: Callable[[Sequence[Case], Progress], Sequence[Case]] = lambda cases, progress: cases


def run_command(benchmark: Benchmark, arguments: Sequence[str] | None = None) -> int:
    """What `python -m benchmarks.NAME` does; returns the exit code."""
    asked = _parser(benchmark).parse_args(arguments)

    def measured() -> int:
        check_target(asked.output)
        _make_folder(asked.schedules)
        some = chosen(benchmark.cases(asked), asked.cases, asked.limit)
        with LiveLine() as progress:
            cases = benchmark.prepare(some, progress)
            outcomes = run(cases, asked.seeds, asked.budget, asked.schedules, progress)
        return report(benchmark, outcomes, print, asked.form, asked.output)

    return exit_code_of(measured)


def run(
    cases: Sequence[Case],
    seeds: range,
    budgets: Sequence[Budget],
    folder: Path | None = None,
    progress: Progress = no_progress,
) -> list[Outcome]:
    """Measure every case with every seed and budget, one after another.

    Args:
        cases: what to measure.
        seeds: of the searches.
        budgets: of the searches.
        folder: where schedules are written; None = nowhere.
        progress: told what is being done.

    Raises:
        EngineError: a case cannot be read or planned.
        RunError: a schedule cannot be written.
    """
    outcomes = []
    for number, case in enumerate(cases):
        known: dict[str, Mapping[str, float]] = {}
        for seed in seeds:
            progress(number / len(cases), f"{case.name}, seed {seed}")
            instance = case.load(seed)
            references = references_of(instance.problem, seed, known.get(instance.input_hash))
            known[instance.input_hash] = references.bounds
            outcomes += [
                measure(case.name, instance, each, seed, references, folder) for each in budgets
            ]
    return outcomes


def report(
    benchmark: Benchmark,
    outcomes: Sequence[Outcome],
    echo: Echo,
    form: str = "table",
    output: Path | None = None,
) -> int:
    """Print tables or figures.

    Returns:
        The exit code: 1 if a plan leaves a step out, beats a bound or the optimum, or is worse than
        a baseline that it starts from, else 0.

    Raises:
        RunError: the output cannot be written.
    """
    faults = [
        f"error: {each.case}, seed {each.seed}, {each.budget.text}: {each.fault}"
        for each in outcomes
        if each.fault
    ]
    figures = {
        "benchmark": benchmark.name,
        "machine": machine(),
        "faults": faults,
        "totals": benchmark.totals(outcomes),
        "rows": [each.figures for each in outcomes],
    }
    parts = [*benchmark.parts(outcomes), *([faults] if faults else [])]
    show(Page(benchmark.heading, parts, figures), echo, form, output)
    return 1 if faults else 0


def searched(outcomes: Sequence[Outcome]) -> str:
    """Half a sentence on seeds and machine, for a page's first lines."""
    seeds = sorted({each.seed for each in outcomes})
    words = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    return f"{words}; one thread; {machine()}"


def by_budget(outcomes: Sequence[Outcome]) -> dict[Budget, list[Outcome]]:
    """The outcomes of each budget, in the order in which they were asked for."""
    groups: dict[Budget, list[Outcome]] = {}
    for each in outcomes:
        groups.setdefault(each.budget, []).append(each)
    return groups


def _parser(benchmark: Benchmark) -> argparse.ArgumentParser:
    parser = parser_of(
        benchmark.name,
        benchmark.summary,
        examples=benchmark.examples,
        exit_codes="0 done, 1 a plan cannot be or input is wrong, 2 usage, 3 no such file.",
    )
    benchmark.add_options(parser)
    add_search_options(parser, benchmark.seeds, benchmark.budgets)
    add_output(parser)
    return parser


def add_search_options(
    parser: argparse.ArgumentParser, seeds: range, budgets: Sequence[Budget]
) -> None:
    """Add `--cases`, `--limit`, `--seeds`, `--budget` and `--schedules`.

    Args:
        parser: of a benchmark.
        seeds: unless others are asked for.
        budgets: the same.
    """
    parser.add_argument(
        "--cases",
        default="*",
        metavar="GLOB",
        help="the only cases to take, by name [default: all]",
    )
    parser.add_argument(
        "--limit",
        type=_limit,
        metavar="COUNT",
        help="take no more cases than these, evenly spread over all [default: all]",
    )
    parser.add_argument(
        "--seeds",
        type=_seeds,
        default=seeds,
        metavar="FIRST-LAST",
        help=f"seeds of the searches, or one seed [default: {seeds[0]}-{seeds[-1]}]",
    )
    parser.add_argument(
        "--budget",
        type=budget,
        nargs="+",
        default=budgets,
        metavar="BUDGET",
        help="what each search may spend: schedules, as in 5000schedules, or CPU seconds, as in "
        f"2cpu [default: {' '.join(each.word for each in budgets)}]",
    )
    parser.add_argument(
        "--schedules",
        type=Path,
        metavar="FOLDER",
        help="also write every schedule to a file in FOLDER, as CSV: step, node, start and end",
    )


def _seeds(text: str) -> range:
    match = _SEEDS.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r:.40}: write the first and last seed, as in 0-2")
    first, last = int(match[1]), int(match[2] or match[1])
    if not 1 <= last - first + 1 <= MOST_SEEDS:
        raise argparse.ArgumentTypeError(
            f"{text!r:.40}: the last seed must not be below the first, nor {MOST_SEEDS:,} above it"
        )
    return range(first, last + 1)


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_CASES):
        raise argparse.ArgumentTypeError(f"{text!r:.40}: give a number from 1 to {MOST_CASES:,}")
    return int(text)


def _make_folder(folder: Path | None) -> None:
    """Make a folder for schedules, before any work is done for it.

    Raises:
        InputError: it cannot be made.
    """
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from error
