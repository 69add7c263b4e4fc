"""What the benchmarks that search share: budgets, choice of cases, rows, schedules, faults."""

import argparse
import csv
import json
from dataclasses import replace

import pytest

from benchmarks import exact, j30, suite
from benchmarks.budget import Budget, Spent, budget, search
from benchmarks.cases import Case, chosen, ordered_instance
from benchmarks.command import BenchmarkError
from benchmarks.measuring import report, run
from benchmarks.outcomes import Outcome, References
from benchmarks.processes import on_one_thread
from kfp_placement_engine import BASELINES, GeneticParams
from kfp_placement_engine.search.baselines.brute_force import count_plans
from tests.support.builders import a_cluster, a_run, a_step, nodes

MODULES = (exact, j30, suite)
SCHEDULES = Budget(schedules=300)


def an_instance(steps: int = 6):
    run_graph = a_run(
        *(a_step(f"s{number}", cpu=3, seconds=10 + number) for number in range(steps))
    )
    return ordered_instance(run_graph, a_cluster(*nodes(2)), optimum_seconds=None)


def an_outcome(**changed) -> Outcome:
    given = Outcome(
        case="a",
        seed=0,
        input_hash="x",
        steps=3,
        budget=SCHEDULES,
        spent=Spent(300, 0.1, has_begun=True),
        makespan=12.0,
        completions=(12.0,),
        unplaced=0,
        references=References({"heft": 12.0, "kube-default": 14.0}, {"critical-path": 10.0}),
        optimum=12.0,
    )
    return replace(given, **changed)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("5000schedules", Budget(schedules=5000)),
        ("1 schedules", Budget(schedules=1)),
        ("2cpu", Budget(cpu_seconds=2.0)),
        ("0.25cpu", Budget(cpu_seconds=0.25)),
    ],
)
def test_budgets(text, wanted):
    assert budget(text) == wanted
    assert budget(wanted.word) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0schedules", "more than 0"),
        ("0cpu", "more than 0"),
        ("0.0cpu", "more than 0"),
        ("99999999999schedules", "at most 1,000,000,000 schedules"),
        ("86401cpu", "at most 86,400 CPU seconds"),
        ("5000", "write a number"),
        ("-1cpu", "write a number"),
        ("2s", "write a number"),
        ("1.5schedules", "write a number"),
        ("٣cpu", "write a number"),
    ],
)
def test_budgets_that_are_none(text, message):
    with pytest.raises(argparse.ArgumentTypeError, match=message):
        budget(text)


def test_a_search_keeps_its_budget():
    params = GeneticParams(exact_below=0)
    _, counted = search(an_instance().problem, Budget(schedules=700), 0, params)
    assert 700 <= counted.schedules < 710
    assert counted.has_begun
    _, timed = search(an_instance().problem, Budget(cpu_seconds=0.05), 0, params)
    assert 0.05 <= timed.cpu_seconds < 0.5
    _, short = search(an_instance().problem, Budget(schedules=1), 0, params)
    assert not short.has_begun


def test_all_plans_are_tried_only_within_the_budget():
    problem = an_instance(steps=2).problem
    plans = round(count_plans(problem))
    tried, spent = search(problem, Budget(schedules=plans), 0)
    assert tried.exact
    assert (spent.schedules, spent.has_begun) == (plans, True)
    searched, _ = search(problem, Budget(schedules=plans - 1), 0)
    assert not searched.exact


def test_blas_gets_one_thread(monkeypatch):
    started = []
    monkeypatch.setattr("os.execve", lambda *given: started.append(given))
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr("sys.argv", ["j30.py", "--limit", "3"])
    on_one_thread("j30", lambda: 0)
    ((_, words, environment),) = started
    assert words[1:] == ["-m", "benchmarks.j30", "--limit", "3"]
    assert environment["OMP_NUM_THREADS"] == environment["OPENBLAS_NUM_THREADS"] == "1"
    monkeypatch.setattr("os.environ", environment)
    assert on_one_thread("j30", lambda: 7) == 7
    assert len(started) == 1


def test_cases_are_chosen_by_name_and_spread_evenly():
    cases = [Case(f"c{number:02}", lambda seed: an_instance()) for number in range(10)]
    assert [case.name for case in chosen(cases, "c0[3-5]")] == ["c03", "c04", "c05"]
    assert [case.name for case in chosen(cases, limit=4)] == ["c00", "c02", "c05", "c07"]
    assert chosen(cases, limit=99) == cases
    with pytest.raises(BenchmarkError, match="no case is called 'x'; there are 10, such as c00"):
        chosen(cases, "x")


def test_a_row_holds_what_it_takes_to_judge_it(tmp_path):
    """Baselines, bounds, budget and spent; the schedule gives the same makespan."""
    (outcome,) = run(
        [Case("a case", lambda seed: an_instance())], range(3, 4), [SCHEDULES], tmp_path
    )
    row = json.loads(json.dumps(outcome.figures))
    assert row["budget"] == {"schedules": 300}
    assert set(row["baselineSeconds"]) == set(BASELINES) - {"brute-force"}
    assert "critical-path" in row["boundSeconds"]
    assert row["makespanSeconds"] == row["completionSeconds"][0] <= row["baselineSeconds"]["heft"]
    assert (row["seed"], row["steps"], row["optimumSeconds"]) == (3, 6, None)
    assert len(row["input"]) == 64
    path = tmp_path / "a-case.seed-3.300schedules.csv"
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    assert list(rows[0]) == ["step", "node", "start", "end"]
    assert sorted(each["step"] for each in rows) == [f"s{number}" for number in range(6)]
    assert max(float(each["end"]) for each in rows) == row["makespanSeconds"]
    assert not outcome.fault


def test_the_hash_is_that_of_the_input():
    assert an_instance().input_hash == an_instance().input_hash
    assert an_instance().input_hash != an_instance(steps=5).input_hash


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({}, ""),
        ({"unplaced": 2}, "2 steps are left out"),
        ({"makespan": 9.0, "optimum": None}, "9 s is below the bound or optimum of 10 s"),
        ({"makespan": 11.0}, "below the bound or optimum of 12 s"),
        ({"makespan": 13.0}, "worse than heft's 12 s"),
        ({"makespan": 13.0, "spent": Spent(1, 0.1, has_begun=False)}, ""),
    ],
)
def test_what_cannot_be_is_a_fault(changed, fault, capsys):
    outcome = an_outcome(**changed)
    assert fault in outcome.fault
    assert bool(fault) == bool(outcome.fault)
    assert report(exact.BENCHMARK, [replace(outcome, optimum=outcome.optimum or 9.0)], print) == (
        1 if fault else 0
    )
    assert ("error: a, seed 0, 300 schedules: " in capsys.readouterr().out) == bool(fault)


@pytest.mark.parametrize("module", MODULES, ids=lambda each: each.__name__)
@pytest.mark.parametrize(
    "options",
    [
        ["--budget", "0schedules"],
        ["--budget", "0cpu"],
        ["--seeds", "3-1"],
        ["--seeds", "0-10000"],
        ["--seeds", "a"],
        ["--limit", "0"],
        ["--limit", "x"],
        ["-o", "html"],
    ],
)
def test_usage(module, options, capsys):
    with pytest.raises(SystemExit) as stopped:
        module.command(options)
    assert stopped.value.code == 2
    assert options[-1] in capsys.readouterr().err


@pytest.mark.parametrize("module", MODULES, ids=lambda each: each.__name__)
def test_schedules_need_a_folder(module, capsys, tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    assert module.command(["--schedules", str(tmp_path / "file")]) == 1
    assert "file: cannot be made: " in capsys.readouterr().err
