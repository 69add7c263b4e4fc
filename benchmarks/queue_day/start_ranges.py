"""Ranges in which runs of the day are forecast to start, and their actual starts.

Ranges are the controller's own. They rest on plans in force: what is left of the admitted runs,
planned together with the planned durations, as the planner does.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from typing_extensions import override

from benchmarks.queue_day.admission import QUEUE, Queue, moment
from benchmarks.queue_day.runs import Run, Step
from benchmarks.queue_day.simulation import AtOnce, PodOrder, StepWork, simulate
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.queueing.start_ranges import RangeParams, StartRanges
from kfp_placement_engine.contract.run_queue import RunQueueSpec, RunQueueStatus
from kfp_placement_engine.contract.run_request import StartRange

OVERDUE_SHARE = 0.1
"""Further duration of a step that is overdue, as a share of the time that it has had."""

_RANGE_SECONDS = 10.0
"""Shortest pause between two forecasts."""


@dataclass
class RangedStart:
    """Actual start of a run that has waited, and the ranges that were forecast for it.

    Attributes:
        first: first range.
        later: ranges that were forecast after that, after each event.
        began_seconds: actual start; infinite before that.
    """

    first: StartRange
    later: list[StartRange] = field(default_factory=list)
    began_seconds: float = math.inf

    @property
    def has_range(self) -> bool:
        """Return whether the first range has an end."""
        return self.first.latest is not None

    @property
    def is_early(self) -> bool:
        """Return whether it started before the first range."""
        return moment(self.began_seconds) < self.first.earliest

    @property
    def is_kept(self) -> bool:
        """Return whether it started within the first range."""
        return self._holds(self.first)

    @property
    def later_kept(self) -> float | None:
        """Share of the later ranges within which it started, or None without later ranges."""
        ranges = [each for each in self.later if each.latest is not None]
        return sum(map(self._holds, ranges)) / len(ranges) if ranges else None

    @property
    def width(self) -> float:
        """Width of the first range, as a multiple of the wait that was left."""
        first = self.first
        if first.latest is None or first.said_at is None:
            return math.nan
        wait = (moment(self.began_seconds) - first.said_at).total_seconds()
        return (first.latest - first.earliest).total_seconds() / max(1.0, wait)

    def _holds(self, forecast: StartRange) -> bool:
        # Ranges are in whole seconds.
        start = moment(self.began_seconds).replace(microsecond=0)
        return forecast.latest is not None and forecast.earliest <= start <= forecast.latest


class RangedQueue(Queue):
    """Queue that forecasts when runs start."""

    def __init__(self, runs: Sequence[Run], overcommit: float, ratios: Sequence[float]) -> None:
        """Start before the first run has arrived.

        Args:
            runs: runs of the day.
            overcommit: overcommit of the RunQueue.
            ratios: ratios that it has learned on the days before.
        """
        super().__init__(runs, overcommit)
        # It makes a new range after each event.
        params = RangeParams(
            forecast_seconds=0.0, first_forecast_seconds=0.0, move_seconds=0.0, move_share=0.0
        )
        self._ranges = StartRanges(params)
        status = RunQueueStatus(wait_ratios=tuple(ratios))
        self._ranges.observe_queues([ObservedQueue(QUEUE, "1", 1, RunQueueSpec(), status)])
        self._worked: dict[tuple[int, int, int], float] = {}
        self._ended: set[tuple[int, int, int]] = set()
        self._forecast_seconds = -math.inf
        self.starts: dict[int, RangedStart] = {}

    @property
    def ratios(self) -> tuple[float, ...]:
        """Ratios that it has learned until now."""
        return self._ranges.ratios(QUEUE)

    @override
    def worked(self, work: StepWork, now: float) -> None:
        """Remember when a step began to work: plans in force count from then."""
        self._worked[work.run, work.stage, work.index] = now

    @override
    def arrived(self, run: int, now: float) -> list[int]:
        """Let a run wait, and forecast its start unless it starts at once."""
        begun = super().arrived(run, now)
        self._begun(begun, now)
        if run in self.waiting:
            self._forecast(now)
        return begun

    @override
    def ended(self, run: int, stage: int, index: int, now: float) -> list[int]:
        """Take in that a step has ended, and forecast the starts of waiting runs again."""
        self._ended.add((run, stage, index))
        begun = super().ended(run, stage, index, now)
        self._begun(begun, now)
        if self.waiting and now - self._forecast_seconds >= _RANGE_SECONDS:
            self._forecast(now)
        return begun

    def _begun(self, runs: Sequence[int], now: float) -> None:
        for run in runs:
            if run in self.starts:
                start = self.starts[run]
                start.began_seconds = now
                self._ranges.started(f"run-{run}", QUEUE, start.first, moment(now))

    def _forecast(self, now: float) -> None:
        self._forecast_seconds = now
        self._ranges.forecast([self.simulation(self._ends_in_force(now))], moment(now), now)
        for run, waiting in self.waiting.items():
            new = self._ranges.starts(waiting.key, QUEUE, None, waiting.submitted_at, moment(now))
            if new is None or new.forecast is None:
                continue
            if run in self.starts:
                self.starts[run].later.append(new)
            else:
                self.starts[run] = RangedStart(new)

    def _ends_in_force(self, now: float) -> Mapping[int, float]:
        """Return when admitted runs end if what is left of them is planned together."""
        runs = [Run(0.0, tuple(self._left(run, now))) for run in self.admitted]
        completion = simulate(runs, AtOnce(), PodOrder(whole_gangs=True)).completion_seconds
        return {run: now + completion[number] for number, run in enumerate(self.admitted)}

    def _left(self, run: int, now: float) -> Iterator[tuple[Step, ...]]:
        """Yield the stages of a run without its ended steps; running steps come first."""
        for stage, steps in enumerate(self._runs[run].as_planned().stages):
            left: list[tuple[bool, Step]] = []
            for index, step in enumerate(steps):
                if (run, stage, index) not in self._ended:
                    began = self._worked.get((run, stage, index))
                    left.append((began is None, _as_left(step, began, now)))
            if left:
                yield tuple(step for _, step in sorted(left, key=lambda each: each[0]))


def _as_left(step: Step, began: float | None, now: float) -> Step:
    if began is None:
        return step
    had = now - began
    return replace(step, actual_seconds=max(step.planned_seconds - had, OVERDUE_SHARE * had))
