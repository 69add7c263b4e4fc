"""Ends of sampled runs, corrected by how past runs ended beside their samples."""

import math

import numpy as np

from kfp_placement_engine.model.forecast import Distribution, Forecast, Level
from kfp_placement_engine.model.promise import RunForecast
from kfp_placement_engine.planning.sampled_times import normal_scores
from kfp_placement_engine.problem.problem import Floats

RUNS_OF_SAMPLES, MOST_APART, SHOWN_RUNS = 6, 2.0, 4
"""Samples tell as much of how far ends lie apart as this many past runs do. But where they lie more
than this many times further apart, that comes of rare times of steps: this many runs would have
shown it, and fewer, in proportion, less."""

REAL_SHARE = 0.1
"""Of a run; once its first step has run for this long, that tells of its end."""

USUAL = 1.1
"""By up to a tenth runs take longer, or less, in all of their parts."""


def stretched_ends(
    ends: Floats,
    forecast: RunForecast,
    *,
    since_submission_seconds: float = 0.0,
    since_start_seconds: float = 0.0,
    has_ended_steps: bool = False,
    has_new_steps: bool = False,
    has_open_branches: bool = False,
) -> Floats:
    """[S] ends of sampled runs, corrected by how past runs ended beside theirs.

    Until a step has ended, the run ends as runs of the past did: the sample that ends first becomes
    the least of their quantiles, and so on. Where the samples lie further apart than these, they
    count as much as `RUNS_OF_SAMPLES` past runs; and alone, where the past did not have all of the
    steps. While the first step runs, these runs are those that took longer than this one by now;
    and once it has run for a real share of the run, what is left lies as far apart as the samples
    or the quantiles do, whichever is more. Once a step has ended, the run's own steps tell more of
    it than other runs do: the past says how much longer all takes, and how far apart runs lie
    beside what their steps take.

    Args:
        ends: [S] of the samples, from now on or from the begin of the run.
        forecast: what past runs tell.
        since_submission_seconds: how long ago the run was submitted.
        since_start_seconds: how long ago the first of the steps that run was started; 0 = none.
        has_ended_steps: whether a step of the run has ended.
        has_new_steps: whether the run has steps or iterations that were not seen.
        has_open_branches: whether samples differ in what they leave out.
    """
    overrun, middle = forecast.overrun, float(np.median(ends))
    if overrun is None or middle <= 0:
        return ends
    of_run = _factor_of_run(middle, forecast, has_ended_steps=has_ended_steps)
    factor = _factor_of_rest(
        of_run, middle, forecast, since_submission_seconds, has_ended_steps=has_ended_steps
    )
    if has_open_branches:
        # How runs ended beside one median is mostly which branches they took; samples know that.
        usual = forecast.overrun_factor()
        factor = usual if 1 / USUAL <= usual <= USUAL else 1.0
    is_known = not (has_new_steps or has_open_branches)
    has_own_past = is_known and overrun.basis.level is Level.PIPELINE
    if has_ended_steps:
        left_seconds, first = middle * factor, forecast.first_samples
        held_seconds = 0.0 if first is None else first.held_seconds
        run_seconds = max(0.0, since_submission_seconds - held_seconds) + left_seconds
        rest = ends * factor
        if has_own_past:
            rest = _no_wider_than_past(rest, of_run, overrun, run_seconds)
        return _moved_apart(rest, of_run, forecast.beside_steps, run_seconds, left_seconds)
    left = _left_by_past(overrun.distribution, since_start_seconds, middle * factor, ends.size)
    past = np.log(left[np.argsort(np.argsort(ends))] / np.median(left))
    own, share = np.log(np.maximum(ends, 1e-9 * middle) / middle), 1.0
    if has_open_branches:
        past = np.clip(past, -2 * math.log(USUAL), 2 * math.log(USUAL))
    is_early = since_start_seconds < REAL_SHARE * (since_start_seconds + middle)
    if is_early and has_own_past:
        share = _share_of_samples(overrun.basis.runs)
        most = MOST_APART * max(1.0, SHOWN_RUNS / overrun.basis.runs) * np.abs(past)
        own = np.clip(own, -most, most)
    apart = np.sqrt((1 - share) * past**2 + share * np.maximum(past**2, own**2))
    # Where samples are equal, as those of a run time that is given, half of them end earlier.
    stretched: Floats = middle * factor * np.exp(np.copysign(apart, past))
    return stretched


def _factor_of_run(middle: float, forecast: RunForecast, *, has_ended_steps: bool) -> float:
    """How many times longer than its first samples the whole run takes.

    Args:
        middle: median of what the samples say is left.
        forecast: what past runs tell.
        has_ended_steps: whether a step has ended.
    """
    if forecast.first_samples is not None:
        return forecast.overrun_factor(forecast.first_samples.from_begin_seconds)
    return forecast.overrun_factor(None if has_ended_steps else middle)


