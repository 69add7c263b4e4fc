"""The process that searches, so that a search cannot hold up or take down what watches and writes.

One process, spawned; plain data goes in and out by a pipe. One that ends or overruns is killed and
made again. A thread waits for the answer, so that nobody else has to.
"""

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from kfp_placement_controller.actuators.worker import Worker
from kfp_placement_controller.planning.rounds import (
    PlanningRound,
    RoundFailure,
    RoundResult,
    plan_round,
)
from kfp_placement_engine.exceptions import EngineError
from kfp_placement_engine.units.durations import whole_seconds_text

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

Plan = Callable[[PlanningRound], RoundResult]


@dataclass(frozen=True)
class WorkerParams:
    """Limits of the time that a search may take.

    Attributes:
        grace_seconds: time beyond the budget, for making the problem and the explanations.
        grace_factor: further time beyond the budget, as a multiple of it.
        stop_seconds: time for a killed process to end.
    """

    grace_seconds: float = 30.0
    grace_factor: float = 2.0
    stop_seconds: float = 2.0

    def limit_seconds(self, asked: PlanningRound) -> float:
        """Return the time after which a round is given up."""
        return asked.options.budget_seconds * (1 + self.grace_factor) + self.grace_seconds


class _Searcher(NamedTuple):
    """The process that searches, and our end of the pipe to it."""

    process: "BaseProcess"
    pipe: Connection


class SearchWorker(Worker[PlanningRound, RoundResult | RoundFailure]):
    """Searches, one round after the other."""

    def __init__(
        self,
        ended: Callable[[RoundResult | RoundFailure], None],
        plan: Plan = plan_round,
        params: WorkerParams = WorkerParams(),
    ) -> None:
        """Prepare the worker without starting anything.

        Args:
            ended: function that is given the outcome of every round, in this worker's thread.
            plan: function that searches; the process must be able to import it.
            params: limits of the time that a search may take.
        """
        self._plan = plan
        self._params = params
        self._context = multiprocessing.get_context("spawn")
        self._searcher: _Searcher | None = None
        super().__init__("search", self._search, ended)

    @override
    def start(self) -> None:
        """Start; returns at once."""
        self._spawn()
        super().start()

    @override
    def stop(self) -> None:
        """Kill the process and end the thread."""
        searcher = self._searcher
        if searcher is not None:
            searcher.process.kill()
        super().stop()
        self._kill()

    def _search(self, asked: PlanningRound) -> RoundResult | RoundFailure:
        started = time.monotonic()
        try:
            searcher = self._searcher
            if searcher is None or not searcher.process.is_alive():
                searcher = self._spawn()
            searcher.pipe.send(asked)
            if searcher.pipe.poll(self._params.limit_seconds(asked)):
                answer: RoundResult | RoundFailure = searcher.pipe.recv()
                return answer
        except (OSError, EOFError) as error:
            code = self._kill()
            why = f"the search process did not start, or exited (exit code {code}): {error!s:.100}"
            return RoundFailure(asked.number, why.rstrip(": "), died=True)
        self._kill()
        seconds = time.monotonic() - started
        why = f"the search was killed after {whole_seconds_text(seconds)}"
        return RoundFailure(asked.number, why, died=True)

    def _spawn(self) -> _Searcher:
        self._kill()
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_serve, args=(theirs, self._plan), name="search", daemon=True
        )
        with theirs:
            process.start()
        # Not before: what has not started cannot be ended.
        self._searcher = searcher = _Searcher(process, ours)
        return searcher

    def _kill(self) -> int | None:
        """End the process if there is one; returns its exit code."""
        searcher, self._searcher = self._searcher, None
        if searcher is None:
            return None
        searcher.pipe.close()
        process = searcher.process
        if process.is_alive():
            process.kill()
        process.join(self._params.stop_seconds)
        return process.exitcode


def _serve(pipe: Connection, plan: Plan) -> None:
    """Answer rounds, in the process, until the other end of the pipe is gone."""
    while True:
        try:
            asked = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        pipe.send(_answer(asked, plan))


def _answer(asked: PlanningRound, plan: Plan) -> RoundResult | RoundFailure:
    try:
        return plan(asked)
    except EngineError as error:
        return RoundFailure(asked.number, str(error), died=False)
