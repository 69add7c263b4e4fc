"""The tables on plans with history: every figure is drawn from a seed, and shows what it says."""

import json

import pytest

from benchmarks import learning
from benchmarks.learning import command
from benchmarks.learning_plans_report import planning_table, retries_table
from benchmarks.learning_runs import planning, retries
from benchmarks.learning_runs.changed import BEFORE, CHANGES, changed_end, changed_ends
from benchmarks.learning_runs.live import PASSED
from benchmarks.learning_runs.planning import planned_case
from benchmarks.learning_runs.retries import retried_runs
from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run


@pytest.mark.parametrize("dispatch", ["ready", "ordered"])
def test_a_run_is_planned_with_and_without_its_past(dispatch):
    shape = Shape("kfp", 20, 3, 1)
    run, cluster = made_up_run(shape), made_up_cluster(shape)
    case, same = (
        planned_case("small", run, cluster, dispatch, seed=4, generations=5) for _ in range(2)
    )
    assert case == same
    assert set(case.ends) == {"60 s", "medians", "samples", "kube-default", "HEFT", "bound"}
    assert case.ends["bound"] == min(case.ends.values())
    assert case.differs or case.ends["samples"] == case.ends["medians"]
    (row, everything) = planning_table([case]).rows
    assert row[:3] == ["small", dispatch, "20"]
    assert everything[:2] == ["all 1", dispatch]
    assert row[-2:] == everything[-2:]


def test_one_table_alone_needs_no_traces(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(learning, "changed_ends", lambda progress: changed_ends(progress, seeds=1))
    assert command(["--data", str(tmp_path), "--only", "changed", "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["changed"]) == len(CHANGES)
    monkeypatch.setattr(planning, "_SHAPES", (Shape("workflow", 4, 2),))
    monkeypatch.setattr(planning, "_recorded", lambda data: [])
    assert command(["--only", "planning"]) == 0
    assert "workflow 4, 2 nodes, seed 0" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command(["--only", "everything"])


def test_attempts_fail_in_made_up_runs_and_are_in_their_promises(monkeypatch):
    monkeypatch.setattr(retries, "RUNS", 7)
    cases = list(retried_runs(lambda text: None, seeds=2))
    assert cases == list(retried_runs(lambda text: None, seeds=2))
    assert len(cases) == 2 * 2 * 2 * len(PASSED)
    assert len({each.seconds > 900 for each in cases if each.group.startswith("chain")}) == 2
    assert [row[0] for row in retries_table(cases).rows][:2] == [
        "chain, 25% of attempts: 0%",
        "chain, 25% of attempts: 25%",
    ]


def test_a_change_is_in_the_promise_and_not_in_past_ends():
    """Without a change both know the end; with inputs of twice the size only the promise does."""
    same, larger = (
        changed_end("", work, seed=2) for work in (BEFORE, CHANGES["inputs twice as large"])
    )
    assert same.error("ours") < 0.2
    assert larger.error("past ends") > 0.3
    assert larger.error("ours") < 0.2
    assert larger == changed_end("", CHANGES["inputs twice as large"], seed=2)
