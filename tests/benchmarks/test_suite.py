"""The paper's runs on seven clusters: cases, durations, shares of the limit."""

from dataclasses import replace

import pytest

from benchmarks.outcomes import References
from benchmarks.suite import (
    CLUSTERS,
    DURATIONS,
    all_cases,
    command,
    gain,
    is_good,
    limit,
    suite_run,
)
from tests.benchmarks.test_measuring import an_outcome


def an_outcome_of(makespan: float):
    references = References({"kube-default": 100.0, "heft": 98.0}, {"area": 80.0})
    return an_outcome(case="c equal low", makespan=makespan, references=references, optimum=None)


def test_there_are_84_cases_a_seed():
    names = [case.name for case in all_cases()]
    assert len(set(names)) == len(names) == 84
    assert len(CLUSTERS) == 7


def test_durations():
    """Levels are the same for all; both kinds of lognormal draw the same factors."""
    runs = {kind: suite_run("low", kind, 1).steps for kind in DURATIONS}
    cores = [step.requests["cpu"] / 1000 for step in runs["equal"]]
    for steps in runs.values():
        assert len(steps) == 600
    assert {step.duration_seconds for step in runs["equal"]} == {100.0}
    assert {step.duration_seconds for step in runs["proportional"]} == {68.0, 102.0, 136.0}
    assert [step.requests["cpu"] / 1000 for step in runs["proportional"]] == cores
    for drawn, both in zip(runs["lognormal"], runs["both"], strict=True):
        factor = (drawn.duration_seconds or 0) / 100
        assert both.duration_seconds == pytest.approx(17 * both.requests["cpu"] / 1000 * factor)


def test_gain_limit_and_good_plans():
    assert gain(an_outcome_of(90.0)) == pytest.approx(0.1)
    assert limit(an_outcome_of(90.0)) == pytest.approx(0.2)
    assert not is_good(an_outcome_of(90.0))
    assert is_good(an_outcome_of(83.0))
    near = replace(
        an_outcome_of(100.0), references=References({"kube-default": 100}, {"area": 99.5})
    )
    assert is_good(near)


def test_a_short_suite(figures):
    options = ["--cases", "3x(8,16) equal *", "--limit", "1", "--seeds", "4", "--budget"]
    report = figures(command, *options, "200schedules")
    assert [row["cluster"] for row in report["totals"]] == ["3x(8,16)", "all"]
    (row,) = report["rows"]
    assert row["seed"] == 4
    assert row["steps"] == 600
    assert row["makespanSeconds"] <= row["baselineSeconds"]["kube-default"]
    assert report["totals"][1]["limit"] == pytest.approx(
        1 - max(row["boundSeconds"].values()) / row["baselineSeconds"]["kube-default"]
    )
