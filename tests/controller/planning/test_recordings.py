"""The coordinator over whole recorded runs: every event in order, states as they were."""

import copy
import functools
import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as given_settings
from hypothesis import strategies as st

from kfp_placement_controller.planning.actions import WritePlacement
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.planning.rounds import PlanningRound, RoundFailure
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.custom_resources import (
    PipelinePlacement,
    PlacementPolicy,
    read_resource,
)
from kfp_placement_engine.contract.keys import STORE_BANDWIDTH_LABEL
from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.change import Change
from tests.controller.planning.builders import a_policy
from tests.controller.planning.simulated_cluster import READ, SimulatedCluster, a_coordinator
from tests.controlplane.argo.simulated_workflow import START
from tests.controlplane.argo.test_recordings import recorded_workflow as workflow_of
from tests.controlplane.kubelet.drivers import DriverChoices
from tests.controlplane.kubelet.kubelet import Kubelets
from tests.controlplane.kubelet.workload import Workload, WorkloadSettings
from tests.support.data import data_json
from tests.support.kubernetes import node_object
from tests.support.taxi_cluster import with_durations

LABELLED = ("control_flow", "fan_out", "shared_volume", "taxi")


def recorded_workflow(name):
    recording = data_json("labelled", "recordings", f"{name}.json")
    return workflow_of(recording)


def a_cluster(**options):
    room = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}
    labels = {STORE_BANDWIDTH_LABEL: "1T"}
    nodes = [node_object(f"n{number}", allocatable=room, labels=labels) for number in range(3)]
    return SimulatedCluster(*nodes, coordinator=a_coordinator(), **options)


@pytest.mark.parametrize("name", LABELLED)
def test_a_recorded_run_from_its_plan_to_its_end(name):
    cluster = a_cluster()
    workflow = recorded_workflow(name)
    run = workflow["metadata"]["name"]
    cluster.submit(workflow)

    cluster.run()

    placement = cluster.placement(run)
    run_id = workflow["metadata"]["labels"]["pipeline/runid"]
    assert placement.metadata.labels == {"pipeline/runid": run_id}
    assert placement.status.phase == "Succeeded"
    ended = {"succeeded", "skipped", "cached"}
    assert set(cluster.states(run).values()) <= ended
    holds = {each.type: each.status for each in placement.status.conditions}
    assert set(holds.values()) == {"True"}
    assert {"Planned", "Schedulable", "LatencySatisfied", "RowsComplete", "Finished"} == set(holds)


def test_a_first_plan_is_right_to_five_percent_once_overheads_are_learned():
    """Drivers take 1 s and pods 0.5 s to start; the planner assumes 5 s and nothing."""
    settings = WorkloadSettings(driver_seconds=1, start_seconds=0.5)
    cluster = a_cluster(settings=settings)
    errors = []
    for number in range(3):
        workflow = with_durations(recorded_workflow("taxi"), 0.03)
        workflow["metadata"]["name"] = f"taxi-{number}"
        cluster.submit(workflow)
        cluster.run()
        placement = cluster.placement(f"taxi-{number}")
        actual = placement.status.makespan_seconds or 0
        errors.append((placement.spec.first_makespan_seconds or 0) / actual - 1)
    assert errors[0] > 0.05
    assert all(abs(error) <= 0.05 for error in errors[1:]), errors


def test_a_branch_and_a_cache_hit_turn_out_otherwise_than_assumed():
    cluster = a_cluster()
    workflow = recorded_workflow("control_flow")
    run = workflow["metadata"]["name"]
    choices = DriverChoices(
        conditions={"condition-3": False, "condition-4": True}, cached=frozenset({"work-2"})
    )
    cluster.kubelets = Kubelets(Workload(WorkloadSettings(driver_seconds=2)), choices)
    cluster.submit(workflow, choices=choices)
    cluster.run()
    inside = "exit-handler-1"
    assert cluster.states(run) == {
        f"{inside}.work": "succeeded",
        f"{inside}.inner.work": "succeeded",
        f"{inside}.inner.work-2": "cached",
        f"{inside}.condition-branches-2.condition-3.work-2": "skipped",
        f"{inside}.condition-branches-2.condition-4.work-3": "succeeded",
        "notify": "succeeded",
    }


def ended_states(cluster, run):
    return set(cluster.states(run).values()) if ("team", run) in cluster.placements else set()


def nodes_of(cluster, run, loop):
    """What Argo shows of a loop: itself, and what is in it."""
    nodes = cluster.workflows[run].workflow["status"]["nodes"].values()
    return [each for each in nodes if loop in each["name"]]


