"""When runs and steps end, as promised, wherever runs are shown."""

import json
from typing import Any

import pytest

from kfp_placement.live.documents import explanation_document, runs_document, serialized
from kfp_placement_engine.render.text import document_text, table_lines
from kfp_placement_engine.views.explanation import explanation
from kfp_placement_engine.views.queues import queue_view
from kfp_placement_engine.views.run_list import runs_table
from kfp_placement_engine.views.run_news import news
from kfp_placement_engine.views.run_texts import run_ends_sentence, summary
from kfp_placement_engine.views.runs import run_view
from tests.cli.live.conftest import NOW, placement
from tests.cli.live.test_queue import request
from tests.support.json_schemas import assert_described

ENDS = {"low": "22m", "typical": "26m", "high": "31m"}
FIRST = {"low": "18m", "typical": "20m", "high": "25m", "planned": "22m55s", "promisedAfter": "0s"}
STEPS = [
    ["fetch", 0, 10, 41.8, [], [], ["history", "iteration", 9]],
    ["train", 0, 47, 1249, [], [], ["history", "image", 3, 1]],
    ["predict", 2, 1254, 1375, [], [], ["hint"]],
]
PREDICT = [1180, 1265, 1330, 1290, 1380, 1440]
STATES = [
    # One that has ended is promised nothing any more.
    ["succeeded", 0, 10.4, 43.1, [], [10, 10, 10, 40, 43, 44]],
    ["running", 0, 49, -1, [], [49, 49, 49, 1170, 1260, 1320]],
    ["pending", -1, -1, -1, [], PREDICT],
]
UNKNOWN: dict[str, Any] = {"ends": None, "endsUnknown": "no run seen", "steps": []}
AFTER_START: dict[str, Any] = {
    "ends": None,
    "endsAfterStart": {"low": "8m", "typical": "9m", "high": "12m"},
    "steps": [],
    "spec": {"firstEnds": None, "confidence": None},
}
HOSTILE = "\x1b[31mred\u202e\nnew line" * 9


def promised(*, queue=None, ends=ENDS, spec=None, **status):
    """The sample run with a promise."""
    full_spec = {"firstEnds": FIRST, "confidence": 0.9, "steps": STEPS, **(spec or {})}
    raw = placement(spec=full_spec, status={"ends": ends, "steps": STATES, **status})
    return run_view(raw, NOW).in_queue(None if queue is None else queue_view(queue))


ENDED = {"phase": "Succeeded", "ends": None}
SHORT = {**FIRST, "low": "5m", "typical": "6m", "high": "7m"}
RUNS = {
    "promised": promised(),
    "why nothing is": promised(**UNKNOWN, spec={"firstEnds": None}),
    "promised once, unknown now": promised(**UNKNOWN),
    "queued": promised(queue=request()),
    "queued, why nothing is promised": promised(
        **UNKNOWN, spec={"firstEnds": None}, queue=request()
    ),
    "queued, promised from its start": promised(
        **AFTER_START, queue=request(spec={"makespan": "30m"})
    ),
    "kept": promised(**ENDED, makespan="22m"),
    "ended earlier": promised(**ENDED, makespan="17m"),
    "ended later": promised(**ENDED, makespan="40m"),
    "planned when it had begun": promised(
        **ENDED,
        makespan="22m",
        revision=1,
        spec={"revision": 1, "plannedAt": "2026-11-20T10:05:00Z"},
    ),
    # As in the metrics: ends are cut to seconds.
    "kept to the second": promised(**ENDED, makespan="4m59s", spec={"firstEnds": SHORT}),
    "earlier by a second": promised(**ENDED, makespan="4m58s", spec={"firstEnds": SHORT}),
    "failed, so that nothing is kept": promised(phase="Failed", makespan="22m"),
    "a promise that cannot be read": promised(
        steps=[*STATES[:2], ["pending", -1, -1, -1, [], [1, "x"]]]
    ),
    "hostile": promised(
        ends=None,
        endsUnknown=HOSTILE,
        spec={"steps": [["fetch", 0, 10, 42, [], [], ["x" * 900, "image", 1]], *STEPS[1:]]},
        steps=[],
    ),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_what_is_told_of_a_run(run, golden):
    text = document_text(explanation(run, run.steps, in_full=False))
    golden(text, "explained")
    golden(summary(run), "in a line")
    assert max(map(len, text.splitlines())) < 500
    for document in (runs_document([run]), explanation_document(run, run.steps)):
        assert_described(json.loads(serialized(document, "json")), "runs")


def test_steps_in_full(golden):
    run = RUNS["promised"]
    golden(document_text(explanation(run, run.steps, in_full=True)))


def test_a_list_has_a_column_where_something_is_promised(golden):
    golden(table_lines(runs_table(RUNS.values(), wide=False, namespaces=False)), "usual")
    golden(table_lines(runs_table(RUNS.values(), wide=True, namespaces=False)), "wide")


@pytest.mark.parametrize(
    ("run", "wide", "is_there"),
    [
        (run_view(placement(), NOW), True, False),
        (RUNS["why nothing is"], False, False),
        (RUNS["why nothing is"], True, True),
    ],
)
def test_where_nothing_is_promised_only_a_wide_list_says_why(run, wide, is_there):
    titles = [each.title for each in runs_table([run], wide=wide, namespaces=False).columns]
    assert ("ENDS" in titles) is is_there


def test_documents_say_when_a_run_and_its_steps_end(golden):
    run = RUNS["promised"]
    golden(serialized(explanation_document(run, run.steps), "yaml"), "explained")
    held = [RUNS["promised once, unknown now"], RUNS["queued, promised from its start"]]
    golden(serialized(runs_document(held), "yaml"), "in a list")


def test_an_end_that_people_do_not_know_is_news(golden):
    before = RUNS["promised"]
    later = promised(ends={"low": "30m", "typical": "32m", "high": "35m"})
    unknown = promised(**UNKNOWN | {"steps": STATES})
    replanned = promised(spec={"revision": 3, "makespan": "40m"}, revision=3)
    golden([*news(before, later), *news(unknown, before), *news(before, replanned)])
    # Within what was promised before, it is no news.
    assert list(news(before, promised(ends={**ENDS, "typical": "30m"}))) == []
    assert list(news(before, unknown)) == []
    started = [*STATES[:2], ["running", 2, 1256, -1, [], [1256] * 3 + PREDICT[3:]]]
    (step,) = news(before, promised(steps=started))
    assert step.endswith("ends 10:23:00 (10:21:30-10:24:00)")


def test_times_are_those_of_who_looks(zone):
    zone("EST5")
    text = run_ends_sentence(RUNS["promised"])
    assert text == "ends 05:26 (05:22-05:31), by 05:31 (95%), EST"


@pytest.mark.parametrize(
    ("submitted_at", "where"), [("0001-01-01T00:00:00Z", "EST5"), ("9999-12-31T23:59:59Z", "CET-1")]
)
def test_years_at_the_end_of_time(zone, submitted_at, where):
    zone(where)
    ends = {"low": "1s", "typical": "3000d", "high": "3659d"}
    run = promised(ends=ends, spec={"submittedAt": submitted_at})
    assert table_lines(runs_table([run], wide=True, namespaces=True))
    assert document_text(explanation(run, run.steps, in_full=True))
    assert serialized(runs_document([run]), "json")
