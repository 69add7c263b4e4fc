"""When runs and steps end, as promised: `list`, `explain`, `watch`, and a cell of a notebook."""

import json
import time
from typing import Any

import jsonschema
import pytest

from kfp_placement.live.kinds import PLACEMENTS, RUN_REQUESTS
from kfp_placement.live.notebook import Run
from kfp_placement.schemas import schema
from kfp_placement_engine.views.run_changes import changes
from kfp_placement_engine.views.run_texts import run_ends_sentence, step_ends
from kfp_placement_engine.views.runs import NamedRun, run_view
from tests.cli.live.conftest import NOW, placement
from tests.cli.live.test_queue import request
from tests.support.json_schemas import closed

ENDS = {"low": "22m", "typical": "26m", "high": "31m"}
FIRST = {"low": "18m", "typical": "20m", "high": "25m", "played": "22m55s", "promisedAfter": "0s"}
STEPS = [
    ["fetch", 0, 10, 41.8, [], [], ["history", "iteration", 9]],
    ["train", 0, 47, 1249, [], [], ["history", "image", 3, 1]],
    ["predict", 2, 1254, 1375, [], [], ["hint"]],
]
STATES = [
    ["succeeded", 0, 10.4, 43.1],
    ["running", 0, 49, -1, [], [49, 49, 49, 1170, 1260, 1320]],
    ["pending", -1, -1, -1, [], [1180, 1265, 1330, 1290, 1380, 1440]],
]


