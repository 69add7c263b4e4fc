"""What `list` and `explain` leave out where a terminal is narrow: nothing that is typed again."""

import pytest

from kfp_placement_engine.render.text import TextStyle, table_lines
from kfp_placement_engine.render.widths import width
from kfp_placement_engine.views.explanation import step_table
from kfp_placement_engine.views.run_list import runs_table
from kfp_placement_engine.views.runs import run_view
from tests.cli.live.conftest import NOW, condition, placement

NAMESPACE = "team-0b788022"
RUN = "taxi-pipeline-x7k2p"
WAITING = [["waiting", -1, -1, -1, ["quota", 60]], ["waiting", -1, -1, -1, ["node", 60]]]
ALARM = condition("Schedulable", reason="NoMatchingNode", message="train fits no node " * 5)


def list_lines(columns, *, wide=False):
    raw = placement(RUN, NAMESPACE, status={"steps": WAITING, "conditions": [ALARM]})
    table = runs_table([run_view(raw, NOW)], wide=wide, namespaces=True)
    return "\n".join(table_lines(table, TextStyle(columns)))


def explain_lines(columns):
    states = [["succeeded", 1, 10, 43], ["running", 0, 49], ["pending"]]
    run = run_view(placement(RUN, NAMESPACE, status={"steps": states}), NOW)
    return "\n".join(table_lines(step_table(run, run.steps), TextStyle(columns)))


@pytest.mark.parametrize("columns", [120, 100, 80, 40])
def test_names_stay_whole(columns):
    listed, explained = list_lines(columns), explain_lines(columns)
    assert NAMESPACE in listed
    assert RUN in listed
    assert "nitos-cloud-node -> nitlab-edge-node" in explained
    for text in (listed, explained) if columns >= 80 else ():
        assert max(map(width, text.splitlines())) <= columns


def test_what_has_no_room_is_named(golden):
    assert "no room" not in list_lines(None)
    text = list_lines(80)
    golden(text, "list")
    assert "SUBMITTED" not in text.splitlines()[0]
    explained = explain_lines(80)
    golden(explained, "explain")
    assert "no room" not in explain_lines(200)


def test_what_waits_stays_longest():
    heading = list_lines(40, wide=True).splitlines()[0]
    assert "WAITS FOR" in heading
    assert "RUN ID" in heading
    for left_out in ("PLANNED", "REVISION", "DISPATCH", "ACTUAL"):
        assert left_out not in heading
