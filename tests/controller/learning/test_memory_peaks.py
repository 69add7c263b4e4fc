"""Peaks of memory: asked for once, soon after the end of a run, and waited for a while."""

from datetime import timedelta

import pytest

from kfp_placement_controller.learning.actions import MemoryAnswer
from kfp_placement_controller.learning.memory_peaks import (
    PATIENCE_SECONDS,
    PAUSE_AFTER_FAILURE_SECONDS,
    SETTLING_SECONDS,
    MemoryPeaks,
)
from kfp_placement_engine.contract.policy import HistorySettings
from kfp_placement_engine.model.policy import MemorySource
from tests.controller.learning.test_ended_runs import END, a_workflow_that_ended
from tests.controller.planning.builders import a_pod, a_tracked_run, after

URL = "http://prometheus:9090"
SETTLED = END + timedelta(seconds=SETTLING_SECONDS)
PAUSE = timedelta(seconds=PAUSE_AFTER_FAILURE_SECONDS)
PATIENCE = timedelta(seconds=PATIENCE_SECONDS)
PEAK = 5e8


def settings(url=URL):
    return HistorySettings(memory=MemorySource.PROMETHEUS, prometheus_url=url)


def ended(name="nightly-0", at=END):
    """A run whose steps `first` and `last` have run; the latter failed."""
    raw = a_workflow_that_ended(at)
    raw["metadata"]["name"] = name
    run = a_tracked_run(raw)
    for step, phase in (("first", "Succeeded"), ("last", "Failed")):
        pod = a_pod(
            name=f"{name}-{step}",
            uid=f"{name}-{step}",
            workflow=name,
            argo_node_name=f"{name}.{step}",
            phase=phase,
            running_at=after(10),
        )
        run.observe_pod(None, pod, END)
    return run


class Peaks:
    """Peaks of the usual server, by a clock that nobody sets."""

    def __init__(self):
        self.peaks = MemoryPeaks()
        self.peaks.use(settings())

    def due(self, *runs, now=SETTLED):
        return self.peaks.due(runs, now, now.timestamp())

    def awaits(self, run, now=SETTLED):
        return self.peaks.awaits(run, now, now.timestamp())

    def answered(self, asked, now=SETTLED, **answer):
        self.peaks.answered(MemoryAnswer(asked, **answer), now.timestamp())


def asking(*runs):
    """Peaks, and what is asked for of these runs."""
    peaks = Peaks()
    asked = peaks.due(*runs)
    assert asked is not None
    return peaks, asked


def test_the_pods_that_ended_well_are_asked_for_once_after_the_run():
    run, peaks = ended(), Peaks()
    assert peaks.due(run, now=SETTLED - timedelta(seconds=1)) is None
    asked = peaks.due(run)
    assert (asked.url, asked.run) == (URL, run.key)
    assert [(each.uid, each.since_start_seconds) for each in asked.pods] == [
        ("nightly-0-first", (SETTLED - after(10)).total_seconds())
    ]
    assert peaks.due(run) is None
    assert peaks.awaits(run)
    peaks.answered(asked, peaks={"nightly-0-first": PEAK, "another": 1e9})
    assert not peaks.awaits(run)
    assert peaks.due(run) is None
    assert run.peaks == {"nightly-0-first": PEAK}


def test_one_run_is_asked_for_after_the_other():
    runs = [ended(), ended("nightly-1")]
    peaks, first = asking(*runs)
    assert peaks.due(*runs) is None
    peaks.answered(first)
    second = peaks.due(*runs)
    assert [first.run, second.run] == [run.key for run in runs]


@pytest.mark.parametrize("amount", [float("nan"), -1.0, 0.0])
def test_amounts_that_cannot_be_true_are_unknown(amount):
    run = ended()
    peaks, asked = asking(run)
    peaks.answered(asked, peaks={"nightly-0-first": amount})
    assert run.peaks == {}


def test_without_the_source_nothing_is_asked_and_nothing_awaited():
    run, peaks = ended(), Peaks()
    peaks.peaks.use(HistorySettings())
    assert peaks.due(run) is None
    assert not peaks.awaits(run, END)


def test_a_server_with_an_account_is_not_asked_and_its_password_not_logged(caplog):
    run, peaks = ended(), Peaks()
    peaks.peaks.use(settings("http://name:password@prometheus:9090"))
    assert peaks.due(run) is None
    assert "password" not in caplog.text


def test_a_server_that_fails_is_warned_of_once_and_asked_again_after_a_pause(caplog):
    run = ended()
    peaks, asked = asking(run)
    peaks.answered(asked, failure="refused")
    assert not peaks.awaits(run)
    assert peaks.due(run, now=SETTLED + PAUSE / 2) is None
    # Nobody waits for an answer about the first run any more.
    again = peaks.due(run, ended("nightly-1", END + PAUSE), now=SETTLED + PAUSE)
    assert again.run.name == "nightly-1"
    peaks.answered(again, SETTLED + PAUSE, failure="refused")
    assert len(caplog.messages) == 1
    assert f"{URL}: refused" in caplog.messages[0]
    peaks.peaks.use(settings("http://other:9090"))
    assert peaks.due(run) is not None


def test_a_server_that_does_not_answer_keeps_nothing_waiting(caplog):
    run = ended()
    peaks, asked = asking(run)
    late = SETTLED + PATIENCE
    assert not peaks.awaits(run, late)
    assert peaks.due(run, now=late) is None
    assert "has not answered in time" in caplog.messages[0]
    peaks.answered(asked, late, peaks={"nightly-0-first": PEAK})
    assert run.peaks is None


def test_a_server_that_knows_no_pod_is_the_wrong_one(caplog):
    peaks = Peaks()
    for number in range(20):
        asked = peaks.due(ended(f"nightly-{number}"))
        assert asked is not None
        peaks.answered(asked)
    assert "it knows none of 20 pods" in caplog.messages[0]
