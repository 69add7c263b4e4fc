"""Lower bounds by hand: which of them holds, and why."""

import importlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine import (
    ActiveRun,
    LoweringOptions,
    ProgressState,
    StepProgress,
    lower_bound,
)
from kfp_placement_engine.bounds.nested_holders import together_seconds
from kfp_placement_engine.lowering import lower_runs
from kfp_placement_engine.model.run_graph import Group, GroupKind
from kfp_placement_engine.search.baselines.brute_force import brute_force
from kfp_placement_engine.search.baselines.default_scheduler import kube_default
from kfp_placement_engine.search.baselines.heft import heft
from tests.support.builders import (
    ROUND_NUMBERS,
    a_chain,
    a_cluster,
    a_kfp_run,
    a_loop,
    a_node,
    a_problem,
    a_run,
    a_step,
    cluster_of,
    equal_steps,
    nodes,
)

OPTIONS = LoweringOptions(assumptions=ROUND_NUMBERS)


def bound_of(run, *members, **options):
    return lower_bound(a_problem(run, a_cluster(*members), **options))


def test_a_chain_is_bound_by_its_length():
    run = a_run(a_step("a"), a_step("b", "a"), a_step("c", "b"))
    bound = bound_of(run, *nodes(3))
    assert (bound.kind, bound.seconds) == ("critical-path", pytest.approx(30))


def test_each_step_counts_at_its_quickest_node():
    run = a_run(a_step("a"), a_step("b", "a", cpu=4))
    bound = bound_of(run, a_node("small", cpu=2, speed=4.0), a_node("large", cpu=4, speed=2.0))
    assert bound.seconds == pytest.approx(10 / 4 + 10 / 2)


def test_independent_steps_are_bound_by_their_area():
    run = a_run(*equal_steps(8, cpu=2.5), a_step("tiny", seconds=0))
    bound = bound_of(run, a_node(cpu=5))
    assert bound.seconds == pytest.approx(40)


def test_what_must_come_before_and_after_is_no_time_for_the_area():
    """Eight steps on four CPUs take 20 s, between 10 s before and 10 s after."""
    middle = equal_steps(8, "first")
    last = a_step("last", *(step.name for step in middle))
    run = a_run(a_step("first"), *middle, last)
    bound = bound_of(run, a_node(cpu=4))
    assert (bound.kind, bound.seconds) == ("area", pytest.approx(40))
    assert heft(a_problem(run, a_cluster(a_node(cpu=4))), 0).makespan_seconds == pytest.approx(40)


def test_late_steps_are_bound_though_early_ones_leave_room():
    """One long step aside, eight steps of 4 CPU follow a step of 10 s one after the other."""
    late = equal_steps(8, "first", cpu=4)
    run = a_run(a_step("first"), *late)
    assert bound_of(run, a_node(cpu=4)).seconds == pytest.approx(90)


def nested(outer_limit, inner_limit, *, last=False):
    """Three iterations of: a loop of four times 1 + 1 + 10 s; optionally a step after each loop."""
    groups = list(a_loop("out", width=3, parallelism=outer_limit))
    steps = []
    for number in range(3):
        around = f"out[{number}]"
        groups.append(Group(f"{around}.in", GroupKind.LOOP, around, (), inner_limit, 4))
        inner = [f"{around}.in[{index}]" for index in range(4)]
        groups += [Group(name, GroupKind.ITERATION, f"{around}.in") for name in inner]
        work = [a_step(f"{name}.work", group=name) for name in inner]
        steps += work
        if last:
            steps.append(a_step(f"{around}.last", *(step.name for step in work), group=around))
    return a_kfp_run(*steps, groups=groups)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(("outer_limit", "inner_limit"), [(1, 1), (1, 2), (3, 2), (1, 0), (0, 1)])
def test_a_loop_inside_a_loop_makes_its_iterations_longer(outer_limit, inner_limit, last):
    """Root and outer loop 1 s each; an iteration: 1 s, the inner loop 1 s, its work; driver, step.

    With room for all, and limits that divide the widths, nothing else takes time.
    """
    problem = a_problem(nested(outer_limit, inner_limit, last=last), a_cluster(a_node(cpu=99)))
    iteration = 1 + 1 + 4 * 12 / (inner_limit or 4) + (11 if last else 0)
    seconds = 1 + 1 + 3 * iteration / (outer_limit or 3)
    assert lower_bound(problem).seconds == pytest.approx(seconds)
    assert kube_default(problem, 0).makespan_seconds == pytest.approx(seconds)


@pytest.mark.parametrize(("limit", "rounds"), [(2, 4), (3, 3), (4, 2), (5, 2), (6, 2), (7, 1)])
def test_equal_iterations_of_a_loop_take_whole_rounds(limit, rounds):
    """Seven iterations of 1 + 1 + 10 s: the last round takes as long as the others."""
    steps = [a_step(f"work[{index}]", group=f"loop[{index}]") for index in range(7)]
    run = a_kfp_run(*steps, groups=a_loop("loop", width=7, parallelism=limit))
    problem = a_problem(run, a_cluster(a_node(cpu=99)))
    assert lower_bound(problem).seconds == pytest.approx(1 + 1 + rounds * 12)
    assert kube_default(problem, 0).makespan_seconds == pytest.approx(1 + 1 + rounds * 12)


@pytest.mark.parametrize(
    ("limit", "spans", "seconds"),
    [
        (2, [], 0),
        (2, [4], 4),
        (1, [4, 3, 2], 9),
        (2, [5, 5, 5], 10),
        (2, [9, 1, 1], 9),
        (2, [6, 5, 4], 9),
        (2, [5, 5, 4, 4, 4], 12),
        (3, [7, 7, 6, 6, 5, 5, 5], 15),
    ],
)
def test_iterations_take_no_less_than_jobs_on_equal_machines(limit, spans, seconds):
    """These bounds are reached: by the even share, the longest, or the shortest of the longest."""
    assert together_seconds(limit, spans) == pytest.approx(seconds)


