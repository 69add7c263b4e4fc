"""Runs with branches that exclude each other: one schedule for all outcomes, checked in each."""

from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine import BASELINES, GeneticParams, Schedule, lower_bound, plan_run
from kfp_placement_engine.contract.keys import LATENCY_RULED_TYPES
from kfp_placement_engine.model.concurrency import Branch, ConcurrencyLimit
from kfp_placement_engine.model.run_graph import RunClaim
from kfp_placement_engine.planning.demand_profile import DemandProfile
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.planning.waits import Waits
from kfp_placement_engine.plans.limits import PieceKind
from kfp_placement_engine.search.replays import latest_completions
from kfp_placement_engine.search.simulation import simulate_fullest, simulate_list, simulate_planned
from kfp_placement_engine.search.solve import solve
from kfp_placement_engine.search.stop import MaxGenerations
from tests.engine.planning.invariants import Checker
from tests.engine.planning.random_runs import DISPATCHES, Case, cases
from tests.support.builders import (
    ROUND_NUMBERS,
    a_chain,
    a_cluster,
    a_node,
    a_problem,
    a_run,
    a_step,
    lowered,
    plan_of,
)
from tests.support.outcomes import is_taken, outcome_of, outcomes, with_branches
from tests.support.reference_demand import reference_demand
from tests.support.reference_simulation import Reference, keys_of

QUICK = GeneticParams(exact_below=0, population_size=4)
MOST_OUTCOMES = 30
HOUR = 3600
ONE_GPU = a_cluster(a_node("gpu", cpu=8, extended={"nvidia.com/gpu": 1}))


def in_branch(name, *after, branch, choice="c", around=(), **changes):
    """A step in a branch of a choice."""
    return a_step(name, *after, branches=(*around, Branch(choice, branch)), **changes)


def on_gpu(name, *after, branch, hours, **changes):
    """A step that takes the only GPU."""
    gpu = {"nvidia.com/gpu": 1}
    return in_branch(name, *after, branch=branch, seconds=hours * HOUR, extended=gpu, **changes)


def as_seen_by(low, part, schedule):
    """The rows of a schedule of all outcomes that one outcome has."""
    row_of = {key: row for row, key in enumerate(keys_of(low))}
    rows = [row_of[key] for key in keys_of(part)]
    needs_none = np.array([each.is_join for each in part.activities])
    return Schedule(
        schedule.start[rows],
        schedule.begin[rows],
        schedule.end[rows],
        np.where(needs_none, -1, schedule.node[rows]),
        schedule.pull_seconds[rows],
        schedule.cause[rows],
        schedule.terms,
        np.zeros(len(rows), np.bool_),
    )


def planned_rows(low, placement):
    """Planned node and rank of each step that has a gene."""
    genes = low.problem.arrays.gene
    rows = np.flatnonzero(genes >= 0).tolist()
    nodes = placement.gene_nodes[genes[rows]].tolist()
    names = [low.activities[row].name for row in rows]
    planned = dict(zip(names, (low.problem.node_names[node] for node in nodes), strict=True))
    return planned, dict(zip(names, placement.priority[rows].tolist(), strict=True))


def parts_of(case, run, **options):
    """Each outcome, but not too many: its problem, and its reference."""
    for taken in islice(outcomes(run), MOST_OUTCOMES):
        part = outcome_of(run, taken)
        if part.steps:
            reference = Reference(part, case.cluster, ROUND_NUMBERS, LATENCY_RULED_TYPES)
            yield lowered(part, case.cluster, **options), reference


@settings(max_examples=200)
@given(case=cases(most_steps=8), dispatch=DISPATCHES, seed=st.integers(0, 10**6))
def test_a_plan_holds_in_every_outcome(case, dispatch, seed):
    """In each there is room, for claims too; none ends later than said, and no bound is higher."""
    hold_in_every_outcome(Case(with_branches(case.run, Random(seed)), case.cluster), dispatch)


