"""Benchmark of what-if: time and quality of the best single changes.

`python -m benchmarks.what_if --help`. Every case is 100 steps on 50 nodes, made up by seed. Beside
the suggestions every single change there is, not only those that the suggestions try, is searched
for a second from the same plan.
"""

import argparse
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.command import Echo, add_output, exit_code_of, parser_of, seconds, show
from benchmarks.tables import Page, Table, machine
from benchmarks.what_if_case import CASES
from benchmarks.what_if_report import about, figures_of, table
from benchmarks.what_if_search import SearchedCase, ask, search_every
from kfp_placement.cli.output import check_target

DISPATCHES = ("ready", "ordered")

LIMIT_SECONDS = 3.0
"""Suggestions must be there within this, on two cores with nothing else to do."""

LEAST_SHARE = 0.9
"""The first suggestion must gain this share of the best gain that is found."""


def main(
    echo: Echo,
    *,
    cases: int = len(CASES),
    budget_seconds: float = 2.0,
    each_seconds: float = 1.0,
    form: str = "table",
    output: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> int:
    """Measure and print the table.

    Args:
        echo: function that prints a line.
        cases: number of `CASES` to measure.
        budget_seconds: time for the search of each plan.
        each_seconds: time for the search for each change.
        form: one of `FORMATS`.
        output: file for the table as Markdown, beside printing it.
        progress: callback with a line about each part that begins.

    Returns:
        The exit code: 1 if suggestions took too long or are too far from the best, else 0.

    Raises:
        RunError: the output cannot be written.
    """
    load, suggested, results = os.getloadavg()[0], [], []
    # Times first: the long searches behind them need no quiet machine.
    for number, dispatch in itertools.product(range(cases), DISPATCHES):
        progress(f"{CASES[number].scarce} is scarce, {dispatch}: asking for suggestions")
        suggested.append(ask(number, dispatch, budget_seconds))
    for each in suggested:
        scarce = f"{CASES[each.number].scarce} is scarce, {each.plan.search.dispatch}"
        progress(f"{scarce}: searching every change")
        results.append(search_every(each, each_seconds))
    parts: list[Table | Sequence[str]] = [about(budget_seconds, each_seconds, load), table(results)]
    figures = {"machine": machine(), "load": load, "cases": [figures_of(each) for each in results]}
    show(Page("What-if", parts, figures), echo, form, output)
    return 0 if all(map(is_good, results)) else 1


def is_good(result: SearchedCase) -> bool:
    """Return whether the suggestions came in time, and the first is near the best there is."""
    return result.wall_seconds <= LIMIT_SECONDS and result.share >= LEAST_SHARE


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "what_if",
        "How long the best single changes take, and how near they are to the best there is.",
        examples=["", "--cases 1 --each 100ms", "-o json"],
        exit_codes="0 done, 1 suggestions took too long or gain too little.",
    )
    parser.add_argument(
        "--cases",
        type=int,
        choices=range(1, len(CASES) + 1),
        default=len(CASES),
        help=f"how many cases [default: {len(CASES)}]",
    )
    parser.add_argument(
        "--budget",
        type=seconds,
        default=2.0,
        metavar="TIME",
        help="time for the search of each plan [default: 2s]",
    )
    parser.add_argument(
        "--each",
        type=seconds,
        default=1.0,
        metavar="TIME",
        help="time for the search for each change [default: 1s]",
    )
    add_output(parser)
    return parser


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.what_if` and return the exit code."""
    given = _parser().parse_args(arguments)

    def measured() -> int:
        check_target(given.output)
        return main(
            print,
            cases=given.cases,
            budget_seconds=given.budget,
            each_seconds=given.each,
            form=given.form,
            output=given.output,
            progress=lambda text: print(text, file=sys.stderr),
        )

    return exit_code_of(measured)


if __name__ == "__main__":
    sys.exit(command())