@pytest.fixture(autouse=True)
def zone(monkeypatch):
    """Whoever looks is in UTC, unless a test says otherwise."""

    def be_in(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    be_in("UTC")
    yield be_in
    monkeypatch.undo()
    time.tzset()


def promised(name="taxi-x7k2p", *, ends=ENDS, spec=None, **status):
    """The sample run with a promise."""
    told = {"firstEnds": FIRST, "confidence": 0.9, "steps": STEPS, **(spec or {})}
    status = {"ends": ends, "steps": STATES, **status}
    return placement(name, spec=told, status=status)


UNKNOWN: dict[str, Any] = {"ends": None, "endsUnknown": "no run seen", "steps": []}


def column(result, title):
    heading, *lines = result.stdout.splitlines()
    start = heading.index(title)
    return [line[start:].split("   ")[0] for line in lines]


def test_list_has_a_column_where_something_is_promised(live, cluster, golden):
    assert "ENDS" not in live("list", "-o", "wide").stdout
    cluster.put(PLACEMENTS, promised())
    cluster.put(PLACEMENTS, promised("new", **UNKNOWN))
    cluster.put(PLACEMENTS, promised("over", phase="Succeeded"))
    result = live("list")
    golden(result.stdout)
    assert column(result, "ENDS") == ["", "", "10:26 (10:22-10:31)"]
    assert column(live("list", "-o", "wide"), "ENDS")[0] == "unknown (no run seen)"


def test_what_is_unknown_alone_has_a_column_in_wide_only(live, cluster):
    cluster.put(PLACEMENTS, promised(**UNKNOWN))
    assert "ENDS" not in live("list").stdout
    assert "unknown (no run seen)" in live("list", "-o", "wide").stdout


def test_a_run_that_waits_in_a_queue_has_no_end_yet(live, cluster):
    cluster.put(PLACEMENTS, promised())
    cluster.put(RUN_REQUESTS, request())
    cluster.put(RUN_REQUESTS, request("unplanned"))
    assert "ENDS" not in live("list").stdout
    assert "ends" not in live("explain", "taxi-x7k2p").stdout
    cluster.put(PLACEMENTS, promised("other"))
    assert sorted(column(live("list"), "ENDS")) == ["", "", "10:26 (10:22-10:31)"]


AFTER_START: dict[str, Any] = {
    "ends": None,
    "endsAfterStart": {"low": "8m", "typical": "9m", "high": "12m"},
    "steps": [],
    "spec": {"firstEnds": None, "confidence": None},
}


def test_a_run_that_waits_says_when_it_ends_after_its_start(live, cluster, golden):
    cluster.put(PLACEMENTS, promised(**AFTER_START))
    cluster.put(RUN_REQUESTS, request(spec={"makespan": "30m"}))
    listed = live("list").stdout
    golden(listed, "list")
    assert "9m (8m-12m) after its start" in listed
    said = live("explain", "taxi-x7k2p").stdout
    golden(said, "explain")
    assert "ends 9m (8m-12m) after its start, by 12m (95%)" in said
    assert "once it begins" not in said
    raw = promised(**AFTER_START)
    cell = Run(cluster, NamedRun("team-a", "taxi-x7k2p", raw=raw), lambda: NOW)
    assert "ends 9m (8m-12m) after its start, by 12m (95%)" in repr(cell)
    document = json.loads(live("list", "-o", "json").stdout)
    jsonschema.Draft202012Validator(closed(schema("runs"))).validate(document)
    (run,) = document["items"]
    assert run["ends"] is None
    assert run["endsAfterStart"]["typicalSeconds"] == 540
    assert run["confidence"] == 0.9


def test_a_run_that_waits_says_why_its_end_is_unknown(live, cluster):
    cluster.put(PLACEMENTS, promised(**UNKNOWN, spec={"firstEnds": None}))
    cluster.put(RUN_REQUESTS, request())
    assert "ends unknown (no run seen)" in live("explain", "taxi-x7k2p").stdout


def test_explain_says_when_run_and_steps_end_and_what_that_rests_on(live, cluster, golden):
    cluster.put(PLACEMENTS, promised())
    result = live("explain", "taxi-x7k2p")
    golden(result.stdout)
    head, table = result.stdout.split("\n\n")
    assert "ends 10:26 (10:22-10:31), by 10:31 (95%), UTC; first promised 10:20" in head
    heading, fetch, train, predict = table.splitlines()
    assert heading.split()[5:9] == ["STARTS", "ENDS", "RESTS", "ON"]
    assert "9 runs" in fetch
    assert "10:21:00 (10:19:30-10:22:00)" in train
    assert "same image, 3 runs, by size of inputs" in train
    assert "10:21:05 (10:19:40-10:22:10)   10:23:00 (10:21:30-10:24:00)   hint" in predict
    golden(live("explain", "taxi-x7k2p", "predict").stdout, "a step")
    golden(live("explain", "taxi-x7k2p", "train").stdout, "a running step")


def test_explain_says_why_nothing_is_promised(live, cluster):
    cluster.put(PLACEMENTS, promised(**UNKNOWN, spec={"firstEnds": None}))
    assert "\nends unknown (no run seen)\n" in live("explain", "taxi-x7k2p").stdout


@pytest.mark.parametrize(
    ("makespan", "outcome"), [("22m", "kept"), ("17m", "ended earlier"), ("40m", "ended later")]
)
def test_an_ended_run_says_whether_its_first_promise_was_kept(live, cluster, makespan, outcome):
    cluster.put(PLACEMENTS, promised(phase="Succeeded", makespan=makespan))
    said = live("explain", "taxi-x7k2p").stdout
    assert f"\nfirst promised 10:20 (10:18-10:25), {outcome}\n" in said
    failed = run_view(promised(phase="Failed", makespan=makespan), NOW)
    assert "kept" not in "".join(changes(None, failed))


@pytest.mark.parametrize("command", [["list"], ["explain", "taxi-x7k2p"]])
@pytest.mark.parametrize("status", [{}, UNKNOWN], ids=["promised", "unknown"])
def test_documents(live, cluster, command, status):
    cluster.put(PLACEMENTS, promised(**status))
    document = json.loads(live(*command, "-o", "json").stdout)
    jsonschema.Draft202012Validator(closed(schema("runs"))).validate(document)
    run = document["items"][0] if command == ["list"] else document["run"]
    assert run["firstEnds"] == {"lowSeconds": 1080, "typicalSeconds": 1200, "highSeconds": 1500}
    assert run["confidence"] == 0.9
    assert run["endsUnknown"] == ("no run seen" if status else None)
    assert (run["ends"] is None) is bool(status)
    if not status and "steps" in document:
        predict = document["steps"][2]
        wanted = {"lowSeconds": 1290, "typicalSeconds": 1380, "highSeconds": 1440}
        assert predict["ends"] == wanted
        assert (predict["durationSource"], predict["durationBasis"]) == ("hint", None)
        basis = {"level": "image", "runs": 3, "bySize": True, "byArgument": None}
        assert document["steps"][1]["durationBasis"] == basis


def change_lines(before, after):
    return list(changes(run_view(before, NOW) if before else None, run_view(after, NOW)))


def test_watch_says_an_end_that_people_do_not_know(golden):
    before = promised()
    later = promised(ends={"low": "30m", "typical": "32m", "high": "35m"})
    (first,) = change_lines(None, before)
    (news,) = change_lines(before, later)
    (known,) = change_lines(promised(**UNKNOWN | {"steps": STATES}), before)
    replanned = promised(spec={"revision": 3, "makespan": "40m"}, revision=3)
    (replan,) = change_lines(before, replanned)
    golden([first, news, known, replan])
    assert "ends 10:26 (10:22-10:31)" in first
    assert news.startswith("now ends 10:32")
    # Within what was promised before, it is no news.
    assert change_lines(before, promised(ends={**ENDS, "typical": "30m"})) == []
    assert change_lines(before, promised(**UNKNOWN | {"steps": STATES})) == []
    started = [*STATES[:2], ["running", 2, 1256, -1, [], [1256] * 3 + [1290, 1380, 1440]]]
    (step,) = change_lines(before, promised(steps=started))
    assert step.endswith("ends 10:23:00 (10:21:30-10:24:00)")


def test_the_whole_command_tells_a_later_end_once(live, cluster):
    later = promised(ends={"low": "30m", "typical": "32m", "high": "35m"})
    cluster.put(PLACEMENTS, promised())
    ended = promised(phase="Succeeded", makespan="22m")
    cluster.streams = [[("MODIFIED", each) for each in (later, later, ended)]]
    first, news, end = live("watch", "taxi-x7k2p", "--timeout", "10s").stdout.splitlines()
    assert "10:26 (10:22-10:31)" in first
    assert "now ends 10:32" in news
    assert end.endswith("first promised 10:20 (10:18-10:25), kept")


def test_a_cell_shows_the_same(cluster):
    raw = promised()
    run = Run(cluster, NamedRun("team-a", "taxi-x7k2p", raw=raw), lambda: NOW)
    assert "ends 10:26 (10:22-10:31), by 10:31 (95%), UTC" in repr(run)
    page = run._repr_html_()
    for text in (">starts<", ">ends<", ">rests on<", "10:23:00 (10:21:30-10:24:00)", ">9 runs<"):
        assert text in page


def test_times_are_those_of_who_looks(zone):
    zone("EST5")
    run = run_view(promised(), NOW)
    assert run_ends_sentence(run) == "ends 05:26 (05:22-05:31), by 05:31 (95%), EST"


@pytest.mark.parametrize(
    ("submitted_at", "where"), [("0001-01-01T00:00:00Z", "EST5"), ("9999-12-31T23:59:59Z", "CET-1")]
)
def test_years_at_the_end_of_time(live, cluster, zone, submitted_at, where):
    zone(where)
    raw = promised(spec={"submittedAt": submitted_at})
    raw["status"]["ends"] = {"low": "1s", "typical": "3000d", "high": "3659d"}
    cluster.put(PLACEMENTS, raw)
    for command in (["list"], ["explain", "taxi-x7k2p"], ["list", "-o", "json"]):
        assert live(*command).exit_code == 0


def test_whatever_somebody_writes_is_visible_and_short(live, cluster):
    hostile = "\x1b[31mred\u202e\nnew line" * 9
    rows = [["fetch", 0, 10, 42, [], [], ["x" * 900, "image", 1]], *STEPS[1:]]
    cluster.put(
        PLACEMENTS, promised(ends=None, endsUnknown=hostile, spec={"steps": rows}, steps=[])
    )
    for command in (["list", "-o", "wide"], ["explain", "taxi-x7k2p"]):
        shown = live(*command).stdout
        assert "unknown (" in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert max(map(len, shown.splitlines())) < 500


def test_a_promise_of_a_step_that_cannot_be_read_is_none(live, cluster):
    cluster.put(PLACEMENTS, promised(steps=[*STATES[:2], ["pending", -1, -1, -1, [], [1, "x"]]]))
    assert live("explain", "taxi-x7k2p").exit_code == 0


def test_a_step_that_has_ended_has_no_promise():
    ended = ["succeeded", 0, 10, 43, [], [10, 10, 10, 40, 43, 44]]
    run = run_view(promised(steps=[ended, *STATES[1:]]), NOW)
    assert [bool(step_ends(run, step)) for step in run.steps] == [False, True, True]


@pytest.mark.parametrize(("makespan", "outcome"), [("4m59s", "kept"), ("4m58s", "ended earlier")])
def test_kept_is_judged_like_in_the_metrics_as_ends_are_cut_to_seconds(
    live, cluster, makespan, outcome
):
    ends = {**FIRST, "low": "5m", "typical": "6m", "high": "7m"}
    ended = promised(phase="Succeeded", makespan=makespan, spec={"firstEnds": ends})
    cluster.put(PLACEMENTS, ended)
    assert f", {outcome}\n" in live("explain", "taxi-x7k2p").stdout
