"""What the benchmarks that search share: budgets, choice of cases, rows, schedules, faults."""

import argparse
import csv
import json
import time
from dataclasses import replace

import pytest

from benchmarks import exact, j30, scale, suite, wfinstances
from benchmarks.beside import Question, base_parts, base_process
from benchmarks.budget import Budget, Spent, budget, search, timed_budget
from benchmarks.cases import Case, chosen, ordered_instance
from benchmarks.checkouts import Checkout
from benchmarks.command import BenchmarkError
from benchmarks.measuring import report
from benchmarks.outcomes import Outcome, References
from benchmarks.peers.orders import ORDERS
from benchmarks.processes import on_one_thread
from benchmarks.search_outcome import SearchOutcome, use_figures, use_of
from benchmarks.series import run
from kfp_placement_engine import BASELINES, GeneticParams, MaxGenerations, solve
from kfp_placement_engine.bounds.lower_bound import lower_bounds
from kfp_placement_engine.model.objective import ResourceWeights
from kfp_placement_engine.planning.resource_use import mean_use
from kfp_placement_engine.search.baselines.brute_force import count_plans
from tests.benchmarks.conftest import ENGINE
from tests.support.builders import a_run, a_step, cluster_of

MODULES = (exact, j30, scale, suite, wfinstances)
COUNTED = (exact, j30, suite)
SCHEDULES = Budget(schedules=300)
REFERENCES = References({"heft": 12.0, "kube-default": 14.0}, {"critical-path": 10.0})


def an_instance(steps: int = 6):
    run_graph = a_run(
        *(a_step(f"s{number}", cpu=3, seconds=10 + number) for number in range(steps))
    )
    return ordered_instance(run_graph, cluster_of(2), optimum_seconds=None)


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
        references=REFERENCES,
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
        ("99999999999schedules", "at most 1,000,000,000 schedules"),
        ("2s", "write a number"),
        ("٣cpu", "write a number"),
    ],
)
def test_budgets_that_are_none(text, message):
    with pytest.raises(argparse.ArgumentTypeError, match=message):
        budget(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2s", Budget(wall_seconds=2.0)),
        ("0.05", Budget(wall_seconds=0.05)),
        ("1m30s", Budget(wall_seconds=90.0)),
        ("2cpu", Budget(cpu_seconds=2.0)),
        ("5000schedules", Budget(schedules=5000)),
    ],
)
def test_budgets_of_time(text, wanted):
    assert timed_budget(text) == wanted
    assert timed_budget(wanted.word) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [("2d", "at most 86,400 seconds"), ("2 parsecs", "or a time, as in 5000schedules, 2cpu or 2s")],
)
def test_budgets_of_time_that_are_none(text, message):
    with pytest.raises(argparse.ArgumentTypeError, match=message):
        timed_budget(text)


def test_only_some_benchmarks_have_budgets_of_time(usage_error):
    for module in COUNTED:
        stderr = usage_error(module.command, "--budget", "2s")
        assert "write a number of schedules or of CPU seconds, as in" in stderr


def test_a_search_keeps_its_time():
    problem = an_instance(steps=30).problem
    started = time.monotonic()
    _, spent = search(problem, Budget(wall_seconds=0.2), 0)
    assert 0.2 <= time.monotonic() - started < 5
    assert spent.has_begun
    assert spent.schedules > 100


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


def test_cases_are_chosen_by_name_and_drawn_evenly():
    cases = [Case(f"c{number:02}", lambda seed: an_instance()) for number in range(10)]
    assert [case.name for case in chosen(cases, "c0[3-5]")] == ["c03", "c04", "c05"]
    some = [int(case.name[1:]) for case in chosen(cases, limit=4)]
    parts = ((0, 1), (2, 3, 4), (5, 6), (7, 8, 9))
    assert all(each in part for each, part in zip(some, parts, strict=True))
    assert [case.name for case in chosen(cases, limit=4)] == [f"c{each:02}" for each in some]
    # Names in a grid: not the same column of every row.
    assert len({cases.index(case) % 2 for case in chosen(cases * 10, limit=20)}) == 2
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
    assert set(row["boundSeconds"]) == {each.kind for each in lower_bounds(an_instance().problem)}
    path = tmp_path / "a-case.seed-3.300schedules.csv"
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    assert list(rows[0]) == ["step", "node", "start", "end"]
    assert sorted(each["step"] for each in rows) == [f"s{number}" for number in range(6)]
    assert max(float(each["end"]) for each in rows) == row["makespanSeconds"]
    assert not outcome.fault


def test_the_use_of_resources_is_that_which_a_plan_states():
    instance = an_instance()
    schedule = solve(instance.problem, MaxGenerations(3), 0).schedule
    stated = mean_use(0, instance.problem, schedule, 0.0)
    assert use_of(instance.problem, schedule) == pytest.approx(stated)
    assert 0 < stated["cpu"] <= 1
    assert use_figures(stated)["weightedUse"] == ResourceWeights().mean_of(stated)


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({}, ""),
        ({"unplaced": 2}, "2 steps are left out"),
        ({"makespan": 9.0, "optimum": None}, "9 s is below the bound or optimum of 10 s"),
        ({"makespan": 11.0}, "below the bound or optimum of 12 s"),
        ({"optimum": 9.0}, "the bound critical-path of 10 s is above the optimum of 9 s"),
        ({"makespan": 13.0}, "worse than heft's 12 s"),
        ({"makespan": 13.0, "spent": Spent(1, 0.1, has_begun=False)}, ""),
        ({"references": replace(REFERENCES, peers={"wow": 11.0})}, "wow's 11 s is below"),
        ({"references": replace(REFERENCES, peers={"wow": 13.0})}, ""),
        ({"makespan": 13.0, "references": replace(REFERENCES, out_of_reach=("heft",))}, ""),
        ({"makespan": 13.0, "references": replace(REFERENCES, peers={"wow": 12.5})}, "heft's 12"),
    ],
)
def test_what_cannot_be_is_a_fault(changed, fault, capsys):
    outcome = an_outcome(**changed)
    assert fault in outcome.fault
    assert bool(fault) == bool(outcome.fault)
    assert report(exact.BENCHMARK, [replace(outcome, optimum=outcome.optimum or 10.0)], print) == (
        1 if fault else 0
    )
    assert ("error: a, seed 0, 300 schedules: " in capsys.readouterr().out) == bool(fault)


