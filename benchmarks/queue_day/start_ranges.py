"""What the queue of the day says of when runs start, and what happened.

Ranges are the controller's own. They rest on plans in force: what is left of the admitted runs,
planned together with the durations that were planned, as the planner does.
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
"""How much longer a step is planned to take that is overdue, as a share of the time it has had."""

_RANGE_SECONDS = 10.0
"""Between two forecasts, at least."""


@dataclass
class RangedStart:
    """A run that has waited, and what was said of its start.

    Attributes:
        first: what was first said.
        later: what was said after that, whenever anything had happened.
        began_seconds: when it began.
    """

    first: StartRange
    later: list[StartRange] = field(default_factory=list)
    began_seconds: float = math.inf

    @property
    def has_range(self) -> bool:
        """Whether the first said when it starts at the latest, too."""
        return self.first.latest is not None

    @property
    def is_early(self) -> bool:
        """Whether it began before the first range."""
        return moment(self.began_seconds) < self.first.earliest

    @property
    def is_kept(self) -> bool:
        """Whether it began within the first range."""
        return self._holds(self.first)

    @property
    def later_kept(self) -> float | None:
        """Of the later ranges, the share within which it began; None = there was none."""
        ranges = [each for each in self.later if each.latest is not None]
        return sum(map(self._holds, ranges)) / len(ranges) if ranges else None

    @property
    def width(self) -> float:
        """Of the first range, beside the wait that was left."""
        first = self.first
        if first.latest is None or first.said_at is None:
            return math.nan
        wait = (moment(self.began_seconds) - first.said_at).total_seconds()
        return (first.latest - first.earliest).total_seconds() / max(1.0, wait)

    def _holds(self, said: StartRange) -> bool:
        # Ranges are in whole seconds.
        begun = moment(self.began_seconds).replace(microsecond=0)
        return said.latest is not None and said.earliest <= begun <= said.latest


class RangedQueue(Queue):
    """A queue that says when runs start."""

    def __init__(self, runs: Sequence[Run], overcommit: float, ratios: Sequence[float]) -> None:
        """Nothing has arrived.

        Args:
            runs: of the day.
            overcommit: of the RunQueue.
            ratios: what it has learned on the days before.
        """
        super().__init__(runs, overcommit)
        # It says something new each time that anything has happened.
        params = RangeParams(
            forecast_seconds=0.0, first_forecast_seconds=0.0, move_seconds=0.0, move_share=0.0
        )
        self._ranges = StartRanges(params)
        status = RunQueueStatus(wait_ratios=tuple(ratios))
        self._ranges.observe_queues([ObservedQueue(QUEUE, "1", 1, RunQueueSpec(), status)])
        self._worked: dict[tuple[int, int, int], float] = {}
        self._ended: set[tuple[int, int, int]] = set()
        self._said_seconds = -math.inf
        self.starts: dict[int, RangedStart] = {}

    @property
    def ratios(self) -> tuple[float, ...]:
        """What it has learned by now."""
        return self._ranges.ratios(QUEUE)

    @override
    def worked(self, work: StepWork, now: float) -> None:
        """Plans in force count from then."""
        self._worked[work.run, work.stage, work.index] = now

    @override
    def arrived(self, run: int, now: float) -> list[int]:
        """Say when it starts, unless it does at once."""
        begun = super().arrived(run, now)
        self._begun(begun, now)
        if run in self.waiting:
            self._say(now)
        return begun

    @override
    def ended(self, run: int, stage: int, index: int, now: float) -> list[int]:
        """Say it again of those that wait."""
        self._ended.add((run, stage, index))
        begun = super().ended(run, stage, index, now)
        self._begun(begun, now)
        if self.waiting and now - self._said_seconds >= _RANGE_SECONDS:
            self._say(now)
        return begun

    def _begun(self, runs: Sequence[int], now: float) -> None:
        for run in runs:
            if run in self.starts:
                start = self.starts[run]
                start.began_seconds = now
                self._ranges.started(f"run-{run}", QUEUE, start.first, moment(now))

    def _say(self, now: float) -> None:
        self._said_seconds = now
        self._ranges.forecast([self.simulation(self._ends_in_force(now))], moment(now))
        for run, waiting in self.waiting.items():
            said = self._ranges.starts(waiting.key, QUEUE, None, waiting.submitted_at, moment(now))
            if said is None or said.forecast is None:
                continue
            if run in self.starts:
                self.starts[run].later.append(said)
            else:
                self.starts[run] = RangedStart(said)

    def _ends_in_force(self, now: float) -> Mapping[int, float]:
        """When admitted runs end if what is left of them is planned together."""
        runs = [Run(0.0, tuple(self._left(run, now))) for run in self.admitted]
        completion = simulate(runs, AtOnce(), PodOrder(whole_gangs=True)).completion_seconds
        return {run: now + completion[number] for number, run in enumerate(self.admitted)}

    def _left(self, run: int, now: float) -> Iterator[tuple[Step, ...]]:
        """The stages of a run without what has ended; steps that run come first."""
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
