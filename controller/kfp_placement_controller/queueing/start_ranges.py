"""When waiting runs are likely to start: forecasts, corrected by how earlier ones turned out.

A queue remembers how long its last runs have waited as shares of what was first forecast of them.
A forecast times the tenth of these ratios from below, and from above, is the range: four of five
runs start within it, if runs to come are like those before.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from statistics import quantiles

from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.queueing.forecast import Simulation, StartForecast
from kfp_placement_engine.contract.run_queue import MAX_WAIT_RATIO, MAX_WAITS
from kfp_placement_engine.contract.run_request import StartRange
from kfp_placement_engine.model.keys import QueueKey, RunKey

_MOST_REMEMBERED = 10_000
"""Starts of which is remembered that they were counted."""


class StartOutcome(StrEnum):
    """How a run has begun beside the range that was first said."""

    EARLY = "early"
    KEPT = "kept"
    LATE = "late"


def start_outcome(first: StartRange | None, now: datetime) -> StartOutcome | None:
    """How a run begins that its queue lets begin now.

    Args:
        first: what was first said of its start; without an end nothing was promised.
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
    """How ranges are made.

    Attributes:
        forecast_seconds: between two forecasts: plans change with every step that ends.
        first_forecast_seconds: the same while a run waits of which nothing was said yet, at least.
        first_forecast_seconds_per_run: the same for each run that waits: while a thousand are
            submitted, there is always one of which nothing was said yet.
        least_waits: of a queue, before the end of a range is said.
        untaught_share: of a forecast, before which a run is not expected to start, until then. The
            tenth from below was 0.14 to 0.30 on made-up days (`benchmarks.queue`).
        move_seconds, move_share: how much a forecast must move for a range to be said again: so
            long, and this share of the whole wait.
        shortest_seconds: a forecast of less counts as this: the ratios of waits of a moment say
            nothing about long ones.
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
    """What is forecast, and what was learned.

    Attributes:
        params: how ranges are made.
    """

    params: RangeParams = field(default_factory=RangeParams)
    _ratios: dict[QueueKey, deque[float]] = field(default_factory=dict)
    _counted: dict[tuple[str, datetime], None] = field(default_factory=dict)
    _forecast: StartForecast = field(default_factory=StartForecast)
    _forecast_at: datetime | None = None

    # What comes in.

    def lead(self) -> None:
        """What queues have learned is read again from their statuses."""
        self._ratios.clear()
        self._forecast, self._forecast_at = StartForecast(), None

    def forecast_again(self) -> None:
        """Forecasts are due: the clock was set."""
        self._forecast_at = None

    def observe_queues(self, queues: Iterable[ObservedQueue]) -> None:
        """These are the queues there are now.

        Args:
            queues: all; the status of one is read when it is first seen.
        """
        known, self._ratios = self._ratios, {}
        for queue in queues:
            said = deque(queue.status.wait_ratios, maxlen=MAX_WAITS)
            self._ratios[queue.key] = known.get(queue.key, said)

    def started(self, uid: str, queue: QueueKey, first: StartRange | None, now: datetime) -> None:
        """A queue has let a run begin, or go on; said again, it counts once.

        Args:
            uid: of the run.
            queue: that has.
            first: what was first said of its start.
            now: when it begins.
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

    def forecast(self, simulations: Sequence[Simulation], now: datetime) -> None:
        """Make forecasts, if that is due.

        Args:
            simulations: all queues, as they are after a decision.
            now: the time.
        """
        waiting = [run.key for each in simulations for run in each.waiting]
        if self._forecast_at is not None:
            pause = timedelta(seconds=self._pause_seconds(waiting))
            if now - self._forecast_at < pause:
                return
        self._forecast_at = now
        self._forecast = StartForecast()
        for each in simulations:
            self._forecast = self._forecast.together_with(each.forecast(now))

    def _pause_seconds(self, waiting: Collection[RunKey]) -> float:
        """Between two forecasts."""
        params = self.params
        if all(run in self._forecast for run in waiting):
            return params.forecast_seconds
        per_run = params.first_forecast_seconds_per_run * len(waiting)
        return min(params.forecast_seconds, max(params.first_forecast_seconds, per_run))

    # What follows.

    def ratios(self, queue: QueueKey) -> tuple[float, ...]:
        """What a queue has learned, for its status."""
        return tuple(self._ratios.get(queue, ()))

    def starts(
        self,
        run: RunKey,
        queue: QueueKey,
        said: StartRange | None,
        since: datetime,
        now: datetime,
    ) -> StartRange | None:
        """When a waiting run is likely to start; None = it is not known whether it ever does.

        Args:
            run: that waits.
            queue: that decides about it.
            said: what was said last of it; it stays while it is about right.
            since: when it began to wait.
            now: the time.
        """
        found = self._range(run, queue, now)
        if found is None or said is None or self._has_moved(said, found, since, now):
            return found
        return said

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

    def _has_moved(
        self, said: StartRange, found: StartRange, since: datetime, now: datetime
    ) -> bool:
        """Whether the forecast is another, or half of what was left of the wait then is over.

        What is left is a share of a time that passes, so the range itself moves all the time.
        """
        if (said.latest is None, said.forecast is None) != (
            found.latest is None,
            found.forecast is None,
        ):
            return True
        old, new = said.forecast or said.earliest, found.forecast or found.earliest
        if said.said_at is None or new <= now:
            return said.said_at is None
        least = max(
            self.params.move_seconds, self.params.move_share * (new - since).total_seconds()
        )
        is_halved = (new - now) * 2 < old - said.said_at
        return abs((new - old).total_seconds()) > least or (
            is_halved and (now - said.said_at).total_seconds() > self.params.move_seconds
        )


@lru_cache(maxsize=1024)
def _tenths(learned: tuple[float, ...]) -> tuple[float, float]:
    """The lowest and the highest tenth; a thousand runs that wait in a queue ask for the same."""
    tenths = quantiles(learned, n=10)
    return tenths[0], tenths[-1]


def _share_of(start: datetime, share: float, now: datetime) -> datetime:
    return _whole(now + max(timedelta(0), start - now) * share)


def _whole(time: datetime) -> datetime:
    """As the API server keeps it."""
    return time.replace(microsecond=0)
