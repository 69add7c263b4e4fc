"""What a plan promises: its run played many times, each time with run times as they may be."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState
from kfp_placement_engine.model.forecast import Level
from kfp_placement_engine.model.promise import Promise, RunForecast, StepPromise, TimeRange
from kfp_placement_engine.planning.drawn_courses import OpenCourses, leave_out, open_courses
from kfp_placement_engine.planning.drawn_retries import failed_seconds
from kfp_placement_engine.planning.remaining_times import remaining_durations
from kfp_placement_engine.planning.stretched_ends import stretched_ends
from kfp_placement_engine.planning.unknown_ends import why_unknown
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Booleans, Floats
from kfp_placement_engine.search.result import Result
from kfp_placement_engine.search.simulation import Schedule, simulate, simulate_durations

_LOG = logging.getLogger(__name__)

SAMPLES = 200


@dataclass(frozen=True)
class SampledEnd:
    """When a run ends in each sample of it, from its begin, or from now if it has begun.

    Attributes:
        seconds: [S] with run times as they may be.
        factors: [S] how many times as long the run takes as that, by what past runs took.
    """

    seconds: Floats
    factors: Floats


class _Played(NamedTuple):
    """Starts and ends of all activities.

    Attributes:
        starts: [S, A] in samples.
        ends: the same.
        starts_at_once, ends_at_once: the same if no attempt at a step fails.
        typical_starts: [A] if each step takes its typical time.
        typical_ends: the same.
    """

    starts: Floats
    ends: Floats
    starts_at_once: Floats
    ends_at_once: Floats
    typical_starts: Floats
    typical_ends: Floats


class _Samples:
    """Samples of a plan: of all of its runs together, and played once, when one asks for them."""

    def __init__(self, lowered: Lowered, placement: Placement, seed: int) -> None:
        self._lowered = lowered
        self._placement = placement
        self._seed = seed

    @cached_property
    def _played(self) -> _Played:
        random = np.random.default_rng(self._seed)
        durations = remaining_durations(self._lowered, SAMPLES, random)
        for courses in self._courses:
            leave_out(durations, courses, random)
        failed = failed_seconds(self._lowered, durations, random)
        rows = [durations, np.median(durations, axis=0)]
        if failed is not None:
            rows.append(durations + failed)
        placement = _without_needless_waits(self._lowered, self._placement)
        starts, ends = simulate_durations(self._lowered.problem, placement, np.vstack(rows))
        at_once = slice(None, SAMPLES)
        at_last = at_once if failed is None else slice(SAMPLES + 1, None)
        return _Played(
            starts[at_last],
            ends[at_last],
            starts[at_once],
            ends[at_once],
            starts[SAMPLES],
            ends[SAMPLES],
        )

    @cached_property
    def _courses(self) -> list[OpenCourses]:
        """What may be left out of each run."""
        return [open_courses(run, self._lowered) for run in range(len(self._lowered.runs))]

    def ends(self, run: int) -> Floats:
        """[S] ends of a run that has a forecast, on the plan's clock, if no attempt fails."""
        latest: Floats = self._played.ends_at_once[:, self._own(run)].max(axis=1)
        return latest

    def _failed_seconds(self, run: int) -> Floats:
        """[S] by how much later the run ends for attempts that fail."""
        latest: Floats = self._played.ends[:, self._own(run)].max(axis=1)
        return latest - self.ends(run)

    def times(self, run: int) -> tuple[Floats, Floats]:
        """[S, A] starts and ends of all activities, as those of the run are promised."""
        played, own = self._played, self._own(run)
        if not self._rests_on_typical_times(run):
            return played.starts, played.ends
        begin, starts, ends = self._begin(run), played.starts.copy(), played.ends.copy()
        # As with the run's end, what attempts take that fail is not moved.
        later = (played.ends - played.ends_at_once)[:, own]
        moved = _moved(played.ends_at_once[:, own], played.typical_ends[own], begin) + later
        # Each step moves by a factor of its own, and still none ends after its run.
        ends[:, own] = np.minimum(moved, self._promised_ends(run)[:, None])
        later = (played.starts - played.starts_at_once)[:, own]
        moved = _moved(played.starts_at_once[:, own], played.typical_starts[own], begin) + later
        starts[:, own] = np.minimum(moved, ends[:, own])
        return starts, ends

    def left(self, run: int) -> SampledEnd:
        """The ends from its begin or from now, with how past runs ended beside their samples."""
        active = self._lowered.runs[run]
        assert active.forecast is not None  # asked by the caller
        begin, ends = self._begin(run), self.ends(run)
        stretched = stretched_ends(
            ends - begin,
            active.forecast,
            since_submission_seconds=max(0.0, -active.release_seconds),
            since_start_seconds=_since_start_seconds(active),
            has_ended_steps=_has_ended_steps(active),
            has_new_steps=_has_new_steps(active.forecast),
            has_open_branches=self._has_open_branches(run),
        )
        # What attempts take that fail is drawn of this run, and not learned from others.
        failed, seconds = self._failed_seconds(run), self._promised_ends(run) - begin
        factors = stretched / np.maximum(ends - begin, 1e-9)
        at_last = factors * (seconds - failed) + failed
        return SampledEnd(seconds, np.maximum(at_last, 0.0) / np.maximum(seconds, 1e-9))

    def _promised_ends(self, run: int) -> Floats:
        """[S] ends of a run as they are promised, before they are corrected."""
        ends = self.ends(run)
        if self._rests_on_typical_times(run):
            typical_end = self._played.typical_ends[self._own(run)].max()
            ends = _moved(ends[:, None], np.array([typical_end]), self._begin(run))[:, 0]
        return ends + self._failed_seconds(run)

    def _begin(self, run: int) -> float:
        return _begin_seconds(self._lowered.runs[run])

    def _own(self, run: int) -> Booleans:
        """[A] which activities are of a run."""
        own: Booleans = self._lowered.problem.arrays.run == run
        return own

    def _rests_on_typical_times(self, run: int) -> bool:
        """Whether the plan on typical times says where the run ends, and samples how far around it.

        How far apart the times of steps lie is hardly known of two runs. The median of samples
        moves with that, since of many steps side by side some is slow; and one run alone, held
        against samples of steps that were seen once, does not say how much.
        """
        forecast = self._lowered.runs[run].forecast
        assert forecast is not None  # asked by the caller
        is_known = not (_has_new_steps(forecast) or self._has_open_branches(run))
        return forecast.has_one_end and is_known

    def _has_open_branches(self, run: int) -> bool:
        """Whether its samples differ in what they leave out."""
        return len(self._courses[run]) > 1


