"""What the benchmarks on control planes measure with, without one."""

import pytest

from benchmarks.tables import Table
from kfp_placement_engine.contract.keys import API_VERSION, SCHEDULER_LABEL
from tests.controller.cluster_bench.playing import Actuator, Outcome
from tests.controller.cluster_bench.recorder import Recorder
from tests.controller.cluster_bench.report import Results, measured_table, safety_table
from tests.controller.cluster_bench.runs import UNMARKED_LABEL, StepShape, unmarked, workflow
from tests.controller.cluster_bench.scale_report import Measured, Sizes, parts_of
from tests.controller.cluster_bench.scenarios import SCENARIOS
from tests.controller.cluster_bench.simulated import simulate
from tests.controller.cluster_bench.throughput import bindings
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
