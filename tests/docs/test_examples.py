"""What tests work with is shown to readers as it stands; nothing is read out of a document."""

import doctest
import re
import shutil
import time

import pytest
from click.testing import CliRunner

from kfp_placement.cli.app import cli
from tests.support.checkout import ROOT

DOCUMENTS = {
    "cluster.yaml": "docs/reference/cluster-file.md",
    "demo.txt": "README.md",
    "history-check.txt": "docs/guides/history.md",
    "history.pycon": "docs/guides/history.md",
    "history.txt": "docs/guides/history.md",
    "plan.txt": "docs/guides/reading-a-plan.md",
    "what-if.pycon": "docs/guides/what-if.md",
    "what-if.txt": "docs/guides/what-if.md",
}
LANGUAGES = {".yaml": "yaml", ".pycon": "pycon"}
DATA = ROOT / "tests/docs/data"
DEMO = ROOT / "kfp_placement/demo"


@pytest.mark.parametrize("example", sorted(DATA.iterdir()), ids=lambda path: path.name)
def test_a_document_shows_the_example(example):
    must_show(DOCUMENTS[example.name], example)


@pytest.mark.parametrize(
    "example", sorted((ROOT / "tests/deploy/data").iterdir()), ids=lambda path: path.name
)
def test_the_guide_to_the_installation_shows_what_is_tested(example):
    must_show("deploy/README.md", example)


def must_show(document, example):
    block = f"```{LANGUAGES.get(example.suffix, '')}\n{example.read_text('utf-8')}```\n"
    assert block in (ROOT / document).read_text("utf-8"), f"{document} must show {example.name}"


def printed_by(*arguments):
    """The lines that a command prints; how long its search took is left open."""
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    return without_time(result.output)


def without_time(text):
    return re.sub(r"(every assignment tried in) .*", r"\1 ...", text).splitlines()


def test_the_demo_prints_what_is_shown_of_it(tmp_path):
    shown = without_time((DATA / "demo.txt").read_text("utf-8"))
    printed = set(printed_by("demo", "--output", str(tmp_path / "plan.html")))
    assert [line for line in shown if line and line not in printed] == []


def test_a_plan_begins_as_it_is_shown(tmp_path, monkeypatch):
    shutil.copy(DEMO / "taxi-home-edge.yaml", tmp_path / "pipeline.yaml")
    shutil.copy(DEMO / "cluster.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    shown = without_time((DATA / "plan.txt").read_text("utf-8"))
    assert printed_by("plan", "pipeline.yaml", "--cluster", "cluster.yaml")[: len(shown)] == shown


GUIDE = (ROOT / "docs/guides/history.md").read_text("utf-8")


def printed_by_guide(command, *more):
    """What a command of the guide on past runs prints at the root of the repository."""
    lines = re.findall(r"^kfp-placement (.*)$", GUIDE.replace("\\\n", ""), re.MULTILINE)
    (line,) = [each for each in lines if each.startswith(f"{command} samples/")]
    lines = printed_by(*line.split(), *more)
    return [line.strip() for line in lines]


@pytest.fixture
def _at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.mark.usefixtures("_at_the_root")
@pytest.mark.parametrize(
    ("example", "command"), [("history.txt", ("plan",)), ("history-check.txt", ("check",))]
)
def test_past_runs_tell_what_is_shown(example, command):
    printed = printed_by_guide(*command)
    shown = (DATA / example).read_text("utf-8").splitlines()
    assert [line for line in shown if line not in printed] == []


@pytest.mark.usefixtures("_at_the_root")
@pytest.mark.parametrize(
    "quoted",
    [
        "`With this plan the run ends after 22m37s`",
        "`ends after 23m44s (80%: 22m18s-25m15s), by 25m15s (90%)`",
        "`ends 10:37:44 (10:35:42-10:39:56), by 10:39:56 (95%)`",
        "`705Mi of 2Gi`",
    ],
)
def test_past_runs_tell_what_the_guide_quotes(quoted):
    assert quoted in " ".join(GUIDE.split())
    printed = [
        *printed_by_guide("plan"),
        *printed_by_guide("plan", "--confidence", "80%"),
        *printed_by_guide("plan", "--at", "2026-11-27T10:14"),
        *printed_by("history", "taxi", "--file", "samples/06_taxi/history.yaml"),
    ]
    assert any(quoted.strip("`") in line for line in printed)


@pytest.mark.usefixtures("_at_the_root")
def test_a_notebook_tells_of_past_runs_what_is_shown():
    failed, tried = doctest.testfile(str(DATA / "history.pycon"), module_relative=False)
    assert (failed, tried) == (0, 5)


@pytest.fixture
def unequal_steps(tmp_path, monkeypatch):
    """The folder of the guide on what if."""
    for name in ("pipeline.yaml", "cluster.yaml"):
        shutil.copy(ROOT / "samples/04_unequal_steps" / name, tmp_path)
    monkeypatch.chdir(tmp_path)


def test_what_if_answers_as_it_is_shown(unequal_steps):
    failed, tried = doctest.testfile(str(DATA / "what-if.pycon"), module_relative=False)
    assert (failed, tried) == (0, 6)


def test_what_if_ends_as_it_is_shown(unequal_steps):
    changes = ("--what-if", "worker-1 speed=2", "--what-if", "-1 of worker")
    shown = (DATA / "what-if.txt").read_text("utf-8").splitlines()
    printed = printed_by("plan", "pipeline.yaml", "--cluster", "cluster.yaml", *changes)
    assert printed[-len(shown) :] == shown
