"""Packing: each node takes the set of ready steps that fills it most."""

from itertools import product
from random import Random

import numpy as np
import pytest

from kfp_placement_engine import lower_bound
from kfp_placement_engine.search.priorities import upward_ranks
from kfp_placement_engine.search.simulation import simulate_fullest
from tests.support.builders import a_problem, a_run, a_step, cluster_of

SIZES = (7, 5, 3)


def packed(problem):
    return simulate_fullest(problem, -upward_ranks(problem))


def steps_of_few_sizes(seed):
    """Steps of one duration and a few sizes."""
    random = Random(seed)
    return a_run(
        *(a_step(f"s{number}", cpu=random.choice(SIZES), seconds=100) for number in range(120))
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cpu", [15, 17, 22])
def test_equal_steps_are_packed_as_well_as_they_can_be(seed, cpu):
    """The bound is reached, which no list schedule of these cases does for all of them."""
    problem = a_problem(steps_of_few_sizes(seed), cluster_of(3, cpu=cpu), dispatch="ordered")
    assert packed(problem).makespan_seconds == pytest.approx(lower_bound(problem).seconds)


@pytest.mark.parametrize("seed", range(20))
def test_no_other_set_fills_the_first_node_more(seed):
    random = Random(seed)
    sizes = [random.randint(1, 9) for _ in range(9)]
    cpu = random.randint(9, 25)
    run = a_run(*(a_step(f"s{number}", cpu=size) for number, size in enumerate(sizes)))
    problem = a_problem(run, cluster_of(2, cpu=cpu), dispatch="ordered")
    schedule = packed(problem)
    first = (schedule.node == 0) & (schedule.start == 0)
    filled = problem.arrays.requests[first, 0].sum() / 1000
    sets = (np.dot(chosen, sizes) for chosen in product((0, 1), repeat=len(sizes)))
    assert filled == max(amount for amount in sets if amount <= cpu)
