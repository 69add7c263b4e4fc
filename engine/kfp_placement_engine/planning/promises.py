"""What a plan promises: its run played many times, each time with run times as they may be."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState
from kfp_placement_engine.model.forecast import Level
from kfp_placement_engine.model.promise import Promise, RunForecast, StepPromise, TimeRange
from kfp_placement_engine.planning.drawn_courses import OpenCourses, leave_out, open_courses
from kfp_placement_engine.planning.remaining_times import remaining_durations
from kfp_placement_engine.planning.stretched_ends import stretched_ends
from kfp_placement_engine.planning.unknown_ends import why_unknown
from kfp_placement_engine.problem.problem import Floats
from kfp_placement_engine.search.result import Result
from kfp_placement_engine.search.simulation import simulate_durations

_LOG = logging.getLogger(__name__)

SAMPLES = 200

Play = Callable[[], tuple[Floats, Floats]]
"""[S, A] starts and ends of all activities in samples of the plan."""

Courses = Callable[[int], OpenCourses]
"""What may be left out of a run, by its number."""


def promises_of(lowered: Lowered, result: Result) -> tuple[Promise | None, ...]:
    """When the runs and their steps start and end.

    Args:
        lowered: the problem and what it was made from.
        result: the plan.

    Returns:
        The promise of each run, on the plan's clock; None = nobody asked for one. A defect in it
        leaves the plan as it is, and the end unknown.
    """
    # The samples are of all runs together, and played once for all of them.
    courses = cache(partial(open_courses, lowered=lowered))
    play = cache(partial(_played, lowered, result, courses))
    runs = range(len(lowered.runs))
    return tuple(_promise_of(run, lowered, result, courses, play) for run in runs)


def _promise_of(
    run: int, lowered: Lowered, result: Result, courses: Courses, play: Play
) -> Promise | None:
    forecast = lowered.runs[run].forecast
    if forecast is None:
        return None
    try:
        return _promise(run, lowered, result, forecast, courses, play)
    except Exception as error:
        defect = f"a defect in working it out: {type(error).__name__}"
        say_defect(f"the end of a run is not known: {defect}: {error!s:.200}")
        return Promise(forecast.confidence, unknown=defect)


@lru_cache(maxsize=100)
def say_defect(text: str) -> None:
    """Log a defect that is being handled, once: plans do without samples."""
    _LOG.warning("%s", text, exc_info=True)


def _promise(
    run: int,
    lowered: Lowered,
    result: Result,
    forecast: RunForecast,
    courses: Courses,
    play: Play,
) -> Promise:
    active, confidence = lowered.runs[run], forecast.confidence
    unknown = why_unknown(run, lowered, result)
    if unknown:
        return Promise(confidence, unknown=unknown)
    starts, ends = play()
    own = lowered.problem.arrays.run == run
    begin, played = max(0.0, active.release_seconds), ends[:, own].max(axis=1)
    has_begun = any(each.state is ProgressState.DONE for each in active.progress.values())
    left = stretched_ends(
        played - begin,
        forecast,
        since_submission_seconds=max(0.0, -active.release_seconds),
        since_start_seconds=_since_start_seconds(active),
        has_begun=has_begun,
        has_new_steps=_has_new_steps(active),
        has_open_branches=len(courses(run)) > 1,
    )
    factors = left / np.maximum(played - begin, 1e-9)
    starts, ends = _stretched(starts, factors, begin), _stretched(ends, factors, begin)
    steps = lowered.step_activities[run]
    indexes = list(steps.values())
    first, last = _ranges(starts[:, indexes], confidence), _ranges(ends[:, indexes], confidence)
    promises = zip(steps, map(StepPromise, first, last), strict=True)
    end = next(_ranges(ends[:, own].max(axis=1)[:, None], confidence))
    return Promise(confidence, end, float(np.median(played)), dict(promises))


@dataclass(frozen=True)
class SampledEnd:
    """When a run that has not begun ends, in each sample of it.

    Attributes:
        seconds: [S] with run times as they may be.
        factors: [S] how many times as long the run takes as that, by what past runs took.
    """

    seconds: Floats
    factors: Floats

    def gain_over(self, before: "SampledEnd", confidence: float) -> TimeRange:
        """How much earlier a run ends than before: the same runs, played under two plans.

        Args:
            before: of the same run, with the same seed.
            confidence: of the range; its bounds are negative where the run ends later.
        """
        gains = before.factors * (before.seconds - self.seconds)
        return next(_ranges(gains[:, None], confidence))


def sampled_end(lowered: Lowered, result: Result) -> SampledEnd | None:
    """When a run that is planned alone ends; None = nothing can be promised of it.

    Two plans of one run, with the same forecast and seed, are played with the same run times.
    """
    forecast = lowered.runs[0].forecast
    if forecast is None or why_unknown(0, lowered, result):
        return None
    courses = cache(partial(open_courses, lowered=lowered))
    _, ends = _played(lowered, result, courses)
    seconds = ends.max(axis=1)
    has_new_steps = _has_new_steps(lowered.runs[0])
    stretched = stretched_ends(
        seconds,
        forecast,
        has_new_steps=has_new_steps,
        has_open_branches=len(courses(0)) > 1,
    )
    return SampledEnd(seconds, stretched / np.maximum(seconds, 1e-9))


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


def _has_new_steps(active: ActiveRun) -> bool:
    """Whether steps or iterations of the run have not been seen, and are known by others alone."""
    assert active.forecast is not None  # asked by the caller
    return any(each.basis.level is not Level.ITERATION for each in active.forecast.steps.values())


def _played(lowered: Lowered, result: Result, courses: Courses) -> tuple[Floats, Floats]:
    """[S, A] starts and ends of all activities."""
    random = np.random.default_rng(result.seed)
    durations = remaining_durations(lowered, SAMPLES, random)
    for run in range(len(lowered.runs)):
        leave_out(durations, courses(run), random)
    return simulate_durations(lowered.problem, result.placement, durations)


def _stretched(times: Floats, factors: Floats, begin: float) -> Floats:
    """Times after the begin of the run, or after now, later or earlier by a factor."""
    return np.where(times > begin, begin + (times - begin) * factors[:, None], times)


def _ranges(samples: Floats, confidence: float) -> Iterator[TimeRange]:
    """One for each column of [S, N] times."""
    outside = (1 - confidence) / 2
    bounds = np.quantile(samples, (outside, 0.5, 1 - outside), axis=0)
    for low, typical, high in bounds.T.tolist():
        yield TimeRange(low, typical, high)
