"""An uninstallation in the middle of runs: nothing of ours is left, and no pod of anybody waits."""

import pytest

from kfp_placement_engine.contract.keys import PLAN_GATE, SCHEDULER_LABEL
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.small_pipelines import chain
from tests.controller.end_to_end.taxi_runs import is_marked
from tests.controller.end_to_end.teams import Team, team_of
from tests.controlplane import objects
from tests.controlplane.argo.state import LABEL_WORKFLOW
from tests.controlplane.waiting import wait_until
from tests.support.installation import ARGO
from tests.support.manifests import of_kind, rendered
from tests.support.taxi_cluster import CLOUD
from tests.support.uninstallation import left_overs, uninstall

OUR_SCHEDULER = "kfp-placement"
STAY_BEHIND = (
    *("ClusterRole", "PriorityClass"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
)
LARGE = {"cpu": "6"}
"""Two such pods have room on no node. No run has two of them, one after the other: a pod that is
created while another scheduler is booking the same room can be refused by the kubelet."""


def start_under_the_extender(team: Team) -> tuple[str, str]:
    """Two runs, one with a pod that runs, one with a pod that our scheduler finds no room for."""
    team.installation.wait_for_flag("schedulerReady", True)
    runs = team.submit(chain("runs", 20, **LARGE))
    wait_until(lambda: phase_of(team, runs) == "Running", "a pod of our scheduler to run")
    waits = team.submit(chain("waits", 0.2, **LARGE))
    wait_until(lambda: is_refused(team, waits), "a pod to wait for room")
    pods = [first_pod(team, run) for run in (runs, waits)]
    assert {pod["spec"]["schedulerName"] for pod in pods} == {OUR_SCHEDULER}
    assert pods[0]["spec"]["nodeName"] == CLOUD
    return runs, waits


def start_under_gates(team: Team) -> str:
    """A run with a pod behind our gate."""
    team.installation.set_policy(actuator="gates")
    mark = {SCHEDULER_LABEL: OUR_SCHEDULER}

    def is_gated() -> bool:
        probe = objects.pod("probe", team.name, labels=mark)
        return "schedulingGates" in team.api.create(probe, dryRun="All")["spec"]

    wait_until(is_gated, "admission to gate pods")
    held = team.submit(chain("held", 0.2, **LARGE))
    wait_until(lambda: has_our_gate(team, held), "a pod to be held")
    return held


@pytest.mark.parametrize(
    "own_installation", [(), ("gates",)], indirect=True, ids=["extender", "gates"]
)
def test_nothing_is_left_and_every_run_ends(own_installation):
    installation = own_installation
    assert left_overs(installation.api)
    with team_of(installation) as team:
        runs = [*start_under_the_extender(team)]
        if "gates" in installation.options.features:
            runs.append(start_under_gates(team))

        # As of features that the overlay has had before.
        before = rendered("gates", "queue", "priority")
        for kind in STAY_BEHIND:
            for item in of_kind(before, kind):
                installation.api.patch(item, item, how="apply")

        uninstall(installation)

        # The rules of roles that others gather ours into are taken out by a controller.
        wait_until(
            lambda: not left_overs(installation.api),
            "nothing to be left",
            state=lambda: left_overs(installation.api),
        )
        still_running = {name for name, each in installation.processes.items() if each.running}
        assert still_running <= {ARGO}
        for pod in installation.api.list("v1", "Pod"):
            assert {"name": PLAN_GATE} not in pod["spec"].get("schedulingGates", ())
            waits = not pod["spec"].get("nodeName")
            assert not (waits and pod["spec"]["schedulerName"] == OUR_SCHEDULER)
        for run in runs:
            team.wait_for_success(run)
        # Marks are no more than labels now.
        later = team.submit(chain("later", 0.2))
        team.wait_for_success(later)


def first_pod(team: Team, run: str) -> JsonObject:
    """The pod of a run's first step; empty = there is none yet."""
    pods = filter(is_marked, team.pods())
    return next((pod for pod in pods if pod["metadata"]["labels"][LABEL_WORKFLOW] == run), {})


def phase_of(team: Team, run: str) -> str | None:
    pod = first_pod(team, run)
    return pod["status"].get("phase") if pod else None


def is_refused(team: Team, run: str) -> bool:
    """Whether a scheduler has looked for room and found none."""
    pod = first_pod(team, run)
    rows = pod["status"].get("conditions", ()) if pod else ()
    return any(row.get("reason") == "Unschedulable" for row in rows)


def has_our_gate(team: Team, run: str) -> bool:
    pod = first_pod(team, run)
    return bool(pod) and {"name": PLAN_GATE} in pod["spec"].get("schedulingGates", ())
