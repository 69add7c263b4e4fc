"""When whole runs end: by how much they take longer than expected, learned from the runs before.

What is expected of a run is the median end of the samples of its plan; or, as the benchmarks do,
the plan alone. Both are early: pods wait for volumes and images, and steps on one node disturb each
other. This is learned as one factor of each pipeline, from what runs took beyond what was expected
of them before they began.

When steps have changed, runs take longer than expected until the estimates of steps follow. That is
not counted in the factor: once they do, it would count twice. How much longer that is says the run
played again, with what its steps really took.
"""

import math
from collections import deque
from collections.abc import Collection, Sequence
from itertools import groupby
from statistics import median
from typing import NamedTuple

from kfp_placement_engine.history.calibration import Calibration, KnownEstimate, Miss
from kfp_placement_engine.history.changes import LAST, robust_deviation
from kfp_placement_engine.history.computed import Computed
from kfp_placement_engine.history.estimates import Estimate, PastValues, Prior, middle_mean
from kfp_placement_engine.history.expected import expected_ends
from kfp_placement_engine.history.recent import Recent
from kfp_placement_engine.history.sizes import LEAST_SECONDS
from kfp_placement_engine.model.durations import MAX_DURATION_SECONDS
from kfp_placement_engine.model.expected_ends import ExpectedEnds
from kfp_placement_engine.model.forecast import Basis, Forecast, Level, Shape
from kfp_placement_engine.model.history import MOST_PIPELINES

RUNS_KEPT = 20
"""Of each pipeline; they decide by which factor the next run takes longer than expected."""

_OF_PIPELINE, _OF_NAMESPACE = Prior(0.06, resolution=0.0), Prior(0.2, resolution=0.0)
"""Runs of one pipeline differ by some percent; pipelines by how much their steps wait. Runs of
which nothing like it is known end as their steps tell, and are as far off that."""

_BESIDE_STEPS = Prior(0.03, resolution=0.0)
"""How far apart they lie beside what their steps took."""

_CHANGED = 0.15
"""Steps that are this much slower together, as a logarithm, may have changed."""

_UNUSUAL = 4.0
"""The same in standard deviations of what they were in other runs."""

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
        self._factors: Recent[str, deque[_Run]] = Recent(MOST_PIPELINES)
        self._expected = Computed(self._expected_of, MOST_PIPELINES)
        self.calibration = Calibration(_UNKNOWN)

    def rest_on(self, of_namespace: "RunEnds") -> None:
        """Ask these of the namespace from now on, if these are of one pipeline."""
        self._of_namespace = of_namespace

    def observe(
        self,
        pipeline: str,
        expected_seconds: float,
        seconds: float,
        replayed_seconds: float | None = None,
    ) -> None:
        """Learn from a run that has ended.

        What cannot be true is left out.

        Args:
            pipeline: its pipeline.
            expected_seconds: its end as it was expected before it began, from its begin.
            seconds: what it took.
            replayed_seconds: the same, expected by what its steps really took; None = not known.
        """
        if not (_is_usable(expected_seconds) and _is_usable(seconds)):
            return
        log_replayed = None
        if replayed_seconds is not None and _is_usable(replayed_seconds):
            log_replayed = math.log(replayed_seconds / expected_seconds)
        run = _Run(math.log(expected_seconds), math.log(seconds / expected_seconds), log_replayed)
        known, kept = self._known(pipeline), self._factors.used(pipeline, _last_runs)
        if not _is_repeated(kept, run):
            counted = self.counted_seconds(pipeline, expected_seconds)
            log_ratio = math.log(seconds / counted) - known.estimate.log_seconds
            self.calibration.add_misses([Miss(pipeline, known, log_ratio)])
        kept.append(run)
        self._expected.clear()

    def predict(self, pipeline: str) -> Forecast:
        """How many times longer than expected the next run of a pipeline takes.

        Returns:
            A distribution of factors of what was expected, as far as that counts
            (`expected_ends`); by no run if none of the namespace is known.
        """
        if self._of_namespace is not None and not self._factors.get(pipeline):
            return self._of_namespace.predict(pipeline)
        known, calibration = self._known(pipeline), self.calibration
        if self._of_namespace is not None:
            calibration = calibration.or_of_all(self._of_namespace.calibration, known.kind)
        return calibration.forecast(pipeline, known, log_scale=0.0)

    def expected_ends(self, pipeline: str) -> ExpectedEnds | None:
        """How much of what was expected of past runs came true; None = not known, so in full."""
        return self._expected[pipeline]

    def counted_seconds(self, pipeline: str, expected_seconds: float) -> float:
        """What is left of an expected end of the next run, as far as that counts."""
        ends = self.expected_ends(pipeline)
        return expected_seconds if ends is None else ends.counted(expected_seconds)

    def _expected_of(self, pipeline: str) -> ExpectedEnds | None:
        runs = self._factors.get(pipeline, ())
        return _expected_ends(runs) if len(runs) > 1 else None

    def beside_steps(self, pipeline: str) -> float:
        """How far apart runs lie beside what their steps took: deviation of the logarithm.

        Where that is known of no run, all that they took longer or less counts.
        """
        runs = self._factors.get(pipeline)
        if runs:
            known = [_beside_steps(each) for each in runs if each.log_replayed is not None]
            return _next_of(known or [each.log_factor for each in runs], _BESIDE_STEPS).spread
        if self._of_namespace is not None:
            return self._of_namespace.beside_steps(pipeline)
        return self._known(pipeline).estimate.spread

    def _known(self, pipeline: str) -> KnownEstimate:
        """By how much longer than expected a run takes."""
        own = self._factors.get(pipeline)
        if own:
            found = _next_of(_counted_factors(own, self.expected_ends(pipeline)), _OF_PIPELINE)
            if len(own) == 1:
                found = _if_not_by_chance(found, own[0])
            return KnownEstimate(Basis(Level.PIPELINE, len(own)), len(own), found)
        others = [median(_of_now(each)) for each in self._factors.values() if each]
        if not others:
            nothing = Estimate(0.0, _OF_NAMESPACE.spread)
            return KnownEstimate(Basis(Level.NAMESPACE, 0), 0, nothing)
        found = _of_others(PastValues(others, _OF_NAMESPACE).next(), len(others))
        runs = max(map(len, self._factors.values()))
        return KnownEstimate(Basis(Level.NAMESPACE, runs), len(others), found)