def test_peers_stand_among_the_baselines(capsys, figures, tmp_path):
    """In a row, in a table and, with their schedules, in files."""
    options = ["--limit", "2", "--seeds", "0", "--budget", "50schedules", "--peers", "wow"]
    options += ["c*-fair", "--cases", "3x(8,16) equal *", "--schedules", str(tmp_path)]
    assert suite.command(options) == 0
    table = capsys.readouterr().out
    assert "copies\nnothing ahead of time" in table
    assert "cws-lff_max-fair" in table
    row = figures(suite.command, *options)["rows"][0]
    fair = {f"cws-{order}-fair" for order in ORDERS}
    assert set(row["baselineSeconds"]) == {*BASELINES, "wow", *fair} - {"brute-force"}
    for name, seconds in row["baselineSeconds"].items():
        text = (tmp_path / f"{row['case'].replace(' ', '-')}.seed-0.{name}.csv").read_text("utf-8")
        assert max(float(each["end"]) for each in csv.DictReader(text.splitlines())) == seconds


def test_another_checkout_searches_the_same(capsys, figures, checkout, tmp_path):
    options = ["--cases", "3x(8,16) lognormal *", "--limit", "2", "--seeds", "0", "--budget"]
    options += ["300schedules", "200schedules", "--base", str(checkout)]
    rows = figures(suite.command, *options, "--schedules", str(tmp_path / "plans"))["rows"]
    assert len(rows) == 4
    for row in rows:
        base = row["base"]
        assert base["makespanSeconds"] == row["makespanSeconds"]
        assert base["spent"]["schedules"] == row["spent"]["schedules"]
    assert len(list((tmp_path / "plans").glob("*schedules.base.csv"))) == 4
    assert suite.command(options) == 0
    assert "Makespans against those of the base, 300 schedules each" in capsys.readouterr().out


def test_better_same_and_worse_than_the_base_are_counted():
    """Two that differ by less than sums of times in another order may are the same."""
    outcomes = [
        an_outcome(base=SearchOutcome(Spent(100, 0.5, has_begun=True), base, (base,), 0))
        for base in (12.0, 12.0 + 1e-11, 15.0, 10.0, 9.0)
    ]
    (table,) = base_parts([*outcomes, an_outcome()])
    searches, shorter, *counts = table.rows[0][:5]
    assert (searches, counts) == ("5", ["1", "2", "2"])
    ratio = (12 / 15 * 12 / 10 * 12 / 9) ** (1 / 5)
    assert float(shorter) == pytest.approx(100 * (1 - ratio), abs=1e-3)
    assert table.rows[0][5:] == ["300", "100", "0.100", "0.500"]
    assert base_parts([an_outcome()]) == []


def test_another_checkout_that_fails(message, checkout):
    """One line, with what its process wrote last."""
    module = checkout / "engine" / ENGINE.name / "search" / "solve.py"
    module.write_text("raise RuntimeError('not today')\n", "utf-8")
    options = ["--limit", "1", "--seeds", "0", "--budget", "9schedules", "--base", str(checkout)]
    (line,) = message(1, suite.command, *options).splitlines()
    assert line.startswith(f"Error: {checkout}: its search of 10x(16,64) equal medium fails: ")
    assert line.endswith("RuntimeError: not today")


def test_another_checkout_that_reads_something_else(checkout):
    with (
        base_process(Checkout("base", checkout), "suite", []) as base,
        pytest.raises(BenchmarkError, match="equal low as another run"),
    ):
        base.find(Question("3x(8,16) equal low", 0, "9schedules"), "another hash")


@pytest.mark.parametrize("module", MODULES, ids=lambda each: each.__name__)
@pytest.mark.parametrize(
    "options",
    [
        ["--budget", "0schedules"],
        ["--seeds", "3-1"],
        ["--limit", "0"],
        ["--peers", "slurm"],
        ["-o", "html"],
    ],
)
def test_usage(module, options, usage_error):
    assert options[-1] in usage_error(module.command, *options)


@pytest.mark.parametrize("module", MODULES, ids=lambda each: each.__name__)
def test_a_base_is_a_checkout(module, message, tmp_path):
    stderr = message(3, module.command, "--base", str(tmp_path))
    assert stderr == f"Error: {tmp_path}: not a checkout of kfp-placement\n"


@pytest.mark.parametrize("module", MODULES, ids=lambda each: each.__name__)
def test_schedules_need_a_folder(module, message, tmp_path):
    file = tmp_path / "file"
    file.write_text("", "utf-8")
    assert "file: cannot be made: " in message(1, module.command, "--schedules", str(file))
