"""Searches of many cases, one after another, beside what they are compared with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.beside import BaseProcess, Question
from benchmarks.budget import Budget
from benchmarks.cases import Case, Instance
from benchmarks.outcomes import Outcome, outcome_of, references_of
from benchmarks.search_outcome import Row, SearchOutcome, find, rows_of, schedule_text
from kfp_placement._files import write_whole
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.plans.progress import Progress, no_progress
from kfp_placement_engine.problem.schedule import Schedule

Find = Callable[[str, Instance, Budget, int], SearchOutcome]
"""Function that searches the case of a name with a budget and a seed, which also made the case."""


def find_here(_case: str, instance: Instance, budget: Budget, seed: int) -> SearchOutcome:
    """Search in this process."""
    return find(instance, budget, seed)


def run(
    cases: Sequence[Case],
    seeds: range,
    budgets: Sequence[Budget],
    folder: Path | None = None,
    progress: Progress = no_progress,
    *,
    find: Find = find_here,
    peers: Sequence[str] = (),
    base: BaseProcess | None = None,
) -> list[Outcome]:
    """Measure every case with every seed and budget, one after another.

    Args:
        cases: cases to measure.
        seeds: seeds of the searches.
        budgets: budgets of the searches.
        folder: folder for the schedules; None = they are not written.
        progress: callback for the progress of the benchmark.
        find: function that searches a plan for a case.
        peers: schedulers of others to simulate as well, by name.
        base: process that searches the same cases with another checkout; None = there is none.

    Raises:
        EngineError: a case cannot be read or planned.
        RunError: a schedule cannot be written.
        BenchmarkError: a peer's schedule cannot be simulated, or the base fails.
    """
    outcomes = []
    for number, case in enumerate(cases):
        bounds_of: dict[str, Mapping[str, float]] = {}
        for seed in seeds:
            progress(number / len(cases), f"{case.name}, seed {seed}")
            instance = case.load(seed)
            schedules = _Schedules(folder, f"{case.name}.seed-{seed}", instance)
            bounds = bounds_of.get(instance.input_hash)
            references = references_of(instance, seed, peers, bounds, schedules.note)
            bounds_of[instance.input_hash] = references.bounds
            for each in budgets:
                progress(number / len(cases), f"{case.name}, seed {seed}, {each.text}")
                ours = find(case.name, instance, each, seed)
                schedules.write(each.word, ours.rows)
                theirs = None
                if base is not None:
                    question = Question(case.name, seed, each.word)
                    theirs = base.find(question, instance.input_hash)
                    schedules.write(f"{each.word}.base", theirs.rows)
                outcome = outcome_of(case.name, seed, each, instance, references, ours)
                outcomes.append(replace(outcome, base=theirs))
    return outcomes


@dataclass(frozen=True)
class _Schedules:
    """Folder for the schedules of a case and seed; without one they are not written."""

    folder: Path | None
    prefix: str
    instance: Instance

    def note(self, name: str, schedule: Schedule) -> None:
        """Write one of a baseline or peer.

        Raises:
            RunError: it cannot be written.
        """
        if self.folder is not None:
            self.write(name, rows_of(self.instance, schedule))

    def write(self, name: str, rows: Sequence[Row]) -> None:
        """Write one.

        Raises:
            RunError: it cannot be written.
        """
        if self.folder is not None:
            write_schedule(self.folder, f"{self.prefix}.{name}", schedule_text(rows))


def write_schedule(folder: Path, name: str, text: str) -> None:
    """Write a schedule; blanks and slashes in its name become hyphens in that of the file.

    Raises:
        RunError: it cannot be written.
    """
    file = f"{name}.csv".replace("/", "-").replace(" ", "-")
    write_whole(folder.resolve() / file, text)


def make_folder(folder: Path | None) -> None:
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
