"""Attempts at steps that fail in samples of a run, as often as they did in past runs.

What whole runs took beyond their samples is learned without these (`PastRun.failed_seconds`): a run
is late by the attempts that fail in it, and not by those that failed in others.
"""

import math
from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.model.durations import MAX_DURATION_SECONDS
from kfp_placement_engine.model.promise import WEIGHT_OF_OLDER, Retries
from kfp_placement_engine.planning.remaining_times import ran_seconds
from kfp_placement_engine.planning.sampled_times import normal_scores
from kfp_placement_engine.problem.problem import Floats

_SPREAD = 0.2
"""How far what an attempt takes may lie from what one took before: deviation of the logarithm. Of
more attempts it is less, as they show it themselves."""


class _MayFail(NamedTuple):
    """A step that may be tried again.

    Attributes:
        activity: of the step.
        retries: what past runs tell.
        limit: how often it may fail before its last attempt.
        failed: how often it has by now.
        ran_seconds: how long its attempt has run; 0 = it waits.
        since_attempt_seconds: since its last attempt began, if it waits for the next one.
    """

    activity: int
    retries: Retries
    limit: int
    failed: int
    ran_seconds: float
    since_attempt_seconds: float | None = None


def failed_seconds(
    lowered: Lowered, durations: Floats, random: np.random.Generator
) -> Floats | None:
    """What attempts take that fail before one ends well.

    An attempt that runs, and has run for longer than those that failed, does not fail any more.

    Args:
        lowered: the problem, and the runs with their forecasts.
        durations: [S, A] seconds that activities still take if no attempt fails.
        random: where numbers are drawn from; not asked where past runs tell of no retries.

    Returns:
        [S, A] in the same units; None = past runs tell of no retries.
    """
    failed: Floats | None = None
    for run in range(len(lowered.runs)):
        for step in _may_fail(run, lowered):
            if failed is None:
                failed = np.zeros_like(durations)
            seconds = durations[:, step.activity] + step.ran_seconds
            failed[:, step.activity] = _drawn(step, seconds, random)
    return failed


def _may_fail(run: int, lowered: Lowered) -> Iterator[_MayFail]:
    """Steps of a run that have not ended, may be tried again, and were in past runs."""
    active, activities = lowered.runs[run], lowered.step_activities[run]
    if active.forecast is None or not active.forecast.retries:
        return
    for step in active.graph.steps:
        retries, activity = active.forecast.retries.get(step.task), activities.get(step.name)
        if retries is not None and activity is not None and step.attempt_limit > 1:
            running = lowered.activities[activity].running
            ran = 0.0 if running is None else ran_seconds(running)
            progress = active.progress.get(step.name)
            failed = 0 if progress is None else progress.failed_attempts
            since = None if progress is None else progress.since_attempt_seconds
            yield _MayFail(activity, retries, step.attempt_limit - 1, failed, ran, since)


def _drawn(step: _MayFail, seconds: Floats, random: np.random.Generator) -> Floats:
    """[S] seconds of the attempts that fail from now on: as often as in one of the last runs.

    Args:
        step: at which.
        seconds: [S] that the attempt takes which ends well.
        random: where numbers are drawn from.
    """
    weights = WEIGHT_OF_OLDER ** np.arange(len(step.retries), dtype=float)[::-1]
    # One of each part of the distribution, so that their shares are those of the runs.
    places = (random.permutation(seconds.size) + 0.5) / seconds.size
    runs = np.searchsorted(np.cumsum(weights / weights.sum()), places)
    failed, ratios = np.array(step.retries)[runs].T
    # On average as many as in that run, in which there may have been many steps of the task.
    attempts = np.minimum(np.floor(failed + random.random(seconds.size)), step.limit)
    known = [each.ratio for each in step.retries if each.failed > 0]
    spread = np.exp(_SPREAD / math.sqrt(len(known)) * normal_scores(seconds.size, random))
    each_seconds = seconds * ratios * spread
    left = np.maximum(0.0, attempts - step.failed)
    left[each_seconds < step.ran_seconds] = 0.0
    waits = np.zeros_like(seconds)
    if step.since_attempt_seconds is not None:
        # What an attempt took is up to the next one, so that waits between them are in it.
        waits = np.maximum(0.0, seconds * median(known) * spread - step.since_attempt_seconds)
    return np.asarray(np.minimum(left * each_seconds + waits, MAX_DURATION_SECONDS))
