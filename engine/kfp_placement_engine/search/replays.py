"""Replays of a plan, one outcome after another: some end later than the schedule of all outcomes.

Where no step waits for its turn, a branch that is not taken leaves its room to steps that others
should have had it before (an anomaly of list scheduling, Graham 1969), and kube-scheduler may put
driver pods elsewhere. A module of its own because the search itself knows only the schedule of all.
"""

import math
from collections.abc import Iterator
from random import Random

import numpy as np

from kfp_placement_engine.problem.outcomes import taken_activities, without
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, PlacementProblem
from kfp_placement_engine.problem.schedule import Schedule, completions
from kfp_placement_engine.search.simulation import simulate

MOST_OUTCOMES = 64
"""Largest number of outcomes that are replayed; of more, as many are drawn."""

REPLAY_WORK = 50_000_000
"""Work of all replays together (`PlacementProblem.simulation_work`): about half a second."""


def latest_completions(
    problem: PlacementProblem, placement: Placement, schedule: Schedule
) -> Floats:
    """Return [runs] the latest end of each run, by a plan's schedule and by replays of outcomes."""
    latest = completions(problem, schedule)
    if not problem.arrays.branch_choice.size:
        return latest
    most = min(MOST_OUTCOMES, REPLAY_WORK // problem.simulation_work)
    for chosen in _outcomes(problem, most):
        outcome = without(problem, ~taken_activities(problem.arrays, chosen))
        latest = np.maximum(latest, completions(outcome, simulate(outcome, placement)))
    return latest


def _outcomes(problem: PlacementProblem, most: int) -> Iterator[list[int]]:
    """Yield outcomes, all or some of them: the branch that each choice takes; -1 = none."""
    arrays = problem.arrays
    options: list[list[int]] = [[-1] for _ in range(arrays.choice_around.size)]
    for branch, choice in enumerate(arrays.branch_choice.tolist()):
        if not arrays.choice_aside[choice]:
            options[choice].append(branch)
    count = math.prod(map(len, options))
    if count <= most:
        for number in range(count):
            chosen = []
            for each in options:
                number, at = divmod(number, len(each))
                chosen.append(each[at])
            yield chosen
        return
    random = Random(0)
    for _ in range(most):
        yield [random.choice(each) for each in options]
