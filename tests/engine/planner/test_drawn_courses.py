"""Branches that samples of a run take, and what comes from the cache in them."""

from datetime import UTC, datetime

import pytest

from kfp_placement_engine import Cluster, Node, PlanOptions, RunGraph, Step, plan_runs
from kfp_placement_engine.contract.pipeline_history import step_identity
from kfp_placement_engine.history import Past
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState, StepProgress
from kfp_placement_engine.model.history import LeftOut, LoopWidth, Observation, PastRun
from kfp_placement_engine.model.run_graph import Group, GroupKind
from kfp_placement_engine.planning.learned_times import with_history

CLUSTER = Cluster((Node("n1", {"cpu": 8000, "memory": 2**34, "pods": 110}),))
OPTIONS = PlanOptions(compare=(), quick=True)
SECONDS = {"a": 300.0, "long": 3600.0, "short": 30.0}

BRANCHES = RunGraph(
    "p",
    "argo-workflow",
    (
        Step("a", "a"),
        Step("long", "long", depends_on=("a",), conditions=("x",)),
        Step("short", "short", depends_on=("a",), conditions=("not x",)),
    ),
)
CHAIN = RunGraph(
    "p",
    "argo-workflow",
    (
        Step("a", "a"),
        Step("long", "long", depends_on=("a",)),
        Step("short", "short", depends_on=("long",)),
    ),
)


def learned(graph, *runs):
    """From runs that left these tasks out; each ended as the samples of its steps did."""
    past = Past()
    for number, left_out in enumerate(runs):
        ran = [step for step in graph.steps if step.name not in left_out]
        seconds = sum(SECONDS[step.name] for step in ran)
        steps = tuple(
            Observation(step_identity("p", step), SECONDS[step.name], "n1") for step in ran
        )
        tasks = tuple(
            LeftOut(step.task, skipped=1) if step.conditions else LeftOut(step.task, cached=1)
            for step in graph.steps
            if step.name in left_out
        )
        ended_at = datetime.fromtimestamp(number, UTC)
        past.observe(
            PastRun(
                str(number), "p", ended_at, steps, seconds, played_seconds=seconds, left_out=tasks
            )
        )
    return with_history(graph, past)


def planned(run, progress=None, now=0.0):
    active = ActiveRun("run", run.graph, -now, progress=progress or {}, forecast=run.forecast)
    return plan_runs([active], CLUSTER, OPTIONS).plans["run"]


def ends(run, progress=None, now=0.0):
    promise = planned(run, progress, now).promise
    assert promise is not None
    found = promise.later(now).ends
    assert found is not None
    return found.low_seconds, found.typical_seconds, found.high_seconds


def done(seconds=None):
    return StepProgress(ProgressState.DONE, "n1", ran_seconds=seconds)


RUNNING = StepProgress(ProgressState.RUNNING, "n1", 10.0, ran_seconds=10.0)
RARELY = [set[str]()] * 2 + [{"long"}] * 20
EITHER = [{"long"}, {"short"}] * 8


@pytest.mark.parametrize("graph", [BRANCHES, CHAIN])
def test_what_the_last_runs_left_out_takes_no_time_in_samples_but_has_its_room_in_the_plan(graph):
    run = learned(graph, *RARELY)
    plan = planned(run)
    assert plan.promise.ends.high_seconds < 800
    assert plan.promise.played_seconds < 500
    assert plan.promise.steps["a"].ends.typical_seconds == pytest.approx(300, rel=0.15)
    assert max(each.finish_seconds for each in plan.steps) > 3000


def test_of_branches_that_exclude_each_other_one_is_taken_in_each_sample():
    low, _, high = ends(learned(BRANCHES, *EITHER))
    assert low < 500
    assert high > 3500
    assert ends(learned(BRANCHES, *EITHER)) == ends(learned(BRANCHES, *EITHER))


def test_what_has_happened_says_which_branch_is_taken():
    run = learned(BRANCHES, *EITHER)
    taken = ends(run, {"a": done(300.0), "short": done(), "long": RUNNING}, 320.0)
    assert taken[0] > 2500
    not_taken = ends(run, {"a": done(300.0), "long": done(), "short": RUNNING}, 320.0)
    assert not_taken[2] < 500
    open_still = ends(run, {"a": done(300.0)}, 305.0)
    assert open_still[0] < 500 < 3000 < open_still[2]


def test_a_step_that_runs_takes_its_time_though_the_last_runs_left_it_out():
    run = learned(CHAIN, *RARELY)
    assert ends(run, {"a": done(300.0), "long": RUNNING}, 320.0)[0] > 2500


def test_two_runs_say_nothing_of_what_is_left_out():
    assert ends(learned(BRANCHES, set(), {"long"}))[1] > 3000
    assert ends(learned(BRANCHES, set(), {"long"}, {"long"}))[0] < 800


def promised_with_an_empty_loop(*widths, assumed=True):
    """A run whose loop had these widths, and whose steps in it were never seen."""
    first = Step("a", "a")
    graph = RunGraph(
        "p",
        "argo-workflow",
        (first, Step("loop[0].work", "loop[*].work", depends_on=("a",), iteration=(0,))),
        groups=(
            Group("", GroupKind.ROOT),
            Group("loop", GroupKind.LOOP, width=1, width_assumed=assumed),
        ),
    )
    past = Past()
    for number, width in enumerate(widths):
        steps = (Observation(step_identity("p", first), 300.0, "n1"),)
        ended_at, loops = datetime.fromtimestamp(number, UTC), (LoopWidth("loop", width),)
        past.observe(
            PastRun(str(number), "p", ended_at, steps, 300.0, played_seconds=300.0, loops=loops)
        )
    return planned(with_history(graph, past)).promise


def test_a_loop_that_had_no_iteration_is_left_out_of_the_end():
    """One is planned all the same, and of its steps no run time is known."""
    promise = promised_with_an_empty_loop(0, 0, 0)
    assert promise is not None
    assert promise.ends is not None
    assert promise.ends.typical_seconds == pytest.approx(305, abs=1)  # and not a minute more


@pytest.mark.parametrize("widths", [(0, 0), (0, 0, 1), (1, 0, 0)], ids=str)
def test_a_loop_that_had_one_must_have_been_seen(widths):
    promise = promised_with_an_empty_loop(*widths)
    assert promise is not None
    assert promise.unknown == "no run seen of loop[*].work"


def test_a_loop_whose_width_is_known_now_must_have_been_seen():
    promise = promised_with_an_empty_loop(0, 0, 0, assumed=False)
    assert promise is not None
    assert promise.unknown == "no run seen of loop[*].work"
