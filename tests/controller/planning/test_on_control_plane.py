"""The process `plan` in a whole installation: labelled pipelines from submission to end."""

import pytest
import yaml

from tests.controlplane import housekeeping, objects
from tests.controlplane.kubelet.workload import WorkloadSettings
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support.data import data_path
from tests.support.installation import Installation, InstallationOptions
from tests.support.placements import step_states
from tests.support.taxi_cluster import with_durations

LABELLED = ("control_flow", "fan_out", "shared_volume", "taxi")
EXECUTOR = ".executor("
NODES = ("a", "b", "c")
ENDED = {"succeeded", "skipped", "cached"}


@pytest.fixture(scope="module")
def installation(control_plane_programs):
    workload = WorkloadSettings(driver_seconds=0.7, step_seconds=0.2, start_seconds=0.0)
    with (
        ControlPlane(PlaneOptions(simulate_pods=False)) as plane,
        Installation(plane, InstallationOptions(workload=workload)) as installed,
    ):
        room = {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "2"}
        labels = {"kfp-placement.dev/store-bandwidth": "1T"}
        places = {"HOME-EDGE": "9.8", "NITOS-CLOUD": "0.3", "NITLAB-EDGE": "0.8"}
        housekeeping.add_nodes(
            plane.api, *(objects.node(name, room, labels | places) for name in NODES)
        )
        yield installed


@pytest.fixture
def team(installation):
    """A namespace with the claim that one of the pipelines mounts."""
    with installation.namespace() as name:
        installation.api.create(objects.claim("datasets", name, "kwok-volume"))
        yield name


def a_workflow(name: str, factor: float) -> dict:
    text = data_path("labelled", "workflows", f"{name}.yaml").read_text("utf-8")
    return with_durations(yaml.load(text, yaml.CSafeLoader), factor)


def executors(installation, team) -> list[dict]:
    return [
        pod
        for pod in installation.pods(team)
        if EXECUTOR in pod["metadata"]["annotations"]["workflows.argoproj.io/node-name"]
    ]


def wait_for_phase(installation, run, team, *phases):
    def in_phase():
        placement = installation.placement(run, team)
        status = placement.status if placement is not None else None
        return placement if status is not None and status.phase in phases else None

    return wait_until(in_phase, f"{run} to be {' or '.join(phases)}")


@pytest.mark.parametrize("name", LABELLED)
def test_a_run_is_planned_before_it_starts_and_followed_to_its_end(installation, team, name):
    run = installation.submit(a_workflow(name, 0.002), team)

    placement = wait_for_phase(installation, run, team, "Planned", "Running")

    assert executors(installation, team) == []
    assert placement.spec.first_makespan_seconds > 0
    assert all(row.node is not None for row in placement.planned_rows().rows)
    installation.wait_for_end(run, team)
    ended = wait_for_phase(installation, run, team, "Succeeded", "Failed")
    assert ended.status.phase == "Succeeded"
    assert set(step_states(ended).values()) <= ENDED
    assert ended.status.makespan_seconds > 0
    for plan, state in zip(ended.planned_rows().rows, ended.state_rows().rows, strict=True):
        if state.state == "succeeded" and "createpvc" not in plan.name:
            assert state.node is not None
            assert state.start_seconds <= state.end_seconds


def test_a_planner_that_is_killed_goes_on_where_it_was(installation, team):
    run = installation.submit(a_workflow("taxi", 0.01), team)
    before = wait_for_phase(installation, run, team, "Running")

    installation.kill("plan-1")
    installation.restart("plan-1")

    installation.wait_for_end(run, team)
    ended = wait_for_phase(installation, run, team, "Succeeded", "Failed")
    assert ended.status.phase == "Succeeded"
    assert set(step_states(ended).values()) == {"succeeded"}
    assert None not in ended.state_rows().rows
    assert ended.spec.first_makespan_seconds == before.spec.first_makespan_seconds
    assert ended.spec.revision >= before.spec.revision
    assert ended.spec.epoch > before.spec.epoch
