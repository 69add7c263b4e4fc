"""Instances that constants are chosen by: generated, alike for a number, of all sizes."""

import numpy as np
import pytest

from benchmarks.psplib import predecessors_of
from benchmarks.tuning.instances import (
    FIRST_NUMBER,
    KFP_ORDERED,
    KFP_READY,
    KINDS,
    RUN_SIZES,
    WORKFLOWS,
)
from benchmarks.tuning.projects import (
    MOST_AMOUNT,
    MOST_SECONDS,
    ProjectSize,
    drawn_project,
    random_project,
)
from kfp_placement_engine import BASELINES
from kfp_placement_engine.bounds.lower_bound import critical_path_bounds


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_is_an_instance(kind):
    first, again, other = (
        KINDS[kind].problem(number) for number in (FIRST_NUMBER, FIRST_NUMBER, FIRST_NUMBER + 6)
    )
    assert _makespan(first) == _makespan(again) != _makespan(other)


def test_kfp_runs_have_drivers_and_workflows_do_not():
    problem, workflow = (KINDS[kind].problem(FIRST_NUMBER + 1) for kind in (KFP_READY, WORKFLOWS))
    assert problem.activities > problem.genes
    assert workflow.activities == workflow.genes


def test_kinds_are_dispatched_differently():
    dispatched = [kind.problem(FIRST_NUMBER).dispatch for kind in KINDS.values()]
    assert dispatched == ["ready", "ordered", "ordered"]


def test_no_two_kinds_have_the_same_run():
    """Their means are independent: a run that is hard in one is not hard in the other, too."""
    for number in range(FIRST_NUMBER, FIRST_NUMBER + 6):
        ready, ordered = (KINDS[kind].problem(number) for kind in (KFP_READY, KFP_ORDERED))
        assert _bounds(ready) != _bounds(ordered)


def test_few_numbers_have_all_sizes():
    numbers = range(FIRST_NUMBER, FIRST_NUMBER + 6)
    kfp = {_size(KFP_READY, number) for number in numbers}
    made_up = {_size(WORKFLOWS, number) for number in numbers if number % 2}
    assert kfp == made_up == set(RUN_SIZES)
    projects = [_size(WORKFLOWS, number) for number in range(FIRST_NUMBER, FIRST_NUMBER + 8, 2)]
    assert [nodes for _, nodes in projects] == [1, 2, 3, 4]
    assert all(20 <= jobs <= 120 for jobs, _ in projects)


@pytest.mark.parametrize("seed", range(5))
def test_a_project_is_drawn_as_progen_does(seed):
    project = drawn_project(60, _rng(seed))
    before = predecessors_of(project)
    assert 60 <= sum(map(len, before.values())) <= 2.1 * 60
    assert all(earlier < job for job, some in before.items() for earlier in some)
    for job in project.jobs:
        assert 1 <= job.seconds <= MOST_SECONDS
        assert 1 <= max(job.requests) <= MOST_AMOUNT
        assert all(
            need <= room for need, room in zip(job.requests, project.capacities, strict=True)
        )


@pytest.mark.parametrize("number", range(FIRST_NUMBER, FIRST_NUMBER + 32, 8))
def test_room_is_scarce(number):
    """Not even on one node of speed 1 is the longest chain all there is."""
    problem = KINDS[WORKFLOWS].problem(number)
    assert _makespan(problem) > 1.1 * max(_bounds(problem))


def test_a_project_on_several_nodes_moves_data():
    run, cluster = random_project(ProjectSize(jobs=40, nodes=3), _rng())
    assert len(cluster.nodes) == 3
    assert len({each.allocatable["psplib.org/r1"] for each in cluster.nodes}) == 1
    assert {each.speed for each in cluster.nodes} <= {0.8, 1.0, 1.5}
    moved = {each.size_bytes for step in run.steps for each in step.inputs}
    assert moved == {1 * 125_000_000, 3 * 125_000_000}
    _, single = random_project(ProjectSize(jobs=40, nodes=1), _rng())
    assert [each.speed for each in single.nodes] == [1.0]


def _size(kind: str, number: int) -> tuple[int, int]:
    problem = KINDS[kind].problem(number)
    return problem.genes, problem.nodes


def _bounds(problem) -> list[float]:
    return [each.seconds for each in critical_path_bounds(problem, 1)]


def _makespan(problem) -> float:
    return BASELINES["heft"](problem, 0).makespan_seconds
