"""The table of scale: made-up runs of any size, measured in processes of their own."""

from argparse import Namespace

import pytest

from benchmarks.budget import Budget
from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from benchmarks.outcomes import outcome_of, references_of
from benchmarks.scale import (
    KINDS,
    LIMIT_SECONDS,
    all_cases,
    command,
    fault,
    measure_apart,
    name_of,
    shape_of,
)
from benchmarks.scale_case import FIRST_PLAN, PEAK_BYTES, PLANS_A_SECOND, WHOLE_CALL, load, measure
from kfp_placement_engine import LoweringOptions, lower
from kfp_placement_engine.model.run_graph import GroupKind
from tests.benchmarks.test_measuring import an_outcome as an_outcome_of_any


def an_outcome(steps: int = 1000, seconds: float = 2.0, **changed):
    given = {
        "makespan": 12.0,
        "measured": {WHOLE_CALL: 3.0},
        "budget": Budget(wall_seconds=seconds),
    }
    return an_outcome_of_any(case=f"kfp {steps}x1000", **{**given, **changed})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [1, 7, 100, 333])
def test_made_up_runs_have_the_size_asked_for(kind, steps):
    shape = Shape(kind, steps, nodes=4)
    run = made_up_run(shape)
    assert len(run.steps) == steps
    assert len({step.name for step in run.steps}) == steps
    assert lower(run, made_up_cluster(shape), LoweringOptions()).problem.genes == steps


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_is_the_same_run(kind):
    shape = Shape(kind, 120, nodes=10, seed=4)
    assert made_up_run(shape) == made_up_run(shape)
    assert made_up_cluster(shape) == made_up_cluster(shape)
    assert made_up_run(shape) != made_up_run(Shape(kind, 120, nodes=10, seed=5))


def test_a_kfp_run_has_drivers_and_loops_a_workflow_has_neither():
    run = made_up_run(Shape("kfp", 100, nodes=4))
    assert all(step.has_driver for step in run.steps)
    assert sum(bool(step.iteration) for step in run.steps) == 60
    loops = [group for group in run.groups if group.kind is GroupKind.LOOP]
    assert [(loop.width, loop.parallelism) for loop in loops] == [(10, 5), (10, 5)]
    workflow = made_up_run(Shape("workflow", 100, nodes=4))
    assert workflow.direct_transfers
    assert not workflow.groups


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "budget", [Budget(wall_seconds=0.5), Budget(schedules=300)], ids=lambda each: each.word
)
def test_one_case(kind, budget):
    """Times, memory, and the schedule of all steps."""
    shape = Shape(kind, 60, nodes=6, seed=1)
    instance, timed = load(shape), measure(shape, budget)
    outcome = outcome_of(name_of(shape), 1, budget, instance, references_of(instance, 1), timed)
    assert fault(outcome) == ""
    assert 0 < timed.measured[FIRST_PLAN] < 2
    assert timed.measured[PLANS_A_SECOND] > 0
    assert timed.measured[WHOLE_CALL] > 0
    assert timed.spent.schedules >= (budget.schedules or 1)
    assert len(timed.rows) == 60
    assert {node for _, node, _, _ in timed.rows} <= set(instance.nodes)
    assert max(end for _, _, _, end in timed.rows) == pytest.approx(timed.makespan)


def test_a_process_of_its_own_holds_little_memory():
    case = name_of(Shape("kfp", 20, nodes=4))
    instance = load(shape_of(case))
    plan = measure_apart(case, instance, Budget(wall_seconds=0.05), 0)
    assert 10e6 < plan.measured[PEAK_BYTES] < 200e6
    counted = Budget(schedules=200)
    assert (
        measure_apart(case, instance, counted, 3).rows
        == measure(Shape("kfp", 20, 4, seed=3), counted).rows
    )


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({}, ""),
        ({"measured": {WHOLE_CALL: LIMIT_SECONDS + 1}}, "11.0 s; at most 10 s are promised"),
        ({"measured": {WHOLE_CALL: LIMIT_SECONDS + 1}, "steps": 10_000}, ""),
        ({"measured": {WHOLE_CALL: LIMIT_SECONDS + 1}, "seconds": 4.0}, ""),
        ({"measured": {WHOLE_CALL: 99.0}, "budget": Budget(cpu_seconds=98.0)}, ""),
        ({"unplaced": 1}, "1 steps are left out"),
        ({"makespan": 8.0}, "below the bound"),
    ],
)
def test_what_is_a_fault(changed, wanted):
    message = fault(an_outcome(**changed))
    assert wanted in message
    assert bool(wanted) == bool(message)


def test_the_table_end_to_end(tmp_path, capsys):
    target = tmp_path / "scale.md"
    options = ["--sizes", "20x4", "--budget", "0.05", "--output", str(target)]
    assert command(options) == 0
    text = capsys.readouterr().out
    for word in ("kfp", "workflow", "first plan, s", "peak MB", "above bound, %", "than HEFT, %"):
        assert word in text
        assert word in target.read_text(encoding="utf-8")


def test_figures_as_json(figures, tmp_path):
    """A row for each case and seed, with times; peers where there are no driver pods."""
    options = ["--sizes", "20x4", "--seeds", "0-1", "--budget", "90schedules"]
    report = figures(command, *options, "--peers", "peft", "--schedules", str(tmp_path))
    assert [(row["case"], row["seed"]) for row in report["rows"]] == [
        (f"{kind} 20x4", seed) for kind in KINDS for seed in (0, 1)
    ]
    assert len({row["input"] for row in report["rows"]}) == 4
    for row in report["rows"]:
        assert row["spent"]["schedules"] >= 90
        assert row["peakBytes"] > 10e6
        assert row["makespanSeconds"] >= max(row["boundSeconds"].values()) * 0.999
        assert ("peft" in row["baselineSeconds"]) == row["case"].startswith("workflow")
    assert [total["case"] for total in report["totals"]] == ["kfp 20x4", "workflow 20x4"]
    assert (tmp_path / "workflow-20x4.seed-1.90schedules.csv").is_file()


def test_names_of_cases():
    (case, *_) = all_cases(Namespace(sizes=[(1000, 20)]))
    assert case.name == "kfp 1000x20"
    assert shape_of(case.name, 7) == Shape("kfp", 1000, 20, 7)


def test_a_small_budget_is_kept():
    """A plan is there soon after 50 ms; how soon depends on what else the machine does."""
    plan = measure(Shape("kfp", 100, nodes=50), Budget(wall_seconds=0.05))
    assert plan.unplaced == 0
    assert plan.measured[WHOLE_CALL] < 5
