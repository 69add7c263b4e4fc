"""Run times of the steps of a run, drawn from what is forecast of each, to play samples with."""

import math
from collections.abc import Iterator, Mapping
from operator import itemgetter
from statistics import NormalDist

import numpy as np

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.model.durations import MAX_DURATION_SECONDS
from kfp_placement_engine.model.forecast import CommonFactor, Distribution
from kfp_placement_engine.problem.problem import Floats

_TAIL = np.geomspace(1e-12, 0.5, 300)
_SURVIVALS = np.concatenate([_TAIL, 1 - _TAIL[-2::-1]])
"""Probabilities of taking longer, between which quantiles are interpolated: dense at both ends."""

_LOG_SURVIVALS = np.log(_SURVIVALS)

_SCORES = np.linspace(-5, 5, 501)
_BELOW = np.array([NormalDist().cdf(score) for score in _SCORES])
"""The standard normal distribution, which is interpolated too."""

_FAR_SCORES = np.linspace(-8, 8, 801)
_LOG_ABOVE = np.log([NormalDist().cdf(-score) for score in _FAR_SCORES])
"""Logarithms of the probability of more, for steps that have run far longer than usual."""

_LEAST_SURVIVAL = 1e-12
"""A step that runs for longer than that is not slow for what it has in common with others."""

NOTHING_COMMON = CommonFactor()


def drawn_times(
    distributions: Mapping[int, Distribution],
    samples: int,
    random: np.random.Generator,
    common: CommonFactor = NOTHING_COMMON,
) -> Iterator[tuple[int, Floats]]:
    """Activities of one run, each with its [S] seconds on the reference node, in their order.

    Steps of one run may be slow together (`history.common_factor`); each has its distribution.

    Args:
        distributions: of activities, by their number.
        samples: how many, 1 or more.
        random: where numbers are drawn from.
        common: what the steps have in common.

    Raises:
        PlanningError: fewer than one sample.
    """
    if samples < 1:
        raise PlanningError(f"{samples} samples; there must be 1 or more")
    factor = common.mean + common.deviation * normal_scores(samples, random)
    shared, own = math.sqrt(common.share), math.sqrt(1 - common.share)
    # By identity: to hash a shape is to hash a thousand numbers.
    shapes: dict[int, Floats] = {}
    for activity, distribution in sorted(distributions.items(), key=itemgetter(0)):
        own_scores = normal_scores(samples, random)
        if common.share > 0 and _LEAST_SURVIVAL < distribution.survival < 1:
            survivals = _survivals_of_running(distribution, shared * factor, own, own_scores)
        else:
            scores = shared * factor + own * own_scores
            survivals = distribution.survival * (1 - np.interp(scores, _SCORES, _BELOW))
        yield activity, _quantiles(distribution, survivals, shapes)


def _survivals_of_running(
    distribution: Distribution, factors: Floats, own: float, own_scores: Floats
) -> Floats:
    """[S] probabilities of taking longer, of a step that has run for some time.

    A slow run explains that it still runs: its own number lies above what is left for that. If
    the run's factor moved what is left of the step's distribution, it would count twice.
    """
    log_survival = math.log(distribution.survival)
    ran_score = np.interp(-log_survival, -_LOG_ABOVE, _FAR_SCORES)
    log_open = np.interp((ran_score - factors) / own, _FAR_SCORES, _LOG_ABOVE)
    log_above = np.log(np.interp(-own_scores, _SCORES, _BELOW))
    own_open = np.interp(-(log_open + log_above), -_LOG_ABOVE, _FAR_SCORES)
    log_survivals = np.interp(factors + own * own_open, _FAR_SCORES, _LOG_ABOVE)
    return np.asarray(np.exp(np.minimum(log_survivals, log_survival)))


def normal_scores(samples: int, random: np.random.Generator) -> Floats:
    """[S] standard normal numbers, one of each part of the distribution (Latin hypercube sampling).

    Their median is 0 then. That of 200 independent ones is off by a tenth of the deviation, which
    all times of a run share: where little is known of them, the end of the run would be wrong.

    Args:
        samples: how many, 1 or more.
        random: says in which order they come.
    """
    places = (random.permutation(samples) + 0.5) / samples
    return np.asarray(np.interp(places, _BELOW, _SCORES))


def _quantiles(distribution: Distribution, survivals: Floats, shapes: dict[int, Floats]) -> Floats:
    """Seconds that a distribution exceeds with these probabilities, as if nothing had run yet.

    Interpolated between points of its shape, which many share.
    """
    shape = distribution.shape
    misses_at = shapes.get(id(shape))
    if misses_at is None:
        misses_at = shapes[id(shape)] = np.array([shape.at(each) for each in _SURVIVALS])
    log_survivals = np.log(survivals)
    misses = np.interp(log_survivals, _LOG_SURVIVALS, misses_at)
    # Beyond the first point a shape falls off exponentially, and so without an end.
    scale = (misses_at[0] - misses_at[1]) / (_LOG_SURVIVALS[1] - _LOG_SURVIVALS[0])
    misses += scale * np.maximum(0.0, _LOG_SURVIVALS[0] - log_survivals)
    longest = math.log(MAX_DURATION_SECONDS)
    log_seconds = math.log(distribution.scale_seconds) + distribution.spread * misses
    seconds = np.exp(np.minimum(log_seconds, longest))
    return np.asarray(np.maximum(distribution.ran_seconds, seconds))
