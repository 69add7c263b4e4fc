"""The last values of an iteration: what is kept of them, and in how many bytes."""

import gc
import math
import tracemalloc
from collections import defaultdict

import pytest

from kfp_placement_engine.history import History
from kfp_placement_engine.history.iterations import Iteration
from kfp_placement_engine.model.history import Observation, StepIdentity

NO_FACTORS: defaultdict[str, float] = defaultdict(float)


def kept(values, most=20):
    iteration = Iteration("a")
    for log_seconds, node, size in values:
        iteration.add(log_seconds, node, size, most)
    return iteration


def test_the_last_values_are_kept_as_they_were():
    iteration = kept([(each / 7, "n", None) for each in range(30)])
    assert len(iteration) == 20
    expected = [each / 7 for each in range(10, 30)]
    assert iteration.log_seconds(NO_FACTORS) == pytest.approx(expected, abs=1e-6)
    assert iteration.log_seconds(NO_FACTORS, last=2) == pytest.approx(expected[-2:], abs=1e-6)


def test_values_are_as_on_a_node_of_factor_1():
    iteration = kept([(3.0, "slow", None), (2.0, "plain", None)])
    assert iteration.log_seconds({"slow": 0.5, "plain": 0.0}) == [2.5, 2.0]


def test_sizes_are_those_of_their_values():
    """Also if the first is known late, and where one is not known."""
    assert list(kept([(1.0, "n", None)] * 3).input_bytes) == []
    iteration = kept([(1.0, "n", size) for size in (None, None, 5e6, None, 7e6)], most=4)
    assert list(iteration.input_bytes) == pytest.approx([math.nan, 5e6, math.nan, 7e6], nan_ok=True)
    assert iteration.last_input_bytes == 7e6
    assert math.isnan(kept([(1.0, "n", 5e6), (1.0, "n", None)]).last_input_bytes)


def test_arguments_are_those_of_their_values():
    """Where they are others than before, those of before are not known."""
    assert (kept([(1.0, "n", None)] * 3).arguments, kept([]).last_arguments) == ((), ())
    iteration = kept([(1.0, "n", None)])
    for number, given in enumerate([(), (5.0,), (), (7.0, 8.0), (9.0, 1.0), ()]):
        iteration.add(number, "n", None, 4, given)
        assert iteration.last_arguments == given
    assert list(iteration.arguments) == [(), (7.0, 8.0), (9.0, 1.0), ()]
    for most, expected in ((2, [(), (3.0, 3.0)]), (3, [(), (3.0, 3.0), (3.0, 3.0)])):
        iteration.add(1.0, "n", None, most, (3.0, 3.0))
        assert list(iteration.arguments) == expected


def test_fewer_are_kept_once_the_loop_is_wider_and_more_once_it_is_not():
    iteration = kept([(float(each), f"n{each}", each * 1e6) for each in range(20)])
    for most, expected in ((5, [16, 17, 18, 19, 20]), (7, [16, 17, 18, 19, 20, 20])):
        iteration.add(20.0, "n20", 20e6, most)
        assert iteration.log_seconds(NO_FACTORS) == expected
        assert list(iteration.input_bytes) == [each * 1e6 for each in expected]


def test_a_kept_value_takes_few_bytes():
    """With all that is learned from it; as objects each value took 400."""
    steps = [StepIdentity("churn", f"step-{number}", image="trainer:1") for number in range(200)]
    tracemalloc.start()
    try:
        history = History()
        for run in range(20):
            history.observe([Observation(step, 60.0 + run, f"n{run}") for step in steps])
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / (200 * 20) < 80
