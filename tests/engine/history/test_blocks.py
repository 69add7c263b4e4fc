"""Sizes, arguments and regimes that come in blocks of some runs are no change of the step."""

import math
from random import Random
from statistics import fmean, median

import pytest

from kfp_placement_engine.history import History
from kfp_placement_engine.model.history import Observation, StepIdentity

TRAIN = StepIdentity("churn", "train")

LAWS = {
    "size^1.3": lambda size: 20 + 200 * size**1.3,
    "size^2": lambda size: 200 * size**2,
    "n log n": lambda size: 30 * size * math.log2(1 + 8 * size),
    "two ways": lambda size: 60 if size < 5 else 900,
}


def in_blocks(sizes, length, runs, random):
    """Sizes of so many runs, each of about the same size as the others of its block."""
    return [
        sizes[run // length % len(sizes)] * math.exp(random.gauss(0, 0.03)) for run in range(runs)
    ]


def forecasts(sizes, seconds, *, as_argument=False):
    """Of each run, made before it: the error of the typical time, whether its range held it."""
    history, found = History(), []
    for size, true in zip(sizes, seconds, strict=True):
        arguments = {"rows": size * 1000} if as_argument else {}
        input_bytes = None if as_argument else size * 1e9
        forecast = history.predict(TRAIN, "", input_bytes, arguments)
        if forecast is not None:
            now = forecast.distribution
            is_held = now.quantile(0.05) <= true <= now.quantile(0.95)
            found.append((abs(now.median_seconds / true - 1), is_held))
        values = tuple(arguments.values())
        history.observe([Observation(TRAIN, true, "", input_bytes, values)])
    return found


@pytest.mark.parametrize("as_argument", [False, True], ids=["size", "argument"])
@pytest.mark.parametrize(("sizes", "length"), [((1, 10), 4), ((1, 3, 10), 3)], ids=str)
@pytest.mark.parametrize("law", LAWS)
def test_sizes_in_blocks_are_no_change_whatever_the_law(law, sizes, length, as_argument):
    """Where no line fits, each block lies on one side of the line."""
    found = []
    for seed in range(6):
        random = Random(seed)
        blocks = in_blocks(sizes, length, 34, random)
        seconds = [LAWS[law](each) * math.exp(random.gauss(0, 0.05)) for each in blocks]
        found += forecasts(blocks, seconds, as_argument=as_argument)[11:]
    assert median(error for error, _ in found) < 0.07
    assert fmean(is_held for _, is_held in found) >= 0.85


@pytest.mark.parametrize("times", [1 / 3, 3])
@pytest.mark.parametrize("law", ["size^1.3", "size^2"])
def test_a_change_shows_in_sizes_that_come_in_blocks_too(law, times):
    """From three runs after it on, and still when other sizes come."""
    found = []
    for seed in range(6):
        random = Random(seed)
        blocks = in_blocks((1, 10), 4, 30, random)
        seconds = [LAWS[law](each) * math.exp(random.gauss(0, 0.05)) for each in blocks]
        seconds[20:] = [times * each for each in seconds[20:]]
        found += forecasts(blocks, seconds)[22:]
    assert median(error for error, _ in found) < 0.07
    assert fmean(is_held for _, is_held in found) >= 0.85


@pytest.mark.parametrize("times", [1 / 3, 3])
@pytest.mark.parametrize("scatter", [0.1, 0.6])
def test_a_change_is_followed_within_three_runs_where_sizes_vary(scatter, times):
    found = []
    for seed in range(12):
        random = Random(seed)
        sizes = [5 * math.exp(random.gauss(0, scatter)) for _ in range(18)]
        seconds = [(20 + 30 * each) * math.exp(random.gauss(0, 0.05)) for each in sizes]
        seconds[14:] = [times * each for each in seconds[14:]]
        found.append(forecasts(sizes, seconds)[-1])
    assert median(error for error, _ in found) < 0.2
    assert fmean(is_held for _, is_held in found) >= 0.8


@pytest.mark.parametrize(
    ("usual", "slow", "times"), [(4, 4, 3), (4, 3, 10), (5, 5, 3), (10, 4, 3)], ids=str
)
def test_values_that_change_places_every_few_runs_stay_in_the_range(usual, slow, times):
    """Two teams, full and small data, a cache: after a value has come back, it may leave again."""
    held = []
    for seed in range(10):
        random = Random(seed)
        seconds = [
            300 * math.exp(random.gauss(0, 0.1)) * (times if run % (usual + slow) >= usual else 1)
            for run in range(90)
        ]
        held += [is_held for _, is_held in forecasts([1.0] * 90, seconds)[20:]]
    assert fmean(held) >= 0.85
