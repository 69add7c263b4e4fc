"""Runs as they were planned and as they then went, and what is promised of them on the way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from benchmarks.learning_runs.cases import Case, simple_forecasts
from kfp_placement_engine import Cluster, LoweringOptions, RunGraph, Step, lower
from kfp_placement_engine.contract.history.pipeline_history import step_identity
from kfp_placement_engine.history import Past
from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.model.history import PastRun, PastStep
from kfp_placement_engine.model.promise import Promise, TimeRange
from kfp_placement_engine.planning.past_runs.learned_times import LearnedRun, with_history
from kfp_placement_engine.planning.past_runs.outlook import Outlook, promise_of
from kfp_placement_engine.planning.starts.expected_times import (
    StepOrder,
    StepSpan,
    times_by_now,
)
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.search.list_scheduling import list_schedule
from kfp_placement_engine.search.simulation import simulate

PASSED = (0.0, 0.25, 0.5, 0.75)
"""Shares of a run's time after which its end is promised again."""

Times = Mapping[str, tuple[float, float]]
"""Start and end of each step since the run began, by its name."""


@dataclass(frozen=True)
class SimulatedRun:
    """A run with its plan on learned times, and what really happened.

    Attributes:
        learned: the run with what past runs tell.
        planned: end by its plan.
        real: real end.
        seconds: time of its end.
        steps: observations of its steps.
    """

    learned: LearnedRun
    planned: Times
    real: Times
    seconds: float
    steps: Sequence[PastStep]

    @cached_property
    def first(self) -> Promise:
        """Promise before the run began."""
        return promise_of(
            Outlook(self.planned, is_placed=True, begin_seconds=0.0),
            self.learned.graph,
            self.learned.forecast,
        )

    def promised_end(self, passed: float) -> TimeRange | None:
        """Return the end that a controller promises after a share of the time, or None."""
        now, first = passed * self.seconds, self.first
        if not passed or first.ends is None:
            return first.ends
        # Steps that the run turns out not to have hold nothing up.
        left = {
            name: StepSpan(*self.planned[name], runs=start < now)
            for name, (start, end) in self.real.items()
            if end > now
        }
        happened = {
            name: (start, start + left[name].seconds if name in left else end)
            for name, (start, end) in self.real.items()
            if start < now
        }
        times = times_by_now(self._order, left, happened, 0.0, now)
        outlook = Outlook(
            {name: (each.start_seconds, each.end_seconds) for name, each in times.items()},
            is_placed=True,
            begin_seconds=0.0,
            now_seconds=now,
        )
        return promise_of(outlook, self.learned.graph, self.learned.forecast, first).ends

    def case(
        self, group: str, before: Sequence[float], passed: float = 0.0, pipeline: str = ""
    ) -> Case | None:
        """Return the promise of its end beside simple forecasts, or None without a promise."""
        ends = self.promised_end(passed)
        if ends is None:
            return None
        return Case(
            pipeline=pipeline or self.learned.graph.name,
            group=group,
            seconds=self.seconds,
            ours=ends,
            others={"plan alone": self.first.planned_seconds or 0.0, **simple_forecasts(before)},
        )

    def past_run(self, number: int) -> PastRun:
        """Return the past run that it is once it has ended."""
        return PastRun(
            uid=f"{self.learned.graph.name}-{number}",
            pipeline=self.learned.graph.name,
            ended_at=datetime.fromtimestamp(number, UTC),
            steps=tuple(self.steps),
            seconds=self.seconds,
            planned_seconds=self.first.planned_seconds,
        )

    @cached_property
    def _order(self) -> StepOrder:
        return StepOrder.of(self.learned.graph)


def simulate_run(
    graph: RunGraph, seconds: Sequence[float], cluster: Cluster, past: Past, dispatch: str = "ready"
) -> SimulatedRun:
    """Plan a run on learned times, and let its steps take what they really take.

    Args:
        graph: the run, with what is known of its times without past runs.
        seconds: run time of each of its steps on the reference node.
        cluster: cluster of the runs.
        past: past runs of its namespace.
        dispatch: `ready` or `ordered`.
    """
    learned = with_history(graph, past)
    options = LoweringOptions(dispatch=dispatch)
    by_plan = lower(learned.graph, cluster, options)
    placement = list_schedule(by_plan.problem).placement
    steps = tuple(
        replace(step, duration_seconds=each)
        for step, each in zip(graph.steps, seconds, strict=True)
    )
    really = lower(replace(graph, steps=steps), cluster, options)
    planned, real = (
        times_of(each, simulate(each.problem, placement)) for each in (by_plan, really)
    )
    end = max(end for _, end in real.values())
    return SimulatedRun(learned, planned, real, end, past_steps(graph.name, steps))


def past_steps(pipeline: str, steps: Sequence[Step]) -> list[PastStep]:
    """Return the observations of steps that took these times."""
    return [
        PastStep(step_identity(pipeline, step), step.duration_seconds, "", step.input_bytes)
        for step in steps
    ]


def times_of(lowered: Lowered, schedule: Schedule) -> Times:
    """Return starts and ends of the steps of a single run."""
    return {
        name: (float(schedule.start[index]), float(schedule.end[index]))
        for name, index in lowered.step_activities[0].items()
    }
