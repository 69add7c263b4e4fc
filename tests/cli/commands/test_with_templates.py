"""Options `--with` and `--entrypoint` of `plan` and `check`, and a folder in place of RUN."""

import json
from typing import Any

import pytest

from kfp_placement import PlacementError, preview
from kfp_placement.check import check
from tests.cli.conftest import CLUSTER, RUN
from tests.engine.readers.argo.test_templates_elsewhere import MAIN, library, pod
from tests.engine.readers.argo.test_templates_elsewhere import run as a_run

LIBRARY = library(pod("check", cpu="2"))
EXACT = ("--cluster", CLUSTER, "--generations", "1", "--compare", "none")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a run and, below it, the library; the current folder is the one above."""
    below = tmp_path / "flows" / "templates"
    below.mkdir(parents=True)
    (below / "library.yaml").write_text(json.dumps(LIBRARY))
    (tmp_path / "flows" / "flow.yml").write_text(json.dumps(a_run(MAIN)))
    (tmp_path / "flows" / "values.yaml").write_text("image: {{ .Values.image }}")
    (tmp_path / "flows" / ".hidden.yaml").write_text(json.dumps(a_run(MAIN)))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "flows"


def requests(planner) -> dict:
    return {step.name: dict(step.requests) for step in planner.graph.steps}


@pytest.mark.parametrize(
    "names",
    [
        ("flows",),
        ("flows/flow.yml", "--with", "flows"),
        ("flows/flow.yml", "--with", "flows/templates/library.yaml"),
    ],
)
def test_the_steps_are_those_of_the_library(run, planner, folder, names):
    completed = run("plan", *names, *EXACT)
    assert (completed.exit_code, completed.stderr) == (0, "")
    assert requests(planner) == {"check": {"cpu": 2000}}
    report = json.loads(run("check", *names, "-o", "json").stdout)["findings"]
    assert "template-elsewhere" not in {each["code"] for each in report}


def test_the_library_may_come_from_stdin(run, planner, folder):
    data = json.dumps(LIBRARY).encode()
    assert run("plan", "flows/flow.yml", "--with", "-", *EXACT, stdin=data).exit_code == 0
    assert requests(planner) == {"check": {"cpu": 2000}}
    assert "cannot both come from stdin" in run("plan", "-", "--with", "-").stderr


def test_an_entrypoint_makes_a_run_of_a_library(run, planner, folder, golden):
    path = "flows/templates/library.yaml"
    golden(run("plan", path, *EXACT).stderr)
    assert run("plan", path, "--entrypoint", "check", *EXACT).exit_code == 0
    assert requests(planner) == {"check": {"cpu": 2000}}
    assert run("check", path, "--entrypoint", "check").exit_code == 0


def test_python_takes_them_too(folder):
    path = folder / "flow.yml"
    for templates in (folder, str(folder), [folder / "templates" / "library.yaml"]):
        shown = preview(path, templates=templates, generations=1, compare=())
        assert shown.steps["check"].requests == {"cpu": 2000}
    assert preview(folder, generations=1, compare=()).steps["check"].requests == {"cpu": 2000}
    library_path = folder / "templates" / "library.yaml"
    assert check(library_path, entrypoint="check").ok is not None
    wrongs: tuple[Any, ...] = (5, {"a": 1}, [5], "")
    for wrong in wrongs:
        with pytest.raises(PlacementError, match="templates"):
            preview(path, templates=wrong)
    with pytest.raises(PlacementError, match="entrypoint"):
        check(path, entrypoint=wrongs[0])


def test_a_file_that_cannot_be_read_is_left_out_of_a_folder(run, planner, folder, golden):
    (folder / "bad.yaml").write_text("apiVersion: argoproj.io/v1alpha1\nkind: [")
    (folder / "worse.json").write_bytes(b"argoproj.io \xff")
    (folder / "pipe.yaml").symlink_to("/dev/zero")
    assert run("plan", "flows", *EXACT).exit_code == 0
    assert requests(planner) == {"check": {"cpu": 2000}}
    (notice,) = (each for each in planner.graph.notices if each.code == "ignored-objects")
    golden(notice.message)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda folder: (folder / "second.yaml").write_text(json.dumps(a_run(MAIN))), ("flows",)),
        (lambda folder: (folder / "flow.yml").unlink(), ("flows/templates", "--entrypoint", "x")),
        (lambda folder: (folder / "empty").mkdir(), ("flows/empty",)),
        (lambda folder: (folder / "empty").mkdir(), ("flows/flow.yml", "--with", "flows/empty")),
        (lambda folder: None, ("flows/flow.yml", "--with", "gone")),
        (lambda folder: None, ("flows/flow.yml", "--with", "flows/values.yaml")),
        (lambda folder: None, (RUN, "--with", "flows")),
        (lambda folder: None, (RUN, "--entrypoint", "x")),
        (lambda folder: None, ("flows/flow.yml", "--package", "flows")),
        (
            lambda folder: [(folder / f"{n}.yaml").touch() for n in range(1001)],
            ("flows/flow.yml", "--with", "flows"),
        ),
        (lambda folder: large(folder / "large.json"), ("flows",)),
    ],
)
def test_bad_folders_and_files_are_one_sentence(run, folder, change, names, golden):
    change(folder)
    completed = run("plan", *names, *EXACT)
    assert completed.exit_code in (1, 2, 3)
    golden(completed.stderr.replace(RUN, "RUN"))


def large(path):
    """A file of 1 GiB that takes no room on the disk."""
    with path.open("wb") as stream:
        stream.truncate(2**30)
