"""Run times of all steps of a run, drawn from what is forecast of each, to play samples with."""

import math
from collections.abc import Mapping
from statistics import NormalDist

import numpy as np

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.model.history import CommonFactor, Distribution, Shape
from kfp_placement_engine.problem.problem import Floats, PlacementProblem

_POINTS = (np.arange(400) + 0.5) / 400
"""Probabilities between which quantiles are interpolated."""

_SCORES = np.linspace(-5, 5, 501)
_BELOW = np.array([NormalDist().cdf(score) for score in _SCORES])
"""The standard normal distribution, which is interpolated too."""

NOTHING_COMMON = CommonFactor()


def sampled_durations(
    problem: PlacementProblem,
    distributions: Mapping[int, Distribution],
    samples: int,
    random: np.random.Generator,
    common: CommonFactor = NOTHING_COMMON,
) -> Floats:
    """[S, A] seconds on the reference node, for `simulation.simulate_durations`.

    Steps of one run may be slow together (`history.common_factor`); each has its distribution.

    Args:
        problem: the problem.
        distributions: of activities, by their number; the others take what the problem says.
        samples: how many, 1 or more.
        random: where numbers are drawn from.
        common: what the steps have in common.

    Raises:
        PlanningError: fewer than one sample.
    """
    if samples < 1:
        raise PlanningError(f"{samples} samples; there must be 1 or more")
    durations = np.repeat(problem.arrays.duration_seconds[None], samples, axis=0)
    factor = common.mean + common.deviation * random.standard_normal(samples)
    shared, own = math.sqrt(common.share), math.sqrt(1 - common.share)
    shapes: dict[Shape, Floats] = {}
    for activity, distribution in distributions.items():
        scores = shared * factor + own * random.standard_normal(samples)
        probabilities = np.interp(scores, _SCORES, _BELOW)
        durations[:, activity] = _quantiles(distribution, probabilities, shapes)
    return durations


def _quantiles(
    distribution: Distribution, probabilities: Floats, shapes: dict[Shape, Floats]
) -> Floats:
    """Those of a distribution, interpolated between points of its shape, which many share."""
    shape = distribution.shape
    if shape not in shapes:
        shapes[shape] = np.array([shape.at(1 - point) for point in _POINTS])
    left = 1 - distribution.survival * (1 - probabilities)
    misses = np.interp(left, _POINTS, shapes[shape])
    seconds = distribution.typical_seconds * np.exp(distribution.spread * misses)
    return np.asarray(np.maximum(distribution.ran_seconds, seconds))
