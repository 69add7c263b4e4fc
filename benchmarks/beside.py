"""The searches of another checkout beside ours: the same cases, seeds and budgets.

One process searches for it, with its engine and this checkout's benchmarks (`base_side`), case by
case, so that both work at nearly the same time.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import fmean, geometric_mean
from typing import IO, Any

from benchmarks.budget import Budget
from benchmarks.checkouts import Checkout
from benchmarks.command import BenchmarkError
from benchmarks.outcomes import Outcome, by_budget
from benchmarks.search_outcome import SearchOutcome
from benchmarks.tables import Table, percent

_SAME = 1e-9


@dataclass(frozen=True)
class Question:
    """A question to the other checkout: a case to search.

    Attributes:
        case: name of the case.
        seed: seed of the search.
        budget: budget, as on the command line.
    """

    case: str
    seed: int
    budget: str


class BaseProcess:
    """A process that searches with another checkout's engine; see `base_process`."""

    def __init__(
        self, checkout: Checkout, process: "subprocess.Popen[str]", errors: IO[str]
    ) -> None:
        self._checkout, self._process, self._errors = checkout, process, errors

    def find(self, question: Question, input_hash: str) -> SearchOutcome:
        """Return what the other checkout finds for a question.

        Args:
            question: case to search.
            input_hash: hash of our own input; the other benchmark must read or draw the same.

        Raises:
            BenchmarkError: it fails, or searches something else.
        """
        answer = self._answer(question)
        self._checkout.check_engine(answer["engine"])
        if answer["input"] != input_hash:
            raise BenchmarkError(
                f"{self._checkout.folder}: its engine reads {question.case} as another run"
            )
        return SearchOutcome.of_fields(answer["found"])

    def _answer(self, question: Question) -> dict[str, Any]:
        line = ""
        # A process that has ended takes no question; what it wrote says why.
        with suppress(BrokenPipeError):
            if self._process.stdin and self._process.stdout:
                print(json.dumps(vars(question)), file=self._process.stdin, flush=True)
                line = self._process.stdout.readline()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines() or ["it says nothing"]
        raise BenchmarkError(
            f"{self._checkout.folder}: its search of {question.case} fails: {lines[-1]}"
        )


@contextmanager
def base_process(checkout: Checkout, benchmark: str, words: Sequence[str]) -> Iterator[BaseProcess]:
    """Start a process that searches for another checkout, and end it.

    Args:
        checkout: the other checkout.
        benchmark: name of the benchmark.
        words: command line of the benchmark, by which it has its cases.
    """
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.base_side", benchmark, *words],
            env={**os.environ, **checkout.variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            yield BaseProcess(checkout, process, errors)
        finally:
            process.kill()
            process.communicate()


def base_parts(outcomes: Sequence[Outcome]) -> list[Table]:
    """Return a table for each budget, if another checkout was measured."""
    return [
        _table(budget, group)
        for budget, group in by_budget(outcomes).items()
        if any(each.base for each in group)
    ]


def _table(budget: Budget, outcomes: Sequence[Outcome]) -> Table:
    pairs = [(each, each.base) for each in outcomes if each.base]
    ratios = [ours.makespan / base.makespan for ours, base in pairs]
    cells = [
        str(len(pairs)),
        percent(1 - geometric_mean(ratios), 3),
        str(sum(ratio < 1 - _SAME for ratio in ratios)),
        str(sum(abs(ratio - 1) <= _SAME for ratio in ratios)),
        str(sum(ratio > 1 + _SAME for ratio in ratios)),
        f"{fmean(ours.spent.schedules for ours, _ in pairs):,.0f}",
        f"{fmean(base.spent.schedules for _, base in pairs):,.0f}",
        f"{fmean(ours.spent.cpu_seconds for ours, _ in pairs):.3f}",
        f"{fmean(base.spent.cpu_seconds for _, base in pairs):.3f}",
    ]
    headings = [
        "searches",
        "shorter, %",
        "better",
        "same",
        "worse",
        "schedules",
        "base's",
        "CPU, s",
        "base's",
    ]
    return Table(f"Makespans against those of the base, {budget.text} each", headings, [cells], 0)
