"""What a real API server stores of PipelineHistories: all that fits, nothing that is malformed."""

import json
from typing import Any

import pytest

from kfp_placement_engine.contract.custom_resources import PipelineHistory, read_resource
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_kube.kinds import JsonObject
from tests.controlplane.api import Api
from tests.controlplane.exceptions import ApiError
from tests.support import manifests
from tests.support.custom_resources import a_history, installed_crds
from tests.support.structural_schemas import crds

MOST_BYTES = 256 * 1024
"""Limit of bytes that the planner writes of one pipeline."""

MOMENT = "2026-11-20T10:23:05Z"


@pytest.fixture(scope="module")
def api(control_plane):
    """The API server with this kind, which goes again."""
    with installed_crds(control_plane.api, [crds()["PipelineHistory"]]):
        yield control_plane.api


@pytest.fixture
def history(api, namespace):
    """The example, stored without its status."""
    return api.create(a_history(namespace))


def with_status(api: Api, history: JsonObject, status: JsonObject) -> JsonObject:
    return api.patch(history, {"status": status}, part="status")


def size(history: JsonObject) -> int:
    return len(json.dumps(history, separators=(",", ":")))


def a_run(number: int, **changes: Any) -> JsonObject:
    steps = [[step, [[61.5, step % 50, f"{number:08x}", 52_428_800]]] for step in range(200)]
    run = {"uid": f"run-{number}", "endedAt": MOMENT, "seconds": 1385.2}
    return {**run, "steps": steps, **changes}


def a_large_status() -> JsonObject:
    """Of as many runs as make 256 KiB, of 200 steps on 50 nodes."""
    nodes = [f"worker-{number}.example.com" for number in range(50)]
    digests = ["3f6c1d0a", "91b0c77d"]
    steps = [[f"for-loop-1/step-{step}", *digests] for step in range(200)]
    status: JsonObject = {"nodes": nodes, "steps": steps, "runs": []}
    while size(status) < MOST_BYTES:
        status["runs"].append(a_run(len(status["runs"])))
    return status


def with_defaults(status: JsonObject) -> JsonObject:
    """As the API server stores it: a run without loops has an empty list of them."""
    runs = [{"loops": [], **run} for run in status["runs"]]
    return {**status, "runs": runs}


def test_what_was_learned_is_kept_as_it_is_and_can_be_read(api, namespace, history):
    assert "status" not in history
    status = a_history(namespace)["status"]
    stored = with_status(api, history, status)
    assert stored["status"] == with_defaults(status)
    read = read_resource(PipelineHistory, stored)
    past = read.past_runs()[1]
    assert past.planned_seconds == 1375
    assert [(each.seconds, each.arguments) for each in past.steps] == [(1205, (20, 0.1)), (121, ())]
    assert (past.steps[0].peak_bytes, past.steps[0].asked_bytes) == (1.2 * 2**30 // 1, 8 * 2**30)
    assert read.to_object()["status"] == stored["status"]


def test_the_largest_history_is_stored(api, history):
    status = a_large_status()
    stored = with_status(api, history, status)
    assert size(stored) >= MOST_BYTES
    for name, value in with_defaults(status).items():
        assert stored["status"][name] == value, name
    read = read_resource(PipelineHistory, stored)
    assert read.to_object()["status"] == stored["status"]
    assert len(read.past_runs()) == len(status["runs"])
    # A later write by whoever edits the spec, with the large status beside it.
    assert api.patch(history, {"spec": {"forgetBefore": MOMENT}})["status"] == stored["status"]


def test_as_many_steps_as_the_limits_allow_can_be_forgotten(api, history):
    steps = [{"step": f"{number:03d}{'s' * 509}", "before": MOMENT} for number in range(200)]
    assert api.patch(history, {"spec": {"forgetSteps": steps}})["spec"]["forgetSteps"] == steps


def test_a_step_is_added_to_those_that_are_forgotten(api, history):
    """Server-side, so that two people do not overwrite each other's."""
    names = {key: history[key] for key in ("apiVersion", "kind")}
    metadata = {key: history["metadata"][key] for key in ("name", "namespace")}
    spec = {"pipeline": "taxi", "forgetSteps": [{"step": "predict", "before": MOMENT}]}
    stored = api.patch(history, {**names, "metadata": metadata, "spec": spec}, how="apply")
    assert {each["step"] for each in stored["spec"]["forgetSteps"]} == {"train", "predict"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"pipeline": "other"}, "belongs to one pipeline"),
        ({"forgetBefore": "yesterday"}, "spec.forgetBefore"),
        ({"forgetSteps": [{"step": "a", "before": MOMENT}] * 2}, "Duplicate value"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_specs_that_make_no_sense_are_refused(api, history, spec, message):
    with pytest.raises(ApiError, match=message):
        api.patch(history, {"spec": spec})


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({"runs": [a_run(0, steps=[[0] * 3])]}, r"runs\[0\].steps\[0\]"),
        ({"runs": [a_run(0, steps=["train"])]}, r"runs\[0\].steps\[0\]"),
        ({"steps": [["train"] * 7]}, r"status.steps\[0\]"),
        ({"nodes": [""]}, r"status.nodes\[0\]"),
        ({"images": [""]}, r"status.images\[0\]"),
        ({"runs": [a_run(0, endedAt="now")]}, "endedAt"),
        ({"runs": [a_run(0, plannedSeconds=1e308)]}, "plannedSeconds"),
        ({"runs": [a_run(0, steps=[[]] * 20_001)]}, "steps"),
        ({"typical": "a while"}, "typical"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_statuses_that_make_no_sense_are_refused(api, history, status, message):
    with pytest.raises(ApiError, match=message):
        with_status(api, history, status)


def test_histories_outlive_an_uninstallation_without_the_feature(api, namespace, history):
    """As the guide says: what the overlay does not name stays, with all that was learned."""
    stored = with_status(api, history, a_history(namespace)["status"])
    installation = manifests.rendered("history")
    manifests.apply(api, installation)
    try:
        manifests.remove(api, manifests.rendered())
        still = api.get(API_VERSION, "PipelineHistory", history["metadata"]["name"], namespace)
        assert still["status"] == stored["status"]
    finally:
        for item in installation:
            if item["kind"] in ("ClusterRole", "ClusterRoleBinding"):
                api.delete(item)