def planned_width(cluster, run):
    """How many iterations of the loop are planned."""
    return sum(
        "for-loop-3" in row.name for row in cluster.placement(run).planned_rows().rows if row
    )


def submit_fan_out(cluster, iterations):
    """A short run, with this many iterations of a loop whose width nobody knows before."""
    workflow = with_durations(recorded_workflow("fan_out"), 0.05)
    choices = DriverChoices(iteration_count=iterations)
    cluster.kubelets = Kubelets(Workload(WorkloadSettings(driver_seconds=2)), choices)
    cluster.submit(workflow, choices=choices)
    return workflow["metadata"]["name"]


@pytest.mark.parametrize(("iterations", "is_search_late"), [(5, False), (2, True), (2, False)])
def test_a_dynamic_loop_gets_the_rows_that_it_really_has(iterations, is_search_late):
    """Three iterations are assumed; a narrower loop need not be planned again before the end."""
    cluster = a_cluster()
    if is_search_late:
        cluster.search = lambda asked: RoundFailure(asked.number, "not now", died=False)
    run = submit_fan_out(cluster, iterations)
    cluster.run(lambda: ("team", run) in cluster.placements)
    assert planned_width(cluster, run) == 3
    cluster.run()
    assert planned_width(cluster, run) == iterations
    assert set(cluster.states(run).values()) == {"succeeded"}


def test_a_loop_that_became_wider_while_no_planner_led_gets_its_rows_though_others_are_left_out():
    cluster = a_cluster()
    run = submit_fan_out(cluster, iterations=7)
    cluster.run(lambda: "succeeded" in ended_states(cluster, run))
    # As a planner writes it once the object would be too large.
    raw = cluster.placement(run).to_object()
    ended = [index for index, row in enumerate(raw["status"]["steps"]) if row[0] == "succeeded"]
    for part in (raw["spec"], raw["status"]):
        part["steps"] = [row for index, row in enumerate(part["steps"]) if index not in ended]
    raw["status"]["foldedSteps"] = len(ended)
    cluster.placements["team", run] = read_resource(PipelinePlacement, raw)
    cluster.coordinator.follow()
    cluster.run(lambda: len(nodes_of(cluster, run, "for-loop-3")) > 7)
    cluster.hand_over(a_cluster().coordinator)
    cluster.run()
    assert planned_width(cluster, run) == 7
    status = cluster.placement(run).status
    assert status.folded_steps == len(ended)


@given_settings(max_examples=15)
@given(st.data())
def test_whatever_objects_say_the_coordinator_goes_on(data):
    """Fields of pods, nodes and Workflows are lost or replaced on the way to the coordinator."""
    events = recorded_events()
    now = [START]
    cluster = Coordinator(
        DEFAULT_SOURCES, lambda: now[0].timestamp(), policy=PlacementPolicy(spec=a_policy())
    )
    cluster.lead(1, [], START)
    objects: dict[Any, Any] = {}
    for number, (kind, name, raw) in enumerate(events):
        raw = copy.deepcopy(raw)
        for _ in range(data.draw(st.integers(0, 2))):
            mutate(raw, data)
        try:
            new = READ[kind](raw)
        except InputError:
            continue
        old = objects.get((kind, name))
        if new is None and old is None:
            continue
        now[0] = START + timedelta(seconds=number)
        cluster.handle(kind, Change(name, old, new), now[0])
        objects[kind, name] = new
        if number % 5 == 0:
            for action in cluster.tick(now[0]):
                if isinstance(action, WritePlacement):
                    json.dumps(action.placement.to_object())
                    cluster.publisher.written(action, cluster.monotonic())
                elif isinstance(action, PlanningRound):
                    failure = RoundFailure(action.number, "not now", died=False)
                    cluster.round_ended(failure, now[0])


@functools.cache
def recorded_events():
    """(kind, name, object) of a run, in the order of a watch, thinned out."""
    cluster = a_cluster(record=True)
    cluster.submit(with_durations(recorded_workflow("control_flow"), 0.01))
    cluster.run()
    return cluster.events[:10] + cluster.events[10::4]


def mutate(value, data):
    """Replace or drop something, anywhere."""
    while isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = data.draw(st.sampled_from(list(keys)))
        if data.draw(st.booleans()):
            if data.draw(st.booleans()) and isinstance(value, dict):
                del value[key]
            else:
                value[key] = data.draw(st.sampled_from(REPLACEMENTS))
            return
        value = value[key]


REPLACEMENTS: tuple[Any, ...] = (
    None,
    "",
    "x" * 300,
    0,
    -1,
    1e300,
    True,
    [],
    {},
    [{}],
    "2020-01-01T00:00:00Z",
)
