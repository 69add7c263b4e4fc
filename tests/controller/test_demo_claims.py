"""What `make demo-queue` claims at its end, and that it says so where that was not so."""

from dataclasses import replace

import pytest

from tests.controller.demo_queue import verdict
from tests.controller.demo_queue_runs import FIRST, HIGH, LOW, RunRecord, summary, untrue

FIRST_RECORD = RunRecord(FIRST, "Succeeded", False, 0.0, 0.5, 23.0, gpu=((3.0, 21.0),))
LOW_RECORD = RunRecord(LOW, "Succeeded", True, 2.0, 42.0, 65.0, 9.0, gpu=((45.0, 63.0),))
HIGH_RECORD = RunRecord(HIGH, "Succeeded", True, 4.0, 21.5, 44.0, 7.4, gpu=((24.0, 42.0),))


def test_a_demo_as_it_should_be():
    assert untrue([FIRST_RECORD, LOW_RECORD, HIGH_RECORD]) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"phase": "Failed"}, "run trial has not succeeded: it has failed"),
        ({"gpu": ()}, "run trial did not use the GPU"),
        ({"early_pods": 1}, "run trial had 1 pods before it began"),
        ({"unschedulable_pods": 2}, "run trial had 2 pods that waited for room"),
        ({"not_before": 44.0}, "run trial began before the time that its queue had said"),
        ({"was_queued": False}, "run trial did not wait: its queue admitted it at once"),
        ({"gpu": ((41.9, 63.0),)}, "runs trial and urgent used the GPU at the same time"),
        ({"began": 21.0}, "run urgent did not overtake run trial"),
    ],
)
def test_what_was_not_so_is_said(changes, message):
    assert untrue([FIRST_RECORD, replace(LOW_RECORD, **changes), HIGH_RECORD]) == [message]


def test_only_a_demo_as_it_should_be_succeeds(capsys):
    assert verdict([FIRST_RECORD, LOW_RECORD, HIGH_RECORD]) == 0
    shown = capsys.readouterr()
    assert "urgent was submitted after trial and began before it." in shown.out
    assert shown.err == ""
    assert verdict([FIRST_RECORD, replace(LOW_RECORD, early_pods=1), HIGH_RECORD]) == 1
    shown = capsys.readouterr()
    assert "urgent was submitted" not in shown.out
    assert shown.err == "Error: run trial had 1 pods before it began\n"


def test_the_table_has_the_runs_as_they_began():
    titles, *rows = [line.split("   ") for line in summary([FIRST_RECORD, LOW_RECORD, HIGH_RECORD])]
    assert [row[0].strip() for row in rows] == ["daily", "urgent", "trial"]
    cells = [cell.strip() for cell in rows[-1] if cell]
    assert cells == ["trial", "0", "2.0 s", "40.0 s", "9.0 s", "42.0 s", "65.0 s", "0"]
    assert titles[0] == "RUN"


def test_of_a_run_of_which_nothing_was_said_there_is_no_time_to_show():
    (_, row) = summary([FIRST_RECORD])
    assert row.split()[:6] == ["daily", "10", "0.0", "s", "0.5", "s"]
    assert " - " in row
