"""What a plan promises by past runs, in table, report, document and notebook."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kfp_placement.preview.planned import Preview
from kfp_placement_engine.model.forecast import Basis, Level
from kfp_placement_engine.model.promise import Promise, StepPromise, TimeRange
from kfp_placement_engine.model.run_graph import DurationSource
from kfp_placement_engine.render.plan_json import plan_document, plan_json
from kfp_placement_engine.views.plans.promises import promised_end
from tests.support.html_pages import parse_page
from tests.support.json_schemas import assert_described
from tests.support.plans import a_plan, a_step, random_plan, stuck_plan, taxi_plan, varied
from tests.support.renderings import plan_fragment, plan_page, plan_table

LEARNED = {"train": Basis(Level.ITERATION, 9), "fetch": Basis(Level.IMAGE, 3, by_size=True)}


def promised_plan(**changes):
    """The taxi run: each step may end 10% earlier or later, the run up to a third later."""
    plan = taxi_plan()
    steps = tuple(
        varied(
            step,
            duration_source=DurationSource.HISTORY,
            duration_basis=LEARNED[step.name],
            sized_input="table",
        )
        if step.name in LEARNED
        else step
        for step in plan.steps
    )
    promises = {
        step.name: StepPromise(_about(step.start_seconds or 0), _about(step.finish_seconds or 0))
        for step in steps
        if step.name != "evaluate"
    }
    promise = Promise(ends=TimeRange(1700.0, 1865.0, 2400.0), steps=promises)
    return varied(plan, steps=steps, promise=promise, **changes)


def _about(seconds):
    return TimeRange(0.9 * seconds, seconds, 1.1 * seconds)


AT = datetime(2026, 11, 26, 10, 14, tzinfo=UTC)
UNKNOWN = replace(taxi_plan(), promise=Promise(unknown="no run seen of train"))
PLANS = {
    "known": promised_plan(),
    "unknown": UNKNOWN,
    "at": promised_plan(submitted_at=AT),
    "stuck": replace(stuck_plan(), promise=Promise(unknown="a step fits no node")),
}
each_plan = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)


@each_plan
def test_documents_fit_the_schema_and_hold_nothing_it_does_not_describe(plan):
    assert_described(json.loads(plan_json(plan)), "plan")


def test_a_document_has_promise_and_basis_where_somebody_asked_for_past_runs(golden):
    document = plan_document(promised_plan(submitted_at=AT))
    golden(json.dumps([document["promise"], document["submittedAt"]]), "run")
    for step in document["steps"]:
        times = [step["starts"], step["ends"], step["durationBasis"]]
        golden(json.dumps(times), step["name"])
    without = plan_document(taxi_plan())
    assert not {"promise", "submittedAt"} & without.keys()
    assert not {"starts", "ends", "durationBasis"} & without["steps"][0].keys()


def test_the_sentence():
    assert promised_end(promised_plan()) == (
        "By past runs: ends after 31m5s (28m20s-40m), by 40m (95%)."
    )
    assert promised_end(PLANS["at"]) == "By past runs: ends 10:45 (10:42-10:54), by 10:54 (95%)."
    assert promised_end(UNKNOWN) == "End: unknown (no run seen of train)."
    assert promised_end(taxi_plan()) == promised_end(PLANS["stuck"]) == ""


@each_plan
def test_the_table(plan, golden):
    golden(plan_table(plan, wide=True))


def test_the_usual_table_says_when_the_run_ends_what_is_a_guess_and_no_more():
    with_promise, without = (
        [line.split() for line in plan_table(plan).splitlines()]
        for plan in (promised_plan(), taxi_plan())
    )
    ends, guessed = (line for line in with_promise if line not in without)
    assert " ".join(ends) == promised_end(promised_plan())
    # Other steps of the same image tell little.
    assert guessed[0] == "fetch"
    assert guessed[4].startswith("~")


@each_plan
def test_the_report_is_sound_and_says_the_same(plan):
    page = parse_page(plan_page(plan))
    assert page.unbalanced == []
    assert not promised_end(plan) or promised_end(plan) in page.text
    assert ("End, by past runs" in page.text) == (promised_end(plan) != "")
    assert ("submitted 2026-11-26 10:14:00 UTC" in page.text) == (plan.run.submitted_at is not None)


def test_the_report_has_ranges_of_steps_as_words_and_as_whiskers():
    page = plan_page(promised_plan())
    assert "ends 26m29s (23m50s-29m8s)" in parse_page(page).text
    assert "same image, 3 runs, by size of table" in parse_page(page).text
    # One for each step of the plan whose end is known, and one in the key.
    assert page.count('class="whisker"') == len(taxi_plan().steps) - 1 + 1
    assert 'class="whisker"' not in plan_page(taxi_plan())
    assert "90% range of the end, by past runs" in parse_page(page).text


def test_the_axis_and_what_it_says_of_steps_are_times_of_day():
    page = plan_page(PLANS["at"])
    assert ">10:19</text>" in page
    # train, from 372 s to 1589 s, in both drawings.
    titles = [each for each in re.findall("<title>([^<]*)</title>", page) if "10:20:12" in each]
    assert len([each for each in titles if "10:20:12 to 10:40:29" in each]) == 2


def test_start_and_end_do_not_contradict_their_ranges():
    plan = promised_plan(submitted_at=AT.replace(second=7))
    text = plan_table(plan, wide=True)
    assert "submitted 2026-11-26 10:14:07 UTC" in text
    assert re.search(r"^train .* 10:20:19 +10:40:36 ", text, re.MULTILINE)


def test_a_notebook_shows_the_same_whatever_the_size():
    assert promised_end(promised_plan()) in parse_page(plan_fragment(promised_plan())).text
    large = random_plan(5000, 40)
    promises = {
        step.name: StepPromise(_about(step.start_seconds), _about(step.finish_seconds))
        for step in large.steps
    }
    promise = Promise(ends=_about(large.figures.makespan_seconds), steps=promises)
    assert len(plan_fragment(replace(large, promise=promise))) < 2**20


def test_names_of_inputs_cannot_steer_a_terminal_or_a_page():
    step = a_step(
        duration_source=DurationSource.HISTORY,
        duration_basis=Basis(Level.STEP, 1, by_size=True),
        sized_input="<b>\x1b[31m",
    )
    plan = a_plan(step, promise=Promise(ends=_about(60.0)))
    assert "by size of <b>\\x1b[31m" in plan_table(plan, wide=True)
    assert "<b>\x1b" not in plan_page(plan)
    assert "\x1b" not in Preview(plan).explain("train")


def test_a_preview_has_ranges_and_what_they_rest_on(golden):
    plan = Preview(promised_plan())
    assert plan.ends is not None
    assert (plan.ends.low, plan.ends.typical, plan.ends.high) == (1700.0, 1865.0, 2400.0)
    train, evaluate = plan.steps["train"], plan.steps["evaluate"]
    assert train.ends is not None
    assert (train.ends.typical, train.basis) == (1589.0, "9 runs")
    assert (evaluate.starts, evaluate.basis) == (None, "hint")
    golden(repr(plan), "repr")
    golden(plan.explain("train"), "train")
    golden(plan.explain("evaluate"), "evaluate")


def test_a_preview_without_past_runs_knows_no_range():
    plan = Preview(taxi_plan())
    assert plan.ends is None
    assert plan.steps["train"].ends is None
    assert plan.steps["train"].basis == "hint"
    assert plan.steps["validate"].basis == "assumed"
    assert "rests on" not in plan.explain("train")


def test_an_unknown_end_says_why():
    plan = Preview(UNKNOWN)
    assert plan.ends is None
    assert "end: unknown (no run seen of train)" in repr(plan)


def test_a_data_frame_has_columns_for_ranges_and_basis_only_where_there_are_past_runs():
    pytest.importorskip("pandas")
    frame = Preview(promised_plan()).to_dataframe()
    assert frame.loc["train", "ends_typical_seconds"] == 1589.0
    assert frame.loc["train", "run_time_basis"] == "9 runs"
    assert frame["starts_low_seconds"].isna().sum() == 1
    assert "run_time_basis" not in Preview(taxi_plan()).to_dataframe()
