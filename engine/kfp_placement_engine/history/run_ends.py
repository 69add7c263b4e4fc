"""When whole runs end: by how much they take longer than expected, learned from the runs before.

What is expected of a run is the median end of the samples of its plan; or, as the benchmarks do,
the plan alone. Both are early: pods wait for volumes and images, and steps on one node disturb each
other. This is learned as one factor of each pipeline, from what runs took beyond what was expected
of them before they began.
"""

import math
from collections import deque
from statistics import median

from kfp_placement_engine.history.calibration import Calibration, KnownEstimate, Miss
from kfp_placement_engine.history.estimates import PastValues, Prior, middle_mean
from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.history.sizes import LEAST_SECONDS
from kfp_placement_engine.model.durations import MAX_DURATION_SECONDS
from kfp_placement_engine.model.forecast import Basis, Forecast, Level, Shape

RUNS_KEPT = 20
"""Of each pipeline; they decide by which factor the next run takes longer than expected."""

MOST_PIPELINES = 200
"""Of a namespace; those that did not run for longest are forgotten first."""

_OF_PIPELINE, _OF_NAMESPACE = Prior(0.06, resolution=0.0), Prior(0.3, resolution=0.0)
"""Runs of one pipeline differ by some percent; pipelines by how much their steps wait."""

_HALF = (0.07, 0.2, 0.34, 0.49, 0.66, 0.84, 1.06, 1.35, 1.81)
_UNKNOWN = Shape((*(-each for each in reversed(_HALF)), *_HALF))
"""Before there are misses: Student's t with eight degrees of freedom. Factors of runs are averages
over many steps, and nearer to normal than times of steps."""


class RunEnds:
    """What the runs of one namespace took, beside what was expected.

    Attributes:
        calibration: how forecasts missed.
    """

    def __init__(self, of_namespace: "RunEnds | None" = None) -> None:
        """Begin with no run.

        Args:
            of_namespace: those of the namespace, if these are of one pipeline; None = these
                are all.
        """
        self._of_namespace = of_namespace
        self._factors: Recent[str, deque[float]] = Recent(MOST_PIPELINES)
        self.calibration = Calibration(_UNKNOWN)

    def observe(self, pipeline: str, expected_seconds: float, seconds: float) -> None:
        """Learn from a run that has ended.

        What cannot be true is left out.

        Args:
            pipeline: its pipeline.
            expected_seconds: its end as it was expected before it began, from its begin.
            seconds: what it took.
        """
        if not (_is_usable(expected_seconds) and _is_usable(seconds)):
            return
        factor = math.log(seconds) - math.log(expected_seconds)
        known = self._known(pipeline)
        if known is not None:
            miss = Miss(pipeline, known, factor - known.estimate.log_seconds)
            self.calibration.add_misses([miss])
        kept = self._factors.used(pipeline, lambda: deque(maxlen=RUNS_KEPT))
        kept.append(factor)

    def predict(self, pipeline: str, expected_seconds: float) -> Forecast | None:
        """When a run will have ended, from its begin.

        Args:
            pipeline: its pipeline.
            expected_seconds: its end as it is expected by its plan.

        Returns:
            The forecast; None = no run of the namespace is known, or nothing is expected, or less
            than `LEAST_SECONDS`.
        """
        if self._of_namespace is not None and not self._factors.get(pipeline):
            return self._of_namespace.predict(pipeline, expected_seconds)
        known = self._known(pipeline)
        if known is None or not _is_usable(expected_seconds):
            return None
        calibration = self.calibration
        if self._of_namespace is not None:
            calibration = calibration.or_of_all(self._of_namespace.calibration, known.kind)
        return calibration.forecast(pipeline, known, math.log(expected_seconds))

    def _known(self, pipeline: str) -> KnownEstimate | None:
        """By how much longer than expected a run takes."""
        own = self._factors.get(pipeline)
        if own:
            found = PastValues(own, _OF_PIPELINE, centre_of=middle_mean).next()
            # The next run differs from the centre, and the centre of a few from that of many.
            found = found._replace(spread=found.spread * math.sqrt(1 + 1 / len(own)))
            return KnownEstimate(Basis(Level.PIPELINE, len(own)), len(own), found)
        others = [median(each) for each in self._factors.values()]
        if not others:
            return None
        found = PastValues(others, _OF_NAMESPACE).next()
        runs = max(map(len, self._factors.values()))
        return KnownEstimate(Basis(Level.NAMESPACE, runs), len(others), found)


def _is_usable(seconds: float) -> bool:
    return LEAST_SECONDS <= seconds <= MAX_DURATION_SECONDS