def _moved_apart(
    ends: Floats, factor: float, beside_steps: float, run_seconds: float, left_seconds: float
) -> Floats:
    """[S] ends, earlier and later by what takes time beside the steps.

    Where that is little, all parts of a run have their share of it. Waits of one part tell nothing
    of those of another, so that their variances add up: a quarter of a run has half the deviation
    of all. Where it is much, it lies somewhere, and may as well be still to come.

    Args:
        ends: of what is left.
        factor: how many times longer than its first samples the run takes.
        beside_steps: how far apart whole runs lie there: deviation of the logarithm.
        run_seconds: what the whole run is expected to take.
        left_seconds: what is expected to be left of it.
    """
    share = _share_of_deviation(left_seconds / run_seconds, factor)
    # These have nothing to do with the samples, of which any may be first.
    scores = normal_scores(ends.size, np.random.default_rng(ends.size))
    moved = ends + beside_steps * share * run_seconds * scores
    return np.asarray(np.maximum(moved, 1e-9 * left_seconds))


def _share_of_samples(runs: int) -> float:
    """How much samples say of how far ends lie apart, beside this many past runs."""
    return RUNS_OF_SAMPLES / (RUNS_OF_SAMPLES + runs - 1)


def _share_of_deviation(left_share: float, factor: float) -> float:
    """How much of the deviation of whole runs a part of one has, by what runs take longer."""
    is_much = abs(math.log(factor)) / math.log(USUAL)
    return float(left_share ** (0.5 / max(1.0, is_much)))


def _no_wider_than_past(
    ends: Floats, factor: float, overrun: Forecast, run_seconds: float
) -> Floats:
    """[S] ends of what is left, no further apart than the same part of past runs.

    The more runs were held against their samples, the more these count, as before the first step
    has ended.

    Args:
        ends: of what is left.
        factor: how many times longer than its first samples the run takes.
        overrun: how many times longer past runs took.
        run_seconds: what the whole run is expected to take.
    """
    middle, factors = float(np.median(ends)), overrun.distribution
    share = _share_of_deviation(min(1.0, middle / run_seconds), factor)
    own = ends - middle
    whole = _left_by_past(factors, 0.0, run_seconds, ends.size) - run_seconds
    past = share * whole[np.argsort(np.argsort(ends))]
    of_past = 1 - _share_of_samples(overrun.basis.runs)
    # In the second half fewer and fewer steps decide, of which samples tell more.
    of_past *= min(1.0, 2 * middle / run_seconds)
    nearer = np.minimum(np.abs(own), np.abs(past))
    apart = np.sqrt(of_past * nearer**2 + (1 - of_past) * own**2)
    return np.asarray(np.maximum(middle + np.copysign(apart, own), 1e-9 * middle))


def _left_by_past(
    factors: Distribution, since_start_seconds: float, left_seconds: float, count: int
) -> Floats:
    """What is left of a run by what past runs took, given that it has not ended by now.

    Args:
        factors: how many times longer than their samples runs take.
        since_start_seconds: for how long the run has gone on.
        left_seconds: what is expected to be left of it.
        count: how many quantiles, from the least to the greatest.
    """
    scale = (since_start_seconds + left_seconds) / factors.median_seconds
    longer = factors.after(since_start_seconds / scale)
    places = (np.arange(count) + 0.5) / count
    seconds = scale * np.array([longer.quantile(place) for place in places.tolist()])
    return np.asarray(np.maximum(seconds - since_start_seconds, 1e-9 * left_seconds))


def _factor_of_rest(
    factor: float,
    middle: float,
    forecast: RunForecast,
    since_submission_seconds: float,
    *,
    has_ended_steps: bool,
) -> float:
    """How many times longer than its samples the rest of a run takes.

    Where runs take far longer or less than their samples, that lies somewhere: pods have waited for
    a node at the start, or steps came from the cache. What was expected of the whole run, less the
    time since its begin, is left: what it has not lost yet it may still lose. But no more than the
    factor, applied twice, says of what is left: a run that is faster than expected, or in which
    nothing waits, is nearer its end. And once a step has ended, little less than its samples.

    Args:
        factor: how many times longer than its first samples the whole run takes.
        middle: median of what the samples say is left.
        forecast: what past runs tell, of which `overrun` is known.
        since_submission_seconds: how long ago the run was submitted.
        has_ended_steps: whether a step has ended.
    """
    first = forecast.first_samples
    if 1 / USUAL <= factor <= USUAL or (first is None and not has_ended_steps):
        return factor
    least = max(factor, 1 / USUAL) if has_ended_steps else factor
    if first is None:
        return min(1.0, least)
    left = first.left_seconds(factor, since_submission_seconds) / middle
    return min(max(left, min(1.0, least)), max(1.0, factor) ** 2)
