"""The taxi sample on a real API server with real schedulers and all of our processes."""

import contextlib
from collections.abc import Iterator, Mapping

from kfp_placement_engine.contract.keys import DEFAULT_SCHEDULER, LOCATION_LABEL
from tests.controller.end_to_end.placements import nodes_planned_for, why_deviating
from tests.controller.end_to_end.taxi_runs import (
    SLOW_FACTOR,
    STEPS,
    executors,
    is_marked,
    step_of,
    taxi,
    taxi_for,
)
from tests.controlplane.waiting import wait_until
from tests.support.installation import Installation
from tests.support.taxi_cluster import CLOUD, HOME, NEAREST, NITLAB


def test_every_marked_pod_goes_where_its_step_is_planned(team, history):
    run = team.submit(taxi())
    ended = team.wait_for_success(run)
    pods = executors(team)
    assert set(pods) == STEPS
    for step, pod in pods.items():
        assert pod["spec"]["schedulerName"] == DEFAULT_SCHEDULER
        # Also says that the plan was there in time, before the first of these pods.
        assert pod["spec"]["nodeName"] in history.planned_for(pod), step
    assert pods["train"]["spec"]["nodeName"] == CLOUD
    assert pods["predict"]["spec"]["nodeName"] == HOME
    assert why_deviating(team) == []
    # Run and placement are deleted together: the garbage collector follows the owner.
    team.api.delete(ended)
    wait_until(lambda: team.placement(run) is None, "the placement to be gone")


def test_predictions_go_to_the_node_nearest_to_their_users(team, tmp_path):
    """The thesis: one pipeline for users at three places, three nodes."""
    runs = {location: team.submit(taxi_for(location, tmp_path)) for location in NEAREST}
    for run in runs.values():
        team.wait_for_end(run)

    location_nodes = {}
    for pod in team.pods():
        if is_marked(pod) and step_of(pod) == "predict":
            location_nodes[pod["metadata"]["labels"][LOCATION_LABEL]] = pod["spec"]["nodeName"]
    assert location_nodes == NEAREST


def test_a_latency_that_changes_moves_the_next_prediction(installation, team):
    """While training runs, the way home gets longer and the other edge comes near."""
    run = team.submit(taxi(SLOW_FACTOR))
    wait_until(lambda: "train" in executors(team), "training to start")
    assert "predict" not in executors(team)
    with labels(installation, {HOME: {"HOME-EDGE": "60"}, NITLAB: {"HOME-EDGE": "1.5"}}):
        wait_until(lambda: nodes_planned_for(team, run)["predict"] == NITLAB, "another plan")
        team.end_step(run, "train")
        team.wait_for_end(run)
    assert executors(team)["predict"]["spec"]["nodeName"] == NITLAB


@contextlib.contextmanager
def labels(installation: Installation, changes: Mapping[str, Mapping[str, str]]) -> Iterator[None]:
    """Other node labels for a while."""
    before = {name: installation.api.get("v1", "Node", name) for name in changes}
    for name, node in before.items():
        installation.api.patch(node, {"metadata": {"labels": changes[name]}})
    yield
    for name, node in before.items():
        old = {key: node["metadata"]["labels"][key] for key in changes[name]}
        installation.api.patch(node, {"metadata": {"labels": old}})
