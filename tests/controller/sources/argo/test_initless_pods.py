"""Pods that Argo 4.1 makes without an init container of its own (`initlessPod`)."""

import json
from typing import Any

import pytest

from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.model.run_graph import StartLimit
from tests.controller.planning.builders import after
from tests.support.run_data import data_files

Json = dict[str, Any]


def initless(pod: Json, template: Json) -> Json:
    """The same pod as Argo 4.1 makes it then: `supervisor` in place of `init` and `wait`.

    Init containers of the template, such as KFP's launcher, stay.
    """
    spec = pod["spec"]
    variable = {"name": "ARGO_TEMPLATE", "value": json.dumps(template)}
    wait, *others = spec["containers"]
    supervisor = {**wait, "name": "supervisor", "env": [variable]}
    kept = [each for each in spec.get("initContainers", []) if each["name"] != "init"]
    image = {"name": "argoexec-bin", "image": {"reference": "argoexec:v4.1.2"}}
    spec = {**spec, "initContainers": kept, "containers": [supervisor, *others]}
    return {**pod, "spec": {**spec, "volumes": [*spec.get("volumes", []), image]}}


def started(pod: Json, at: dict[str, float]) -> Json:
    """The pod with containers that have run since then."""
    statuses = [
        {"name": name, "state": {"running": {"startedAt": after(seconds).isoformat()}}}
        for name, seconds in at.items()
    ]
    return {**pod, "status": {"phase": "Running", "containerStatuses": statuses}}


def in_namespace(pod: Json) -> Json:
    owner = {**pod["metadata"]["ownerReferences"][0], "uid": "u"}
    return {
        **pod,
        "metadata": {**pod["metadata"], "namespace": "team", "ownerReferences": [owner]},
    }


def facts(pod: ObservedPod) -> tuple[Any, ...]:
    """What decides whose pod it is, and where it may go."""
    (source,) = DEFAULT_SOURCES
    return (
        source.run_of(pod),
        pod.annotations,
        pod.unmarked_step,
        pod.scheduler_mark,
        pod.requests,
        pod.claims,
    )


@pytest.mark.parametrize(
    "path", [*data_files("argo-4.0.5", "*.json"), *data_files("labelled/recordings", "*.json")]
)
def test_recorded_pods_are_recognised_without_the_init_container(path):
    pods = [in_namespace(pod) for pod in json.loads(path.read_text("utf-8"))["pods"]]
    for pod in pods:
        without = DEFAULT_SOURCES.observe_pod(initless(pod, {"name": "x"}))
        assert facts(without) == facts(DEFAULT_SOURCES.observe_pod(pod))


POD: Json = {
    "metadata": {
        "name": "run-1",
        "namespace": "team",
        "labels": {"workflows.argoproj.io/workflow": "run"},
        "annotations": {"workflows.argoproj.io/node-name": "run.train"},
        "ownerReferences": [
            {
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Workflow",
                "name": "run",
                "uid": "u",
                "controller": True,
            }
        ],
    },
    "spec": {"containers": [{"name": "wait"}, {"name": "main"}]},
}


def test_its_start_is_that_of_the_step_s_container_not_of_the_supervisor():
    """So the time from bind to start, which is learned, has neither the step nor its outputs."""
    pod = initless(POD, {"name": "train"})
    assert DEFAULT_SOURCES.observe_pod(started(pod, {"supervisor": 1})).running_at is None
    running = DEFAULT_SOURCES.observe_pod(started(pod, {"supervisor": 1, "main": 3}))
    assert running.running_at == after(3)
    assert running.prepared


def test_its_step_and_its_limit_are_read():
    pod = DEFAULT_SOURCES.observe_pod(initless(POD, {"name": "train", "pendingTimeout": "5m"}))
    assert DEFAULT_SOURCES.step_of(pod, ["train", "predict"]) == "train"
    assert pod.start_limit == StartLimit(300, "pendingTimeout")
