"""100 runs planned together: cases, limits, what is measured, what cannot be."""

import argparse
from dataclasses import replace

import pytest

from benchmarks.many_runs import LIMITS, all_cases, command, fault, gain, longer
from benchmarks.outcomes import References
from kfp_placement_engine.model.objective import MakespanWithin
from kfp_placement_engine.search.baselines import BASELINES
from kfp_placement_engine.search.genetic import starting_schedules
from tests.benchmarks.test_measuring import an_outcome


def cases(percent_of: str = "kube-default", *limits: MakespanWithin):
    asked = argparse.Namespace(makespan_within=limits or LIMITS, percent_of=percent_of)
    return all_cases(asked)


def an_outcome_of(makespan: float, limit: float = 103.0):
    return replace(
        an_outcome(
            case="c equal low 3%",
            makespan=makespan,
            references=References({"kube-default": 100.0, "heft": 98.0}, {"area": 80.0}),
            optimum=None,
        ),
        completions=(30.0, 50.0),
        measured={
            "kube-defaultMeanCompletionSeconds": 50.0,
            "heftMeanCompletionSeconds": 55.0,
            "makespanLimitSeconds": limit,
        },
    )


def test_there_are_84_cases_a_limit():
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names) == 84 * len(LIMITS)


def test_each_task_is_a_run_with_all_its_steps():
    instance = cases()[0].load(1)
    assert instance.problem.arrays.run_weight.size == 100
    assert sorted(instance.activities.values()) == list(range(600))
    steps_of: dict[str, set[int]] = {}
    for name, activity in instance.activities.items():
        run = int(instance.problem.arrays.run[activity])
        steps_of.setdefault(name.split(".")[0], set()).add(run)
    assert all(len(runs) == 1 for runs in steps_of.values())
    assert len(steps_of) == 100


def test_a_percentage_is_of_kube_default_or_of_the_shortest_start():
    within = MakespanWithin(percent=10)
    of_kube = cases("kube-default", within)[0].load(1).problem
    of_shortest = cases("shortest", within)[0].load(1).problem
    kube = BASELINES["kube-default"](of_kube, 1).makespan_seconds
    shortest = min(each.makespan_seconds for each in starting_schedules(of_kube, 1))
    assert of_kube.makespan_limit_seconds == pytest.approx(1.1 * kube)
    assert of_shortest.makespan_limit_seconds == pytest.approx(1.1 * shortest)


def test_gains_and_faults():
    within = an_outcome_of(102.0)
    assert gain(within) == pytest.approx(0.2)
    assert gain(within, "heft") == pytest.approx(-0.1)
    assert longer(within) == pytest.approx(0.02)
    assert fault(within) == ""
    assert fault(an_outcome_of(104.0)) == "104 s is beyond the limit of 103 s"
    assert "below the bound" in fault(an_outcome_of(79.0))
    # A limit that no plan keeps asks for the nearest one.
    assert fault(an_outcome_of(98.0, limit=50.0)) == ""


def test_a_short_benchmark(figures):
    options = ["--cases", "3x(8,16) equal high *", "--makespan-within", "3%", "--budget"]
    report = figures(command, *options, "200schedules")
    (row,) = report["rows"]
    assert len(row["completionSeconds"]) == 100
    assert row["makespanSeconds"] <= row["makespanLimitSeconds"]
    assert [each["durations"] for each in report["totals"]] == ["equal", "all"]
    assert report["totals"][0]["gain"] > 0.2
