"""Requests of a pod of Argo: containers, sidecars, init containers, by Kubernetes' rule."""

import json
from typing import Any

import pytest

from kfp_placement_engine import read_run
from kfp_placement_engine.exceptions import InputError
from tests.controlplane.argo.small_workflows import arguments, task
from tests.engine.readers.argo.test_plain_workflows import dag, one, read
from tests.support.data import data_path
from tests.support.packages import Fields, notice_codes


def container(name: str, cpu: Any, **fields: Any) -> Fields:
    return {"name": name, "image": "c:1", "resources": {"requests": {"cpu": cpu}}, **fields}


def sidecar(name: str, cpu: Any) -> Fields:
    """A sidecar of Kubernetes, which is an init container that goes on."""
    return container(name, cpu, restartPolicy="Always")


MAIN = {"container": container("", "2")}


def cpu(**template: Any) -> float:
    return one({**MAIN, **template}).requests["cpu"] / 1000


def test_the_largest_init_container_counts_and_not_their_sum():
    init = [container("a", "3"), container("b", "1")]
    assert cpu(initContainers=init) == 3
    assert cpu(initContainers=[container("a", "1"), container("b", "1")]) == 2


def test_a_sidecar_counts_beside_main_and_beside_the_init_containers_after_it():
    assert cpu(initContainers=[container("fetch", "3"), sidecar("proxy", "0.5")]) == 3
    assert cpu(initContainers=[sidecar("proxy", "0.5"), container("fetch", "3")]) == 3.5
    assert cpu(initContainers=[sidecar("proxy", "1"), container("fetch", "1.5")]) == 3


def test_sidecars_of_argo_and_containers_of_a_set_all_run_together():
    assert cpu(sidecars=[container("db", "1")], initContainers=[container("a", "2.5")]) == 3
    both = {"containerSet": {"containers": [container("one", "1"), container("main", "4")]}}
    assert one({"container": None, **both}).requests == {"cpu": 5000}


def test_a_limit_alone_is_a_request_of_an_init_container_too():
    limits = {"limits": {"cpu": "5", "nvidia.com/gpu": 1}}
    step = one({**MAIN, "initContainers": [{"name": "a", "resources": limits}]})
    assert step.requests == {"cpu": 5000, "nvidia.com/gpu": 1}


def test_amounts_of_init_containers_may_be_parameters():
    inputs = {"inputs": {"parameters": [{"name": "n"}]}}
    init = [container("a", "{{inputs.parameters.n}}")]
    work = {"name": "work", **MAIN, **inputs, "initContainers": init}
    tasks = [
        task("A", arguments=arguments(n="7")),
        task("B", arguments=arguments(n="{{tasks.A.outputs.result}}"), depends="A"),
    ]
    graph = read([dag(*tasks), work])
    assert graph.step("A").requests == {"cpu": 7000}
    assert graph.step("B").requests == {"cpu": 2000}
    assert graph.step("B").unknown_resources == ("cpu",)
    assert "unknown-resources" in notice_codes(graph)


def test_a_volume_and_a_device_that_only_an_init_container_uses_count():
    init = container("a", "1", volumeMounts=[{"name": "data", "mountPath": "/data"}])
    init["resources"]["claims"] = [{"name": "device"}]
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}]
    graph = read(
        [dag(task("A")), {"name": "work", **MAIN, "initContainers": [init]}], volumes=volumes
    )
    assert graph.step("A").claims == ("claim",)
    assert "resource-claims" in notice_codes(graph)


def test_a_patch_names_containers_that_exist_or_adds_others():
    """`init` and `wait` are those of Argo."""
    init = [container("fetch", "1")]
    patch = {
        "initContainers": [container("fetch", "6"), container("init", "4")],
        "containers": [container("db", "2"), container("wait", "0.5")],
    }
    template = {"initContainers": init, "sidecars": [container("db", "1")]}
    assert cpu(**template) == 3
    assert cpu(**template, podSpecPatch=json.dumps(patch)) == 6
    del patch["initContainers"]
    assert cpu(**template, podSpecPatch=json.dumps(patch)) == 4.5


def test_template_defaults_merge_init_containers_by_name():
    defaults = {"initContainers": [container("a", "3"), container("b", "1")]}
    own = {"initContainers": [{"name": "a", "resources": {"requests": {"memory": "1Gi"}}}]}
    step = one({**MAIN, **own}, templateDefaults=defaults)
    assert step.requests == {"cpu": 3000, "memory": 2**30}


def test_template_defaults_of_another_kind_do_not_count():
    step = one({"container": None, "script": {"image": "s:1"}}, templateDefaults=MAIN)
    assert (step.image, step.requests) == ("s:1", {})


def test_the_image_of_a_resource_step_is_not_that_of_its_sidecar():
    resource = {"resource": {"action": "get", "manifest": "{}"}}
    step = one({"container": None, **resource, "sidecars": [container("db", "1")]})
    assert (step.image, step.requests) == ("", {"cpu": 1000})


@pytest.mark.parametrize("init", [3, ["a"], [{"name": "a", "resources": 3}]])
def test_malformed_init_containers_are_refused(init: Any):
    with pytest.raises(InputError, match="initContainers"):
        one({**MAIN, "initContainers": init})


def test_the_file_of_a_user():
    path = data_path("user-cases", "11-init-containers", "init.yaml")
    step = read_run(path.read_bytes(), name="init.yaml").steps[0]
    assert step.requests == {"cpu": 3000, "memory": 8 * 2**30}
