"""Run times of all steps of a run, drawn from what is forecast of each, to play samples with."""

from collections.abc import Mapping

import numpy as np

from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.model.history import Distribution, Shape
from kfp_placement_engine.problem.problem import Floats, PlacementProblem

_POINTS = (np.arange(400) + 0.5) / 400
"""Probabilities between which quantiles are interpolated."""


def sampled_durations(
    problem: PlacementProblem,
    distributions: Mapping[int, Distribution],
    samples: int,
    random: np.random.Generator,
    common_share: float = 0.0,
) -> Floats:
    """[S, A] seconds on the reference node, for `simulation.simulate_durations`.

    Steps of one run may be slow together: in each sample every step takes the quantile that all
    steps of that sample share with the probability `common_share`, and otherwise its own. So two
    steps are correlated by its square, while each alone has its distribution.

    Args:
        problem: the problem.
        distributions: of activities, by their number; the others take what the problem says.
        samples: how many, 1 or more.
        random: where numbers are drawn from.
        common_share: from 0 to 1.

    Raises:
        PlanningError: a share or a number of samples out of its range.
    """
    if samples < 1 or not 0 <= common_share <= 1:
        raise PlanningError(f"{samples} samples with a common share of {common_share!r}")
    durations = np.repeat(problem.arrays.duration_seconds[None], samples, axis=0)
    common = random.random(samples)
    shapes: dict[Shape, Floats] = {}
    for activity, distribution in distributions.items():
        own, is_common = random.random((2, samples))
        drawn = np.where(is_common < common_share, common, own)
        durations[:, activity] = _quantiles(distribution, drawn, shapes)
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
