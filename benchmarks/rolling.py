"""Runs that arrive one after another and whose steps do not take as long as planned.

`python -m benchmarks.rolling --help`. Every way to open gates is compared with an oracle: plans
made when a run arrives, with the true run times. Recorded runs (`wfinstances`) judge; the rule of
gates was chosen on made-up runs.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from benchmarks.budget import Budget, Meter
from benchmarks.cases import chosen
from benchmarks.command import (
    DATA_HELP,
    BenchmarkError,
    add_output,
    exit_code_of,
    number_type,
    parser_of,
    show,
)
from benchmarks.measuring import MOST_CASES, add_search_options
from benchmarks.processes import on_one_thread
from benchmarks.rolling_report import Row, page_of
from benchmarks.rolling_runs.arms import ORACLE, Arm, all_arms
from benchmarks.rolling_runs.draws import LARGEST, Kind, draw, hash_of_series
from benchmarks.rolling_runs.outcomes import Outcome, schedule_text
from benchmarks.rolling_runs.simulation import GENERATIONS, simulate_series, twenty_generations
from benchmarks.series import make_folder, write_schedule
from benchmarks.wfinstances import instance_files
from kfp_placement.cli.output import check_target
from kfp_placement.cli.redrawing import ProgressLine
from kfp_placement_engine import MaxSchedules
from kfp_placement_engine.exceptions import InputNotFoundError
from kfp_placement_engine.plans.progress import Progress, no_progress
from kfp_placement_engine.search.stop import StoppingCriterion

NOISES = (0.6, 0.3, 0.0)
"""Sigma of the lognormal factor between planned and true run time."""

SEEDS, DRIFT_SEEDS = range(5), 2


@dataclass(frozen=True)
class RollingCase:
    """A case that can be measured.

    Attributes:
        name: name for people and for `--cases`.
        kind: kind of its series.
        noise: noise of true run times.
    """

    name: str
    kind: Kind
    noise: float


@dataclass(frozen=True)
class Asked:
    """Settings of the measurement of every case.

    Attributes:
        arms: the ways to run it.
        seeds: seeds of series and searches.
        drift_seeds: number of seeds that are replanned on drift, which takes ten times as long.
        budgets: budgets of each plan; none = 20 generations.
        folder: folder for the schedules; None = they are not written.
    """

    arms: Sequence[Arm]
    seeds: range
    drift_seeds: int = DRIFT_SEEDS
    budgets: Sequence[Budget] = ()
    folder: Path | None = None


def all_cases(files: Sequence[Path]) -> list[RollingCase]:
    """Return every kind of series with every noise.

    Args:
        files: recorded runs; none = only made-up ones.
    """
    sources: list[tuple[str, tuple[Path, ...]]] = [("made-up", ())]
    if files:
        sources.insert(0, ("wfinstances", tuple(files)))
    kinds = [
        Kind(name if cores == 1 else f"{name}, 1 to {cores} cores", some, cores)
        for name, some in sources
        for cores in (1, LARGEST)
    ]
    return [
        RollingCase(f"{kind.name}, noise {noise:g}", kind, noise)
        for noise in NOISES
        for kind in kinds
    ]


def measure(
    cases: Sequence[RollingCase], asked: Asked, progress: Progress = no_progress
) -> list[Row]:
    """Simulate every case with every seed, budget and arm.

    Raises:
        EngineError: a recorded run cannot be read.
        RunError: a schedule cannot be written.
    """
    rows = []
    for number, case in enumerate(cases):
        for seed in asked.seeds:
            replans = seed - asked.seeds.start < asked.drift_seeds
            arms = [arm for arm in asked.arms if replans or not arm.replans]
            for budget in asked.budgets or (None,):
                progress(number / len(cases), f"{case.name}, seed {seed}")
                rows += _measured(case, seed, budget, arms, asked.folder)
    return rows


def _measured(
    case: RollingCase,
    seed: int,
    budget: Budget | None,
    arms: Sequence[Arm],
    folder: Path | None,
) -> list[Row]:
    series, stop = draw(case.kind, case.noise, seed), _stop(budget)
    oracle, input_hash = simulate_series(series, ORACLE, seed, stop), hash_of_series(series)
    rows = []
    prefix = f"{case.name}.seed-{seed}.{_word(budget)}"
    _write(folder, f"{prefix}.oracle", oracle)
    for arm in arms:
        started = time.process_time()
        outcome = simulate_series(series, arm, seed, stop)
        _write(folder, f"{prefix}.{arm.name}", outcome)
        rows.append(
            Row(
                case=case.name,
                seed=seed,
                input_hash=input_hash,
                budget=budget,
                arm=arm,
                arrivals=series.arrivals,
                outcome=outcome,
                oracle=oracle,
                large_cores=case.kind.most_cores // 2,
                cpu_seconds=time.process_time() - started,
            )
        )
    return rows


def _word(budget: Budget | None) -> str:
    return f"{GENERATIONS}generations" if budget is None else budget.word


def _write(folder: Path | None, name: str, outcome: Outcome) -> None:
    if folder is not None:
        write_schedule(folder, name.replace(", ", "-"), schedule_text(outcome))


def _stop(budget: Budget | None) -> Callable[[], StoppingCriterion]:
    """Make the stopping criterion of the search of a plan."""
    if budget is None:
        return twenty_generations
    if budget.schedules is None:
        return lambda: Meter(budget)
    schedules = budget.schedules
    return lambda: MaxSchedules(schedules)


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.rolling` and return the exit code."""
    asked = _parser().parse_args(arguments)

    def measured() -> int:
        check_target(asked.output)
        make_folder(asked.schedules)
        files, skipped = _files(asked.data)
        cases = chosen(all_cases(files), asked.cases, asked.limit)
        arms = [arm for arm in all_arms() if fnmatchcase(arm.name, asked.arms)]
        if not arms:
            names = ", ".join(repr(arm.name) for arm in all_arms())
            raise BenchmarkError(f"no arm is called {asked.arms!r:.60}; there are {names}")
        what = Asked(arms, asked.seeds, asked.drift_seeds, asked.budget, asked.schedules)
        with ProgressLine() as progress:
            rows = measure(cases, what, progress)
        show(page_of(rows, skipped), print, asked.form, asked.output)
        return 0

    return exit_code_of(measured)


