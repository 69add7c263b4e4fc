"""The default scheduler's ties: figures that do not depend on the order of the nodes."""

from itertools import permutations
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from kfp_placement_engine.planning.plan_parts import mean_figures
from kfp_placement_engine.search.baselines import schedules_of
from kfp_placement_engine.search.baselines.default_scheduler import (
    MOST_TIE_BREAKS,
    TIE_BREAK_WORK,
    tie_breaks,
)
from tests.support.builders import (
    a_cluster,
    a_node,
    a_problem,
    a_run,
    a_step,
    cluster_of,
    equal_steps,
    nodes,
    plan_of,
)

if TYPE_CHECKING:
    from kfp_placement_engine.problem.problem import PlacementProblem


def unequal(count):
    """Nodes that look alike to kube-scheduler and differ in speed."""
    return [a_node(f"n{number}", speed=2.0**number) for number in range(count)]


def kube_figures(*members, version=(1, 36), run=None):
    problem = a_problem(
        run or a_run(a_step("a", seconds=16)), a_cluster(*members), kube_version=version
    )
    return mean_figures(problem, schedules_of("kube-default", problem), 0, 0.0)


@pytest.mark.parametrize("version", [(1, 34), (1, 36)])
def test_a_tie_between_unequal_nodes_counts_both(version):
    """One step of 16 s on a node of speed 1 or 2: 16 s or 8 s, whichever is listed first."""
    slow, quick = unequal(2)
    for members in ((slow, quick), (quick, slow)):
        figures = kube_figures(*members, version=version)
        assert (figures.fastest_seconds, figures.slowest_seconds) == (8, 16)
        assert 8 < figures.makespan_seconds < 16
        if version >= (1, 35):
            assert (figures.makespan_seconds, figures.tie_breaks) == (12, 2)


def test_figures_of_few_nodes_do_not_depend_on_their_order():
    """All orders are taken."""
    members = unequal(3)
    run = a_run(*(a_step(f"s{number}", seconds=16 + number) for number in range(5)))
    figures = {kube_figures(*order, run=run) for order in permutations(members)}
    assert len({round(each.makespan_seconds, 9) for each in figures}) == 1
    assert {each.tie_breaks for each in figures} == {6}


def test_each_tie_break_is_the_listing_it_stands_for():
    """As if the cluster's file had that order."""
    members = unequal(4)
    run = a_run(*(a_step(f"s{number}", cpu=number % 3, seconds=9 + number) for number in range(9)))
    problem = a_problem(run, a_cluster(*members))
    for ties, schedule in zip(
        tie_breaks(problem, 0), schedules_of("kube-default", problem), strict=True
    ):
        listed = a_problem(run, a_cluster(*(members[node] for node in ties.listed)))
        expected = schedules_of("kube-default", listed)[0]
        assert schedule.end.tolist() == expected.end.tolist()
        assert schedule.node.tolist() == [int(ties.listed[node]) for node in expected.node]


def test_equal_nodes_have_one_figure():
    """No range is shown where nothing depends on ties."""
    figures = kube_figures(*nodes(3))
    assert (figures.fastest_seconds, figures.slowest_seconds) == (None, None)
    assert figures.makespan_seconds == 16
    assert kube_figures(a_node()).tie_breaks == 1


def test_many_nodes_are_listed_in_some_orders_by_seed():
    """The same ones for the same seed, the given order among them; fewer where a run is large."""
    problem = a_problem(a_run(a_step("a")), cluster_of(9))
    drawn = [[each.listed.tolist() for each in tie_breaks(problem, seed)] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == MOST_TIE_BREAKS
    assert drawn[0][0] == []
    assert all(sorted(order) == list(range(9)) for order in drawn[0][1:])
    large = a_run(*equal_steps(4000))
    assert 1 < len(tie_breaks(a_problem(large, cluster_of(99)), 0)) < MOST_TIE_BREAKS


@pytest.mark.parametrize("steps", [11_000, 16_000, 60_000])
def test_the_largest_runs_are_simulated_once_or_twice(steps):
    """However many nodes there are: their orders are never counted out."""
    one = a_problem(a_run(a_step("a")), cluster_of(300))
    work = steps * 310
    large = SimpleNamespace(nodes=one.nodes, simulation_work=work, tie_rule=one.tie_rule)
    assert len(tie_breaks(cast("PlacementProblem", large), 0)) == max(1, TIE_BREAK_WORK // work)


def test_until_1_34_ties_are_drawn():
    """Of eight equal nodes a single pod takes several, by draw."""
    problem = a_problem(a_run(a_step("a")), cluster_of(8), kube_version=(1, 34))
    schedules = schedules_of("kube-default", problem)
    assert len(schedules) == MOST_TIE_BREAKS
    assert len({int(schedule.node[0]) for schedule in schedules}) > 4


def test_a_plan_is_compared_with_the_mean():
    """The quick node in the plan; kube-default takes it in one of two orders."""
    plan = plan_of(
        a_run(a_step("a", seconds=16)),
        a_cluster(*unequal(2)),
        generations=1,
        compare=("kube-default", "fifo", "heft"),
    )
    assert plan.figures.makespan_seconds == 8
    assert [figures.makespan_seconds for figures in plan.comparison.baselines.values()] == [
        12,
        12,
        8,
    ]
    assert [figures.tie_breaks for figures in plan.comparison.baselines.values()] == [2, 2, 1]
