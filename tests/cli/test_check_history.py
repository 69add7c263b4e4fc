"""`check --history`: hints that are far from what past runs took."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from kfp_placement.check.past_runs import hints_off, rounded
from kfp_placement_engine.contract.pipeline_history import step_identity
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


def past_of_step(step, times):
    """Each time in a run of its own."""
    runs = [
        PastRun(f"u{number}", "taxi", DAY + timedelta(hours=number), (observed(step, seconds),))
        for number, seconds in enumerate(times)
    ]
    return Past(runs)


def observed(step, seconds):
    arguments = tuple(step.arguments.values())
    return PastStep(step_identity("taxi", step), seconds, "", step.input_bytes, arguments)


def found(step, times, *more):
    run = RunGraph(name="taxi", source="test", steps=(step, *more))
    return list(hints_off(run, past_of_step(step, times)))


def test_a_hint_that_is_far_too_long_or_too_short():
    times = [252.0, 250.0, 255.0] * 3
    (long,) = found(hinted("train", 1200.0), times)
    assert (long.step, long.code, str(long.level)) == ("train", "hint-off", "warning")
    assert long.message.startswith("the hint says 20m, 9 runs tell 4m12s (")
    assert long.message.endswith('): write duration="4m15s" (rounded)')
    (short,) = found(hinted("train", 60.0), times)
    assert short.message.startswith("the hint says 1m, 9 runs tell")
    assert found(hinted("train", 126.0), times)[0].message.startswith("the hint says 2m6s")
    assert found(hinted("train", 0.0), times)


def test_no_single_duration_is_advised_where_the_time_follows_an_argument():
    runs = [
        PastRun(
            f"u{rounds}",
            "taxi",
            DAY + timedelta(hours=rounds),
            (observed(hinted("train", 0.0, arguments={"rounds": rounds}), 60.0 * rounds),),
        )
        for rounds in (5, 20, 10, 15, 8, 18, 12, 6, 16)
    ]
    step = hinted("train", 1200.0, arguments={"rounds": 5.0})
    (only,) = hints_off(RunGraph(name="taxi", source="test", steps=(step,)), Past(runs))
    assert only.message.startswith("the hint says 20m, 9 runs, by rounds, tell 5m")
    assert only.message.endswith(
        ": it differs by rounds, so no single duration is right; plans on past runs need none"
    )


def test_no_single_duration_is_advised_where_the_time_follows_the_size():
    def sized(mebibytes):
        table = DataInput("load", "table", mebibytes * 2**20)
        return hinted("train", 1200.0, inputs=(table,))

    runs = [
        PastRun(
            f"u{size}",
            "taxi",
            DAY + timedelta(hours=size),
            (observed(sized(size), 6.0 * size),),
        )
        for size in (50, 200, 100, 150, 80, 180, 120, 60, 160)
    ]
    (only,) = hints_off(RunGraph(name="taxi", source="test", steps=(sized(50),)), Past(runs))
    assert only.message.startswith("the hint says 20m, 9 runs, by size of table, tell 5m")
    assert "duration=" not in only.message


@pytest.mark.parametrize("hint", [130.0, 252.0, 500.0])
def test_a_hint_that_is_near_enough(hint):
    assert found(hinted("train", hint), [252.0] * 5) == []


def test_two_runs_do_not_tell_enough():
    assert found(hinted("train", 1200.0), [252.0] * 2) == []
    assert len(found(hinted("train", 1200.0), [252.0] * 3)) == 1


def test_other_steps_and_given_times_say_nothing_of_a_hint():
    alike = hinted("other", 1200.0, image="python:3.12")
    assert found(hinted("train", 252.0, image="python:3.12"), [252.0] * 9, alike) == []
    given = replace(hinted("train", 1200.0), duration_source=DurationSource.GIVEN)
    assert found(given, [252.0] * 9) == []


def test_iterations_of_a_loop_have_one_hint():
    steps = [
        hinted(f"for-loop-1[{n}].work", 10.0, task="for-loop-1[*].work", iteration_key=str(n))
        for n in range(3)
    ]
    runs = [
        PastRun(
            f"u{hour}",
            "taxi",
            DAY + timedelta(hours=hour),
            tuple(observed(step, 100.0 + 20 * index) for index, step in enumerate(steps)),
        )
        for hour in range(4)
    ]
    (only,) = hints_off(RunGraph(name="taxi", source="test", steps=tuple(steps)), Past(runs))
    assert only.step == "for-loop-1[*].work"
    assert "4 runs tell 2m" in only.message


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0, 0.1), (0.34, 0.3), (1.4, 1), (59.6, 60), (252, 255), (1187, 1200), (7250, 7200)],
)
def test_durations_as_people_write_them(seconds, shown):
    assert rounded(seconds) == shown


def test_a_step_that_past_runs_know_needs_no_duration():
    step = Step(name="train", task="train")
    run = RunGraph(name="taxi", source="test", steps=(step,))
    assert check_run(run).of("no-durations")
    assert not check_run(run, past=past_of_step(step, [252.0])).of("no-durations")


def memory_findings(asked, runs):
    requests = {} if asked is None else {"memory": asked * GIB}
    step = Step(name="train", task="train", requests=requests)
    run = RunGraph(name="taxi", source="test", steps=(step,))
    past = Past(runs, memory=MemoryHistory())
    return [each for each in check_run(run, past=past).findings if "memory" in each.code]


def bare_runs(count=9):
    return [past_run("taxi", number, DAY + timedelta(hours=number), {}) for number in range(count)]


def test_a_step_that_asks_for_far_too_much_memory():
    (found,) = memory_findings(8, with_memory(bare_runs(), "train", peak=1.2))
    assert (found.step, found.code, str(found.level)) == ("train", "memory-large", "note")
    assert found.message == (
        'asks 8Gi, used at most 1.2Gi in 9 runs: 1.5Gi would do, written "1536Mi"'
    )


def test_a_step_that_asks_for_less_memory_than_it_used():
    (found,) = memory_findings(0.5, with_memory(bare_runs(), "train", peak=0.69))
    assert (found.step, found.code, str(found.level)) == ("train", "memory-small", "warning")
    assert found.message == "asks 512Mi, used at most 707Mi in 9 runs: ask for 768Mi"


def test_a_step_that_was_killed_for_memory():
    runs = bare_runs(2)
    (found,) = memory_findings(2, [runs[0], *with_memory(runs[1:], "train", killed=2)])
    assert (found.step, found.code, str(found.level)) == ("train", "memory-killed", "warning")
    assert found.message == ("was killed for memory with 2Gi in its last run; ask for 4Gi")


@pytest.mark.parametrize(
    ("asked", "runs"),
    [
        (8, with_memory(bare_runs(2), "train", peak=1.2)),
        (1.75, with_memory(bare_runs(), "train", peak=1.2)),
        (None, with_memory(bare_runs(), "train", peak=1.2)),
        (8, with_memory(bare_runs(), "other", peak=1.2)),
        (4, with_memory(bare_runs(1), "train", killed=2)),
        (8, bare_runs()),
    ],
    ids=["two runs", "little", "asks for nothing", "other step", "asks for more since", "unknown"],
)
def test_no_memory_is_advised(asked, runs):
    assert memory_findings(asked, runs) == []


@pytest.fixture
def train_history():
    """Nine runs in which the taxi sample's training took a fifth of its hint."""
    runs = [
        past_run("taxi", number, DAY + timedelta(hours=number), {"train": [250 + number % 3]})
        for number in range(9)
    ]
    return history_object(runs)


def test_a_file(run, tmp_path, train_history):
    (tmp_path / "history.yaml").write_text(yaml.safe_dump(train_history), encoding="utf-8")
    result = run("check", RUN, "--history", "history.yaml")
    assert result.exit_code == 0, result.stderr
    assert "warning: train: the hint says 20m, 9 runs tell 4m" in result.stdout
    report = json.loads(run("check", RUN, "--history", "history.yaml", "-o", "json").stdout)
    assert [each["step"] for each in report["findings"] if each["code"] == "hint-off"] == ["train"]
    assert "hint-off" not in run("check", RUN).stdout
    piped = run("check", RUN, "--history", "-", stdin=yaml.safe_dump(train_history))
    assert "hint-off" in piped.stdout


def test_none_is_no_past_run(run):
    assert run("check", RUN, "--history", "none").stdout == run("check", RUN).stdout
    assert "--history FILE|live|none" in run("check", "--help").stdout
