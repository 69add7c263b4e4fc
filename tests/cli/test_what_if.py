"""`plan --what-if`: changes, and the single changes that help."""

import json

import jsonschema
import pytest
import yaml

from kfp_placement.schemas import schema
from tests.support.samples import SAMPLES

SAMPLE = SAMPLES / "04_unequal_steps"


@pytest.fixture
def plan(run):
    """`plan` of the lead case, quick and always the same."""

    def invoke(*options):
        given = ("--cluster", SAMPLE / "cluster.yaml", "--generations", 0, "--compare", "none")
        return run("plan", SAMPLE / "pipeline.yaml", *given, *options)

    return invoke


def what_if(*changes):
    return [word for change in changes for word in ("--what-if", change)]


@pytest.mark.golden
@pytest.mark.parametrize(
    "changes",
    [
        ["worker-1 speed=2"],
        ["-1 of worker", "step xgboost duration=12m"],
        ["+1 of worker"],
    ],
    ids=["faster", "several", "more"],
)
def test_the_answer_comes_after_the_plan(plan, changes, golden):
    result = plan(*what_if(*changes))
    assert (result.exit_code, result.stderr) == (0, "")
    table, _, answer = result.stdout.rpartition("\n\n")
    assert table.startswith("unequal-steps: ")
    assert answer.startswith("What if:\n")
    golden(answer)


def test_best_names_single_changes(plan):
    result = plan(*what_if("best"))
    assert result.exit_code == 0
    assert "None of the single changes tried (3) makes the run 1% shorter. " in result.stdout


def test_documents_hold_the_answer(plan):
    for options, field in (
        (what_if("worker-1 speed=2"), "whatIf"),
        (what_if("best"), "suggestions"),
    ):
        document = json.loads(plan(*options, "-o", "json").stdout)
        jsonschema.validate(document, schema("plan"))
        assert field in document
        assert yaml.safe_load(plan(*options, "-o", "yaml").stdout)[field] == document[field]
    assert not {"whatIf", "suggestions"} & json.loads(plan("-o", "json").stdout).keys()


def test_a_page_holds_the_answer(plan, tmp_path):
    page = tmp_path / "plan.html"
    result = plan(*what_if("worker-1 speed=2"), "--output", page)
    assert result.exit_code == 0
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
    "changes",
    [
        ["worker"],
        ["+1 of wroker"],
        ["best", "+1 of worker"],
    ],
    ids=" and ".join,
)
def test_a_change_that_cannot_be_is_told_before_anything_is_planned(
    plan, changes, golden, tmp_path
):
    page = tmp_path / "plan.html"
    result = plan(*what_if(*changes), "--output", page)
    assert (result.exit_code, result.stdout) == (2, "")
    assert not page.exists()
    golden(result.stderr.splitlines()[-1])
