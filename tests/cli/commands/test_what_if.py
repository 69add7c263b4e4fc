"""`plan --what-if`: changes, and the single changes that help."""

import json
from dataclasses import replace

import pytest
import yaml

from tests.support.samples import SAMPLES

SAMPLE = SAMPLES / "04_unequal_steps"


@pytest.fixture
def plan(run):
    """`plan` of the lead case, quick and always the same."""
    files = (SAMPLE / "pipeline.yaml", "--cluster", SAMPLE / "cluster.yaml")
    return replace(run, first=("plan", *files, "--generations", 0, "--compare", "none"))


def what_if(*changes):
    return [word for change in changes for word in ("--what-if", change)]


@pytest.mark.golden
@pytest.mark.parametrize(
    "changes",
    [["worker-1 speed=2"], ["-1 of worker", "step xgboost duration=12m"], ["+1 of worker"]],
    ids=["faster", "several", "more"],
)
def test_the_answer_comes_after_the_plan(plan, changes, golden):
    table, _, answer = plan.output(*what_if(*changes)).rpartition("\n\n")
    assert table.startswith("unequal-steps: ")
    assert answer.startswith("What if:\n")
    golden(answer)


def test_best_names_single_changes(plan):
    stdout = plan.output(*what_if("best"))
    assert "None of the single changes tried (3) makes the run 1% shorter. " in stdout


def test_documents_hold_the_answer(plan):
    for options, field in (
        (what_if("worker-1 speed=2"), "whatIf"),
        (what_if("best"), "suggestions"),
    ):
        document = plan.document(*options)
        assert field in document
        assert yaml.safe_load(plan(*options, "-o", "yaml").stdout)[field] == document[field]
    assert not {"whatIf", "suggestions"} & plan.document().keys()


def test_a_page_holds_the_answer(plan, tmp_path):
    page = tmp_path / "plan.html"
    plan.message(0, *what_if("worker-1 speed=2"), "--output", page)
    sections = page.read_text().split("<section")
    *_, notes_and_answer = sections
    assert "What if</h2>" in notes_and_answer
    answer, _, footer = notes_and_answer.partition("<footer")
    assert "With worker-1 speed=2 the run ends after" in answer
    assert "seed 0, " in footer


def test_a_run_that_would_not_end_is_told_and_has_an_exit_code_of_its_own(plan):
    result = plan(*what_if("worker cpu=2"), "-o", "json")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["whatIf"]["makespanSeconds"] is None
    (line,) = result.stderr.splitlines()
    assert line.startswith("With worker cpu=2 the run does not end, because 7 steps fit no node")
    table = plan(*what_if("worker cpu=2"))
    assert (table.exit_code, table.stderr) == (4, "")
    assert line in table.stdout


@pytest.mark.golden
@pytest.mark.parametrize(
    "changes", [["worker"], ["+1 of wroker"], ["best", "+1 of worker"]], ids=" and ".join
)
def test_a_change_that_cannot_be_is_told_before_anything_is_planned(
    plan, changes, golden, tmp_path
):
    page = tmp_path / "plan.html"
    stderr = plan.message(2, *what_if(*changes), "--output", page)
    assert not page.exists()
    golden(stderr.splitlines()[-1])