def test_iterations_that_were_started_beyond_the_limit_all_run():
    """Three of 12 s that a limit of one should not have let in, and one to come: 24 s, not 48."""
    steps = [a_step(f"work[{index}]", group=f"loop[{index}]") for index in range(4)]
    run = a_kfp_run(*steps, groups=a_loop("loop", width=4, parallelism=1))
    begun = {f"work[{n}]": StepProgress(ProgressState.RUNNING, "n1", 0.0) for n in range(3)}
    active = ActiveRun("run", run, progress=begun)
    problem = lower_runs([active], a_cluster(a_node(cpu=99)), OPTIONS).problem
    assert problem.arrays.holder_started.sum() == 3
    assert lower_bound(problem).seconds <= kube_default(problem, 0).makespan_seconds


def test_an_image_that_nobody_else_needs_must_be_pulled():
    """100 bytes at 50 a second, unless the node has it."""
    assert bound_of(a_run(a_step("a", image="tool:1"))).seconds == pytest.approx(12)


def test_the_first_of_several_users_must_pull_their_image():
    """Whoever comes first: 2 s to pull, 10 s to run."""
    shared = a_run(a_step("a", image="tool:1"), a_step("b", image="tool:1"))
    assert bound_of(shared, *nodes(3)).seconds == pytest.approx(12)


def test_users_one_after_the_other_pull_once():
    """The second may go where the first has been."""
    chain = a_run(*a_chain(10, 10, 10, image="i:1"))
    assert bound_of(chain, *nodes(3)).seconds == pytest.approx(2 + 3 * 10)


def test_users_after_a_step_of_another_image_wait_for_both():
    """2 + 10 s before; then the trainings pull, on whichever nodes they are."""
    trainings = [a_step(f"train-{n}", "fetch", image="train:1") for n in range(3)]
    run = a_run(a_step("fetch", image="fetch:1"), *trainings)
    assert bound_of(run, *nodes(3)).seconds == pytest.approx(2 * (2 + 10))


def test_a_user_that_comes_during_the_first_pull_waits_for_its_rest():
    """Asked for at 0 s, there at 2 s; the user that may start at 1 s runs 20 s from then on."""
    run = a_run(
        a_step("first", seconds=1, image="i:1"),
        a_step("before", seconds=1),
        a_step("second", "before", seconds=20, image="i:1"),
    )
    assert bound_of(run, *nodes(3)).seconds == pytest.approx(2 + 20)


def test_a_user_may_rather_go_where_its_image_is():
    """10 s on the slow node that holds it, or 5 s and the pull of 2 s."""
    users = a_run(*equal_steps(2, image="i:1"))
    slow, fast = a_node("slow", images={"i:1": 100}), a_node("fast", speed=2.0)
    assert bound_of(users, slow, fast).seconds == pytest.approx(5 + 2)
    quick = a_node("quick", speed=1.6, images={"i:1": 100})
    assert bound_of(users, quick, fast).seconds == pytest.approx(10 / 1.6)


def test_large_runs_are_looked_at_in_blocks(monkeypatch):
    module = importlib.import_module("kfp_placement_engine.bounds.lower_bound")
    run = a_run(*(a_step(f"s{n}", seconds=1 + n, image=f"i{n % 5}") for n in range(20)))
    problem = a_problem(run, cluster_of(3))
    whole = lower_bound(problem)
    monkeypatch.setattr(module, "BLOCK_CELLS", 6)
    assert lower_bound(problem) == whole


def test_a_bound_that_a_schedule_reaches_needs_no_linear_program(monkeypatch):
    """No bound is above the makespan of a schedule, so a solver could add nothing."""
    problem = a_problem(a_run(a_step("first"), a_step("second", "first")))
    asked = []
    module = importlib.import_module("kfp_placement_engine.bounds.pattern_bound")
    monkeypatch.setattr(module, "pattern_bound_seconds", lambda *_: asked.append(True))
    assert lower_bound(problem, reached_seconds=20.0) == lower_bound(problem)
    assert len(asked) == 1
    lower_bound(problem, reached_seconds=20.1)
    assert len(asked) == 2


@st.composite
def runs_that_share_images(draw):
    """Up to four steps of two images on up to three nodes that hold some of them."""
    names = [f"s{number}" for number in range(draw(st.integers(1, 4)))]
    steps = []
    for number, name in enumerate(names):
        earlier = draw(st.sets(st.sampled_from(names[:number]))) if number else ()
        image = draw(st.sampled_from(["", "i:1", "i:1", "i:2"]))
        seconds = draw(st.sampled_from([0, 1, 3, 8]))
        steps.append(a_step(name, *sorted(earlier), seconds=seconds, image=image))
    members = [
        a_node(
            f"n{number}",
            cpu=2,
            speed=draw(st.sampled_from([0.5, 1.0, 2.0])),
            images=dict.fromkeys(draw(st.sets(st.sampled_from(["i:1", "i:2"]), max_size=1)), 200),
            pull_bytes_per_second=draw(st.sampled_from([25.0, 50.0, 400.0])),
        )
        for number in range(draw(st.integers(1, 3)))
    ]
    return a_problem(a_run(*steps), a_cluster(*members))


@settings(max_examples=150)
@given(problem=runs_that_share_images())
def test_no_plan_of_a_run_that_shares_images_ends_before_the_bound(problem):
    """All assignments are tried."""
    assert brute_force(problem, 0).makespan_seconds >= lower_bound(problem).seconds
