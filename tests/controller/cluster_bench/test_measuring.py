"""What the benchmarks on control planes measure with, without one."""

import pytest

from kfp_placement_engine.contract.keys import API_VERSION, SCHEDULER_LABEL
from tests.controller.cluster_bench.first_plans import Order, order_of
from tests.controller.cluster_bench.queue_scale import work_between
from tests.controller.cluster_bench.recorder import Recorder
from tests.controller.cluster_bench.runs import UNMARKED_LABEL, StepShape, unmarked, workflow
from tests.controller.cluster_bench.scenarios import SCENARIOS
from tests.controller.cluster_bench.simulated import simulate
from tests.controller.cluster_bench.throughput import bindings
from tests.controlplane.api import Api
from tests.support.scraping import Scraped, quantile


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


@pytest.mark.parametrize(
    ("version", "order"),
    [
        (10, Order.BEFORE_POD),
        (16, Order.BEFORE_BIND),
        (30, Order.LATER),
        (None, Order.NEVER),
    ],
)
def test_a_first_plan_is_in_time_by_the_versions_of_objects(recorder, version, order):
    if version is not None:
        recorder.placement_changed(placement(version, "a"))
    recorder.pod_changed(pod(15))
    recorder.pod_changed(pod(18, "a"))
    (seen,) = recorder.pods("team")
    assert order_of(recorder.run(("team", "run-1")), seen) is order


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
    ends = simulate(scenario.nodes(), drawn, 1.0, 0.5, budget_seconds=0.05)
    assert ends.bound > 1.0
    assert min(ends.kube_default, ends.heft, ends.ready, ends.ordered) >= ends.bound


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
    work = work_between(before, after, wall=20.0, computed=0.2)
    assert (work.events, work.writes, work.decisions) == (100, {"RunRequest": 20}, 2)
    assert work.decision_seconds == pytest.approx(0.2)
