"""The command line of the benchmarks that search cases: options, the measurement, what is printed.

A benchmark says which cases it has and what its tables show; cases, seeds, budgets, formats and
schedules are the same for all, and so are progress, messages and exit codes.
"""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.beside import BaseProcess, base_parts, base_process
from benchmarks.budget import Budget, budget, timed_budget
from benchmarks.cases import Case, chosen
from benchmarks.checkouts import Checkout, add_base
from benchmarks.command import Echo, add_output, exit_code_of, number_type, parser_of, show
from benchmarks.outcomes import Outcome, by_budget
from benchmarks.peers import add_peers, peer_names
from benchmarks.peers.report import peer_parts
from benchmarks.series import Find, find_here, make_folder, run
from benchmarks.tables import Page, Table, machine, percent
from kfp_placement.cli.output import check_target
from kfp_placement.cli.redrawing import ProgressLine
from kfp_placement_engine.model.objective import ResourceWeights
from kfp_placement_engine.plans.progress import Progress

MOST_SEEDS = 10_000
MOST_CASES = 1_000_000

_SEEDS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)

Parts = Sequence[Table | Sequence[str]]


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    Attributes:
        name: name of its module.
        heading: heading of its page.
        summary: one line for `--help`.
        examples: arguments, as people write them.
        cases: all its cases, made from the options.
        parts: function that makes its tables.
        totals: the figures of its tables, for JSON.
        seeds, budgets: seeds and budgets by default.
        add_options: function that adds further options.
        prepare: function that completes the chosen cases, where that takes a while.
        find: function that searches a plan for a case.
        budget_of: parser of `--budget`: `budget`, or `timed_budget`, which also accepts times.
        fault: function that returns the fault of an outcome; "" = none.
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
    find: Find = find_here
    budget_of: Callable[[str], Budget] = budget
    fault: Callable[[Outcome], str] = lambda outcome: outcome.fault


