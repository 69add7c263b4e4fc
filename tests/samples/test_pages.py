"""What the samples' pages print runs as it stands, in the sample's folder."""

import ast
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kfp_placement.cli.app import cli
from tests.support.local_runs import WITHOUT_RESOURCES, local_runner
from tests.support.samples import SAMPLES

PAGES = sorted(path.parent.name for path in SAMPLES.glob("*/README.md"))


def blocks(page, language):
    text = (SAMPLES / page / "README.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


COMMANDS = [
    (page, line)
    for page in PAGES
    for block in blocks(page, "")
    for line in block.splitlines()
    if line.startswith("kfp-placement ")
]
PROGRAMS = [
    pytest.param(page, block, id=f"{page}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page, "python"))
    if "import" in block
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Goes to a copy of a sample's files."""

    def enter(page: str) -> Path:
        for file in (SAMPLES / page).glob("*.yaml"):
            shutil.copy(file, tmp_path)
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return enter


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_a_command_runs(folder, page, line):
    folder(page)
    result = CliRunner().invoke(cli, shlex.split(line)[1:])
    assert result.exit_code == 0, result.output


@WITHOUT_RESOURCES
@pytest.mark.parametrize(("page", "program"), PROGRAMS)
def test_a_program_runs_and_gives_what_stands_beside_it(folder, monkeypatch, page, program):
    place = folder(page)
    monkeypatch.syspath_prepend(str(SAMPLES / page))
    monkeypatch.delitem(sys.modules, "pipeline", raising=False)
    if "XGBoost" in (SAMPLES / page / "README.md").read_text("utf-8"):
        pytest.importorskip("xgboost")
    names: dict[str, object] = {}
    with local_runner(place / "local", monkeypatch):
        for statement in ast.parse(program).body:
            source = ast.get_source_segment(program, statement) or ""
            if not isinstance(statement, ast.Expr):
                exec(source, names)
                continue
            value = eval(source, names)
            beside = re.search(rf"{re.escape(source)} +# ([\w-]+)$", program, re.MULTILINE)
            assert beside is None or str(value) == beside[1]
    monkeypatch.delitem(sys.modules, "pipeline", raising=False)


def test_the_overview_says_what_the_pages_say():
    overview = (SAMPLES / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| \[(\w+)\]\(\1\) \| .+ \| (\S+) \| (\S+) \|$", overview, re.MULTILINE)
    assert len(rows) == 5
    for sample, default, plan in rows:
        page = (SAMPLES / sample / "README.md").read_text("utf-8")
        assert f"| [cluster.yaml](cluster.yaml) | {default} | {plan} |" in page


def test_the_taxi_page_shows_what_was_measured():
    measured = (SAMPLES.parent / "benchmarks/results/taxi.md").read_text("utf-8")
    page = (SAMPLES / "06_taxi/README.md").read_text("utf-8")
    rows = [line for line in measured.splitlines() if line.startswith("|")]
    assert len(rows) == 5
    assert "\n".join(rows) in page
