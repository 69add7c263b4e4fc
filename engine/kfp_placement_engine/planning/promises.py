"""What a plan promises: its run played many times, each time with run times as they may be."""

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState
from kfp_placement_engine.model.forecast import KNOWN_LEVELS, Forecast, Level
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

USUAL = 1.1
"""By up to a tenth runs take longer, or less, in all of their parts."""

_NAMED = 3

_Branch = tuple[str, tuple[str, ...]]
"""Steps in one group with the same conditions run together, or not at all."""

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
        say_defect(f"the end of a run is not known: {defect}: {error!s:.200}")
        return Promise(forecast.confidence, unknown=defect)


@lru_cache(maxsize=100)
def say_defect(text: str) -> None:
    """Log a defect that is being handled, once: plans do without samples."""
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
        forecast,
        since_submission_seconds=max(0.0, -active.release_seconds),
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
    stretched = stretched_ends(seconds, forecast, has_new_steps=has_new_steps)
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
    open_steps = [step for step in active.graph.steps if _is_open(step, active)]
    taken = _branches_taken(active)
    unseen = [
        step
        for step in open_steps
        if _surely_runs(step, active, taken) and not _is_known(step, active.forecast)
    ]
    if open_steps and not any(_is_known(step, active.forecast) for step in open_steps):
        return "no run seen"
    if unseen:
        tasks = list(dict.fromkeys(step.task for step in unseen))
        return f"no run seen of {listed(tasks, _NAMED)}"
    learned = any(_is_learned(step, active.forecast) for step in open_steps)
    return "" if learned or not open_steps else "all run times are given"


def _is_open(step: Step, active: ActiveRun) -> bool:
    """Whether the end of the run may depend on how long the step takes."""
    state = active.state_of(step.name)
    if step.kind is not StepKind.CONTAINER or state is ProgressState.DONE:
        return False
    return state is ProgressState.RUNNING or not step.assumed_cached


def _surely_runs(step: Step, active: ActiveRun, taken: Collection[_Branch]) -> bool:
    """Whether a step that is open depends on no condition that may not hold."""
    is_running = active.state_of(step.name) is ProgressState.RUNNING
    return is_running or not step.conditions or _branch(step) in taken


def _branches_taken(active: ActiveRun) -> set[_Branch]:
    """Branches of which a step runs, or has run."""
    return {
        _branch(step)
        for step in active.graph.steps
        if (progress := active.progress.get(step.name)) is not None
        and (progress.state is ProgressState.RUNNING or progress.ran_seconds is not None)
    }


def _branch(step: Step) -> _Branch:
    return step.group, step.conditions


def _has_new_steps(active: ActiveRun) -> bool:
    """Whether steps or iterations of the run have not been seen, and are known by others alone."""
    assert active.forecast is not None  # asked by the caller
    return any(each.basis.level is not Level.ITERATION for each in active.forecast.steps.values())


def _is_known(step: Step, forecast: RunForecast) -> bool:
    return step.duration_source is DurationSource.GIVEN or _is_learned(step, forecast)


def _is_learned(step: Step, forecast: RunForecast) -> bool:
    known = forecast.steps.get(step.name)
    return known is not None and known.basis.level in KNOWN_LEVELS


def _played(lowered: Lowered, result: Result) -> tuple[Floats, Floats]:
    """[S, A] starts and ends of all activities."""
    durations = remaining_durations(lowered, SAMPLES, np.random.default_rng(result.seed))
    return simulate_durations(lowered.problem, result.placement, durations)


def stretched_ends(
    ends: Floats,
    forecast: RunForecast,
    *,
    since_submission_seconds: float = 0.0,
    has_begun: bool = False,
    has_new_steps: bool = False,
) -> Floats:
    """[S] ends of sampled runs, corrected by how past runs ended beside theirs.

    Until a step has ended, the run ends as runs of the past did: the sample that ends first becomes
    the least of their quantiles, and so on. Where the samples lie further apart than these, they
    count as much as `RUNS_OF_SAMPLES` past runs; and alone, where the past did not have all of the
    steps. Once a step has ended, its own steps tell more of the run than others do, and the past
    only says how much longer all takes.

    Args:
        ends: [S] of the samples, from now on or from the begin of the run.
        forecast: what past runs tell.
        since_submission_seconds: how long ago the run was submitted.
        has_begun: whether a step of the run has ended.
        has_new_steps: whether the run has steps or iterations that were not seen.
    """
    overrun, middle = forecast.overrun, float(np.median(ends))
    if overrun is None or middle <= 0:
        return ends
    factor = _factor_of_rest(middle, forecast, since_submission_seconds, has_begun=has_begun)
    if has_begun:
        return ends * factor
    median, quantiles = overrun.distribution.median_seconds, _quantiles(overrun, ends.size)
    past = np.log(quantiles[np.argsort(np.argsort(ends))] / median)
    own, share = np.log(np.maximum(ends, 1e-9 * middle) / middle), 1.0
    if overrun.basis.level is Level.PIPELINE and not has_new_steps:
        share = RUNS_OF_SAMPLES / (RUNS_OF_SAMPLES + overrun.basis.runs - 1)
        own = np.clip(own, -MOST_APART * np.abs(past), MOST_APART * np.abs(past))
    apart = np.sqrt((1 - share) * past**2 + share * np.maximum(past**2, own**2))
    # Where samples are equal, as those of a run time that is given, half of them end earlier.
    stretched: Floats = middle * factor * np.exp(np.copysign(apart, past))
    return stretched


def _quantiles(overrun: Forecast, count: int) -> Floats:
    """As many, from the least to the greatest."""
    places = (np.arange(count) + 0.5) / count
    return np.array([overrun.distribution.quantile(place) for place in places.tolist()])


def _factor_of_rest(
    middle: float, forecast: RunForecast, since_submission_seconds: float, *, has_begun: bool
) -> float:
    """How many times longer than its samples the rest of a run takes.

    Where runs take far longer or less than their samples, that lies somewhere: pods have waited for
    a node at the start, or steps came from the cache. What was expected of the whole run, less the
    time since its begin, is left; but no more than the factor says of what is left, and once a step
    has ended little less than its samples.

    Args:
        middle: median of what the samples say is left.
        forecast: what past runs tell, of which `overrun` is known.
        since_submission_seconds: how long ago the run was submitted.
        has_begun: whether a step has ended.
    """
    assert forecast.overrun is not None
    factor, first = forecast.overrun.distribution.median_seconds, forecast.first_samples
    if 1 / USUAL <= factor <= USUAL or (first is None and not has_begun):
        return factor
    least = max(factor, 1 / USUAL) if has_begun else factor
    if first is None:
        return min(1.0, least)
    left = first.left_seconds(factor, since_submission_seconds) / middle
    return min(max(left, min(1.0, least)), max(1.0, factor))


def _stretched(times: Floats, factors: Floats, begin: float) -> Floats:
    """Times after the begin of the run, or after now, later or earlier by a factor."""
    return np.where(times > begin, begin + (times - begin) * factors[:, None], times)


def _ranges(samples: Floats, confidence: float) -> Iterator[TimeRange]:
    """One for each column of [S, N] times."""
    outside = (1 - confidence) / 2
    bounds = np.quantile(samples, (outside, 0.5, 1 - outside), axis=0)
    for low, typical, high in bounds.T.tolist():
        yield TimeRange(low, typical, high)
