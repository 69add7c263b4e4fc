"""Speed of planning: children that the search tries in a second, and time to a first plan.

`python -m benchmarks.speed --help`. Runs and clusters are made up (`made_up_runs`); a search has as
many generations on every machine, and every measurement is a process of its own. Another checkout
can be measured beside this one, in alternating processes; it must compute the same.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from benchmarks.checkouts import Checkout, add_base
from benchmarks.command import (
    BenchmarkError,
    Echo,
    add_output,
    exit_code_of,
    number_type,
    parser_of,
    show,
)
from benchmarks.made_up_runs import Shape
from benchmarks.processes import ROOT, run_apart
from benchmarks.speed_case import CHILDREN, FIRST_PLAN, SpeedCase
from benchmarks.speed_report import Outcome, figures_of, parts_of
from benchmarks.tables import Page, machine
from kfp_placement.cli.output import check_target

CASES = (
    SpeedCase(CHILDREN, Shape("kfp", 1000, 100), generations=140),
    SpeedCase(CHILDREN, Shape("kfp", 1000, 1000), generations=200),
    SpeedCase(CHILDREN, Shape("kfp", 10_000, 100), generations=45),
    SpeedCase(CHILDREN, Shape("workflow", 100, 10), generations=150),
    SpeedCase(CHILDREN, Shape("workflow", 10_000, 100), generations=80),
    SpeedCase(FIRST_PLAN, Shape("kfp", 10_000, 1000)),
    SpeedCase(FIRST_PLAN, Shape("workflow", 10_000, 1000)),
)
"""A search takes 3 to 4 s of CPU time each, a first plan 0.7 to 2 s (November 2026)."""

PAIRS, MOST_PAIRS = 5, 100


def measured_by(checkout: Checkout, case: SpeedCase) -> dict[str, Any]:
    """`speed_case.measure` in a process of its own, with the checkout's engine.

    Raises:
        BenchmarkError: the process fails.
    """
    words = ["benchmarks.speed_case", *case.words]
    printed = run_apart(f"{case.name} of {checkout.folder}", words, variables=checkout.variables)
    answer: dict[str, Any] = json.loads(printed)
    checkout.check_engine(answer["engine"])
    return answer


def main(
    echo: Echo,
    *,
    cases: Sequence[SpeedCase] = CASES,
    base: Path | None = None,
    pairs: int = PAIRS,
    form: str = "table",
    output: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> None:
    """Measure and print the tables.

    Args:
        echo: function that prints a line.
        cases: cases to measure.
        base: another checkout to compare with; None = none.
        pairs: number of measurements of both; without a base everything is measured once.
        form: one of `FORMATS`.
        output: file for the tables as Markdown, beside printing them; None = no file.
        progress: callback for the progress of the benchmark.

    Raises:
        InputNotFoundError: the base is not a checkout.
        BenchmarkError: a checkout cannot be measured, or computes something else; the tables are
            printed before.
        RunError: the output cannot be written.
    """
    present = Checkout("this checkout", ROOT)
    sides = [present] if base is None else [Checkout("base", base.resolve()), present]
    for side in sides:
        side.check()
    outcomes = [_measured(case, sides, 1 if base is None else pairs, progress) for case in cases]
    figures = {"machine": machine(), "cases": [figures_of(each) for each in outcomes]}
    show(Page("Speed", parts_of(outcomes), figures), echo, form, output)
    different = [f"{each.case.name}: {each.difference}" for each in outcomes if each.difference]
    if different:
        raise BenchmarkError("; ".join(different))


def _measured(
    case: SpeedCase, sides: Sequence[Checkout], pairs: int, progress: Callable[[str], None]
) -> Outcome:
    """One case; each side comes first in every second pair: machines get slower and faster."""
    by_side: dict[str, list[dict[str, Any]]] = {side.name: [] for side in sides}
    for pair in range(pairs):
        for side in sides if pair % 2 == 0 else reversed(sides):
            progress(f"{case.name}: {side.name}, {pair + 1} of {pairs}")
            by_side[side.name].append(measured_by(side, case))
    return Outcome(case, by_side["this checkout"], by_side.get("base", []))


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "speed",
        "How fast planning is: children the search tries in a second, and time to a first plan.",
        examples=["", "--cases '*kfp*' -o json", "--base ../base --cases 'children-*' --pairs 3"],
        exit_codes="0 done, 1 results differ or a checkout cannot be measured, 3 no such checkout.",
    )
    parser.add_argument(
        "--cases",
        type=_cases,
        default=CASES,
        metavar="GLOB",
        help="the only cases to measure, by name, such as 'children-kfp-*' [default: all]",
    )
    add_base(parser)
    parser.add_argument(
        "--pairs",
        type=number_type(1, MOST_PAIRS),
        default=PAIRS,
        metavar="COUNT",
        help=f"how often both checkouts are measured, in turn, with --base [default: {PAIRS}]",
    )
    add_output(parser)
    return parser


def _cases(glob: str) -> tuple[SpeedCase, ...]:
    chosen = tuple(case for case in CASES if fnmatchcase(case.name, glob))
    if not chosen:
        names = ", ".join(case.name for case in CASES)
        raise argparse.ArgumentTypeError(f"{glob!r:.40}: no such case; there are {names}")
    return chosen


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.speed` and return the exit code."""
    asked = _parser().parse_args(arguments)

    def measured() -> int:
        check_target(asked.output)
        main(
            print,
            cases=asked.cases,
            base=asked.base,
            pairs=asked.pairs,
            form=asked.form,
            output=asked.output,
            progress=lambda text: print(text, file=sys.stderr),
        )
        return 0

    return exit_code_of(measured)


if __name__ == "__main__":
    sys.exit(command())
