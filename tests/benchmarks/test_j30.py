"""Projects of PSPLIB as runs on one node, and the table of deviations."""

import csv
from argparse import Namespace

import pytest

from benchmarks.cases import chosen
from benchmarks.j30 import BENCHMARK, command, load, project_files
from benchmarks.series import run
from kfp_placement_engine.exceptions import InputNotFoundError
from tests.benchmarks.projects import SMALL, project_text
from tests.support.data import data_path

BUDGET = ("--budget", "300schedules", "--seeds", "0")


@pytest.fixture
def folder(tmp_path):
    """Three projects, of which one has a known optimum."""
    for name in ("p10", "p2", "p1"):
        (tmp_path / f"{name}.sm").write_text(project_text(SMALL), "latin-1")
    (tmp_path / "optimum.csv").write_text("problem,optimum\np1.sm,12\np2.sm,\n", "utf-8")
    return tmp_path


def test_a_project_is_a_run_on_one_node(folder):
    instance = load(folder / "p1.sm", 12.0, 0)
    assert list(instance.activities) == ["job-2", "job-3", "job-5"]
    assert instance.instants == {"job-1": (), "job-4": ("job-2", "job-3"), "job-6": ("job-5",)}
    assert instance.problem.nodes == 1
    assert instance.problem.dispatch == "ordered"


def test_files_come_in_the_order_of_their_numbers(folder):
    assert [path.stem for path in project_files(folder)] == ["p1", "p2", "p10"]
    assert project_files(folder / "p2.sm") == [folder / "p2.sm"]
    with pytest.raises(InputNotFoundError, match="holds no PSPLIB projects"):
        project_files(data_path("wfinstances"))


def test_deviations_from_optimum_and_critical_path(folder, capsys, figures):
    (row,) = figures(command, "--data", str(folder), *BUDGET)["totals"]
    assert (row["files"], row["optimaKnown"], row["steps"]) == (3, 1, 3)
    assert (row["aboveOptimum"], row["optimal"]) == (0.0, 1.0)
    assert row["aboveCriticalPath"] == pytest.approx(12 / 9 - 1)
    assert command(["--data", str(folder), *BUDGET]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line[:3] == ["3", "300", "schedules"]]


def test_no_optimum_needs_to_be_known(folder, capsys):
    (folder / "optimum.csv").unlink()
    assert command(["--data", str(folder), *BUDGET]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  3 ")]
    assert " - " in row


def test_an_optimum_that_is_beaten_is_an_error(folder, capsys):
    (folder / "best.csv").write_text("problem,optimum\np1,13\n", "utf-8")
    options = ["--data", str(folder / "p1.sm"), "--optima", str(folder / "best.csv"), *BUDGET]
    assert command(options) == 1
    assert "error: p1, seed 0, 300 schedules: 12 s is below" in capsys.readouterr().out


def test_names_of_projects_are_the_same_in_small_and_capital_letters(folder, figures):
    (folder / "p1.sm").rename(folder / "P1.SM")
    rows = figures(command, "--data", str(folder), *BUDGET)["rows"]
    optima = {row["case"]: row["optimumSeconds"] for row in rows}
    assert optima == {"P1": 12, "p2": None, "p10": None}


def test_optima_of_other_projects_are_refused(folder, message):
    (folder / "optimum.csv").write_text("problem,optimum\nq1,13\n", "utf-8")
    stderr = message(1, command, "--data", str(folder), *BUDGET)
    assert "names none of the 3 projects, such as" in stderr


@pytest.mark.parametrize("bad", ["p1.sm", "p99.sm"])
def test_files_are_read_before_anything_is_searched(folder, capsys, bad):
    (folder / bad).write_text(project_text(SMALL)[:900], "latin-1")
    assert command(["--data", str(folder), *BUDGET]) == 1
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert line.startswith(f"Error: {bad}: cut off")
    assert not printed.out


def test_a_schedule_holds_jobs_of_no_duration(folder, tmp_path):
    cases = chosen(BENCHMARK.cases(Namespace(data=folder, optima=None)), "p1")
    run(cases, range(1), BENCHMARK.budgets, tmp_path)
    path = tmp_path / "p1.seed-0.5000schedules.csv"
    rows = {row["step"]: row for row in csv.DictReader(path.read_text("utf-8").splitlines())}
    assert rows["job-1"] == {"step": "job-1", "node": "", "start": "0.0", "end": "0.0"}
    assert (rows["job-4"]["start"], rows["job-6"]["end"]) == ("7.0", "12.0")


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--data", "gone"], 3, "gone: no such folder"),
        (["--optima", "gone.csv"], 3, "gone.csv: no such file"),
        (["--cases", "q*"], 1, "no case is called 'q*'; there are 3, such as p1"),
    ],
)
def test_input_that_is_not_there(folder, options, code, words, message):
    data = [] if "--data" in options else ["--data", str(folder)]
    (line,) = message(code, command, *data, *options).splitlines()
    assert line.startswith(f"Error: {words}")


def test_the_optima_of_j30_are_near(figures):
    """With few schedules on a few of the 480 files."""
    data = data_path("psplib-j30")
    options = ["--data", str(data), "--limit", "6", "--budget", "1000schedules"]
    (row,) = figures(command, *options)["totals"]
    assert (row["files"], row["optimaKnown"], row["runs"]) == (6, 6, 18)
    assert 0 <= row["aboveOptimum"] < 0.05
