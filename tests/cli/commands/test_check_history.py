"""`check --history`: hints that are far from what past runs took."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from kfp_placement_engine.contract.history.pipeline_history import step_identity
from kfp_placement_engine.history import MemoryHistory, Past
from kfp_placement_engine.model.history import PastRun, PastStep
from kfp_placement_engine.model.run_graph import DataInput, DurationSource, RunGraph, Step
from tests.cli.conftest import RUN
from tests.support.histories import GIB, history_object, past_run, with_memory
from tests.support.prepared_runs import check_run

DAY = datetime(2026, 11, 20, tzinfo=UTC)


def hinted(name, seconds, **fields):
    return Step(
        name=name,
        task=fields.pop("task", name),
        duration_seconds=seconds,
        duration_source=DurationSource.HINT,
        **fields,
    )


def ended_run(hour, *steps):
    return PastRun(f"u{hour}", "taxi", DAY + timedelta(hours=hour), steps)


def taxi(*steps):
    return RunGraph(name="taxi", source="test", steps=steps)


def past_of_step(step, times):
    """Each time in a run of its own."""
    return Past([ended_run(hour, observed(step, each)) for hour, each in enumerate(times)])


def observed(step, seconds):
    arguments = tuple(step.arguments.values())
    return PastStep(step_identity("taxi", step), seconds, "", step.input_bytes, arguments)


def findings(step, times, *more):
    return list(check_run(taxi(step, *more), past=past_of_step(step, times)).of("hint-off"))


def test_a_hint_that_is_far_too_long_or_too_short():
    times = [252.0, 250.0, 255.0] * 3
    (long,) = findings(hinted("train", 1200.0), times)
    assert (long.step, long.code, str(long.level)) == ("train", "hint-off", "warning")
    assert long.message.startswith("the hint says 20m, 9 runs tell 4m12s (")
    assert long.message.endswith("): write duration='4m12s' in place() or @placed")
    (short,) = findings(hinted("train", 60.0), times)
    assert short.message.startswith("the hint says 1m, 9 runs tell")
    assert findings(hinted("train", 125.0), times)[0].message.startswith("the hint says 2m5s")
    assert findings(hinted("train", 0.0), times)


@pytest.mark.parametrize(
    ("given", "by"),
    [
        (lambda rounds: {"arguments": {"rounds": rounds}}, "rounds"),
        (lambda size: {"inputs": (DataInput("load", "table", size * 2**20),)}, "size of table"),
    ],
    ids=["an argument", "a size"],
)
def test_no_single_duration_is_advised_where_the_time_follows_something(given, by):
    def step_of(number):
        return hinted("train", 1200.0, **given(number))

    runs = [
        ended_run(number, observed(step_of(number), 6.0 * number))
        for number in (50, 200, 100, 150, 80, 180, 120, 60, 160)
    ]
    (only,) = check_run(taxi(step_of(50.0)), past=Past(runs)).of("hint-off")
    assert only.message.startswith(f"the hint says 20m, 9 runs, by {by}, tell 5m")
    assert "write duration" not in only.message


@pytest.mark.parametrize("hint", [130.0, 252.0, 500.0])
def test_a_hint_that_is_near_enough(hint):
    assert findings(hinted("train", hint), [252.0] * 5) == []


def test_two_runs_do_not_tell_enough():
    assert findings(hinted("train", 1200.0), [252.0] * 2) == []
    assert len(findings(hinted("train", 1200.0), [252.0] * 3)) == 1


def test_other_steps_and_given_times_say_nothing_of_a_hint():
    alike = hinted("other", 1200.0, image="python:3.12")
    assert findings(hinted("train", 252.0, image="python:3.12"), [252.0] * 9, alike) == []
    given = replace(hinted("train", 1200.0), duration_source=DurationSource.GIVEN)
    assert findings(given, [252.0] * 9) == []


def test_iterations_of_a_loop_have_one_hint():
    steps = [
        hinted(f"for-loop-1[{n}].work", 10.0, task="for-loop-1[*].work", iteration_key=str(n))
        for n in range(3)
    ]
    times = [observed(step, 100.0 + 20 * index) for index, step in enumerate(steps)]
    runs = [ended_run(hour, *times) for hour in range(4)]
    (only,) = check_run(taxi(*steps), past=Past(runs)).of("hint-off")
    assert only.step == "for-loop-1[*].work"
    assert "4 runs tell 2m" in only.message


def test_a_step_that_past_runs_know_needs_no_duration():
    step = Step(name="train", task="train")
    run = taxi(step)
    assert check_run(run).of("no-durations")
    assert not check_run(run, past=past_of_step(step, [252.0])).of("no-durations")


def memory_findings(asked, runs):
    requests = {} if asked is None else {"memory": asked * GIB}
    step = Step(name="train", task="train", requests=requests)
    past = Past(runs, memory=MemoryHistory())
    return [each for each in check_run(taxi(step), past=past).findings if "memory" in each.code]


BARE_RUNS = [past_run("taxi", number, DAY + timedelta(hours=number), {}) for number in range(9)]
"""Runs of which no step is known."""


@pytest.mark.parametrize(
    ("asked", "runs", "level", "code", "message"),
    [
        (
            8,
            with_memory(BARE_RUNS, "train", peak=1.2),
            "note",
            "memory-large",
            "asks 8Gi, used at most 1.2Gi in 9 runs: 1536Mi would do",
        ),
        (
            0.5,
            with_memory(BARE_RUNS, "train", peak=0.69),
            "warning",
            "memory-small",
            "asks 512Mi, used at most 707Mi in 9 runs: ask for 768Mi",
        ),
    ],
)
def test_what_is_asked_of_memory_and_what_was_used(asked, runs, level, code, message):
    (finding,) = memory_findings(asked, runs)
    assert (finding.step, str(finding.level), finding.code) == ("train", level, code)
    assert finding.message == message


def test_of_an_outline_the_request_of_the_last_run_counts():
    """What stands for it may be an assumption."""
    past = Past(with_memory(BARE_RUNS, "train", peak=1.2, asked=8), memory=MemoryHistory())
    outline = replace(taxi(Step(name="train", task="train")), is_outline=True)
    (finding,) = [each for each in check_run(outline, past=past) if "memory" in each.code]
    assert finding.message == "asks 8Gi, used at most 1.2Gi in 9 runs: 1536Mi would do"


def test_no_memory_is_advised_where_another_step_used_it():
    assert memory_findings(8, with_memory(BARE_RUNS, "other", peak=1.2)) == []


@pytest.fixture
def train_history():
    """Nine runs in which the taxi sample's training took a fifth of its hint."""
    runs = [
        past_run("taxi", number, DAY + timedelta(hours=number), {"train": [250 + number % 3]})
        for number in range(9)
    ]
    return history_object(runs)


def test_a_file_or_stdin(run, tmp_path, train_history):
    (tmp_path / "history.yaml").write_text(yaml.safe_dump(train_history), encoding="utf-8")
    stdout = run.output("check", RUN, "--history", "history.yaml")
    assert "warning: train: the hint says 20m, 9 runs tell 4m" in stdout
    piped = run("check", RUN, "--history", "-", stdin=yaml.safe_dump(train_history))
    assert piped.stdout == stdout


def test_none_is_no_past_run(run):
    assert run("check", RUN, "--history", "none").stdout == run("check", RUN).stdout
    assert "--history FILE|live|none" in run("check", "--help").stdout
