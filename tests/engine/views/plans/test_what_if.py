"""What changes would make of a run, as people and programs see it."""

import json
import math
import re
from dataclasses import replace

import pytest

from kfp_placement_engine.model.promise import Promise, TimeRange
from kfp_placement_engine.plans.comparison import Figures
from kfp_placement_engine.plans.what_if import ChangedPlan, Suggestion, Suggestions
from kfp_placement_engine.readers.change_text import read_change
from kfp_placement_engine.render.plan_json import plan_document, plan_json, plan_yaml
from kfp_placement_engine.render.text import TextStyle, notes_lines, table_lines
from kfp_placement_engine.render.widths import width
from kfp_placement_engine.views.document import Table
from kfp_placement_engine.views.plans.what_if import SHOWN, end_sentence, what_if_part
from tests.support.html_pages import parse_page
from tests.support.json_schemas import assert_described
from tests.support.plans import (
    a_plan,
    a_step,
    ends_after,
    stuck_plan,
    taxi_plan,
    unplaced_step,
    varied,
)
from tests.support.renderings import plan_page

PRESENT = taxi_plan()
END = PRESENT.figures.makespan_seconds


def ending(seconds, **changes):
    return varied(PRESENT, figures=Figures(0, 0.0, 9.8, seconds), **changes)


def changed(plan, *texts):
    gain = END - plan.figures.makespan_seconds
    changes = tuple(map(read_change, texts or ["+2 of worker"]))
    if plan.unschedulable:
        gain = -math.inf
    return ChangedPlan(changes, plan, gain)


def moved_plan():
    steps = tuple(replace(step, node="new-node") for step in PRESENT.steps)
    return ending(0.6 * END, steps=steps)


def suggestion(text, gain, nodes=0, cpu=0):
    return Suggestion(read_change(text), END - gain, gain, nodes, cpu)


SOME = Suggestions(
    (
        suggestion("loop for-loop-1 limit=off", 600),
        suggestion("worker-1 cpu=32", 590, cpu=16_000),
        suggestion("+1 of worker", 300, nodes=1, cpu=16_000),
    ),
    tried=12,
    present_seconds=END,
)
LONGER = replace(SOME, unchanged_gain_seconds=40.0)
NONE = Suggestions((), 12, END)
ENDLESS = Suggestions((Suggestion(read_change("n1 memory=128Gi"), 60, math.inf),), 5, math.inf)
NEVER = Suggestions((), 5, math.inf)
STUCK = a_plan(a_step("fetch"), unplaced_step("train"))

NO_TIME = a_plan(a_step(finish_seconds=0.0))

ANSWERS = {
    "a run of no time": (NO_TIME, ChangedPlan((read_change("+1 of worker"),), NO_TIME, 0.0)),
    "a run of no time, longer": (
        NO_TIME,
        ChangedPlan((read_change("step train duration=60s"),), a_plan(), -60.0),
    ),
    "earlier": (PRESENT, changed(moved_plan())),
    "later": (PRESENT, changed(ending(1.2 * END), "-1 of worker", "step train duration=1h")),
    "later with more": (
        PRESENT,
        replace(changed(ending(1.2 * END), "loop for-loop-1 limit=off"), is_anomaly=True),
    ),
    "as before": (PRESENT, changed(ending(END - 0.1))),
    "the plan stays": (PRESENT, ChangedPlan((read_change("+1 of worker"),), PRESENT, 0.0)),
    "no longer ends": (PRESENT, changed(a_plan(unplaced_step("train")))),
    "several do not fit": (PRESENT, changed(a_plan(unplaced_step("a"), unplaced_step("b")))),
    "ends only then": (STUCK, replace(changed(a_plan()), gain_seconds=math.inf)),
    "ends neither way": (STUCK, replace(changed(STUCK), gain_seconds=0.0)),
    "assumed": (varied(PRESENT, all_durations_assumed=True), changed(moved_plan())),
    "suggestions": (PRESENT, SOME),
    "a longer search": (PRESENT, LONGER),
    "no suggestions": (PRESENT, NONE),
    "an end at last": (stuck_plan(), ENDLESS),
    "no end": (stuck_plan(), NEVER),
}


