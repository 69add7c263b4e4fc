"""Ranges in which waiting runs are likely to start: forecasts, corrected by earlier waits.

A queue remembers how long its last runs have waited, as ratios to their first forecasts. A forecast
times the lowest and the highest tenth of these ratios is the range: four of five runs start within
it, if runs to come are like those before.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from statistics import quantiles

from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.queueing.start_forecast import Simulation, StartForecast
from kfp_placement_engine.contract.run_queue import MAX_WAIT_RATIO, MAX_WAITS
from kfp_placement_engine.contract.run_request import StartRange
from kfp_placement_engine.model.keys import QueueKey, RunKey

_MOST_REMEMBERED = 10_000
"""Number of counted starts that are remembered."""


class StartOutcome(StrEnum):
    """Start of a run in relation to the range that was first forecast."""

    EARLY = "early"
    KEPT = "kept"
    LATE = "late"


def start_outcome(first: StartRange | None, now: datetime) -> StartOutcome | None:
    """Return how a run that its queue admits now starts in relation to its first range.

    Args:
        first: first forecast of its start; without an end, nothing was promised.
        now: the time.
    """
    if first is None or first.latest is None:
        return None
    if now < first.earliest:
        return StartOutcome.EARLY
    # Times are kept in whole seconds.
    is_late = now > first.latest + timedelta(seconds=1)
    return StartOutcome.LATE if is_late else StartOutcome.KEPT


@dataclass(frozen=True, slots=True)
class RangeParams:
    """Parameters of ranges.

    Attributes:
        forecast_seconds: pause between two forecasts: plans change with every step that ends.
        first_forecast_seconds: shortest pause while a run waits that has no forecast yet.
        first_forecast_seconds_per_run: least pause for each run that waits: while a thousand are
            submitted, there is always one without a forecast.
        least_waits: number of waits that a queue must have seen before its ranges have an end.
        untaught_share: share of a forecast before which a run is not expected to start, until then.
            The lowest tenth was 0.14 to 0.30 on made-up days (`benchmarks.queue`).
        move_seconds, move_share: smallest move of a forecast for a new range: this time, and this
            share of the whole wait.
        shortest_seconds: shortest wait that counts: the ratios of very short waits say nothing
            about long ones.
    """

    forecast_seconds: float = 10.0
    first_forecast_seconds: float = 0.5
    first_forecast_seconds_per_run: float = 0.005
    least_waits: int = 20
    untaught_share: float = 0.2
    move_seconds: float = 10.0
    move_share: float = 0.1
    shortest_seconds: float = 1.0


@dataclass
class StartRanges:
    """Forecasts of waiting runs, and the ratios that each queue has learned.

    Attributes:
        params: parameters of the ranges.
    """

    params: RangeParams = field(default_factory=RangeParams)
    _ratios: dict[QueueKey, deque[float]] = field(default_factory=dict)
    _counted: dict[tuple[str, datetime], None] = field(default_factory=dict)
    _forecast: StartForecast = field(default_factory=StartForecast)
    _forecast_at: float | None = None

    # What comes in.

    def lead(self) -> None:
        """Forget all ratios: they are read again from the statuses of the queues."""
        self._ratios.clear()
        self._forecast, self._forecast_at = StartForecast(), None

    def observe_queues(self, queues: Iterable[ObservedQueue]) -> None:
        """Read the ratios of queues that are new, and forget those of queues that are gone.

        Args:
            queues: all queues there are now.
        """
        before, self._ratios = self._ratios, {}
        for queue in queues:
            stored = deque(queue.status.wait_ratios, maxlen=MAX_WAITS)
            self._ratios[queue.key] = before.get(queue.key, stored)

    def started(self, uid: str, queue: QueueKey, first: StartRange | None, now: datetime) -> None:
        """Learn from a run that its queue has admitted; each start counts once.

        Args:
            uid: uid of the run.
            queue: queue that has admitted it.
            first: first forecast of its start.
            now: time of its start.
        """
        if first is None or first.forecast is None or first.said_at is None:
            return
        learned, start = self._ratios.get(queue), (uid, first.said_at)
        if learned is None or start in self._counted:
            return
        if len(self._counted) >= _MOST_REMEMBERED:
            del self._counted[next(iter(self._counted))]
        self._counted[start] = None
        shortest = self.params.shortest_seconds
        expected = max(shortest, (first.forecast - first.said_at).total_seconds())
        seen = max(0.0, (now - first.said_at).total_seconds())
        learned.append(round(min(seen / expected, MAX_WAIT_RATIO), 3))

    def forecast(
        self, simulations: Sequence[Simulation], now: datetime, monotonic_seconds: float
    ) -> None:
        """Make forecasts, if that is due.

        Args:
            simulations: all queues, as they are after a decision.
            now: the time.
            monotonic_seconds: the present moment.
        """
        waiting = [run.key for each in simulations for run in each.waiting]
        if lasts(self._pause_seconds(waiting), self._forecast_at, monotonic_seconds):
            return
        self._forecast_at = monotonic_seconds
        self._forecast = StartForecast()
        for each in simulations:
            self._forecast = self._forecast.together_with(each.forecast(now))

    def _pause_seconds(self, waiting: Collection[RunKey]) -> float:
        """Return the pause between two forecasts."""
        params = self.params
        if all(run in self._forecast for run in waiting):
            return params.forecast_seconds
        per_run = params.first_forecast_seconds_per_run * len(waiting)
        return min(params.forecast_seconds, max(params.first_forecast_seconds, per_run))

    # What follows.

    def ratios(self, queue: QueueKey) -> tuple[float, ...]:
        """Return the ratios that a queue has learned, for its status."""
        return tuple(self._ratios.get(queue, ()))

    def starts(
        self, run: RunKey, queue: QueueKey, last: StartRange | None, since: datetime, now: datetime
    ) -> StartRange | None:
        """Return when a waiting run is likely to start, or None if it may never start.

        Args:
            run: key of the run.
            queue: queue that decides about it.
            last: last range of the run, which stays while it is about right.
            since: time at which the run began to wait.
            now: the time.
        """
        new = self._range(run, queue, now)
        if new is None or last is None or self._has_moved(last, new, since, now):
            return new
        return last

    def _range(self, run: RunKey, queue: QueueKey, now: datetime) -> StartRange | None:
        start, later = self._forecast.starts.get(run), self._forecast.later.get(run)
        low, high = self.params.untaught_share, None
        learned = self._ratios.get(queue, ())
        if len(learned) >= self.params.least_waits:
            low, high = _tenths(tuple(learned))
        if start is not None:
            return StartRange(
                earliest=_share_of(start, low, now),
                latest=None if high is None else _share_of(start, high, now),
                forecast=_whole(start),
                said_at=_whole(now),
            )
        if later is None:
            return None
        return StartRange(earliest=_share_of(later, low, now), said_at=_whole(now))

    def _has_moved(self, last: StartRange, new: StartRange, since: datetime, now: datetime) -> bool:
        """Return whether the forecast has moved, or half of the wait since the last one is over.

        A range is a share of the time that is left, so it moves all the time while that passes.
        """
        if (last.latest is None, last.forecast is None) != (
            new.latest is None,
            new.forecast is None,
        ):
            return True
        old_start, new_start = last.forecast or last.earliest, new.forecast or new.earliest
        if last.said_at is None or new_start <= now:
            return last.said_at is None
        least = max(
            self.params.move_seconds, self.params.move_share * (new_start - since).total_seconds()
        )
        is_halved = (new_start - now) * 2 < old_start - last.said_at
        return abs((new_start - old_start).total_seconds()) > least or (
            is_halved and (now - last.said_at).total_seconds() > self.params.move_seconds
        )


@lru_cache(maxsize=1024)
def _tenths(learned: tuple[float, ...]) -> tuple[float, float]:
    """Return the lowest and the highest tenth, once for the thousand runs that may wait."""
    tenths = quantiles(learned, n=10)
    return tenths[0], tenths[-1]


def _share_of(start: datetime, share: float, now: datetime) -> datetime:
    return _whole(now + max(timedelta(0), start - now) * share)


def _whole(time: datetime) -> datetime:
    """Return a time in whole seconds, as the API server keeps it."""
    return time.replace(microsecond=0)
