"""Searches of instances in several processes; those that have ended are kept in a log.

Every search has one thread, and none depends on another, so results do not depend on the number of
processes. A command that was interrupted goes on where it was, given the same log.
"""

import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

import kfp_placement_engine
from benchmarks import j30, made_up_runs, psplib
from benchmarks.budget import Budget, search
from benchmarks.command import BenchmarkError
from benchmarks.tuning import instances, projects
from kfp_placement._files import unwritable
from kfp_placement_engine import GeneticParams
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.plans.progress import Progress

_PRIMARY = 2
"""Index of the term that constants are chosen by: the completion time, see `search.fitness`."""


@dataclass(frozen=True)
class Trial:
    """One search.

    Attributes:
        kind: kind of the instance.
        instance: number of it.
        seed: seed of the search.
        budget: budget of the search.
        params: parameters of the search.
    """

    kind: str
    instance: int
    seed: int
    budget: Budget
    params: GeneticParams

    def key(self, sources: str) -> str:
        """Return the key of the trial in a log; trials of other sources have other keys."""
        words = [sources, self.kind, self.instance, self.seed, self.budget.word]
        text = json.dumps([*words, asdict(self.params)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Measurement:
    """Result of a search.

    Attributes:
        completion_seconds: completion of the run, the primary term of the objective.
        schedules: number of decoded schedules.
        cpu_seconds: CPU time of the search.
    """

    completion_seconds: float
    schedules: int
    cpu_seconds: float


def measure(trial: Trial) -> Measurement:
    """Search an instance."""
    problem = instances.problem_of(trial.kind, trial.instance)
    result, spent = search(problem, trial.budget, trial.seed, trial.params)
    completion = float(result.schedule.terms[_PRIMARY])
    return Measurement(completion, spent.schedules, spent.cpu_seconds)


def run_trials(
    trials: Iterable[Trial], workers: int, log: "TrialLog", progress: Progress
) -> dict[Trial, Measurement]:
    """Measure trials that the log does not have yet.

    Args:
        trials: trials to measure; those of one instance should follow each other.
        workers: processes; 1 = this one.
        log: log of earlier results, to which the new ones are added.
        progress: callback for the progress of the trials.

    Raises:
        BenchmarkError: a process ended.
        RunError: the log cannot be written.
    """
    wanted = list(dict.fromkeys(trials))
    measured = {trial: logged for trial in wanted if (logged := log.find(trial)) is not None}
    missing = [trial for trial in wanted if trial not in measured]
    # Closed, so that what was not begun is given up if this ends early.
    with closing(_measured(missing, workers)) as measurements:
        for trial, measurement in zip(missing, measurements, strict=True):
            progress(
                len(measured) / len(wanted), f"{trial.kind} {trial.instance}, seed {trial.seed}"
            )
            log.add(trial, measurement)
            measured[trial] = measurement
    return measured


def _measured(trials: Sequence[Trial], workers: int) -> Generator[Measurement]:
    """Yield the results in the order of the trials."""
    if workers == 1:
        yield from map(measure, trials)
        return
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(workers, context, _begin_worker) as pool:
            with _interruptions_ignored():
                measurements = pool.map(measure, trials)
            yield from measurements
    except BrokenProcessPool as error:
        raise BenchmarkError(
            "a process that searched ended; is there too little memory?"
        ) from error


@contextmanager
def _interruptions_ignored() -> Iterator[None]:
    """Keep Ctrl-C from processes that are started within: handling it is up to this process."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _begin_worker() -> None:
    """End when the process that started this one has ended, however it did."""
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


class TrialLog:
    """Log of results: a line of JSON for each trial, in a file or, without one, nowhere."""

    def __init__(self, path: Path | None = None) -> None:
        """Read what the file holds, if it is there.

        Raises:
            InputError: it is not such a file.
        """
        self._path = path
        self._stream: TextIO | None = None
        self._sources = sources()
        whole = "" if path is None or not path.exists() else _whole_lines(path)
        self._whole_bytes = len(whole.encode())
        self._logged = {} if path is None else _measurements(path, whole)

    def __enter__(self) -> Self:
        if self._path is not None:
            try:
                self._stream = self._path.open("a", encoding="utf-8")
                self._stream.truncate(self._whole_bytes)
            except OSError as error:
                raise unwritable(self._path, error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._stream is not None:
            self._stream.close()

    def find(self, trial: Trial) -> Measurement | None:
        """Return the earlier result of a trial, or None without one."""
        return self._logged.get(trial.key(self._sources))

    def add(self, trial: Trial, measurement: Measurement) -> None:
        """Keep what a trial gave.

        Raises:
            RunError: it cannot be written.
        """
        if self._stream is None:
            return
        row = {"key": trial.key(self._sources), **asdict(measurement)}
        try:
            self._stream.write(json.dumps(row) + "\n")
            self._stream.flush()
        except OSError as error:
            raise unwritable(self._path, error) from error


def _whole_lines(path: Path) -> str:
    """Return the lines of a log; a last line that is cut off was never finished."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    return text[: text.rfind("\n") + 1]


def _measurements(path: Path, text: str) -> dict[str, Measurement]:
    """Return the trials of a log by their keys."""
    rows = {}
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            row: dict[str, Any] = json.loads(line)
            key = row.pop("key")
            rows[key] = Measurement(**row)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{path}: line {number} is not a trial; remove the file to measure all again"
            ) from error
    return rows


def sources() -> str:
    """Return a hash of all that decides a result: the engine, and how instances are drawn."""
    engine = Path(kfp_placement_engine.__file__).parent
    kernel = [path for path in engine.glob("_kernel.*") if path.is_file()]
    modules = (instances, projects, made_up_runs, j30, psplib)
    drawing = [Path(str(module.__file__)) for module in modules]
    digest = hashlib.sha256()
    for path in sorted([*engine.rglob("*.py"), *kernel, *drawing]):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
