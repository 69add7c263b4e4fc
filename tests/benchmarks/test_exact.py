"""Small random cases, and the optimum that CP-SAT proves for them."""

import importlib.util
import json

import pytest

from benchmarks import cp_sat
from benchmarks.command import BenchmarkError
from benchmarks.exact import (
    CASES,
    MOST_NODES,
    MOST_PODS,
    all_cases,
    as_integers,
    command,
    drawn,
    load,
)

needs_cp_sat = pytest.mark.skipif(
    importlib.util.find_spec("ortools") is None, reason="ortools is not installed"
)


def test_cases_are_drawn_as_promised():
    """Sizes of all kinds; each pod fits on each node; run times stay whole numbers."""
    cases = [drawn(number) for number in range(CASES)]
    assert cases[7] == drawn(7)
    assert {len(case.speeds) for case in cases} == set(range(1, MOST_NODES + 1))
    assert {len(case.pods) for case in cases} == set(range(8, MOST_PODS + 1))
    for case in cases:
        for pod in case.pods:
            assert all(pod.seconds % speed == 0 for speed in case.speeds)
            assert all(
                need <= room
                for capacity in case.capacities
                for need, room in zip(pod.requests, capacity, strict=True)
            )


def test_a_case_is_a_problem():
    case, instance = drawn(3), load(3, 40.0, 0)
    assert len(instance.activities) == len(case.pods)
    assert instance.nodes == tuple(f"node-{at}" for at in range(1, len(case.speeds) + 1))
    assert instance.optimum_seconds == 40.0
    lags = sum(lag for pod in case.pods for _, lag in pod.after)
    assert instance.problem.arrays.transfer_bytes.sum() == lags * 125_000_000


@needs_cp_sat
def test_optimum_of_a_case_by_hand():
    """Two pods of 3 cores on one node of 4 follow each other; the last waits for data."""
    pods = [{"requests": [3], "seconds": [4, 2], "after": []} for _ in range(2)]
    last = {"requests": [1], "seconds": [10, None], "after": [[0, 5], [1, 0]]}
    assert cp_sat.optima([{"capacities": [[4], [4]], "steps": [*pods, last]}]) == [14]
    one = [{**pod, "seconds": [4]} for pod in pods]
    assert cp_sat.optima([{"capacities": [[4]], "steps": one}]) == [8]


@needs_cp_sat
def test_an_optimum_that_does_not_exist():
    pod = {"requests": [9], "seconds": [4], "after": []}
    with pytest.raises(BenchmarkError, match=r"CP-SAT .* fails: .*no optimum is proven"):
        cp_sat.optima([{"capacities": [[4]], "steps": [pod]}])


@needs_cp_sat
def test_gaps_to_the_optimum(capsys, figures):
    options = ["--limit", "4", "--budget", "300schedules", "2000schedules"]
    report = figures(command, *options)
    assert [row["cases"] for row in report["totals"]] == [4, 4]
    assert all(0 <= row["gap"] < 0.2 for row in report["totals"])
    assert len(report["rows"]) == 8
    assert all(row["makespanSeconds"] >= row["optimumSeconds"] for row in report["rows"])
    assert command(options) == 0
    assert capsys.readouterr().out.splitlines()[-2].startswith("  300 schedules")


def test_names_and_numbers_of_cases():
    assert [case.name for case in all_cases()[:2]] == ["case-000", "case-001"]
    assert len(all_cases()) == CASES


def test_the_solver_is_given_integers_alone():
    assert json.loads(json.dumps(as_integers(drawn(0))))["capacities"]