def hold_in_every_outcome(case, dispatch):
    """Make a plan, and check it in each outcome."""
    run = case.run
    low = case.lowered(dispatch=dispatch)
    result = solve(low.problem, MaxGenerations(3), 1, QUICK)
    schedule = result.schedule
    (latest,) = latest_completions(low.problem, result.placement, schedule)
    if low.problem.unplaceable.any():
        return
    ends = [0.0]
    all_are_replayed = len([*islice(outcomes(run), MOST_OUTCOMES + 1)]) <= MOST_OUTCOMES
    for part, reference in parts_of(case, run, dispatch=dispatch):
        checker = Checker(reference, part, as_seen_by(low, part, schedule), ours=False)
        assert [fault for fault in checker.faults() if "is on" not in fault] == []
        if all_are_replayed:
            again = reference.simulate(dispatch, *planned_rows(low, result.placement))
            ends.append(max(pod.end for pod in again.values()))
    assert max(ends) <= latest
    assert lower_bound(low.problem).seconds <= (max(ends) if all_are_replayed else latest)


def places_taken(run, low, schedule, held):
    """Of each step: its waits for the only limit, and when it has a place of it."""
    waits, spans = [], []
    for row in range(len(run.steps)):
        ready = schedule.end[low.problem.arrays.before(row)].max(initial=0.0)
        own = [
            wait
            for wait in Waits(low.problem, schedule).before_bind(row, ready)
            if wait.kind is PieceKind.LIMIT
        ]
        waits.append(own)
        let_in = max([ready, *(wait.finish_seconds for wait in own)])
        spans.append((let_in, schedule.end[row] if run.steps[row].name in held else let_in))
    return waits, spans


@settings(max_examples=200)
@given(seed=st.integers(0, 10**6))
def test_none_waits_for_a_place_that_is_free_in_its_outcomes(seed):
    """While a step waits for a limit, some outcome in which it runs takes all places."""
    random = Random(seed)
    names = [f"s{number}" for number in range(random.randint(3, 9))]
    steps = [
        a_step(name, *random.sample(names[:at], random.randrange(2) if at else 0), seconds=1 + at)
        for at, name in enumerate(names)
    ]
    random.shuffle(steps)
    held = random.sample(names, random.randint(3, len(names)))
    limit = ConcurrencyLimit("lock", random.randint(1, 2), tuple((name,) for name in held))
    run = with_branches(replace(a_run(*steps), limits=(limit,)), random, failures=False)
    # What depends on a step that may not run is in its branch: else it may be ready with others.
    branches: dict[str, Any] = {step.name: step.branches for step in run.steps}
    for name in names:
        (before,) = run.step(name).depends_on or ("",)
        branches[name] = branches.get(before) or branches[name]
    run = replace(
        run, steps=tuple(replace(each, branches=branches[each.name]) for each in run.steps)
    )
    if len([*islice(outcomes(run), 200)]) == 200:
        return
    case = Case(run, a_cluster(a_node(cpu=9)))
    hold_in_every_outcome(case, "ready")
    low = case.lowered()
    schedule = BASELINES["kube-default"](low.problem, 0)
    waits, spans = places_taken(run, low, schedule, held)
    for step, own in zip(run.steps, waits, strict=True):
        beside = [
            [
                span
                for other, span in zip(run.steps, spans, strict=True)
                if is_taken(other.branches, taken)
            ]
            for taken in outcomes(run)
            if is_taken(step.branches, taken)
        ]
        for wait in own:
            for now in {wait.start_seconds, *(end for _, end in spans)}:
                if wait.start_seconds <= now < wait.finish_seconds:
                    most = max(sum(start <= now < end for start, end in each) for each in beside)
                    assert most >= limit.most


@settings(max_examples=60)
@given(
    case=cases(most_steps=8),
    way=st.sampled_from(["kube-default", "fifo", "heft", "list", "backfill", "fullest"]),
    seed=st.integers(0, 10**6),
)
def test_other_ways_of_deciding_hold_in_every_outcome(case, way, seed):
    run = with_branches(case.run, Random(seed))
    low = lowered(run, case.cluster)
    problem = low.problem
    if problem.unplaceable.any():
        return
    order = np.arange(problem.activities, dtype=np.float64)
    first = np.array([np.flatnonzero(row)[0] for row in problem.arrays.allowed], np.int64)
    others = {
        "list": lambda: simulate_list(problem, order),
        "fullest": lambda: simulate_fullest(problem, order),
        "backfill": lambda: simulate_planned(problem, first, order),
    }
    schedule = others[way]() if way in others else BASELINES[way](problem, 0)
    for part, reference in parts_of(case, run):
        checker = Checker(reference, part, as_seen_by(low, part, schedule), ours=False)
        assert [fault for fault in checker.faults() if "is on" not in fault] == []


