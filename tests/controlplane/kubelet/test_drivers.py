"""Answers of KFP's drivers."""

import json

import pytest

from tests.controlplane.kubelet.drivers import (
    DriverChoices,
    driver_answer,
    read_arguments,
    resources_of,
)

CONTAINER = {
    "image": "python:3.12",
    "args": ["{{$.workspace_path}}/x"],
    "resources": {"resourceCpuRequest": "500m", "cpuRequest": 0.5, "memoryLimit": 1.5},
}


def answer(choices=None, **arguments):
    defaults = {"type": "CONTAINER", "task_name": "train", "container": json.dumps(CONTAINER)}
    return driver_answer(defaults | arguments, "wf", choices)


def patch(**arguments):
    return json.loads(answer(**arguments)["pod-spec-patch"])


def test_arguments_come_in_pairs_and_may_be_empty():
    read = read_arguments(
        ["--type", "DAG", "--http_proxy", "", "--cache_disabled", "--task", '{"a": 1}', "--x=y"]
    )
    assert read == {
        "type": "DAG",
        "http_proxy": "",
        "cache_disabled": "",
        "task": '{"a": 1}',
        "x": "y",
    }


def test_resources_prefer_the_texts():
    assert patch()["containers"][0]["resources"] == {
        "requests": {"cpu": "500m"},
        "limits": {"memory": "1.5G"},
    }


def test_accelerators_are_limits():
    resources = resources_of({"accelerator": {"resourceType": "nvidia.com/gpu", "count": "2"}}, {})
    assert resources == {"limits": {"nvidia.com/gpu": "2"}}


def test_resources_from_parameters():
    text = "{{$.inputs.parameters['cpu']}}"
    resources = resources_of({"resourceCpuLimit": text}, {"cpu": "2"})
    assert resources == {"limits": {"cpu": "2"}}
    assert resources_of({"resourceCpuLimit": text}, {}) == {"limits": {"cpu": text}}


def test_the_workspace_is_mounted_where_it_is_used():
    volumes = patch()["volumes"]
    claim = {"claimName": "wf-kfp-workspace"}
    assert volumes == [{"name": "kfp-workspace", "persistentVolumeClaim": claim}]
    assert "volumes" not in patch(container='{"image": "x"}')


def test_claims_selectors_tolerations_affinity():
    config = {
        "pvcMount": [
            {"mountPath": "/data", "pvcNameParameter": {"runtimeValue": {"constant": "data"}}}
        ],
        "nodeSelector": {"labels": {"disk": "ssd"}},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "nodeAffinity": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]},
            {"matchExpressions": [{"key": "fast", "operator": "Exists"}], "weight": 7},
        ],
    }
    spec = patch(container='{"image": "x"}', kubernetes_config=json.dumps(config))

    assert spec["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "data", "mountPath": "/data"}]
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["tolerations"] == config["tolerations"]
    affinity = spec["affinity"]["nodeAffinity"]
    required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    ]
    assert affinity["preferredDuringSchedulingIgnoredDuringExecution"][0]["weight"] == 7


def test_a_cached_step_needs_no_pod():
    outputs = answer(DriverChoices(cached=frozenset({"train"})))
    assert outputs == {"pod-spec-patch": "", "cached-decision": "true", "condition": "true"}


def test_conditions_that_do_not_hold():
    choices = DriverChoices(conditions={"condition-1": False})
    arguments = {"type": "DAG", "task_name": "condition-1"}
    assert driver_answer(arguments, "wf", choices)["condition"] == "false"


@pytest.mark.parametrize(
    ("raw", "choices", "width"),
    [
        ('["a", "b", "c"]', DriverChoices(), "3"),
        ("[]", DriverChoices(), "0"),
        ('["a"]', DriverChoices(iteration_count=4, assume_width=True), "4"),
        ("", DriverChoices(iteration_count=5), "5"),
    ],
)
def test_widths(raw, choices, width):
    task = json.dumps({"parameterIterator": {"items": {"raw": raw}}})
    outputs = driver_answer({"type": "DAG", "task": task}, "wf", choices)
    assert outputs["iteration-count"] == width
    assert outputs["execution-id"]


def test_claims_that_an_input_names():
    mount = {"mountPath": "/d", "pvcNameParameter": {"componentInputParameter": "pvc"}}
    arguments = {"kubernetes_config": json.dumps({"pvcMount": [mount]}), "container": "{}"}
    choices = DriverChoices(parameters={"pvc": "data"})

    patch_told = json.loads(answer(choices, **arguments)["pod-spec-patch"])

    claim = {"claimName": "data"}
    assert patch_told["volumes"] == [{"name": "data", "persistentVolumeClaim": claim}]
    assert "volumes" not in patch(**arguments)