def _files(data: Path | None) -> tuple[Sequence[Path], Sequence[str]]:
    """Return the recorded runs, or the reason for leaving them out.

    Raises:
        InputNotFoundError: the folder that was named has none.
    """
    try:
        return instance_files(data), ()
    except InputNotFoundError as missing:
        if data is not None:
            raise
        return (), [f"Recorded runs are left out: {missing}."]


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "rolling",
        "Runs whose steps do not take as long as planned: rules of gates and replanning.",
        examples=[
            "",
            "--cases 'made-up*0.6' --seeds 1000-1009",
            "--cases 'wfinstances*' --arms 'slack*' --drift-seeds 5 -o json",
        ],
        exit_codes="0 done, 1 input is wrong, 2 usage, 3 no such file.",
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help=f"benchmark data {DATA_HELP}")
    parser.add_argument(
        "--arms",
        default="*",
        metavar="GLOB",
        help="the only ways to run a series, by name, such as 'slack, drift' [default: all]",
    )
    parser.add_argument(
        "--drift-seeds",
        type=number_type(0, MOST_CASES),
        default=DRIFT_SEEDS,
        metavar="COUNT",
        help="of the seeds as many are replanned on drift as well, which takes ten times as long"
        f" [default: {DRIFT_SEEDS}]",
    )
    add_search_options(parser, SEEDS, (), otherwise=f"{GENERATIONS} generations")
    add_output(parser)
    return parser


if __name__ == "__main__":
    sys.exit(on_one_thread("rolling", command))
