"""Forecasts of made-up runs: every figure is drawn from a seed, and shows what it says."""

import pytest

from benchmarks import learning
from benchmarks.learning import command
from benchmarks.learning_report import figures_of, planning_table
from benchmarks.learning_runs import made_up
from benchmarks.learning_runs.changed import BEFORE, CHANGES, changed_end, changed_ends
from benchmarks.learning_runs.made_up import Mixture, first_runs, run_under_way
from benchmarks.learning_runs.planning import planned_case
from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run


@pytest.mark.parametrize("dispatch", ["ready", "ordered"])
def test_a_run_is_planned_with_and_without_its_past(dispatch):
    shape = Shape("kfp", 20, 3, 1)
    run, cluster = made_up_run(shape), made_up_cluster(shape)
    case, same = (
        planned_case("small", run, cluster, dispatch, seed=4, generations=5) for _ in range(2)
    )
    assert case == same
    assert list(case.ends) == ["60 s", "history", "kube-default"]
    (row, everything) = planning_table([case]).rows
    assert row[:3] == ["small", dispatch, "20"]
    assert everything[:2] == ["all 1", dispatch]
    assert row[-1] == everything[-1]


def test_one_table_alone_needs_no_traces(tmp_path, figures, usage_error, monkeypatch):
    cases = {"changed": ("After a change", lambda _: changed_ends(seeds=1))}
    monkeypatch.setattr(learning, "CASES", cases)
    report = figures(command, "--data", str(tmp_path), "--only", "changed")
    assert set(report["changed"]) == {
        f"{name}, {pipeline}" for name in CHANGES for pipeline in ("all", "made-up")
    }
    assert "everything" in usage_error(command, "--only", "everything")


def test_a_change_is_in_the_promise_and_not_in_past_ends():
    """Without a change both know the end; with inputs of twice the size only the promise does."""
    work = {"same": BEFORE, "larger": CHANGES["inputs twice as large"]}
    cases = [changed_end(name, after, seed) for name, after in work.items() for seed in range(5)]
    by_group = figures_of(cases)
    assert by_group["same", "all"].errors["ours"] < 0.2
    assert by_group["larger", "all"].errors["median of 5"] > 0.3
    assert by_group["larger", "all"].errors["ours"] < 0.1
    assert cases[-1] == changed_end("larger", work["larger"], seed=4)


def test_promises_narrow_as_a_run_goes_on_and_end_at_the_truth():
    """With little variation the end is known nearly from the start."""
    sure, unsure = (list(run_under_way(Mixture("drawn", 0.0, own), 3)) for own in (0.001, 0.3))
    assert all(each.error() < 0.02 for each in sure)
    assert unsure[0].width > sure[0].width
    assert unsure[3].width < unsure[0].width
    assert [each.group for each in unsure] == ["0% passed", *(f"{n}% passed" for n in (25, 50, 75))]
    assert all(
        each.ours.low_seconds >= passed * each.seconds - 1e-6
        for each, passed in zip(unsure, (0, 0.25, 0.5, 0.75), strict=True)
    )
    assert unsure == list(run_under_way(Mixture("drawn", 0.0, 0.3), 3))


def test_the_first_runs_of_a_pipeline_are_forecast_from_those_before(monkeypatch):
    monkeypatch.setattr(made_up, "RUNS_SEEN", 4)
    cases = list(first_runs(seeds=1))
    assert cases == list(first_runs(seeds=1))
    assert [each.group for each in cases] == ["1", "2", "3-4"] * 7
