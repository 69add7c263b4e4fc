from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfp_placement_engine.model.node_rules.latency import LatencyTolerance
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import Step
from kfp_placement_engine.render.widths import width
from kfp_placement_engine.views.plans.detail import TEXT
from kfp_placement_engine.views.plans.view import plan_view
from tests.support.plans import (
    a_plan,
    a_step,
    ends_after,
    random_plan,
    renamed,
    stuck_plan,
    taxi_plan,
    unplaced_step,
    varied,
)
from tests.support.renderings import plan_table, steps_of_table


@pytest.mark.parametrize(
    ("dispatch", "words"),
    [("ready", "every assignment tried"), ("ordered", "every assignment and order tried")],
)
def test_a_tiny_run_names_no_generations(dispatch, words):
    head = plan_table(a_plan(exact=True, generations=0, dispatch=dispatch)).splitlines()[3]
    assert head.endswith(f", seed 0, {words} in 2s")


def test_the_whole_table(golden):
    plan = a_plan(
        a_step("fetch"),
        unplaced_step("huge"),
        baselines={"kube-default": ends_after(75.0, unplaced=2)},
        assumptions=("duration 60 s for 2 of 2 steps",),
    )
    text = plan_table(plan)
    golden(text)
    assert "huge: no node has 512 CPU" in text.split("\n\n")[3]


def test_steps_that_fit_no_node_for_one_reason_are_named_together():
    huge = [unplaced_step(f"huge-{n}") for n in range(7)]
    plan = a_plan(*huge, unplaced_step("odd", reason="is odd"))
    text = plan_table(plan)
    assert "Unschedulable (8 steps):" in text
    assert "  huge-0, huge-1, huge-2, huge-3, huge-4, ...: no node has 512 CPU\n" in text
    assert "  odd: is odd" in text
    assert "huge-5, huge-6: no node has" in plan_table(plan, wide=True)


def test_wide_shows_the_reason_of_every_step(golden):
    plan = taxi_plan()
    text = plan_table(plan, wide=True)
    for step in plan.steps:
        (line,) = [line for line in text.splitlines() if line.startswith(f"{step.name} ")]
        assert line.endswith(step.explanation.sentence)
    golden(text)
    assert plan.steps[0].explanation.sentence not in plan_table(plan)


def test_the_names_of_branches_and_loops_are_among_the_notes():
    step = a_step("train", conditional=True)
    inside = replace(step, spec=replace(step.spec, inside=("good", "sweep")))
    assert "conditional, in good, sweep" in steps_of_table(a_plan(inside))


def test_the_names_that_authors_gave_stand_beside_the_ids(golden):
    names = {"train": "bayes", "train-2": "xgboost", "score": "score"}
    steps = [a_step(name, display_name=given) for name, given in names.items()]
    table = steps_of_table(a_plan(*steps))
    golden(table)
    assert table.splitlines()[2].startswith("train-2   xgboost ")


def test_requests_that_nobody_made_are_marked():
    plan = a_plan(replace(a_step(), spec=Step("train", "train")), a_step("b"))
    text = plan_table(plan, wide=True)
    assert "cpu=~500m memory=~1Gi" in text
    assert "cpu=500m memory=1Gi" in text


def test_the_table_of_a_run_that_ends(golden):
    plan = a_plan(a_step(), baselines={"kube-default": ends_after(75.0)})
    golden(plan_table(plan).split("\n\n")[1])


def test_a_run_that_does_not_end_gets_no_good_news(golden):
    plan = stuck_plan()
    text = plan_table(plan)
    golden(text)
    assert "%" not in text
    assert "best" not in text.lower()
    assert text.count("The run does not end:") == 1
    assert text.count("The run does not end while") == 1


def test_reasons_beside_the_usual_columns(golden):
    plan = taxi_plan()
    text = plan_table(plan, reasons=True, columns=100)
    golden(text)
    assert max(map(len, text.split("\n\n")[2].splitlines())) <= 100


