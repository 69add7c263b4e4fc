"""Several runs of which the last should not end too late: `makespan`, and `makespanWithin`."""

import math
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine import (
    ActiveRun,
    LoweringOptions,
    PlacementProblem,
    PlanOptions,
    plan_run,
    plan_runs,
)
from kfp_placement_engine.exceptions import PlanningError, QuantityError
from kfp_placement_engine.lowering import lower_runs
from kfp_placement_engine.model.objective import (
    MakespanWithin,
    ResourceWeights,
    parse_makespan_within,
)
from kfp_placement_engine.planning.plan_options import within_makespan
from kfp_placement_engine.search.baselines import schedules_of
from kfp_placement_engine.search.fitness import OBJECTIVES, better
from kfp_placement_engine.search.genetic import seeds_of, starting_schedules
from tests.engine.planning.random_runs import DISPATCHES, cases
from tests.support.builders import (
    ROUND_NUMBERS,
    a_cluster,
    a_node,
    a_run,
    a_step,
    cluster_of,
    searched,
)

LIMITS = st.one_of(
    st.none(),
    st.builds(lambda percent: MakespanWithin(percent=percent), st.sampled_from([0.0, 3.0, 40.0])),
    st.builds(lambda seconds: MakespanWithin(seconds=seconds), st.sampled_from([0.0, 12.0, 60.0])),
)
OPTIONS = PlanOptions(
    generations=40, threads=1, assumptions=ROUND_NUMBERS, compare=(), dispatch="ordered"
)

LOWERING = LoweringOptions(assumptions=ROUND_NUMBERS, dispatch="ordered")

RUNS = [
    ActiveRun("long", a_run(a_step("long", seconds=60))),
    *(ActiveRun(f"short-{n}", a_run(a_step("short", seconds=10))) for n in range(3)),
]
"""A run of 60 s and three of 10 s."""

CLUSTER = a_cluster(a_node("quick", cpu=1), a_node("slow", cpu=1, speed=0.5))
"""A CPU of speed 1 and one of half of it.

Completions are best with the short runs first; the end of all with the long one at once.
"""


def ends(**options) -> dict[str, float]:
    planned = plan_runs(RUNS, CLUSTER, replace(OPTIONS, **options))
    return {key: plan.figures.makespan_seconds for key, plan in planned.plans.items()}


def test_completions_come_first_unless_the_latest_end_does():
    """Short runs on the quick node before the long one, or all of them on the slow one."""
    by_completion, by_makespan = ends(), ends(objective="makespan")
    assert sum(by_completion.values()) == 10 + 20 + 20 + 80
    assert max(by_completion.values()) == 80
    assert sum(by_makespan.values()) == 60 + 20 + 40 + 60
    assert max(by_makespan.values()) == 60


@pytest.mark.parametrize(
    ("within", "latest"),
    [
        ("60s", 60),
        ("70s", 70),
        ("75s", 70),
        ("80s", 80),
        ("0%", 60),
        ("20%", 70),
        ("50%", 80),
        ("10s", 60),
        ("0s", 60),
    ],
)
def test_completions_are_best_within_the_limit(within, latest):
    """Of a limit that no plan keeps, the plan that is nearest to it: 60 s is the least."""
    run_ends = ends(makespan_within=parse_makespan_within(within))
    assert max(run_ends.values()) == latest
    assert sum(run_ends.values()) == {60: 180, 70: 140, 80: 130}[latest]


def test_a_limit_counts_from_the_shortest_plan_that_the_search_starts_from():
    """It is fixed before the search, and a percentage of it is added."""
    low = lower_runs(RUNS, CLUSTER, LOWERING)
    start = list(starting_schedules(low.problem, 5))
    seeds = chain.from_iterable(seeds_of(low.problem, 5))
    shortest = min(each.schedule.makespan_seconds for each in seeds)
    limited = within_makespan(low.problem, MakespanWithin(percent=3), start)
    assert limited.makespan_limit_seconds == pytest.approx(1.03 * shortest)
    assert limited.end_limit_seconds == limited.makespan_limit_seconds
    assert not limited.is_completion_first
    assert low.problem.is_completion_first
    with pytest.raises(PlanningError, match="of no plan; give at least one"):
        within_makespan(low.problem, MakespanWithin(percent=3), [])


@pytest.mark.parametrize("objective", [each for each in OBJECTIVES if each != "completion"])
def test_other_objectives_have_no_limit(objective):
    problem = lower_runs(RUNS, CLUSTER, LoweringOptions(objective=objective)).problem
    assert within_makespan(problem, MakespanWithin(seconds=1), []) is problem


def test_one_run_completes_at_its_latest_end():
    """No limit decides, which its plan says; nor does `makespan` differ from `completion`."""
    run = a_run(a_step("a"), a_step("b", "a"), a_step("c", seconds=15))
    cluster = cluster_of(2, cpu=1)
    plans = {
        "completion": plan_run(run, cluster, OPTIONS),
        "makespan": plan_run(run, cluster, replace(OPTIONS, objective="makespan")),
        "limited": plan_run(
            run, cluster, replace(OPTIONS, makespan_within=MakespanWithin(percent=3))
        ),
    }
    assert plans["makespan"].steps == plans["completion"].steps == plans["limited"].steps
    assert plans["completion"].notices == plans["makespan"].notices
    (notice,) = set(plans["limited"].notices) - set(plans["completion"].notices)
    assert notice.code == "makespan-within-unused"
    assert notice.message.startswith("makespanWithin 3% decides nothing here")