@pytest.mark.parametrize("dispatch", ["ready", "ordered"])
def test_branches_share_the_only_gpu(dispatch):
    """If takes 3 h, Else 2 h: the run takes 3 h, whatever happens, and no plan is shorter."""
    run = a_run(on_gpu("if", branch="if", hours=3), on_gpu("else", branch="else", hours=2))
    plan = plan_of(run, ONE_GPU, generations=5, dispatch=dispatch, compare=tuple(BASELINES))
    assert plan.figures.makespan_seconds == 3 * HOUR
    assert plan.comparison.lower_bound.seconds == pytest.approx(3 * HOUR)
    ends = {name: each.makespan_seconds for name, each in plan.comparison.baselines.items()}
    assert ends == dict.fromkeys(BASELINES, 3 * HOUR)


def test_a_branch_takes_what_the_largest_of_its_own_choices_takes():
    """Of 4 cores `a` and its inner choice take 1 + 2, `b` takes 3: one core is left."""
    a = Branch("outer", "a")
    run = a_run(
        in_branch("a0", choice="outer", branch="a"),
        in_branch("a1", choice="inner", branch="x", around=(a,), cpu=2),
        in_branch("a2", choice="inner", branch="y", around=(a,), cpu=1),
        in_branch("b", choice="outer", branch="b", cpu=3),
        a_step("always"),
    )
    assert plan_of(run, a_cluster(a_node(cpu=4)), generations=5).figures.makespan_seconds == 10
    assert plan_of(run, a_cluster(a_node(cpu=3)), generations=5).figures.makespan_seconds == 20


def test_steps_of_different_choices_do_not_share_room():
    run = a_run(in_branch("a", choice="c", branch="if"), in_branch("b", choice="d", branch="if"))
    assert plan_of(run, a_cluster(a_node(cpu=1)), generations=5).figures.makespan_seconds == 20


def test_a_step_does_not_wait_for_a_branch_that_excludes_its_own():
    """`if` then `else`, one after another, as steps of Argo are; `last` waits for both."""
    run = a_run(
        a_step("first"),
        in_branch("if", "first", branch="if", seconds=30),
        in_branch("else", "if", branch="else", seconds=20),
        a_step("last", "else"),
    )
    plan = plan_of(run, a_cluster(a_node(cpu=1)), generations=5)
    assert {step.name: step.start_seconds for step in plan.steps} == {
        "first": 0,
        "if": 10,
        "else": 10,
        "last": 40,
    }


def test_a_pod_at_a_time_has_a_claim_in_each_outcome():
    claim = RunClaim("lock", ("ReadWriteOncePod",))
    steps = [in_branch(name, branch=name, claims=["lock"]) for name in ("if", "else")]
    run = replace(a_run(*steps, a_step("always", claims=["lock"])), claims=(claim,))
    assert plan_of(run, a_cluster(a_node()), generations=5).figures.makespan_seconds == 20


@pytest.mark.parametrize("dispatch", ["ready", "ordered"])
@pytest.mark.parametrize("waits_with_place", [True, False])
def test_branches_share_the_places_of_a_limit(dispatch, waits_with_place):
    """One place: If takes 3 h, Else 2 h, and `always` 1 h beside either; no plan is shorter."""
    steps = (
        in_branch("if", branch="if", seconds=3 * HOUR),
        in_branch("else", branch="else", seconds=2 * HOUR),
        a_step("always", seconds=HOUR),
    )
    holders = tuple((step.name,) for step in steps)
    limit = ConcurrencyLimit("lock", 1, holders, waits_with_place)
    run = replace(a_run(*steps), limits=(limit,))
    plan = plan_of(
        run, a_cluster(a_node()), generations=5, dispatch=dispatch, compare=tuple(BASELINES)
    )
    assert plan.figures.makespan_seconds == 4 * HOUR
    assert plan.comparison.lower_bound.seconds == pytest.approx(4 * HOUR)
    ends = {name: each.makespan_seconds for name, each in plan.comparison.baselines.items()}
    assert ends == dict.fromkeys(BASELINES, 4 * HOUR)


def test_what_excludes_a_holder_that_came_first_finds_a_place_beside_it():
    """Once `first` ends, `later` may try again; but `else` comes first, and `if` beside it."""
    steps = (
        a_step("first", seconds=3),
        in_branch("else", "first", branch="else", seconds=5),
        a_step("later"),
        in_branch("if", branch="if", seconds=4),
    )
    limit = ConcurrencyLimit("lock", 1, (("first",), ("later",), ("if",), ("else",)))
    plan = plan_of(replace(a_run(*steps), limits=(limit,)), a_cluster(a_node()), limits=True)
    assert {step.name: step.start_seconds for step in plan.steps} == {
        "first": 0,
        "else": 3,
        "later": 8,
        "if": 3,
    }


