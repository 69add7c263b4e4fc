"""`python -m benchmarks.paper`: the experiment of the paper on ML tasks on Kubernetes, repeated.

Everything a row compares comes from the same draws: strict first in first out (what the paper's
figures fit), the default scheduler, HEFT, the paper's genetic algorithm, our search, and the
pattern-LP bound that no schedule can beat. What is drawn is in `seed_experiment`.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.command import (
    BenchmarkError,
    Echo,
    add_output,
    exit_code_of,
    number_type,
    parser_of,
    seconds,
    show,
)
from benchmarks.paper_report import Outcome, Rooms, figures_of, parts_of
from benchmarks.seed_experiment import DRAWS, DURATIONS, MIXES, Draw, draw_problem
from benchmarks.tables import Page, Table, machine
from kfp_placement.cli.output import check_target
from kfp_placement.cli.redrawing import ProgressLine
from kfp_placement_engine import BASELINES, GeneticParams, MaxRuntime, lower_bound, solve
from kfp_placement_engine.plans.progress import Progress, no_progress
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.paper_genetic import gene_values

FULL_SEEDS, FULL_BUDGET_SECONDS = 20, 10.0
"""Number of seeds and time of each search for the committed table."""

MAX_SEEDS = 10_000
"""Largest number of seeds: more take weeks."""

ROOM_DRAWS = 20
"""Draws of each mix from which the room against strict FIFO is taken."""

FULL_COMMAND = "python -m benchmarks.paper --seeds 20 --budget 10s"


@dataclass(frozen=True)
class PaperSettings:
    """Settings of a run of the experiment.

    Attributes:
        seeds: draws of each mix and kind of durations, seeds 0, 1, ...
        budget_seconds: time of each search, ours and the paper's.
        mixes, durations: mixes and durations of the experiment that are run.
    """

    seeds: int
    budget_seconds: float
    mixes: Sequence[str] = tuple(MIXES)
    durations: Sequence[str] = DURATIONS

    @property
    def draws(self) -> list[Draw]:
        """Return the draws: a whole set of mixes and durations for each seed."""
        return [
            Draw(mix, durations, seed)
            for seed in range(self.seeds)
            for mix in self.mixes
            for durations in self.durations
        ]


@dataclass(frozen=True)
class PaperResult:
    """Results of a run of the experiment.

    Attributes:
        settings: settings of the run.
        outcomes: outcomes of every draw.
        rooms: largest gains of draws over strict FIFO; these need no search, so there are always
            many.
    """

    settings: PaperSettings
    outcomes: Sequence[Outcome]
    rooms: Rooms


def main(
    echo: Echo,
    *,
    seeds: int,
    budget_seconds: float,
    form: str = "table",
    output: Path | None = None,
    progress: Progress = no_progress,
) -> int:
    """Run the experiment and print its tables and what they mean; see `run` and `report`.

    Raises:
        BenchmarkError: the solver of the pattern bound is not installed.
        RunError: the file cannot be written.
    """
    return report(run(PaperSettings(seeds, budget_seconds), progress), echo, form, output)


def report(result: PaperResult, echo: Echo, form: str = "table", output: Path | None = None) -> int:
    """Print tables and conclusions.

    Args:
        result: results of the run.
        echo: function that prints a line.
        form: one of `FORMATS`.
        output: file for the tables as Markdown, beside printing them; None = no file.

    Returns:
        The exit code: 1 if a schedule beats the bound or our search misses a target, else 0.

    Raises:
        RunError: the file cannot be written.
    """
    show(_page(result), echo, form, output)
    good = all(outcome.on_target and not outcome.beats_bound for outcome in result.outcomes)
    return 0 if good else 1


def run(settings: PaperSettings, progress: Progress = no_progress) -> PaperResult:
    """Measure every draw, one after another.

    Raises:
        BenchmarkError: the solver of the pattern bound is not installed.
    """
    _require_solver()
    progress(0.0, "what the model allows")
    rooms = fifo_rooms(ROOM_DRAWS)
    outcomes = []
    for number, draw in enumerate(settings.draws):
        text = f"seed {draw.seed}, mix {draw.mix}, {draw.durations} durations"
        progress(number / len(settings.draws), text)
        outcomes.append(measure(draw, settings.budget_seconds))
    return PaperResult(settings, outcomes, rooms)


def _require_solver() -> None:
    """Refuse to start without the pattern bound: the others are up to 14% lower on these draws."""
    try:
        importlib.import_module("highspy")
    except ImportError as error:
        raise BenchmarkError(
            "the bound of this experiment needs the LP solver highspy, which is not installed: run"
            " `make setup` or `pip install highspy`"
        ) from error


def fifo_rooms(draws: int) -> Rooms:
    """Return the largest possible gains over strict FIFO, durations proportional to vCPU."""
    rooms: dict[str, dict[str, list[float]]] = {}
    for levels in DRAWS:
        rooms[levels] = {mix: [] for mix in MIXES}
        for mix, gains in rooms[levels].items():
            for seed in range(draws):
                problem = draw_problem(Draw(mix, "proportional", seed, levels))
                fifo = BASELINES["fifo"](problem, seed).makespan_seconds
                gains.append(1 - lower_bound(problem).seconds / fifo)
    return rooms


def is_constant(problem: PlacementProblem) -> bool:
    """Return whether Eq. (1) values all placements alike: then the search is random placement."""
    values = np.where(problem.arrays.allowed, gene_values(problem), np.nan)
    spread = np.nanmax(values, axis=1) - np.nanmin(values, axis=1) if problem.genes else np.zeros(1)
    return bool((spread < 1e-12).all())


def measure(draw: Draw, budget_seconds: float) -> Outcome:
    """Everything that one row compares, on one draw."""
    problem = draw_problem(draw)
    makespans = {
        name: BASELINES[name](problem, draw.seed).makespan_seconds
        for name in ("fifo", "kube-default", "heft")
    }
    searches = {"paper": GeneticParams.paper(), "ours": GeneticParams()}
    for name, params in searches.items():
        result = solve(problem, MaxRuntime(budget_seconds), draw.seed, params)
        makespans[name] = result.schedule.makespan_seconds
    bound = lower_bound(problem)
    return Outcome(draw, bound.seconds, bound.kind, makespans, is_constant(problem))


def _page(result: PaperResult) -> Page:
    settings, outcomes = result.settings, result.outcomes
    parts: list[Table | Sequence[str]] = [
        _about(settings),
        *parts_of(outcomes, result.rooms),
        *_how_to_repeat(settings),
    ]
    impossible = [each.draw for each in outcomes if each.beats_bound]
    if impossible:
        parts.append([f"error: a schedule of {draw} beats the bound" for draw in impossible])
    figures = {
        "machine": machine(),
        "seeds": settings.seeds,
        "budgetSeconds": settings.budget_seconds,
        **figures_of(outcomes, result.rooms),
    }
    return Page("The paper's experiment", parts, figures)


def _about(settings: PaperSettings) -> list[str]:
    seeds = f"{settings.seeds} seeds (from 0)" if settings.seeds > 1 else "seed 0"
    return [
        "100 tasks x 6 subtasks (a chain; level drawn per task, exact shares, shuffled), all at",
        "t=0; 3 nodes of 8 vCPU and 16 GB; no driver pods, no image pulls; ordered dispatch.",
        f"{seeds}, {settings.budget_seconds:g} s for each search; {machine()}.",
    ]


def _how_to_repeat(settings: PaperSettings) -> list[list[str]]:
    if settings.seeds >= FULL_SEEDS and settings.budget_seconds >= FULL_BUDGET_SECONDS:
        return []
    return [["A short run. The whole table takes about 40 minutes:", f"  {FULL_COMMAND}"]]


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "paper",
        "Repeat the paper's experiment: its queue, its model, fair baselines and the bound.",
        examples=["", "--seeds 20 --budget 10s --output paper.md", "--seeds 1 -o json"],
        exit_codes="0 done, 1 a target is missed, a bound is wrong or the LP solver is missing.",
    )
    parser.add_argument(
        "--seeds",
        type=number_type(1, MAX_SEEDS),
        default=3,
        metavar="COUNT",
        help="draws of each mix and kind of durations; the committed table has 20 [default: 3]",
    )
    parser.add_argument(
        "--budget",
        type=seconds,
        default=1.0,
        metavar="TIME",
        help="time for each search; the committed table has 10s [default: 1s]",
    )
    add_output(parser)
    return parser


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.paper` and return the exit code."""
    asked = _parser().parse_args(arguments)

    def measured() -> int:
        check_target(asked.output)
        with ProgressLine() as progress:
            result = run(PaperSettings(asked.seeds, asked.budget), progress)
        return report(result, print, asked.form, asked.output)

    return exit_code_of(measured)


if __name__ == "__main__":
    sys.exit(command())