def run_command(benchmark: Benchmark, arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.NAME` and return the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    asked = parser_for(benchmark).parse_args(words)

    def measured() -> int:
        check_target(asked.output)
        make_folder(asked.schedules)
        peers = peer_names(asked.peers)
        beside = _beside(benchmark, asked.base, words)
        some = chosen(benchmark.cases(asked), asked.cases, asked.limit)
        with beside as base, ProgressLine() as progress:
            outcomes = run(
                benchmark.prepare(some, progress),
                asked.seeds,
                asked.budget,
                asked.schedules,
                progress,
                find=benchmark.find,
                peers=peers,
                base=base,
            )
        return report(benchmark, outcomes, print, asked.form, asked.output, peers)

    return exit_code_of(measured)


def _beside(
    benchmark: Benchmark, folder: Path | None, words: Sequence[str]
) -> AbstractContextManager[BaseProcess | None]:
    """Start the process of another checkout, if there is one.

    Raises:
        InputNotFoundError: the folder is not a checkout.
        BenchmarkError: its kernel is not compiled.
    """
    if folder is None:
        return nullcontext()
    checkout = Checkout("base", folder.resolve())
    checkout.check()
    return base_process(checkout, benchmark.name, words)


def report(
    benchmark: Benchmark,
    outcomes: Sequence[Outcome],
    echo: Echo,
    form: str = "table",
    output: Path | None = None,
    peers: Sequence[str] = (),
) -> int:
    """Print tables or figures.

    Args:
        benchmark: benchmark that was run.
        outcomes: outcomes of the searches.
        echo: function that prints a line.
        form: one of `FORMATS`.
        output: file for the tables as Markdown, beside printing them; None = no file.
        peers: names of those that were asked for.

    Returns:
        The exit code: 1 if a plan leaves a step out, beats a bound or the optimum, or is worse than
        a baseline that it starts from, else 0.

    Raises:
        RunError: the output cannot be written.
    """
    faults = [
        f"error: {each.case}, seed {each.seed}, {each.budget.text}: {fault}"
        for each in outcomes
        if (fault := benchmark.fault(each))
    ]
    figures = {
        "benchmark": benchmark.name,
        "machine": machine(),
        "faults": faults,
        "totals": benchmark.totals(outcomes),
        "rows": [each.figures for each in outcomes],
    }
    parts = [
        *benchmark.parts(outcomes),
        *use_parts(outcomes),
        *peer_parts(outcomes, peers),
        *base_parts(outcomes),
        *([faults] if faults else []),
    ]
    show(Page(benchmark.heading, parts, figures), echo, form, output)
    return 1 if faults else 0


def use_parts(outcomes: Sequence[Outcome]) -> list[Table]:
    """Return plans' use of each resource: means over cases that have it, a row for each budget."""
    names = dict.fromkeys(name for each in outcomes for name in each.use if name != "pods")
    if not names:
        return []
    weights = ResourceWeights()
    rows = [
        [
            budget.text,
            *(_mean_share([each.use.get(name) for each in group]) for name in names),
            _mean_share([weights.mean_of(each.use) for each in group]),
        ]
        for budget, group in by_budget(outcomes).items()
    ]
    headings = ["budget", *names, "CPU and memory as one"]
    return [Table("Use of resources until the latest end, %", headings, rows)]


def _mean_share(shares: Sequence[float | None]) -> str:
    numbers = [share for share in shares if share is not None]
    return percent(fmean(numbers)) if numbers else "-"


def readable(cases: Sequence[Case], progress: Progress) -> Sequence[Case]:
    """Return the same cases after reading all: a bad file must not show up after hours of work.

    Raises:
        EngineError: one cannot be read or planned.
    """
    for number, case in enumerate(cases):
        progress(0.0, f"reading {number + 1:,} of {len(cases):,}")
        case.load(0)
    return cases


def searched(outcomes: Sequence[Outcome]) -> str:
    """Half a sentence on seeds and machine, for a page's first lines."""
    seeds = sorted({each.seed for each in outcomes})
    words = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    return f"{words}; one thread; {machine()}"


def parser_for(benchmark: Benchmark) -> argparse.ArgumentParser:
    """Return the parser of a benchmark's command line."""
    parser = parser_of(
        benchmark.name,
        benchmark.summary,
        examples=benchmark.examples,
        exit_codes="0 done, 1 a plan cannot be or input is wrong, 2 usage, 3 no such file.",
    )
    benchmark.add_options(parser)
    add_search_options(parser, benchmark.seeds, benchmark.budgets, benchmark.budget_of)
    add_peers(parser)
    add_base(parser)
    add_output(parser)
    return parser


def add_search_options(
    parser: argparse.ArgumentParser,
    seeds: range,
    budgets: Sequence[Budget],
    budget_of: Callable[[str], Budget] = budget,
    *,
    otherwise: str = "",
) -> None:
    """Add `--cases`, `--limit`, `--seeds`, `--budget` and `--schedules`.

    Args:
        parser: parser of a benchmark's command line.
        seeds: seeds by default.
        budgets: budgets by default.
        budget_of: parser of a budget: `budget`, or `timed_budget`, which also accepts times.
        otherwise: text about the end of a search without a budget.
    """
    usual = " ".join(each.word for each in budgets) or otherwise
    parser.add_argument(
        "--cases",
        default="*",
        metavar="GLOB",
        help="the only cases to take, by name [default: all]",
    )
    parser.add_argument(
        "--limit",
        type=number_type(1, MOST_CASES),
        metavar="COUNT",
        help="take no more cases than these, drawn evenly from all [default: all]",
    )
    parser.add_argument(
        "--seeds",
        type=seed_range,
        default=seeds,
        metavar="FIRST-LAST",
        help=f"seeds of the searches, or one seed [default: {seeds[0]}-{seeds[-1]}]",
    )
    parser.add_argument(
        "--budget",
        type=budget_of,
        nargs="+",
        default=budgets,
        metavar="BUDGET",
        help="what each search may spend: schedules, as in 5000schedules, or CPU seconds, as in "
        f"2cpu{', or time, as in 2s' if budget_of is timed_budget else ''} [default: {usual}]",
    )
    parser.add_argument(
        "--schedules",
        type=Path,
        metavar="FOLDER",
        help="also write every schedule, those of baselines and peers too, to a file in FOLDER, as"
        " CSV: step, node, start and end",
    )


def seed_range(text: str) -> range:
    """Seeds as in `0-2`, or one seed, for argparse.

    Raises:
        argparse.ArgumentTypeError: they are not, or are too many.
    """
    match = _SEEDS.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r:.40}: write the first and last seed, as in 0-2")
    first, last = int(match[1]), int(match[2] or match[1])
    if not 1 <= last - first + 1 <= MOST_SEEDS:
        raise argparse.ArgumentTypeError(
            f"{text!r:.40}: the last seed must not be below the first, nor {MOST_SEEDS:,} above it"
        )
    return range(first, last + 1)
