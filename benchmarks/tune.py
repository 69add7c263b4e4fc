"""Choice of the search's constants: beside other values, and with operators switched off.

`python -m benchmarks.tune --help`. Instances are generated from numbers from 1,000 up, which no
other benchmark uses; no data is needed. Values are compared by a number of schedules, the same on
every machine; operators, which cost time, by CPU time of one thread.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.budget import Budget, budget
from benchmarks.command import (
    BenchmarkError,
    add_output,
    exit_code_of,
    number_type,
    parser_of,
    show,
)
from benchmarks.measuring import seed_range
from benchmarks.processes import on_one_thread
from benchmarks.tables import Page
from benchmarks.tuning.constants import (
    CONSTANTS,
    NOT_TUNED,
    OPERATORS,
    Setting,
    Value,
    operator_settings,
    value_settings,
)
from benchmarks.tuning.instances import FIRST_NUMBER, KINDS
from benchmarks.tuning.report import Part, page
from benchmarks.tuning.study import FEWEST_INSTANCES, Study
from benchmarks.tuning.trials import TrialLog, run_trials
from kfp_placement.cli.output import check_target
from kfp_placement.cli.redrawing import ProgressLine
from kfp_placement_engine import GeneticParams
from kfp_placement_engine.plans.progress import Progress, no_progress

MOST_INSTANCES, MOST_NUMBER = 10_000, 1_000_000_000
MOST_WORKERS = 64


@dataclass(frozen=True)
class Extent:
    """Amount of measurement for every setting.

    Attributes:
        instances: number of instances of each kind.
        seeds: seeds of the searches.
        budget: budget of the searches.
    """

    instances: int
    seeds: range
    budget: Budget


OF_VALUES = Extent(64, range(1), Budget(schedules=4_000))
OF_OPERATORS = Extent(64, range(5), Budget(cpu_seconds=0.3))
"""Together some 50 minutes of CPU time (November 2026)."""


def studies(asked: argparse.Namespace) -> tuple[Study | None, Study | None]:
    """Return the studies of values and of operators that the command line names.

    Raises:
        BenchmarkError: there is nothing to compare.
        PlanningError: a value makes no search.
    """
    shipped = GeneticParams()
    is_all = asked.parameters is None and asked.operators is None
    constants = [each for each in CONSTANTS if is_all or each.name in (asked.parameters or ())]
    if asked.values is not None:
        constants = [replace(each, values=tuple(asked.values)) for each in constants]
    operators = [each for each in OPERATORS if is_all or each.name in (asked.operators or ())]
    pair = (
        _study(asked, shipped, value_settings(shipped, constants), OF_VALUES),
        _study(asked, shipped, operator_settings(shipped, operators), OF_OPERATORS),
    )
    if pair == (None, None):
        raise BenchmarkError(
            f"there is nothing to compare: what is asked for is as shipped, or changes no search "
            f"of {', '.join(asked.kinds)}"
        )
    return pair


def _study(
    asked: argparse.Namespace, shipped: GeneticParams, settings: Iterable[Setting], usual: Extent
) -> Study | None:
    """Return the settings that change a search of the chosen kinds, or None if none does."""
    some = [each for each in settings if not set(each.kinds).isdisjoint(asked.kinds)]
    if not some:
        return None
    counts_schedules = usual.budget.schedules is not None
    given = [each for each in asked.budget if (each.schedules is not None) == counts_schedules]
    return Study(
        shipped=shipped,
        settings=some,
        kinds=tuple(dict.fromkeys(asked.kinds)),
        instances=range(asked.first, asked.first + (asked.limit or usual.instances)),
        seeds=asked.seeds or usual.seeds,
        budget=given[0] if given else usual.budget,
    )


def tuned(asked: argparse.Namespace, progress: Progress = no_progress) -> Page:
    """Measure what is asked for.

    Raises:
        BenchmarkError: there is nothing to compare, or a process ended.
        EngineError: a value makes no search, or the log cannot be read.
        RunError: the log cannot be written.
    """
    asked_for = studies(asked)
    trials = [trial for study in asked_for if study is not None for trial in study.trials()]
    with TrialLog(asked.log) as log:
        measurements = run_trials(trials, asked.workers, log, progress)
    return page(*(None if study is None else Part(study, measurements) for study in asked_for))


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "tune",
        "Each constant of the search beside other values, and the search without each operator.",
        examples=[
            "",
            "--parameters crossover_rate --values 0.3 0.5 --kinds kfp-ready --limit 200",
            "--operators restarts crossover --budget 0.2cpu -o json",
            "--workers 2 --log trials.jsonl",
        ],
        exit_codes="0 done, 1 input is wrong or a process ended, 2 usage.",
    )
    parser.add_argument(
        "--parameters",
        type=_constant,
        nargs="+",
        metavar="NAME",
        help="the only constants whose values are compared [default: all; with --operators none]",
    )
    parser.add_argument(
        "--values",
        type=_value,
        nargs="+",
        metavar="VALUE",
        help="values to try for the one constant that --parameters names [default: its table's]",
    )
    parser.add_argument(
        "--operators",
        choices=[each.name for each in OPERATORS],
        nargs="+",
        metavar="NAME",
        help="the only operators that are switched off [default: all; with --parameters none]: "
        + ", ".join(each.name for each in OPERATORS),
    )
    parser.add_argument(
        "--kinds",
        choices=list(KINDS),
        nargs="+",
        default=list(KINDS),
        metavar="KIND",
        help=f"the only kinds of instances to take: {', '.join(KINDS)} [default: all]",
    )
    _add_extent(parser)
    add_output(parser)
    return parser


def _add_extent(parser: argparse.ArgumentParser) -> None:
    """Add what decides how long it takes."""
    parser.add_argument(
        "--limit",
        type=number_type(FEWEST_INSTANCES, MOST_INSTANCES),
        metavar="COUNT",
        help=f"instances of each kind [default: {OF_VALUES.instances} for values, "
        f"{OF_OPERATORS.instances} for operators]",
    )
    parser.add_argument(
        "--first",
        type=number_type(FIRST_NUMBER, MOST_NUMBER),
        default=FIRST_NUMBER,
        metavar="NUMBER",
        help=f"number of the first instance; others than those of the table, which start at "
        f"{FIRST_NUMBER}, show whether a value is better by chance [default: {FIRST_NUMBER}]",
    )
    parser.add_argument(
        "--seeds",
        type=seed_range,
        metavar="FIRST-LAST",
        help="seeds of the searches, or one seed [default: 0 for values, 0-4 for operators]",
    )
    parser.add_argument(
        "--budget",
        type=budget,
        nargs="+",
        default=[],
        metavar="BUDGET",
        help="what a search may spend: schedules where values are compared, CPU seconds where "
        f"operators are [default: {OF_VALUES.budget.word} {OF_OPERATORS.budget.word}]",
    )
    parser.add_argument(
        "--workers",
        type=number_type(1, MOST_WORKERS),
        default=1,
        metavar="COUNT",
        help="processes that search [default: 1]",
    )
    parser.add_argument(
        "--log",
        type=Path,
        metavar="FILE",
        help="keep searches in FILE, and take those that it has: an interrupted command goes on",
    )


def _constant(text: str) -> str:
    if text in NOT_TUNED:
        raise argparse.ArgumentTypeError(f"{text} is not tuned: it {NOT_TUNED[text]}")
    names = [each.name for each in CONSTANTS]
    if text not in names:
        raise argparse.ArgumentTypeError(
            f"{text!r:.40}: no such constant; there are {', '.join(names)}"
        )
    return text


def _value(text: str) -> Value:
    """Read a whole number where it is written as one."""
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r:.40}: it must be a number") from None


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read a command line, or leave with a message if it is wrong."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.values is not None and len(asked.parameters or ()) != 1:
        parser.error("--values: name the one constant that has them with --parameters")
    if len({each.schedules is None for each in asked.budget}) < len(asked.budget):
        parser.error("--budget: give at most one in schedules and one in CPU seconds")
    return asked


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.tune` and return the exit code."""
    asked = parsed(arguments)

    def measured() -> int:
        check_target(asked.output)
        with ProgressLine() as progress:
            sections = tuned(asked, progress)
        show(sections, print, asked.form, asked.output)
        return 0

    return exit_code_of(measured)


if __name__ == "__main__":
    sys.exit(on_one_thread("tune", command))
