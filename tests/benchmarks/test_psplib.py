"""Projects of PSPLIB: what is read, and which files are refused in one sentence."""

import pytest

from benchmarks.psplib import (
    MOST_JOBS,
    critical_path_seconds,
    read_optima,
    read_project,
    without_instants,
)
from kfp_placement_engine.exceptions import EngineError, InputError, InputNotFoundError, LimitError
from tests.benchmarks.projects import SMALL, project_text
from tests.support.data import data_path


@pytest.fixture
def written(tmp_path):
    """Writes a project, with one text in it replaced by another; returns its path."""

    def write(old: str = "", new: str = ""):
        text = project_text(SMALL)
        assert old in text
        path = tmp_path / "small.sm"
        path.write_text(text.replace(old, new), encoding="latin-1")
        return path

    return write


def test_a_project_is_read(written):
    project = read_project(written())
    assert project.capacities == (3, 2)
    assert [job.seconds for job in project.jobs] == [0, 4, 3, 0, 5, 0]
    assert project.jobs[1].requests == (2, 0)
    assert project.jobs[0].successors == (2, 3)
    assert critical_path_seconds(project) == 9


def test_jobs_of_no_duration_pass_on_what_they_wait_for(written):
    after = without_instants(read_project(written()))
    assert after == {1: (), 2: (), 3: (), 4: (2, 3), 5: (2, 3), 6: (5,)}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("jobs (incl.", "works (incl.", "not a PSPLIB project"),
        (":  6\n", ":  1000000\n", "1,000,000 jobs; at most 2,000"),
        (":  6\n", ":  0\n", "0 jobs"),
        (":  6\n", ":  7\n", "cut off: it has 7 jobs and successors of 6"),
        ("nonrenewable              :  0", "nonrenewable              :  2", "nonrenewable"),
        ("  2   1   1   4\n", "  2   3   1   4\n", "job 2 has 3 modes"),
        ("  2   1   1   4\n", "  2   1   2   4\n", "the successors of job 2 are not all there"),
        ("  2   1   1   4\n", "  2   1   1   9\n", "job 2 or a successor of it"),
        ("  5   1   1   6\n", "  5   1   1   2\n", "wait for each other in a cycle"),
        ("  2   1   4   2   0\n", "  2   1   -4   2   0\n", "job 2 has the duration -4"),
        ("  2   1   4   2   0\n", "  2   1   99999999   2   0\n", "job 2 has the duration"),
        ("  2   1   4   2   0\n", "  2   1   4   -2   0\n", "job 2 requests -2 of resource 1"),
        ("  2   1   4   2   0\n", "  2   1   4   9   0\n", "of which there are 3: it never fits"),
        ("  2   1   4   2   0\n", "  2   1   4   2\n", "job 2 has 4 columns"),
        ("  2   1   4   2   0\n", "  2   1   4   two   0\n", "not a row of integers"),
        ("  2   1   4   2   0\n", "  2   2   4   2   0\n", "the requests of job 2, mode 2"),
        ("REQUESTS/DURATIONS", "REQUESTS", "cut off: it has no section REQUESTS/DURATIONS"),
        ("  3   2\n", "  3\n", "cut off: 1 of 2 resource availabilities"),
        ("  3   2\n", "  3   -2\n", "a resource availability is not from 0"),
    ],
)
def test_files_that_cannot_be_planned_are_refused(written, old, new, message):
    with pytest.raises(InputError, match=message) as refused:
        read_project(written(old, new))
    assert str(refused.value).startswith("small.sm: ")
    assert "\n" not in str(refused.value)


def test_files_that_are_cut_off_are_refused(written):
    """Wherever they end before the last number."""
    path, text = written(), project_text(SMALL)
    for end in range(text.rindex("2") + 1):
        path.write_text(text[:end], "latin-1")
        with pytest.raises(InputError, match=r"cut off|not a PSPLIB project"):
            read_project(path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "  ", "\n\x1a", " \x1a"])
def test_files_may_end_as_under_dos(tmp_path, end):
    path = tmp_path / "small.sm"
    text = project_text(SMALL)
    path.write_text(text.rstrip("*\n") + end, "latin-1", newline="")
    assert read_project(path).capacities


def test_files_that_are_too_large_are_not_read(tmp_path):
    path = tmp_path / "large.sm"
    with path.open("wb") as stream:
        stream.truncate(10**9)
    with pytest.raises(LimitError, match="larger than 8,000,000 bytes"):
        read_project(path)
    with pytest.raises(InputNotFoundError, match="no such file"):
        read_project(tmp_path / "none.sm")
    with pytest.raises(InputError, match="cannot be read"):
        read_project(tmp_path)


def test_a_project_without_any_duration_is_refused(tmp_path):
    path = tmp_path / "idle.sm"
    path.write_text(project_text([(0, (0, 0), (2,)), (0, (0, 0), ())]), "latin-1")
    with pytest.raises(InputError, match="there is nothing to plan"):
        read_project(path)


def test_the_most_jobs_are_read(tmp_path):
    last = MOST_JOBS
    jobs = [(1, (1, 0), (number + 1,) if number < last else ()) for number in range(1, last + 1)]
    path = tmp_path / "long.sm"
    path.write_text(project_text(jobs), "latin-1")
    assert critical_path_seconds(read_project(path)) == last


def test_optima_may_be_blank(tmp_path):
    path = tmp_path / "optimum.csv"
    path.write_text("problem,optimum\nA.SM,12\nb,\n\nc , 7 \n", "utf-8")
    assert read_optima(path) == {"a": 12.0, "c": 7.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first line must be"),
        ("name,best\na,1\n", "the first line must be"),
        ("problem,optimum\na,many\n", "line 2: 'a,many' is not a problem and its makespan"),
        ("problem,optimum\na,12.5\n", "line 2: 'a,12.5' is not .* write a whole number"),
        ("problem,optimum\na,3\nA.sm,4\n", "line 3: 'A.sm' is in line 2 too"),
        ("problem,optimum\na,3\nb,0\n", "line 3"),
        ("problem,optimum\na,-3\n", "line 2"),
        ("problem,optimum\na,3,4\n", "line 2"),
    ],
)
def test_optima_that_are_none_are_refused(tmp_path, text, message):
    path = tmp_path / "optimum.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=message):
        read_optima(path)
    with pytest.raises(InputNotFoundError):
        read_optima(tmp_path / "none.csv")


def test_all_files_of_j30_are_read():
    """Every critical path is that of the file, its MPM time, and no optimum is below it."""
    folder = data_path("psplib-j30")
    optima = read_optima(folder / "optimum.csv")
    files = sorted(folder.glob("*.sm"))
    assert len(files) == len(optima) == 480
    for path in files:
        try:
            project = read_project(path)
        except EngineError as error:
            pytest.fail(str(error))
        lines = path.read_text("latin-1").splitlines()
        heading = next(at for at, line in enumerate(lines) if line.startswith("pronr."))
        assert critical_path_seconds(project) == int(lines[heading + 1].split()[5])
        assert optima[path.stem] >= critical_path_seconds(project)