def test_plans_at_once_keep_the_limit_as_well():
    """Of the few that they choose from."""
    quick = replace(OPTIONS, quick=True, makespan_within=MakespanWithin(percent=0))
    planned = plan_runs(RUNS, CLUSTER, quick)
    assert planned.makespan_seconds <= planned.makespan_limit_seconds
    assert plan_runs(RUNS, CLUSTER, replace(OPTIONS, quick=True)).makespan_limit_seconds == math.inf


@settings(max_examples=150)
@given(
    drawn=st.lists(cases(("plain", "kfp"), most_steps=4), min_size=2, max_size=3),
    dispatch=DISPATCHES,
    objective=st.sampled_from(OBJECTIVES),
    within=LIMITS,
    seed=st.integers(0, 3),
)
def test_no_plan_to_start_from_is_better(drawn, dispatch, objective, within, seed):
    """In the objective's own order, baselines included; terms are what the schedule shows."""
    problem = several(drawn, dispatch, objective)
    problem = within_makespan(problem, within, starting_schedules(problem, seed))
    best = searched(problem, 20, seed, threads=1).schedule
    assert best.terms.tolist() == pytest.approx(expected_terms(problem, best)), objective
    for start in starting_schedules(problem, seed):
        assert not better(start.terms, best.terms)
    if problem.arrays.exclusive.size == 0 and problem.arrays.claims.size == 0:
        names = ["heft", "random", "kube-default"] + (["fifo"] if dispatch == "ordered" else [])
        for name in names:
            for schedule in schedules_of(name, problem, seed):
                assert not better(schedule.terms, best.terms), name


def several(drawn, dispatch: str, objective: str) -> PlacementProblem:
    """Runs on the cluster of the first, of different weights."""
    runs = [
        ActiveRun(f"run-{number}", case.run, weight=1 + number / 2)
        for number, case in enumerate(drawn)
    ]
    options = LoweringOptions(assumptions=ROUND_NUMBERS, dispatch=dispatch, objective=objective)
    return lower_runs(runs, drawn[0].cluster, options).problem


def expected_terms(problem, schedule) -> list[float]:
    """The same terms; those that the limit and the completions decide computed once more."""
    arrays, terms = problem.arrays, schedule.terms.tolist()
    ends = np.zeros(arrays.run_weight.size)
    np.maximum.at(ends, arrays.run[schedule.finished], schedule.end[schedule.finished])
    completions = float(arrays.run_weight @ ends)
    if problem.is_completion_first:
        return [*terms[:2], completions, *terms[3:]]
    first = terms[2]
    if problem.objective in ("completion", "makespan"):
        first = max(0.0, float(ends.max()) - problem.end_limit_seconds)
    return [*terms[:2], first, completions, terms[4]]


@pytest.mark.parametrize(
    ("text", "within"),
    [
        ("3%", MakespanWithin(percent=3)),
        ("0.5%", MakespanWithin(percent=0.5)),
        ("20m", MakespanWithin(seconds=1200)),
        ("1h30m", MakespanWithin(seconds=5400)),
        ("0s", MakespanWithin(seconds=0)),
    ],
)
def test_limits_are_read_and_written(text, within):
    assert parse_makespan_within(text) == within
    assert parse_makespan_within(within.text) == within


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-3%", "'-3%' is negative; give 0% or more, or a time such as 20m"),
        ("-20m", "'-20m' is negative; give 0% or more"),
        (-5, "-5 is not a limit of the makespan; write for example 3% or 20m"),
        (3, "3 is not a limit of the makespan"),
        ("90", "'90' is not a limit of the makespan"),
        ("3 percent", "'3 percent' is not a duration; write for example 20m"),
        ("%", "'%' is not a percentage; write for example 3%"),
        ("1001%", "makespanWithin 1001% is out of range; give a percentage from 0% to 1000%"),
        ("9000h", "makespanWithin 9000h is out of range"),
    ],
)
def test_a_limit_that_is_none_is_refused(text, message):
    with pytest.raises(QuantityError, match=message):
        parse_makespan_within(text)


def test_a_limit_is_a_percentage_or_a_time():
    for fields in ({}, {"seconds": 1.0, "percent": 1.0}):
        with pytest.raises(PlanningError, match="a percentage or a time, not both"):
            MakespanWithin(**fields)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"cpu": -1.0}, "weights: cpu is -1.0; give a number from 0 to 1,000,000"),
        ({"memory": math.nan}, "weights: memory is nan; give a number from 0"),
        ({"cpu": 0.0, "memory": 0.0}, "cpu and memory are both 0; give at least one"),
    ],
)
def test_weights_that_weigh_nothing_are_refused(weights, message):
    with pytest.raises(PlanningError, match=message):
        ResourceWeights(**weights)


def test_weights_decide_which_node_the_paper_s_objective_prefers():
    """Eq. (1) values a share of a small node more: of CPU on one, of memory on the other."""
    run = a_run(a_step("a", cpu=1, memory=1))
    cluster = a_cluster(a_node("cpu", cpu=2, memory=64), a_node("memory", cpu=64, memory=2))
    for weights, node in ((ResourceWeights(1, 0), "cpu"), (ResourceWeights(0, 1), "memory")):
        options = replace(OPTIONS, objective="paper", weights=weights)
        assert plan_run(run, cluster, options).step("a").node == node


def test_a_search_starts_where_runs_complete_earliest():
    """Smith's rule is optimal on one machine: 10, 30 and 60 s."""
    runs = [
        ActiveRun(f"run-{seconds}", a_run(a_step("only", seconds=seconds)))
        for seconds in (30, 10, 20)
    ]
    problem = lower_runs(runs, cluster_of(1, cpu=1), LOWERING).problem
    assert min(each.end.sum() for each in starting_schedules(problem, 0)) == 100.0
