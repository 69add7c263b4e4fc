"""What the benchmarks on control planes measure with, without one."""

import json
from typing import Any

import pytest

from benchmarks.tables import Table
from kfp_placement_engine.contract.keys import API_VERSION, SCHEDULER_LABEL
from tests.controller.cluster_bench import queue_scale_report
from tests.controller.cluster_bench.playing import Actuator, Outcome
from tests.controller.cluster_bench.queue_scale import work_between
from tests.controller.cluster_bench.queue_scale_report import (
    AT_ONCE,
    EVENTS,
    Creation,
    QueueMeasured,
    QueueSizes,
    Work,
)
from tests.controller.cluster_bench.recorder import Recorder
from tests.controller.cluster_bench.report import Results, measured_table, safety_table
from tests.controller.cluster_bench.runs import UNMARKED_LABEL, StepShape, unmarked, workflow
from tests.controller.cluster_bench.scale_report import Measured, Sizes, parts_of
from tests.controller.cluster_bench.scenarios import SCENARIOS
from tests.controller.cluster_bench.simulated import simulate
from tests.controller.cluster_bench.throughput import bindings
from tests.controller.cluster_bench.waiting_runs import is_decided, numbered, waiting_run
from tests.controlplane.api import Api
from tests.support.scraping import Scraped, quantile

SCENARIO = SCENARIOS[0]


@pytest.fixture
def recorder(tmp_path):
    """Told by the test instead of by watches; every look at the clock is a second later."""
    ticks = iter(range(1000))
    api = Api("https://nowhere.invalid", None, "")  # type: ignore[arg-type]
    return Recorder(api, clock=lambda: float(next(ticks)))


def pod(version, node="", phase="Pending", reason=""):
    name = "run-1(0).root(0).train(0).executor(0)"
    return {
        "metadata": {
            "uid": "pod-uid",
            "name": "pod",
            "namespace": "team",
            "resourceVersion": str(version),
            "labels": {"workflows.argoproj.io/workflow": "run-1"},
            "annotations": {"workflows.argoproj.io/node-name": name},
        },
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, "reason": reason},
    }


def placement(version, node):
    return {
        "apiVersion": API_VERSION,
        "kind": "PipelinePlacement",
        "metadata": {"name": "run-1", "namespace": "team", "resourceVersion": str(version)},
        "spec": {
            "workflowUID": "uid",
            "revision": 1,
            "submittedAt": "2026-11-20T10:00:00Z",
            "plannedAt": "2026-11-20T10:00:02Z",
            "nodes": [node],
            "steps": [["train", 0, 0, 60]],
        },
    }


def test_the_plan_that_counts_is_the_one_before_the_pod_was_bound(recorder):
    recorder.placement_changed(placement(10, "a"))
    recorder.placement_changed(placement(20, "b"))
    recorder.pod_changed(pod(15))
    recorder.pod_changed(pod(18, "a"))
    recorder.pod_changed(pod(30, "a", "Running"))

    (seen,) = recorder.pods("team")
    run = recorder.run(("team", "run-1"))
    assert (seen.bound_version, seen.step(), seen.node) == (18, "train", "a")
    assert run.planned_node("train", seen.bound_version) == "a"
    assert run.planned_node("train", before=30) == "b"
    assert run.planned_node("train", before=5) is None
    assert seen.running_at - seen.created_at == 2.0


def test_a_pod_that_a_kubelet_refused_is_known_by_its_reason(recorder):
    recorder.pod_changed(pod(1, "a", "Failed", "OutOfcpu"))
    (seen,) = recorder.pods("team")
    assert seen.was_rejected


def test_an_unmarked_run_differs_in_nothing_but_the_mark():
    marked = workflow("one", [StepShape("train", "Training", 1.0, 500)])
    text, other = str(marked), str(unmarked(marked))
    assert text.count(SCHEDULER_LABEL) == other.count(UNMARKED_LABEL) > 0
    assert other.replace(UNMARKED_LABEL, SCHEDULER_LABEL) == text


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_a_seed_draws_the_same_again_and_no_figure_beats_the_bound(scenario):
    drawn = scenario.draw(0)
    assert drawn == scenario.draw(0)
    assert drawn != scenario.draw(1)
    found = simulate(scenario.nodes(), drawn, 1.0, 0.5, budget_seconds=0.05)
    assert found.bound > 1.0
    assert min(found.kube_default, found.heft, found.ready, found.ordered) >= found.bound


def outcome(makespan, failed=0):
    return Outcome(makespan, makespan / 2, 1.0, (9.8,), 10, 1, (), failed)


def test_ratios_are_of_the_same_seeds_and_leave_failed_runs_out():
    results = Results()
    for seed, (default, gates, failed) in enumerate([(10, 5, 0), (20, 10, 0), (10, 90, 1)]):
        results.outcomes[SCENARIO.name, seed, Actuator.DEFAULT] = outcome(default)
        results.outcomes[SCENARIO.name, seed, Actuator.GATES] = outcome(gates, failed)

    assert results.ratio(SCENARIO.name, Actuator.GATES, Actuator.DEFAULT) == pytest.approx(0.5)
    assert results.ratio(SCENARIO.name, Actuator.EXTENDER, Actuator.DEFAULT) is None
    row = measured_table(results, [SCENARIO]).rows[2]
    assert row[1:5] == ["gates", "7.5 ± 3.5", "-50.0", "-"]
    assert safety_table(results, [SCENARIO]).rows[2][-4:] == ["30", "3", "0", "1"]