ANSWERS["by past runs"] = (
    PRESENT,
    changed(ending(0.6 * END, promise=Promise(ends=TimeRange(1100.0, 1200.0, 1350.0)))),
)


def each_answer(test):
    return pytest.mark.parametrize(("present", "answer"), ANSWERS.values(), ids=ANSWERS)(test)


def what_if_lines(present, answer, columns=None):
    part = what_if_part(present, answer)
    style = TextStyle(columns)
    return table_lines(part, style) if isinstance(part, Table) else notes_lines(part, style)


@pytest.mark.golden
@each_answer
def test_what_a_terminal_shows(present, answer, golden):
    golden(what_if_lines(present, answer))


@each_answer
@pytest.mark.parametrize("columns", [48, 60, 80])
def test_no_line_is_wider_than_the_terminal(present, answer, columns):
    assert max(map(width, what_if_lines(present, answer, columns))) <= columns


def words_of(lines):
    return re.sub(r"\W+", " ", " ".join(lines)).lower().split()


@each_answer
def test_a_page_says_the_same_under_a_heading(present, answer):
    page = parse_page(plan_page(present, answer)).prose
    shown = page[len(page) - page[::-1].index("What if") :]
    words = words_of(what_if_lines(present, answer))[0 if isinstance(answer, Suggestions) else 2 :]
    assert words_of(shown)[: len(words)] == words


@each_answer
def test_documents_fit_the_schema(present, answer):
    document = json.loads(plan_json(present, answer))
    assert_described(document, "plan")
    assert document.items() > json.loads(plan_json(present)).items()
    assert len(plan_yaml(present, answer)) > len(plan_yaml(present))


def test_the_fields_of_a_document(golden):
    plan = a_plan(a_step("train", node="n2"), unplaced_step("huge", reason="too large"))
    for answer, field in ((changed(plan, "-1 of worker"), "whatIf"), (SOME, "suggestions")):
        golden(json.dumps(plan_document(PRESENT, answer)[field], indent=2), field)


def test_many_suggestions_are_cut_for_people_and_whole_for_programs():
    many = replace(SOME, best=tuple(suggestion(f"n{n} cpu=9", 900 - n) for n in range(30)))
    assert len(what_if_lines(PRESENT, many)) == SHOWN + 2
    assert len(plan_document(PRESENT, many)["suggestions"]) == 30


EVIL = "\x1b]0;x\x07<img src=x onerror=alert(1)>" + "a" * 60_000


def test_names_that_strangers_wrote_are_shown_and_not_acted_on():
    step = a_step(EVIL, node=EVIL)
    plan = replace(PRESENT, steps=(a_step(EVIL),))
    faster = replace(plan, steps=(step,), figures=ends_after(1.0))
    for answer in (
        changed(faster, "volume data access=ReadWriteMany"),
        changed(a_plan(unplaced_step(EVIL, reason=EVIL))),
    ):
        lines = what_if_lines(plan, answer)
        assert all(line.isprintable() and len(line) < 2000 for line in lines)
        assert "<img" not in plan_page(PRESENT, answer)
        assert end_sentence(plan, answer).isprintable()


def test_steps_are_told_by_the_names_that_authors_gave():
    """People read those in the table; documents for programs keep the step's own name."""
    step = a_step("train-4", node="n2", display_name="xgboost")
    answer = changed(a_plan(step, figures=ends_after(0.5 * END)))
    assert what_if_lines(PRESENT, answer)[2].endswith("(xgboost to n2).")
    assert plan_document(PRESENT, answer)["whatIf"]["steps"][0]["name"] == "train-4"
    stuck = changed(a_plan(unplaced_step("train-4", display_name="xgboost")))
    assert "because xgboost fits no node" in end_sentence(PRESENT, stuck)
