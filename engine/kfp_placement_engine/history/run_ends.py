"""Ends of runs: planned and real ones in, forecasts of the next ones out."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kfp_placement_engine.history.ranges import Ranges
from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.history.series import KEPT, SAME, Estimate, centred, median
from kfp_placement_engine.model.history import MOST_PIPELINES
from kfp_placement_engine.model.promise import CONFIDENCE, TimeRange

_RUN_SPREAD, _SPREAD_WEIGHT = 0.06, 1.5
"""Expected standard deviation of a pipeline's runs, and how many runs it counts as.

Pipelines differ in it by a factor of five."""

_NEW_RUN_SPREAD = 0.2
"""Standard deviation of a pipeline's first run around its plan."""

_WIDER = {1: 2.0, 2: 1.8, 3: 1.1, 5: 1.0}
"""Largest factor by which a range is widened, by the least number of runs."""

_ENOUGH_PLANS = 3
"""Number of past runs with a plan from which the plan of the next one counts beside past ends."""

_ANOTHER_RUN = math.log(10.0)
"""A plan that is longer or shorter than runs before it by this factor is of another run."""

_LEAST_SECONDS = 1.0
"""Shortest end in seconds; shorter ones count as this."""


class PastEnd(NamedTuple):
    """Past end of a run, in logarithms of the seconds since its begin.

    Attributes:
        real: time of the end.
        planned: end by the run's plan; None = there was no usable plan.
    """

    real: float
    planned: float | None


@dataclass(frozen=True)
class PipelineEnds:
    """Past ends of one pipeline's runs, to predict the next one.

    Attributes:
        runs: last runs of the pipeline, the oldest first.
        of_others: logarithm of actual over planned time, usual for runs of other pipelines.
        ranges: misses of such forecasts.
    """

    runs: tuple[PastEnd, ...]
    of_others: float
    ranges: Ranges = field(compare=False)

    def predict(
        self, planned_seconds: float | None = None, confidence: float = CONFIDENCE
    ) -> TimeRange:
        """Return the range of the run's end, since its begin.

        A pipeline without runs needs a plan; without one the range is around one second.

        Args:
            planned_seconds: end by the plan; None = there is no plan.
            confidence: share of cases in which the range is to hold.
        """
        planned = None if planned_seconds is None else _log(planned_seconds)
        return self.ranges.around(self.estimate(planned), confidence)

    def estimate(self, planned: float | None) -> Estimate:
        """Return the end by past ends and by the plan, each weighted by its precision.

        A plan that is clearly unlike those before counts alone.

        Args:
            planned: logarithm of the planned end; None = nobody knows.
        """
        ends, ratios = [run.real for run in self.runs], _ratios(self.runs)
        if planned is None or not ratios:
            by_end = _centred(ends) if ends else None
            # Runs end before their plan where a branch is not taken, but not by a factor of ten.
            if by_end and (planned is None or abs(planned - by_end.log_value) < _ANOTHER_RUN):
                return by_end
            return Estimate((planned or 0.0) + self.of_others, _NEW_RUN_SPREAD)
        by_plan = _centred(ratios)
        by_plan = by_plan._replace(log_value=planned + by_plan.log_value)
        if _is_another(planned, [run.planned for run in self.runs if run.planned is not None]):
            return by_plan
        by_end = _centred(ends)
        return _mean(by_end, by_plan) if len(ratios) >= _ENOUGH_PLANS else by_end


def _ratios(runs: Iterable[PastEnd]) -> list[float]:
    """Return logarithms of how many times as long as planned runs took."""
    return [run.real - run.planned for run in runs if run.planned is not None]


def _centred(logs: Sequence[float]) -> Estimate:
    return centred(logs, _RUN_SPREAD, weight=_SPREAD_WEIGHT)


def _is_another(planned: float, plans: Sequence[float]) -> bool:
    """Return whether a plan lies clearly apart from those of the runs before."""
    # Plans of the first runs differ because little was known of their steps.
    margin = SAME * max(1.0, _ENOUGH_PLANS / len(plans))
    return not min(plans) - margin <= planned <= max(plans) + margin


def _mean(one: Estimate, other: Estimate) -> Estimate:
    """Return the mean of two estimates by their precision, with the misses of the better one."""
    best = min(one, other, key=lambda each: each.spread)
    weights = one.spread**-2, other.spread**-2
    logs = weights[0] * one.log_value + weights[1] * other.log_value
    return best._replace(log_value=logs / sum(weights))


class RunEnds:
    """Ends of the runs of one namespace, or of one pipeline in it.

    Attributes:
        of_namespace: ends of the whole namespace, if these are of one pipeline: they answer for a
            pipeline without runs. None = this object holds the whole namespace.
        ranges: misses of forecasts in the namespace.
    """

    def __init__(self, of_namespace: "RunEnds | None" = None) -> None:
        """Begin with no run."""
        self.of_namespace = of_namespace
        self.ranges: Ranges = Ranges(_WIDER) if of_namespace is None else of_namespace.ranges
        self._runs: Recent[str, tuple[PastEnd, ...]] = Recent(MOST_PIPELINES)

    def observe(self, pipeline: str, seconds: float, planned_seconds: float | None) -> None:
        """Learn from a run that has ended well.

        Args:
            pipeline: name of the pipeline.
            seconds: time from its begin to its end.
            planned_seconds: time to the end by its plan; None = that says nothing.
        """
        planned = None if planned_seconds is None else _log(planned_seconds)
        end, before = PastEnd(_log(seconds), planned), self.of(pipeline)
        if self.of_namespace is None and (before.runs or planned is not None):
            self.ranges.learn(before.estimate(planned), end.real)
        self._runs.use(pipeline, (*before.runs, end)[-KEPT:])

    def of(self, pipeline: str) -> PipelineEnds:
        """Return the predictor of the end of a pipeline's next run."""
        runs = self._runs.get(pipeline, ())
        of_others = 0.0 if runs else (self.of_namespace or self).usual_ratio()
        return PipelineEnds(runs, of_others, self.ranges)

    def usual_ratio(self) -> float:
        """Return the logarithm of how many times as long as planned runs take."""
        ratios = map(_ratios, self._runs.values())
        return median([median(each) for each in ratios if each] or [0.0])


def _log(seconds: float) -> float:
    return math.log(max(_LEAST_SECONDS, seconds))
