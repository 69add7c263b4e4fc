"""What a plan promises: its run played many times, each time with run times as they may be."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState
from kfp_placement_engine.model.history import KNOWN_LEVELS, Forecast, Level
from kfp_placement_engine.model.promise import Promise, RunForecast, StepPromise, TimeRange
from kfp_placement_engine.model.run_graph import DurationSource, Step, StepKind
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.planning.remaining_times import remaining_durations
from kfp_placement_engine.problem.problem import Floats
from kfp_placement_engine.search.result import Result
from kfp_placement_engine.search.simulation import simulate_durations

_LOG = logging.getLogger(__name__)

SAMPLES = 200

RUNS_OF_SAMPLES, MOST_APART = 6, 2.0
"""Samples tell as much of how far ends lie apart as this many past runs do; but where they lie more
than this many times further apart, that comes of rare times of steps, which runs did not show."""

_NAMED = 3


Play = Callable[[], tuple[Floats, Floats]]
"""[S, A] starts and ends of all activities in samples of the plan."""


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
    play = cache(partial(_played, lowered, result))
    return tuple(_promise_of(run, lowered, result, play) for run in range(len(lowered.runs)))


def _promise_of(run: int, lowered: Lowered, result: Result, play: Play) -> Promise | None:
    forecast = lowered.runs[run].forecast
    if forecast is None:
        return None
    try:
        return _promise(run, lowered, result, forecast, play)
    except Exception as error:
        defect = f"a defect in working it out: {type(error).__name__}"
        _say(f"the end of a run is not known: {defect}: {error!s:.200}")
        return Promise(forecast.confidence, unknown=defect)


@lru_cache(maxsize=100)
def _say(text: str) -> None:
    """Log a defect that is being handled, once."""
    _LOG.warning("%s", text, exc_info=True)


def _promise(
    run: int, lowered: Lowered, result: Result, forecast: RunForecast, play: Play
) -> Promise:
    active, confidence = lowered.runs[run], forecast.confidence
    unknown = _unknown(run, lowered, result)
    if unknown:
        return Promise(confidence, unknown=unknown)
    starts, ends = play()
    own = lowered.problem.arrays.run == run
    begin, played = max(0.0, active.release_seconds), ends[:, own].max(axis=1)
    has_begun = any(each.state is ProgressState.DONE for each in active.progress.values())
    left = stretched_ends(
        played - begin,
        forecast.overrun,
        has_begun=has_begun,
        has_new_steps=_has_new_steps(active),
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
    if forecast is None or _unknown(0, lowered, result):
        return None
    _, ends = _played(lowered, result)
    seconds = ends.max(axis=1)
    has_new_steps = _has_new_steps(lowered.runs[0])
    stretched = stretched_ends(
        seconds, forecast.overrun, has_begun=False, has_new_steps=has_new_steps
    )
    return SampledEnd(seconds, stretched / np.maximum(seconds, 1e-9))


def _unknown(run: int, lowered: Lowered, result: Result) -> str:
    """Why nothing can be promised, or ""."""
    active, problem = lowered.runs[run], lowered.problem
    own = problem.arrays.run == run
    if not own.any():
        return "the run has ended"
    if (own & problem.is_step & (problem.unplaceable | ~result.schedule.finished)).any():
        return "a step fits no node"
    assert active.forecast is not None  # asked by the caller
    open_steps = [step for step in active.graph.steps if _counts(step, active)]
    unseen = [step for step in open_steps if not _is_known(step, active.forecast)]
    if not unseen:
        return ""
    if len(unseen) == len(open_steps):
        return "no run seen"
    tasks = list(dict.fromkeys(step.task for step in unseen))
    return f"no run seen of {listed(tasks, _NAMED)}"


def _counts(step: Step, active: ActiveRun) -> bool:
    """Whether the end of the run surely depends on how long the step takes."""
    is_open = active.state_of(step.name) is not ProgressState.DONE
    is_container = step.kind is StepKind.CONTAINER
    return is_open and is_container and not (step.assumed_cached or step.conditions)


def _has_new_steps(active: ActiveRun) -> bool:
    """Whether steps or iterations of the run have not been seen, and are known by others alone."""
    assert active.forecast is not None  # asked by the caller
    return any(each.basis.level is not Level.ITERATION for each in active.forecast.steps.values())


def _is_known(step: Step, forecast: RunForecast) -> bool:
    if step.duration_source is DurationSource.GIVEN:
        return True
    known = forecast.steps.get(step.name)
    return known is not None and known.basis.level in KNOWN_LEVELS


def _played(lowered: Lowered, result: Result) -> tuple[Floats, Floats]:
    """[S, A] starts and ends of all activities."""
    durations = remaining_durations(lowered, SAMPLES, np.random.default_rng(result.seed))
    return simulate_durations(lowered.problem, result.placement, durations)


def stretched_ends(
    ends: Floats, overrun: Forecast | None, *, has_begun: bool, has_new_steps: bool = False
) -> Floats:
    """[S] ends of sampled runs, corrected by how past runs ended beside theirs.

    Until a step has ended, the run ends as runs of the past did: the sample that ends first becomes
    the least of their quantiles, and so on. Where the samples lie further apart than these, they
    count as much as `RUNS_OF_SAMPLES` past runs; and alone, where the past did not have all of the
    steps. Once a step has ended, its own steps tell more of the run than others do, and only the
    median of the past counts.

    Args:
        ends: [S] of the samples, from now on or from the begin of the run.
        overrun: how many times longer than the median of their samples runs took; None = no such
            run is known.
        has_begun: whether a step of the run has ended.
        has_new_steps: whether the run has steps or iterations that were not seen.
    """
    if overrun is None:
        return ends
    factors, middle = overrun.distribution, float(np.median(ends))
    if has_begun or middle <= 0:
        return ends * factors.median_seconds
    order = np.argsort(np.argsort(ends))
    quantiles = [factors.quantile((place + 0.5) / ends.size) for place in range(ends.size)]
    past = np.log(np.array(quantiles)[order] / factors.median_seconds)
    own, share = np.log(np.maximum(ends, 1e-9 * middle) / middle), 1.0
    if overrun.basis.level is Level.PIPELINE and not has_new_steps:
        share = RUNS_OF_SAMPLES / (RUNS_OF_SAMPLES + overrun.basis.runs - 1)
        own = np.clip(own, -MOST_APART * np.abs(past), MOST_APART * np.abs(past))
    apart = np.sqrt((1 - share) * past**2 + share * np.maximum(past**2, own**2))
    stretched: Floats = middle * factors.median_seconds * np.exp(np.copysign(apart, own))
    return stretched


def _stretched(times: Floats, factors: Floats, begin: float) -> Floats:
    """Times after the begin of the run, or after now, later or earlier by a factor."""
    return np.where(times > begin, begin + (times - begin) * factors[:, None], times)


def _ranges(samples: Floats, confidence: float) -> Iterator[TimeRange]:
    """One for each column of [S, N] times."""
    outside = (1 - confidence) / 2
    bounds = np.quantile(samples, (outside, 0.5, 1 - outside), axis=0)
    for low, typical, high in bounds.T.tolist():
        yield TimeRange(low, typical, high)