def test_a_bound_takes_no_chain_through_steps_that_exclude_each_other():
    """With `if` the run takes 30 + 1 s, and without it 1 + 20 s."""
    run = a_run(
        in_branch("if", branch="if", seconds=30),
        a_step("between", "if", seconds=1),
        in_branch("else", "between", branch="else", seconds=20),
    )
    assert lower_bound(a_problem(run, a_cluster(a_node()))).seconds == pytest.approx(31)


def test_a_branch_does_not_count_on_the_image_that_another_one_has_pulled():
    """The image takes 2 s; `else` begins later, and would find it if both ran."""
    run = a_run(
        in_branch("if", branch="if", image="tool:1"),
        a_step("wait", seconds=5),
        in_branch("else", "wait", branch="else", image="tool:1"),
        in_branch("more", "else", branch="else", image="tool:1"),
    )
    problem = a_problem(run, a_cluster(a_node()))
    pulls = solve(problem, MaxGenerations(3)).schedule.pull_seconds.tolist()
    assert pulls == [2.0, 0.0, 2.0, 0.0]


def test_the_end_does_not_wait_for_what_runs_only_after_a_failure():
    """It gets the room that others leave, and takes none of theirs."""
    run = a_run(
        *a_chain(10, 10),
        a_step("alarm", "s0", seconds=500, after_failure=True),
        a_step("last", "s1", "alarm"),
    )
    plan = plan_of(run, a_cluster(a_node(cpu=1)), generations=5)
    assert plan.figures.makespan_seconds == 30
    assert plan.comparison.lower_bound.seconds == pytest.approx(30)
    alarm = plan.step("alarm")
    assert (alarm.node, alarm.start_seconds) == ("n1", 20)


@settings(max_examples=60)
@given(case=cases(("plain", "direct"), most_steps=8), seed=st.integers(0, 10**6))
def test_the_demand_is_the_most_of_all_outcomes(case, seed):
    run = with_branches(case.run, Random(seed))
    plan = plan_run(run, case.cluster, PlanOptions(quick=True))
    # What runs only after a failure counts as if it ran.
    counted = replace(run, steps=tuple(replace(each, after_failure=False) for each in run.steps))
    peaks: list[Any] = [{}]
    for taken in islice(outcomes(run), 200):
        part = outcome_of(counted, taken)
        names = {step.name for step in part.steps}
        steps = tuple(step for step in plan.steps if step.name in names)
        peaks.append(reference_demand(replace(plan, steps=steps), part).peak)
    names = {name for peak in peaks for name in peak}
    expected = {name: max(peak.get(name, 0) for peak in peaks) for name in names}
    if len(peaks) < 200 and not plan.unschedulable:
        assert DemandProfile(plan, run).left().peak == expected


def test_the_use_of_a_node_is_that_of_the_outcome_that_takes_most():
    run = a_run(on_gpu("if", branch="if", hours=3), on_gpu("else", branch="else", hours=2))
    plan = plan_of(run, ONE_GPU, generations=5, limits=True)
    assert plan.figures.use["nvidia.com/gpu"] == 1.0
    assert [each.share for each in plan.limits.binding_resources] == [1.0]


def test_a_step_waits_for_what_may_run_beside_it():
    """`after` waits for `if`, which has the node for longer, and not for `else`."""
    run = a_run(
        in_branch("if", branch="if", seconds=30),
        in_branch("else", branch="else", seconds=20),
        a_step("after", seconds=1),
    )
    plan = plan_of(run, a_cluster(a_node(cpu=1)), generations=5, dispatch="ordered", limits=True)
    path = plan.limits.critical_path
    assert plan.figures.makespan_seconds == 31
    assert {piece.step for piece in path} <= {"if", "after"}


def test_many_branches_of_one_choice_are_planned_in_time():
    steps = [in_branch(f"s{number}", branch=str(number)) for number in range(10_000)]
    plan = plan_of(a_run(*steps), a_cluster(a_node(cpu=1), a_node("n2", cpu=1)), quick=True)
    assert plan.figures.makespan_seconds == 10
