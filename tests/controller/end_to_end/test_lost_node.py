"""A machine that is lost with a pod on it, and what the controllers of a cluster do then."""

import pytest

from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.placements import actual_node, nodes_planned_for, why_deviating
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.taxi_runs import bound, executors, is_marked
from tests.controlplane import housekeeping, objects
from tests.controlplane.waiting import wait_until
from tests.support.installation import Installation
from tests.support.taxi_cluster import CLOUD

DOOMED_NODE = "doomed-node"


@pytest.fixture
def doomed_node(installation):
    """The fastest node, for as long as it goes well."""
    labels = {"kfp-placement.dev/speed": "8", "kfp-placement.dev/store-bandwidth": "1T"}
    housekeeping.add_nodes(installation.api, objects.node(DOOMED_NODE, labels=labels))
    yield DOOMED_NODE
    housekeeping.remove_nodes(installation.api, DOOMED_NODE)


def test_a_lost_node_loses_no_run(installation, team, doomed_node):
    """It is lost with the pod on it; the step runs again, where there is room."""
    run = team.submit(chain("lost", 240, 0.2))
    wait_until(lambda: bound(team).get("s1") == doomed_node, "it to be used")
    (lost,) = (pod for pod in team.pods() if is_marked(pod))
    wait_until(lambda: phase_of(installation, lost) == "Running", "the step to run")
    housekeeping.lose_node(team.api, doomed_node)
    wait_until(
        lambda: nodes_planned_for(team, run)["s2"] == CLOUD,
        "a plan for the next step",
        state=lambda: team.placement(run),
    )
    retried = wait_until(
        lambda: (node := bound(team).get("s1")) != doomed_node and node,
        "the step to be placed again",
        60,
    )
    assert retried == CLOUD
    again = executors(team)["s1"]
    wait_until(lambda: phase_of(installation, again) == "Running", "it to run")
    wait_until(
        lambda: actual_node(team, run, "s1") == CLOUD,
        "the placement to name the new node",
        state=lambda: team.placement(run),
    )
    # What was planned when this pod came is kept, unless there was time for another plan.
    if nodes_planned_for(team, run)["s1"] == doomed_node:
        wait_until(lambda: why_deviating(team), "an event that says why")
        assert why_deviating(team) == [
            f"planned on {doomed_node}, placed on {CLOUD}: it is not ready"
        ]
    # It would take four minutes here.
    installation.kubelets.fail(again["metadata"]["name"], exit_code=0)
    team.wait_for_success(run)


def phase_of(installation: Installation, pod: JsonObject) -> str:
    metadata = pod["metadata"]
    stored_pod = installation.api.get("v1", "Pod", metadata["name"], metadata["namespace"])
    return str(stored_pod["status"].get("phase", ""))
