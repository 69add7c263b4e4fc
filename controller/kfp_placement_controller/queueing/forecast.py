"""When waiting runs begin if all goes as planned: the queue, played forward.

Runs end when their plans say; at each end, whoever fits is let run, in order. Nothing is said of
runs that are yet to come, of preemption, or of how much longer runs take beside others: whoever
shows a forecast corrects it by how earlier ones turned out (`start_ranges`).
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_controller.queueing.builtin.admission import decide, in_order
from kfp_placement_controller.queueing.runs import AdmittedRun, QueueRules, WaitingRun
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.resources import Resources


@dataclass(frozen=True, slots=True)
class ForecastParams:
    """How the queue is played.

    Attributes:
        most_runs: the first of those that wait, which are played; the others begin later.
        most_tries: how often it is checked whether a run fits: a bound on the work, the same on
            every machine. 5,000 take some 100 ms, and play some 50 ends of runs where 100 wait.
        overdue_share: how much longer a run is taken to last that is overdue by its plan, as a
            share of the time that it has had.
        unknown_seconds: how long a run is taken to last of which no plan is known.
    """

    most_runs: int = 200
    most_tries: int = 5_000
    overdue_share: float = 0.1
    unknown_seconds: float = 600.0


@dataclass(frozen=True)
class PlayedQueues:
    """Runs and the room that they share: what a decision depends on, and how long runs take.

    Attributes:
        waiting: runs that wait on.
        admitted: runs that take room, those that were let run just now included.
        rules: of the queues.
        nodes: the cluster.
    """

    waiting: Sequence[WaitingRun]
    admitted: Sequence[AdmittedRun]
    rules: Mapping[QueueKey, QueueRules]
    nodes: Sequence[Resources]


@dataclass(frozen=True)
class Forecast:
    """When runs begin.

    Attributes:
        starts: by run.
        later: runs that were not played to their start, since the bound on the work was reached:
            how far the queue was played.
        never: runs that do not begin while things are as they are.
    """

    starts: Mapping[RunKey, datetime] = field(default_factory=dict)
    later: Mapping[RunKey, datetime] = field(default_factory=dict)
    never: frozenset[RunKey] = frozenset()

    def __contains__(self, run: RunKey) -> bool:
        """Whether anything was found out of a run."""
        return run in self.starts or run in self.later or run in self.never

    def and_of(self, other: "Forecast") -> "Forecast":
        """Those of other queues, too."""
        return Forecast(
            {**self.starts, **other.starts},
            {**self.later, **other.later},
            self.never | other.never,
        )


def forecast(
    queues: PlayedQueues, now: datetime, params: ForecastParams = ForecastParams()
) -> Forecast:
    """Play queues forward until all runs have begun, or nothing more can end.

    Args:
        queues: as they are after a decision.
        now: the time.
        params: how they are played.
    """
    return _Play(queues, now, params).to_end()


class _Play:
    """Queues whose runs end as planned; at each end it is decided who goes, as usual."""

    def __init__(self, queues: PlayedQueues, now: datetime, params: ForecastParams) -> None:
        self._queues = queues
        self._params = params
        self._now = now
        in_turn = in_order(queues.waiting, queues.rules, now)
        self._waiting = in_turn[: params.most_runs]
        self._others = in_turn[params.most_runs :]
        self._running = {run.key: run for run in queues.admitted}
        self._ends = [(self._end(run), run.key) for run in queues.admitted]
        heapq.heapify(self._ends)
        self._starts: dict[RunKey, datetime] = {}
        self._tries = params.most_tries

    def to_end(self) -> Forecast:
        while self._ends and self._waiting and self._tries > 0:
            self._now = self._ends[0][0]
            while self._ends and self._ends[0][0] <= self._now:
                del self._running[heapq.heappop(self._ends)[1]]
            self._decide()
        left = [run.key for run in self._waiting]
        others = [run.key for run in self._others]
        if self._ends and left:
            return Forecast(self._starts, later=dict.fromkeys([*left, *others], self._now))
        return Forecast(self._starts, later=dict.fromkeys(others, self._now), never=frozenset(left))

    def _decide(self) -> None:
        """Let run whoever may by now."""
        queues, running = self._queues, [*self._running.values()]
        verdicts = decide(self._waiting, running, queues.rules, queues.nodes, self._now)
        self._tries -= len(verdicts)
        begun = {each.key for each in verdicts if each.is_admitted}
        for run in self._waiting:
            if run.key in begun:
                self._running[run.key] = let = run.let(self._now)
                self._starts[run.key] = self._now
                heapq.heappush(self._ends, (self._end(let), run.key))
        self._waiting = [run for run in self._waiting if run.key not in begun]

    def _end(self, run: AdmittedRun) -> datetime:
        """When a run ends that runs now, a second from now at the earliest."""
        unknown = timedelta(seconds=self._params.unknown_seconds)
        ends_at = run.admitted_at + unknown if run.ends_at is None else run.ends_at
        if ends_at > self._now:
            return ends_at
        overdue = (self._now - run.admitted_at) * self._params.overdue_share
        return self._now + max(overdue, timedelta(seconds=1))
