"""Several runs in the order of their work, as a search starts from it."""

import numpy as np
import pytest

from kfp_placement_engine.lowering import LoweringOptions, lower, lower_runs
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.genetic import seeds_of
from kfp_placement_engine.search.priorities import priority_rules, run_orders
from tests.support.builders import ROUND_NUMBERS, a_cluster, a_node, a_run, a_step

OPTIONS = LoweringOptions(dispatch="ordered", assumptions=ROUND_NUMBERS)
ONE_AT_A_TIME = a_cluster(a_node("node", cpu=1))


def runs_of(seconds: list[float], weights: list[float]) -> PlacementProblem:
    """A run of one step for each time; the node has room for one at a time."""
    runs = [
        ActiveRun(f"run-{number}", a_run(a_step("only", seconds=each)), weight=weight)
        for number, (each, weight) in enumerate(zip(seconds, weights, strict=True))
    ]
    return lower_runs(runs, ONE_AT_A_TIME, OPTIONS).problem


def orders_of(problem: PlacementProblem):
    return run_orders(problem, priority_rules(problem)["longest-path"])


def order_of(priority) -> list[int]:
    return np.argsort(priority, kind="stable").tolist()


def test_one_run_has_no_order_of_runs():
    problem = lower(a_run(a_step("only")), ONE_AT_A_TIME, OPTIONS).problem
    assert orders_of(problem) == []


@pytest.mark.parametrize(
    ("seconds", "weights", "order"),
    [
        ([30.0, 10.0, 20.0], [1.0, 1.0, 1.0], [1, 2, 0]),
        ([30.0, 10.0, 20.0], [4.0, 1.0, 1.0], [0, 1, 2]),
        ([30.0, 10.0, 20.0], [1.0, 0.0, 1.0], [2, 0, 1]),
        ([0.0, 0.0], [0.0, 0.0], [0, 1]),
    ],
    ids=["least work", "weight", "weight 0 comes last", "nothing to weigh"],
)
def test_the_last_rule_takes_run_after_run(seconds, weights, order):
    assert order_of(orders_of(runs_of(seconds, weights))[-1]) == order


def test_rules_lead_from_half_and_half_to_run_after_run():
    """By path the longest run comes first, by work the shortest: halves of both leave no order."""
    rules = orders_of(runs_of([30.0, 10.0, 20.0], [1.0, 1.0, 1.0]))
    assert rules[0].tolist() == [0.5, 0.5, 0.5]
    assert all(order_of(rule) == [1, 2, 0] for rule in rules[1:])


def test_a_search_starts_where_runs_complete_earliest():
    """Smith's rule is optimal on one machine: 10, 30 and 60 s."""
    problem = runs_of([30.0, 10.0, 20.0], [1.0, 1.0, 1.0])
    starts = [each.schedule for some in seeds_of(problem) for each in some]
    assert min(each.end.sum() for each in starts) == 100.0
