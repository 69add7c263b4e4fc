"""Runs whose Workflow says neither requests nor images of its steps, in a cluster that learns."""

import pytest

from kfp_placement_controller.sources.argo.workflows import WorkflowContent
from kfp_placement_engine.model.history import PastContainer
from kfp_placement_engine.units.resources import SCORED_DEFAULTS
from tests.controller.planning.noisy_cluster import NoisyCluster, a_run, cluster_with_past
from tests.controller.planning.test_run_requests import QueuedCluster
from tests.support.outlines import outline_of

IMAGE = a_run("any")["spec"]["templates"][1]["container"]["image"]
STATED = {"cpu": 1000}
"""What each step of the runs requests."""


def hide_requests(monkeypatch):
    """From now on no Workflow says what its steps request."""
    read = WorkflowContent.graph
    monkeypatch.setattr(WorkflowContent, "graph", lambda *given: outline_of(read(*given)))


def taught(run):
    return [step.container for step in run.steps]


def planned_requests(cluster, run):
    return [step.requests for step in cluster.tracked(run).reading.graph.steps]


def test_the_first_run_is_planned_with_what_is_assumed_and_teaches_what_its_pods_requested(
    monkeypatch,
):
    hide_requests(monkeypatch)
    cluster = NoisyCluster()
    first, second = cluster.simulate_run(0), cluster.simulate_run(1)
    assert planned_requests(cluster, first) == [SCORED_DEFAULTS] * 4
    assert planned_requests(cluster, second) == [STATED] * 4
    for run in cluster.history().past_runs():
        assert taught(run) == [PastContainer(STATED, IMAGE)] * 4


def test_a_plan_of_an_outline_says_so_and_promises_no_end(monkeypatch):
    cluster = cluster_with_past(4)
    before = cluster.simulate_run(4)
    assert cluster.placement(before).spec.basis is None
    assert cluster.first_ends(before)
    hide_requests(monkeypatch)
    run = cluster.begin_run(5)
    cluster.run(lambda: cluster.placement(run).status.ends_unknown is not None)
    placement = cluster.placement(run)
    assert placement.spec.basis == "outline"
    assert placement.spec.first_ends is None
    assert placement.status.ends_unknown == "the run's requests are estimated"
    assert planned_requests(cluster, run) == [STATED] * 4
    cluster.hand_over()
    cluster.look()
    assert cluster.placement(run).spec.basis == "outline"


def test_how_long_runs_take_beside_their_plans_is_not_learned_from_outlines(monkeypatch):
    cluster = cluster_with_past(4)
    hide_requests(monkeypatch)
    cluster.simulate_run(4)
    runs = cluster.history().past_runs()
    assert [run.planned_seconds is None for run in runs[-2:]] == [False, True]
    assert runs[-1].seconds


def test_runs_before_and_after_an_upgrade_are_known_alike(monkeypatch):
    """Learned with requests in the Workflow, then without, then with them again."""
    cluster = cluster_with_past(4)
    with monkeypatch.context() as after_upgrade:
        hide_requests(after_upgrade)
        for number in range(4, 6):
            cluster.simulate_run(number)
    joined = cluster.simulate_run(6)
    assert planned_requests(cluster, joined) == [STATED] * 4
    assert cluster.first_ends(joined)
    assert taught(cluster.history().past_runs()[-1]) == [PastContainer(STATED, IMAGE)] * 4


@pytest.mark.parametrize("runs", [0, 2])
def test_a_queue_counts_an_estimated_need_and_says_so(monkeypatch, runs):
    cluster = QueuedCluster(simulated=cluster_with_past(runs))
    cluster.submit(a_run("stated"))
    cluster.settle()
    stated = cluster.spec("stated")
    hide_requests(monkeypatch)
    cluster.submit(a_run("waiting"))
    cluster.settle()
    spec = cluster.spec("waiting")
    peak = spec.demand.to_demand().peak
    if runs:
        assert peak == stated.demand.to_demand().peak
    else:
        assert peak == {"cpu": 200, "memory": 400 * 2**20, "pods": 2}
    (note,) = spec.notes
    assert "its need is estimated" in note
    assert stated.notes == ()