def test_what_a_policy_set_is_told():
    plan = varied(
        taxi_plan(), policy=("objective: packing",), latency_tolerance=LatencyTolerance(2.0, 0.1)
    )
    text = plan_table(plan)
    assert "policy: objective: packing\n" in text
    assert "max(2 ms, 10%)\n" in text


def test_a_baseline_that_is_shorter_for_breaking_a_rule_says_so(golden):
    golden(plan_table(taxi_plan()))
    assert "beyond rule" not in plan_table(a_plan())
    narrow = plan_table(taxi_plan(), columns=80).split("\n\n")[1]
    assert "\n2.4% longer, but heft " in narrow
    assert max(map(len, narrow.splitlines())) <= 80


@pytest.mark.parametrize(
    ("wide", "columns"), [(False, 80), (False, 200), (True, 140), (True, 250), (True, 400)]
)
def test_fits_the_terminal(wide, columns):
    plan = renamed(random_plan(30, 3), "for-loop-1[0].a-very-long-name-" * 3)
    text = plan_table(plan, wide=wide, columns=columns)
    table = text.split("\n\n")[2]
    assert max(map(width, table.splitlines())) <= columns
    assert plan.steps[-1].explanation.sentence in text or not wide


def test_iterations_can_be_told_apart_on_a_narrow_terminal():
    names = [f"exit-handler-1.for-loop-1[{index}].augment" for index in range(3)]
    steps = [a_step(name, node="a-node-with-a-long-name-too") for name in names]
    text = plan_table(a_plan(*steps, a_step("a" * 90)), columns=80)
    shown = [line.split()[0] for line in text.split("\n\n")[2].splitlines()[1:4]]
    assert len(set(shown)) == 3
    assert all(name.endswith(f"[{index}].augment") for index, name in enumerate(shown))


def test_without_a_terminal_nothing_is_cut():
    name = "a-very-long-name-" * 20
    assert name in plan_table(renamed(taxi_plan(), name))


@given(name=st.text(alphabet=st.characters(), min_size=1, max_size=50), wide=st.booleans())
@settings(max_examples=80)
def test_no_name_steers_the_terminal(name, wide):
    text = plan_table(renamed(taxi_plan(), name), wide=wide, columns=90)
    assert all(line.isprintable() for line in text.split("\n"))


def test_many_steps_take_no_time():
    assert plan_table(random_plan(10_000, 100)).count("\n") > 10_000


def test_warnings_that_say_the_same_of_many_steps_are_told_once(golden):
    notices = [
        Notice("loop-width-assumed", f"3 assumed: --loop-width {n}=N", n) for n in "abcdefgh"
    ]
    others = [Notice("guessed-type", "type guessed", name) for name in "abc"]
    plan = a_plan(notices=(*notices, *others))
    golden(plan_table(plan).split("\n\n")[3])
    assert len(plan_table(plan, wide=True).split("\n\n")[3].splitlines()) == 1 + 8 + 3


def test_a_plan_of_an_outline_says_what_its_requests_are():
    plan = a_plan()
    outline = replace(plan, run=replace(plan.run, is_outline=True))
    usual = plan_view(plan, TEXT).remarks
    facts, *added = (each for each in plan_view(outline, TEXT).remarks if each not in usual)
    assert "lower bound" not in facts
    assert set(added) == {
        "planned by the outline of the run: requests and images are estimates (past runs, policy or"
        " defaults). For exact ones: --package pipeline.yaml (package= in Python); in a cluster"
        " features/kfp-api"
    }


def test_estimated_requests_of_an_outline_are_marked():
    plan = a_plan()
    outline = replace(plan, run=replace(plan.run, is_outline=True))
    assert "cpu=~" not in plan_table(plan, wide=True)
    assert "cpu=~" in plan_table(outline, wide=True)
