"""Rolling series: the simulation against what must hold, the rules of gates, and the command."""

import csv
from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.made_up_runs import Shape, made_up_run
from benchmarks.rolling import command
from benchmarks.rolling_runs.arms import KUBE_DEFAULT, ORACLE, Arm, all_arms
from benchmarks.rolling_runs.draws import Kind, Series, draw
from benchmarks.rolling_runs.drift import Drift
from benchmarks.rolling_runs.rules import kept_room, ready_and_fits, strict
from benchmarks.rolling_runs.simulation import simulate_series
from benchmarks.rolling_runs.tasks import State, Task
from kfp_placement_engine import MaxGenerations
from kfp_placement_engine.planning.starts.node_queue import QueuedStep, RunningStep, steps_to_start

KIND = Kind("made-up, 1 to 8 cores", most_cores=8)
SLACK = Arm("slack", steps_to_start)


def small(seed: int, noise: float, runs: int = 3, steps: int = 8) -> Series:
    """A few small runs, which move no data: a plan knows nothing of data that is under way."""
    series = draw(KIND, noise, seed)
    graphs = []
    for number in range(runs):
        run = made_up_run(Shape("workflow", steps, 4, runs * seed + number))
        sized = zip(run.steps, series.runs[number].steps, strict=False)
        graphs.append(
            replace(
                run,
                steps=tuple(replace(step, inputs=(), requests=of.requests) for step, of in sized),
            )
        )
    factors = tuple(
        dict(zip((step.name for step in run.steps), factor.values(), strict=False))
        for run, factor in zip(graphs, series.factors, strict=False)
    )
    return Series(tuple(graphs), series.arrivals[:runs], factors, series.cluster)


def quick() -> MaxGenerations:
    return MaxGenerations(1)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_with_exact_times_no_step_starts_later_than_planned(seed):
    for step in simulate_series(small(seed, 0.0, steps=10), SLACK, seed, quick).steps:
        assert step.start <= step.planned + 1e-6


ARMS = [arm for arm in all_arms() if not arm.replans or arm.has_deadline]


@pytest.mark.parametrize("arm", [ORACLE, *ARMS], ids=lambda arm: arm.name)
def test_every_step_runs_once_after_what_it_waits_for_where_there_is_room(arm):
    series = small(7, 0.6)
    outcome = simulate_series(series, arm, 7, quick)
    assert len(outcome.steps) == sum(len(run.steps) for run in series.runs)
    ends = {(step.run, step.name): step.end for step in outcome.steps}
    assert len(ends) == len(outcome.steps)
    for number, run in enumerate(series.runs):
        for step in run.steps:
            start = next(
                each.start for each in outcome.steps if (each.run, each.name) == (number, step.name)
            )
            before = [ends[number, name] for name in step.depends_on]
            assert start >= max([*before, series.arrivals[number]])
    in_use: defaultdict[str, float] = defaultdict(float)
    changes = [(step.end, 0, -step.cores, step.node) for step in outcome.steps]
    changes += [(step.start, 1, step.cores, step.node) for step in outcome.steps]
    for *_, cores, node in sorted(changes):
        in_use[node] += cores
        assert in_use[node] <= 16
    assert min(outcome.completion_seconds) > 0


def test_true_times_are_those_that_were_drawn():
    series = small(3, 0.6, runs=1)
    speeds = {node.name: node.speed for node in series.cluster.nodes}
    by_name = {step.name: step for step in simulate_series(series, SLACK, 3, quick).steps}
    for step in series.true_runs()[0].steps:
        its = by_name[step.name]
        assert its.end - its.start == pytest.approx(
            (step.duration_seconds or 0.0) / speeds[its.node]
        )


def test_runs_and_arrivals_are_the_same_whatever_the_noise():
    noisy, exact = draw(KIND, 0.6, 5), draw(KIND, 0.0, 5)
    assert (noisy.runs, noisy.arrivals) == (exact.runs, exact.arrivals)
    assert set(exact.factors[0].values()) == {1.0}
    assert noisy.factors != exact.factors


def test_the_default_scheduler_makes_no_plans_and_lets_nobody_wait_for_a_turn():
    outcome = simulate_series(small(7, 0.6), KUBE_DEFAULT, 7, quick)
    assert outcome.plans == 0
    first = outcome.steps[0]
    assert first.start == first.created


def test_a_deadline_frees_pods_for_other_nodes():
    """Without it a pod waits for its turn, however much room there is elsewhere."""
    series, strict_arm = small(11, 0.6), Arm("strict", strict)
    patient = simulate_series(series, strict_arm, 11, quick)
    hasty = simulate_series(series, replace(strict_arm, gate_deadline_seconds=1.0), 11, quick)
    assert max(step.start - step.created for step in patient.steps) > 20
    assert max(step.start - step.created for step in hasty.steps) < 20
    moved = {(step.run, step.name, step.node) for step in hasty.steps}
    assert moved != {(step.run, step.name, step.node) for step in patient.steps}