def _without_needless_waits(lowered: Lowered, placement: Placement) -> Placement:
    """A plan whose steps wait for their planned starts only where some step would end later.

    A plan that is taken over has all starts of the plan before. Where steps are quicker than
    usual they would wait longer than they need in samples, and the run would never end early.
    """
    *_, free = placement.variants
    if free is placement:
        return placement
    ends = (simulate(lowered.problem, each).end for each in (free, placement))
    return free if np.less_equal(*ends).all() else placement


def promises_of(lowered: Lowered, result: Result) -> tuple[Promise | None, ...]:
    """When the runs and their steps start and end.

    Args:
        lowered: the problem and what it was made from.
        result: the plan.

    Returns:
        The promise of each run, on the plan's clock; None = nobody asked for one. A defect in it
        leaves the plan as it is, and the end unknown.
    """
    samples = _Samples(lowered, result.placement, result.seed)
    runs = range(len(lowered.runs))
    return tuple(_promise_of(run, lowered, result.schedule, samples) for run in runs)


def _promise_of(
    run: int, lowered: Lowered, schedule: Schedule, samples: _Samples
) -> Promise | None:
    forecast = lowered.runs[run].forecast
    if forecast is None:
        return None
    try:
        unknown = why_unknown(run, lowered, schedule)
        if unknown:
            return Promise(forecast.confidence, unknown=unknown)
        return _promise(run, lowered, forecast.confidence, samples)
    except Exception as error:
        defect = f"a defect in working it out: {type(error).__name__}"
        say_defect(f"the end of a run is not known: {defect}: {error!s:.200}")
        return Promise(forecast.confidence, unknown=defect)


@lru_cache(maxsize=100)
def say_defect(text: str) -> None:
    """Log a defect that is being handled, once: plans do without samples."""
    _LOG.warning("%s", text, exc_info=True)


def _promise(run: int, lowered: Lowered, confidence: float, samples: _Samples) -> Promise:
    begin, left = _begin_seconds(lowered.runs[run]), samples.left(run)
    starts, ends = (_stretched(times, left.factors, begin) for times in samples.times(run))
    steps = lowered.step_activities[run]
    indexes = list(steps.values())
    first, last = _ranges(starts[:, indexes], confidence), _ranges(ends[:, indexes], confidence)
    promises = zip(steps, map(StepPromise, first, last), strict=True)
    run_ends = begin + left.seconds * left.factors
    end = next(_ranges(run_ends[:, None], confidence))
    return Promise(confidence, end, float(np.median(samples.ends(run))), dict(promises))


def _begin_seconds(active: ActiveRun) -> float:
    """When the run begins; 0 = it has."""
    return max(0.0, active.release_seconds)


def _since_start_seconds(active: ActiveRun) -> float:
    """How long ago the first of the steps that run was started; 0 = none runs."""
    return max(
        (
            each.seconds_since_start
            for each in active.progress.values()
            if each.state is ProgressState.RUNNING
        ),
        default=0.0,
    )


def _has_ended_steps(active: ActiveRun) -> bool:
    return any(each.state is ProgressState.DONE for each in active.progress.values())


def _has_new_steps(forecast: RunForecast) -> bool:
    """Whether steps or iterations of the run have not been seen, and are known by others alone."""
    return any(each.basis.level is not Level.ITERATION for each in forecast.steps.values())


def _moved(times: Floats, typical: Floats, begin: float) -> Floats:
    """[S, A] times in samples, moved by a factor each so that they lie around [A] typical ones."""
    after = np.maximum(np.median(times, axis=0) - begin, 1e-9)
    factors = np.maximum(typical - begin, 0.0) / after
    return np.where(times > begin, begin + (times - begin) * factors, times)


def _stretched(times: Floats, factors: Floats, begin: float) -> Floats:
    """Times after the begin of the run, or after now, later or earlier by a factor."""
    return np.where(times > begin, begin + (times - begin) * factors[:, None], times)


def _ranges(samples: Floats, confidence: float) -> Iterator[TimeRange]:
    """One for each column of [S, N] times."""
    outside = (1 - confidence) / 2
    bounds = np.quantile(samples, (outside, 0.5, 1 - outside), axis=0)
    for low, typical, high in bounds.T.tolist():
        yield TimeRange(low, typical, high)
