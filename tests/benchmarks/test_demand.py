"""The table of demand: peaks of plans beside coarser measures, checked against a reference."""

from collections import Counter
from dataclasses import replace

import pytest

from benchmarks import demand
from benchmarks.demand import command, files, is_good, parts_of
from benchmarks.demand_case import made_up, measure, peak_of, recorded
from benchmarks.made_up_runs import Shape
from benchmarks.tables import Table
from kfp_placement_engine.exceptions import InputNotFoundError
from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.planning.demand_profile import DemandProfile
from tests.support.builders import a_cluster, a_node, a_run, a_step
from tests.support.data import data_path

SMALL = Shape("kfp", 40, 8)
GIBIBYTE = 2**30


def test_steps_one_after_another_need_the_peak_not_the_sum():
    """Two shapes of 2 and 6 CPU: all at once 8, and as much if each shape has its own peak."""
    run = a_run(a_step("a", cpu=2, memory=3), a_step("b", "a", cpu=6, memory=1))
    outcome = measure("two", run, a_cluster(a_node(cpu=8)))
    assert outcome.peak == (6000, 3 * GIBIBYTE)
    assert outcome.sums == outcome.per_shape == (8 / 6, 4 / 3)
    assert (outcome.shapes, outcome.steps, outcome.gang_pods) == (2, 2, 0)
    assert is_good(outcome)


def test_pods_of_one_shape_share_its_peak():
    """Three steps in a row that are alike."""
    run = a_run(a_step("a"), a_step("b", "a"), a_step("c", "b"))
    outcome = measure("three", run, a_cluster())
    assert (outcome.sums[0], outcome.per_shape[0], outcome.shapes) == (3.0, 1.0, 1)


def test_workers_are_counted():
    run = a_run(a_step("launch", cpu=1, workers=(PodGroup(3, {"cpu": 2000}),)))
    outcome = measure("gang", run, a_cluster())
    assert (outcome.peak, outcome.gang_pods) == ((7000, 0), 4)
    assert is_good(outcome)


@pytest.mark.parametrize("with_workers", [False, True])
def test_the_demand_of_a_made_up_run_is_exact(with_workers):
    outcome = made_up(SMALL, with_workers=with_workers)
    assert is_good(outcome)
    assert outcome.name == f"kfp on 8 nodes{', workers' if with_workers else ''}"
    assert (outcome.gang_pods > 0) is with_workers
    assert 1.0 <= outcome.per_shape[0] < outcome.sums[0]
    assert 1.0 <= outcome.units[0] < 1.01


def test_the_demand_of_a_package_of_the_data_is_exact():
    outcome = recorded(data_path("kfp-2.17.0", "pipelines", "two_step_pipeline.yaml"))
    assert is_good(outcome)
    assert (outcome.steps, outcome.peak) == (2, (100, 256 * 2**20))


@pytest.mark.parametrize("wrong", ["whole", "later"])
def test_a_demand_that_is_not_that_of_the_reference_is_found(monkeypatch, wrong):
    right = DemandProfile.left

    def left(self, ended=(), running=()):
        demand = right(self, ended, running)
        is_wrong = bool(ended) is (wrong == "later")
        return replace(demand, peak={**demand.peak, "cpu": 1}) if is_wrong else demand

    monkeypatch.setattr(DemandProfile, "left", left)
    assert not made_up(SMALL).is_as_reference


def test_the_reference_frees_what_ends_before_what_starts():
    pods = [(0.0, 5.0, Counter(cpu=3)), (5.0, 9.0, Counter(cpu=2)), (4.0, 6.0, Counter(cpu=1))]
    assert peak_of(pods) == Counter(cpu=4)


def test_a_run_that_differs_from_the_reference_fails(monkeypatch, capsys, figures, tmp_path):
    """And is marked in the table."""
    for folder, name in (("kfp-2.17.0/pipelines", "a.yaml"), ("wfinstances", "b.json")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / name).touch()
    right = made_up(SMALL)
    monkeypatch.setattr(demand, "SHAPES", ((SMALL, False),))
    monkeypatch.setattr(demand, "recorded", lambda path: right)
    report = figures(command, "--data", str(tmp_path))
    assert [len(report[key]) for key in ("madeUp", "packages", "recorded")] == [1, 1, 1]
    monkeypatch.setattr(demand, "recorded", lambda path: replace(right, is_as_reference=False))
    assert command(["--data", str(tmp_path)]) == 1
    assert "NO" in capsys.readouterr().out


def test_the_page_has_a_row_for_each_run_but_packages():
    case = made_up(SMALL)
    _, first, second, summary = parts_of([case], [case, case], [case])
    assert isinstance(first, Table)
    assert isinstance(second, Table)
    assert first.rows == second.rows
    assert first.rows[0][-1] == "yes"
    assert not isinstance(summary, Table)
    assert "2 of 2" in "\n".join(summary)


def test_no_data(tmp_path, message):
    with pytest.raises(InputNotFoundError, match="holds no runs"):
        files(tmp_path, "*.json")
    assert "holds no runs" in message(3, command, "--data", str(tmp_path))
