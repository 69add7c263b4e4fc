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
        scores = shared * factor + own * normal_scores(samples, random)
        probabilities = np.interp(scores, _SCORES, _BELOW)
        yield activity, _quantiles(distribution, probabilities, shapes)


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


def _quantiles(
    distribution: Distribution, probabilities: Floats, shapes: dict[int, Floats]
) -> Floats:
    """Those of a distribution, interpolated between points of its shape, which many share."""
    shape = distribution.shape
    misses_at = shapes.get(id(shape))
    if misses_at is None:
        misses_at = shapes[id(shape)] = np.array([shape.at(each) for each in _SURVIVALS])
    survivals = np.log(distribution.survival * (1 - probabilities))
    misses = np.interp(survivals, _LOG_SURVIVALS, misses_at)
    # Beyond the first point a shape falls off exponentially, and so without an end.
    scale = (misses_at[0] - misses_at[1]) / (_LOG_SURVIVALS[1] - _LOG_SURVIVALS[0])
    misses += scale * np.maximum(0.0, _LOG_SURVIVALS[0] - survivals)
    longest = math.log(MAX_DURATION_SECONDS)
    log_seconds = math.log(distribution.scale_seconds) + distribution.spread * misses
    seconds = np.exp(np.minimum(log_seconds, longest))
    return np.asarray(np.maximum(distribution.ran_seconds, seconds))