class _Run(NamedTuple):
    """A run that has ended.

    Attributes:
        log_expected: logarithm of what was expected of it, in seconds.
        log_factor: logarithm of what it took over that.
        log_replayed: the same of what its steps tell since; None = not known.
    """

    log_expected: float
    log_factor: float
    log_replayed: float | None


def _next_of(logs: Sequence[float], prior: Prior) -> Estimate:
    return PastValues(logs, prior, centre_of=middle_mean).next()


def _of_others(found: Estimate, pipelines: int) -> Estimate:
    """What other pipelines show of one: less, the fewer they are, and both may be true."""
    shown = found.log_seconds * pipelines / (pipelines + _OF_NAMESPACE.weight)
    return found._replace(log_seconds=shown, spread=math.hypot(found.spread, shown))


def _last_runs() -> deque[_Run]:
    return deque(maxlen=RUNS_KEPT)


def _expected_ends(runs: Collection[_Run]) -> ExpectedEnds:
    log_expected = [each.log_expected for each in runs]
    pairs = zip(log_expected, _of_now(runs), strict=True)
    log_true = [
        each.log_expected + each.log_replayed for each in runs if each.log_replayed is not None
    ]
    return expected_ends(log_expected, [expected + factor for expected, factor in pairs], log_true)


def _counted_factors(runs: Collection[_Run], ends: ExpectedEnds | None) -> list[float]:
    """How much longer runs took than was expected, as far as that counts; logarithms."""
    factors = _of_now(runs)
    if ends is None:
        return factors
    return [
        run.log_expected + factor - math.log(ends.counted(math.exp(run.log_expected)))
        for run, factor in zip(runs, factors, strict=True)
    ]


def _of_now(runs: Collection[_Run]) -> list[float]:
    """Factors; of runs whose steps had changed, without what the steps alone took longer.

    So it is with one run alone: its steps may have been slow by chance. Of more runs, as many in a
    row as it takes until the estimates of steps follow show a change; fewer may be chance, and
    later runs may take as long.
    """
    if len(runs) == 1:
        return [_beside_steps(each) for each in runs]
    found: list[float] = []
    for _, group in groupby(zip(runs, _changes(runs), strict=True), _side_of):
        in_a_row = list(group)
        is_change = len(in_a_row) >= LAST
        found += [run.log_factor - (apart if is_change else 0.0) for run, apart in in_a_row]
    return found


def _beside_steps(run: _Run) -> float:
    """How much longer a run took than its steps tell since; than was expected, if they do not."""
    return run.log_factor - (run.log_replayed or 0.0)


def _if_not_by_chance(found: Estimate, run: _Run) -> Estimate:
    """An estimate of one run alone, less sure by what its steps took longer than may be chance."""
    longer = abs(run.log_replayed or 0.0)
    return found._replace(spread=math.hypot(found.spread, max(0.0, longer - _CHANGED)))


def _side_of(changed: tuple[_Run, float]) -> int:
    """Whether a run was slower than others by its steps (1), faster (-1), or neither (0)."""
    _, apart = changed
    return (apart > 0) - (apart < 0)


def _changes(runs: Collection[_Run]) -> list[float]:
    """By how much the steps of each run were slower than those of others; 0 = as usual."""
    known = [each.log_replayed for each in runs if each.log_replayed is not None]
    usual = median(known) if known else 0.0
    most = max(_CHANGED, _UNUSUAL * robust_deviation([each - usual for each in known]))
    apart = (usual if each.log_replayed is None else each.log_replayed for each in runs)
    return [each - usual if abs(each - usual) > most else 0.0 for each in apart]


def _is_repeated(before: Collection[_Run], run: _Run) -> bool:
    """Whether steps had changed in the run before as in this one: it is one change."""
    *_, last, this = (0.0, *_changes([*before, run]))
    return last * this > 0


def _is_usable(seconds: float) -> bool:
    return LEAST_SECONDS <= seconds <= MAX_DURATION_SECONDS