def test_quantiles_lie_between_the_limits_of_their_bucket():
    counted = [(1.0, 50.0), (2.0, 90.0), (float("inf"), 100.0)]
    assert quantile(counted, 0.5) == pytest.approx(1.0)
    assert quantile(counted, 0.7) == pytest.approx(1.5)
    assert quantile(counted, 0.99) == 2.0
    assert quantile([(1.0, 0.0), (float("inf"), 0.0)], 0.5) is None


def test_samples_are_added_up_over_the_labels_that_are_not_asked_for():
    scraped = Scraped(
        {
            ("kfp_placement_writes", frozenset({("kind", "Pod"), ("verb", "patch")})): 2.0,
            ("kfp_placement_writes", frozenset({("kind", "Node"), ("verb", "patch")})): 3.0,
            ("kfp_placement_took_bucket", frozenset({("le", "+Inf"), ("verb", "filter")})): 7.0,
            ("kfp_placement_took_bucket", frozenset({("le", "0.5"), ("verb", "filter")})): 4.0,
        }
    )
    assert scraped.total("writes", verb="patch") == 5.0
    assert scraped.total("writes", kind="Pod") == 2.0
    assert scraped.values("writes", "kind") == {"Pod": 2.0, "Node": 3.0}
    assert scraped.buckets("took", verb="filter") == [(0.5, 4.0), (float("inf"), 7.0)]


def test_bindings_are_read_from_the_schedulers_log(tmp_path):
    log = tmp_path / "scheduler.log"
    bound = '"Successfully bound pod to node" pod="team/a" node="b" evaluatedNodes=3'
    log.write_text(
        f"I1121 17:50:53.250000   1 schedule_one.go:314] {bound}\n"
        "I1121 17:50:53.500000   1 server.go:178] Starting\n"
        f"I1121 17:50:53.750000   1 schedule_one.go:314] {bound}\n"
    )
    first, last = bindings(log)
    assert (last - first).total_seconds() == 0.5


def test_an_interrupted_measurement_shows_what_there_is():
    measured = Measured(Sizes(), rates={False: [100.0, 120.0], True: [99.0]})
    table = parts_of(measured)[-1]
    assert isinstance(table, Table)
    assert [list(row) for row in table.rows] == [
        ["without extender", "100", "120", "110"],
        ["with extender", "99", "-", "99"],
        ["with / without, %", "99", "-", "99"],
    ]


def metrics_of_queue(events, writes, decisions, seconds):
    of_requests = frozenset({("kind", "RunRequest")})
    nothing: frozenset[tuple[str, str]] = frozenset()
    return Scraped(
        {
            ("kfp_placement_watch_changes_total", of_requests): events,
            ("kfp_placement_watch_changes_total", frozenset({("kind", "Node")})): 2 * events,
            ("kfp_placement_api_writes_total", of_requests): writes,
            ("kfp_placement_queue_tick_seconds_count", nothing): decisions,
            ("kfp_placement_queue_tick_seconds_sum", nothing): seconds,
        }
    )


def test_the_work_of_a_queue_is_what_its_metrics_have_grown_by():
    before, after = metrics_of_queue(10, 5, 2, 0.1), metrics_of_queue(110, 25, 4, 0.3)
    found = work_between(before, after, wall=20.0, computed=0.2)
    assert (found.events, found.writes, found.decisions) == (100, {"RunRequest": 20}, 2)
    assert found.decision_seconds == pytest.approx(0.2)


def test_what_a_hold_adds_is_the_median_of_the_pairs():
    measured = QueueMeasured(QueueSizes(pairs=3))
    for held, free in ((0.009, 0.004), (0.030, 0.028), (0.007, 0.004)):
        measured.creations.setdefault((AT_ONCE, True), []).append(Creation(held, held / 2))
        measured.creations.setdefault((AT_ONCE, False), []).append(Creation(free, free / 2))
    table = queue_scale_report.parts_of(measured)[-1]
    assert isinstance(table, Table)
    assert [list(row[1:]) for row in table.rows[:3]] == [
        ["held", "9.0 ms", "4.5 ms"],
        ["not held", "4.0 ms", "2.0 ms"],
        ["difference", "3.0 ms", "1.5 ms"],
    ]


def test_goals_stand_beside_what_was_measured_and_beside_what_was_not():
    work = {EVENTS: Work(10.0, 0.5, 250, {}, 20, 1.0)}
    memory = {"plan-1": 300_000_000, "queue-1": 120_000_000}
    goals = queue_scale_report.parts_of(QueueMeasured(QueueSizes(), work=work, memory=memory))[1]
    assert isinstance(goals, Table)
    found = {row[0]: list(row[1:]) for row in goals.rows}
    assert found["known after leading"] == ["5 s", "-"]
    assert found["memory of `queue`"] == ["150 MB", "120.0 MB"]
    assert found[f"CPU of `queue` an event, while {EVENTS}"] == ["3 ms", "2.0 ms"]


def test_runs_that_wait_differ_in_their_names_and_have_kfps_size():
    one, other = numbered(waiting_run(), "run", 2, "team")
    assert 9_000 < len(json.dumps(one)) < 13_000
    assert one["metadata"].pop("name") != other["metadata"].pop("name")
    assert one == other


def test_a_run_is_decided_about_when_both_processes_have_said_so():
    demand: dict[str, Any] = {"demand": {"peak": []}}
    missing = {"missing": [{"rule": "quota"}]}
    assert is_decided({"spec": demand, "status": missing})
    assert not is_decided({"spec": demand})
    assert not is_decided({"spec": {}, "status": missing})
