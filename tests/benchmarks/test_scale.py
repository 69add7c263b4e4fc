"""The table of scale: made-up runs of any size, measured in processes of their own."""

import pytest

from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from benchmarks.scale import KINDS, LIMIT_SECONDS, is_good, main, measure_apart
from benchmarks.scale_case import measure
from kfp_placement_engine import LoweringOptions, lower
from kfp_placement_engine.model.run_graph import GroupKind

CASE = {
    "kind": "kfp",
    "steps": 1000,
    "nodes": 1000,
    "total_seconds": 3.0,
    "makespan_seconds": 100.0,
    "bound_seconds": 90.0,
    "unplaced": 0,
}


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
def test_one_case(kind):
    case = measure(Shape(kind, 60, nodes=6), budget_seconds=0.3)
    assert is_good(case)
    assert 0 < case["first_seconds"] < 2
    assert set(case["baselines"]) == {"kube-default", "heft"}
    assert case["makespan_seconds"] <= min(case["baselines"].values()) * (1 + 1e-9)
    assert case["plans_per_second"] > 0


def test_a_process_of_its_own_holds_little_memory():
    case = measure_apart(Shape("kfp", 20, nodes=4), budget_seconds=0.05)
    assert 10e6 < case["peak_bytes"] < 200e6


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"total_seconds": LIMIT_SECONDS + 1}, False),
        ({"total_seconds": LIMIT_SECONDS + 1, "steps": 10_000}, True),
        ({"unplaced": 1}, False),
        ({"makespan_seconds": 80.0}, False),
    ],
)
def test_what_is_good(changes, good):
    assert is_good({**CASE, **changes}) is good


def test_the_table_end_to_end(tmp_path):
    lines: list[str] = []
    target = tmp_path / "scale.md"
    assert main(lines.append, sizes=[(20, 4)], budget_seconds=0.05, output=target) == 0
    text = "\n".join(lines)
    for word in ("kfp", "workflow", "first plan, s", "peak MB", "above bound, %", "than HEFT, %"):
        assert word in text
        assert word in target.read_text(encoding="utf-8")


def test_a_small_budget_is_kept():
    """A plan is there soon after 50 ms; how soon depends on what else the machine does."""
    case = measure(Shape("kfp", 100, nodes=50), budget_seconds=0.05)
    assert is_good(case)
    assert case["total_seconds"] < 5
