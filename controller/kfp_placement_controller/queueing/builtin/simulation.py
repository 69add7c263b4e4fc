"""Simulation of queues from now on: forecasts when waiting runs start if all goes as planned.

Runs end when their plans say; at each end, the runs that fit are admitted, in turns. Runs that are
yet to come, preemption, and how much longer runs take beside others are left out: whoever shows a
forecast corrects it by how earlier ones turned out (`start_ranges`).
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kfp_placement_controller.queueing.builtin.admission import (
    in_order,
    interleaved,
    waiting_verdicts,
)
from kfp_placement_controller.queueing.runs import AdmittedRun, Rules, WaitingRun
from kfp_placement_controller.queueing.start_forecast import StartForecast
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.units.resources import Resources


@dataclass(frozen=True, slots=True)
class SimulationParams:
    """Bounds and assumptions of a simulation.

    Attributes:
        most_runs: number of waiting runs that are simulated, the first of each queue; the others
            start later than these.
        most_tries: number of tries of single runs, a bound on the work that is the same on every
            machine. 5,000 take some 100 ms, and simulate some 50 ends of runs where 100 wait.
        overdue_share: further duration of a run that is overdue by its plan, as a share of the time
            that it has had.
        unknown_seconds: duration of a run that has no plan.
    """

    most_runs: int = 200
    most_tries: int = 5_000
    overdue_share: float = 0.1
    unknown_seconds: float = 600.0


@dataclass(frozen=True)
class QueueSimulation:
    """Runs and the room that they share, as they are after a decision.

    Attributes:
        waiting: runs that still wait.
        admitted: runs that take room, those that were admitted just now included.
        rules: rules of the queues.
        nodes: room of each node.
        params: bounds and assumptions.
    """

    waiting: Sequence[WaitingRun]
    admitted: Sequence[AdmittedRun]
    rules: Rules
    nodes: Sequence[Resources]
    params: SimulationParams = SimulationParams()

    def forecast(self, now: datetime) -> StartForecast:
        """Simulate the queues until all runs have started, or nothing more can end."""
        return _Progress(self, now).to_end()


class _Progress:
    """Queues at one moment of their simulation."""

    def __init__(self, queues: QueueSimulation, now: datetime) -> None:
        self._queues = queues
        self._params = queues.params
        self._now = now
        ordered = interleaved(in_order(queues.waiting, queues.rules, now))
        self._waiting = ordered[: self._params.most_runs]
        self._others = ordered[self._params.most_runs :]
        self._running = {run.key: run for run in queues.admitted}
        self._ends = [(self._end(run), run.key) for run in queues.admitted]
        heapq.heapify(self._ends)
        self._starts = dict[RunKey, datetime]()
        self._tries = self._params.most_tries

    def to_end(self) -> StartForecast:
        while self._ends and self._waiting and self._tries > 0:
            self._now = self._ends[0][0]
            while self._ends and self._ends[0][0] <= self._now:
                del self._running[heapq.heappop(self._ends)[1]]
            self._admit()
        left = [run.key for run in self._waiting]
        others = [run.key for run in self._others]
        if self._ends and left:
            return StartForecast(self._starts, later=dict.fromkeys([*left, *others], self._now))
        later = dict.fromkeys(others, self._now)
        return StartForecast(self._starts, later=later, never=frozenset(left))

    def _admit(self) -> None:
        """Admit the runs that may start at this moment."""
        queues, running = self._queues, [*self._running.values()]
        verdicts = waiting_verdicts(self._waiting, running, queues.rules, queues.nodes, self._now)
        self._tries -= len(verdicts)
        started = {each.key for each in verdicts if each.is_admitted}
        for run in self._waiting:
            if run.key in started:
                self._running[run.key] = admitted = run.as_admitted(self._now)
                self._starts[run.key] = self._now
                heapq.heappush(self._ends, (self._end(admitted), run.key))
        self._waiting = [run for run in self._waiting if run.key not in started]

    def _end(self, run: AdmittedRun) -> datetime:
        """Return when a run ends that runs now, a second from now at the earliest."""
        unknown = timedelta(seconds=self._params.unknown_seconds)
        ends_at = run.admitted_at + unknown if run.ends_at is None else run.ends_at
        if ends_at > self._now:
            return ends_at
        overdue = (self._now - run.admitted_at) * self._params.overdue_share
        return self._now + max(overdue, timedelta(seconds=1))