def test_drift_replans_and_arrivals_alone_do_not():
    series = small(7, 0.6)
    assert simulate_series(series, SLACK, 7, quick).plans == 3
    assert simulate_series(series, replace(SLACK, replans=True), 7, quick).plans > 3


def a_task(**fields):
    return Task(0, "a", {}, 1.0, **fields)


def test_the_limit_grows_with_the_run():
    drift, task = Drift(), a_task()
    assert drift.is_apart(task, 10.1, 0.0)
    drift.planned({0: 400.0})
    assert not drift.is_apart(task, 20.0, 0.0)
    assert drift.is_apart(task, 20.1, 0.0)


def test_a_step_that_stays_overdue_counts_once_a_plan_and_later_each_time():
    drift, steps = Drift(), {"a": a_task(state=State.RUNS, finish=50.0)}
    drift.planned({0: 100.0})
    assert not drift.is_overdue(0, steps, 60.0)
    assert drift.is_overdue(0, steps, 60.1)
    assert not drift.is_overdue(0, steps, 61.0)
    drift.planned({0: 100.0})
    assert not drift.is_overdue(0, steps, 70.0)
    assert drift.is_overdue(0, steps, 70.1)


def test_a_step_that_has_ended_is_not_overdue():
    assert not Drift().is_overdue(0, {"a": a_task(state=State.DONE)}, 1e6)


# Four CPUs, one of them in use until 30; `big` needs all, was planned for now, and is next.
BUSY = (RunningStep({"cpu": 1}, 0.0, 30.0),)
BIG = QueuedStep({"cpu": 4}, 0.0, 10.0, is_ready=True)
SHORT = QueuedStep({"cpu": 1}, 5.0, 30.0, is_ready=True)
LONG = SHORT._replace(seconds=31.0)


def started(rule, *queue):
    return rule(queue, BUSY, {"cpu": 3, "pods": 110}, 0.0)


def test_strict_lets_nobody_pass():
    assert started(strict, BIG, SHORT) == []
    assert started(strict, SHORT, BIG, LONG) == [0]


def test_kept_room_lets_those_pass_that_end_before():
    assert started(kept_room, BIG, LONG, SHORT) == [2]


def test_kept_room_counts_one_that_is_not_there_as_beginning_when_planned():
    absent = BIG._replace(is_ready=False, start_seconds=30.0)
    assert started(kept_room, absent, LONG, SHORT) == [2]
    late = absent._replace(start_seconds=-1.0)
    assert started(kept_room, late, SHORT) == []


def test_ready_and_fits_lets_everybody_pass():
    assert started(ready_and_fits, BIG, LONG, SHORT) == [1, 2]


@pytest.mark.parametrize("rule", [strict, kept_room, ready_and_fits, steps_to_start])
def test_one_that_goes_already_has_its_room(rule):
    going = QueuedStep({"cpu": 3}, 0.0, 10.0, is_allowed=True)
    assert started(rule, going, SHORT) == []


def test_the_command_prints_a_row_and_writes_its_schedule(figures, tmp_path):
    words = ["--cases", "made-up, noise 0.6", "--seeds", "1000", "--budget", "5schedules"]
    words += ["--arms", "slack, dea*", "--schedules", str(tmp_path)]
    (row,) = figures(command, *words)["rows"]
    assert (row["rule"], row["replans"], row["hasDeadline"]) == ("slack", False, True)
    assert len(row["completionSeconds"]) == len(row["oracleCompletionSeconds"]) == 8
    prefix = "made-up-noise-0.6.seed-1000.5schedules"
    files = {file.name: file for file in tmp_path.iterdir()}
    assert sorted(files) == [f"{prefix}.oracle.csv", f"{prefix}.slack-deadline.csv"]
    for name, completions in (
        ("oracle", row["oracleCompletionSeconds"]),
        ("slack-deadline", row["completionSeconds"]),
    ):
        ends = [0.0] * 8
        for step in csv.DictReader(files[f"{prefix}.{name}.csv"].read_text().splitlines()):
            ends[int(step["run"])] = max(ends[int(step["run"])], float(step["end"]))
        arrivals = row["arrivalSeconds"]
        lengths = [end - arrival for end, arrival in zip(ends, arrivals, strict=True)]
        assert lengths == pytest.approx(completions)
    assert max(ends) == row["makespanSeconds"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--arms", "nobody"], "no arm is called 'nobody'"),
        (["--cases", "nothing"], "no case is called 'nothing'"),
        (["--data", "/nowhere"], "no such folder"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(words, message, capsys):
    assert command(words) in (1, 3)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_without_recorded_runs_the_page_says_so(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("benchmarks.data.DEFAULT_FOLDER", tmp_path / "none")
    monkeypatch.delenv("KFP_PLACEMENT_DATA", raising=False)
    words = ["--arms", "kube-default", "--budget", "1schedules", "--seeds", "0"]
    assert command([*words, "--cases", "*0.6", "--limit", "1"]) == 0
    assert "Recorded runs are left out" in capsys.readouterr().out
