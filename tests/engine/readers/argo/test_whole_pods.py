"""What Argo 4.1 sets for a pod as a whole: resources, and claims for devices."""

import json

import pytest

from kfp_placement_engine import read_run
from kfp_placement_engine.exceptions import InputError
from tests.support.kfp_workflow_emitter import emit_workflow
from tests.support.packages import Fields, a_package

CONTAINERS: Fields = {
    "container": {
        "image": "work:1",
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": 1}},
    },
    "sidecars": [{"name": "side", "resources": {"requests": {"cpu": "500m"}}}],
}


def graph_of(spec: Fields, template: Fields):
    """The graph of a Workflow of one pod, which asks for 1500m, 1Gi and a GPU."""
    spec = {
        "entrypoint": "main",
        "templates": [{"name": "main", **CONTAINERS, **template}],
        **spec,
    }
    document = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": spec}
    return read_run(json.dumps(document).encode(), name="flow.yaml")


def resources(kind="requests", **amounts):
    return {"podResources": {kind: amounts}}


PLACES: dict[str, tuple[Fields, Fields]] = {
    "spec": (resources(cpu="4"), {}),
    "templateDefaults": ({"templateDefaults": resources(cpu="4"), **resources(cpu="8")}, {}),
    "template": (resources(cpu="8", memory="9Gi"), resources(cpu="4")),
    "podSpecPatch": ({}, {"podSpecPatch": '{"resources": {"requests": {"cpu": "4"}}}'}),
}


@pytest.mark.parametrize(("spec", "template"), PLACES.values(), ids=PLACES)
def test_resources_of_the_pod_replace_the_sum_of_its_containers(spec, template):
    (step,) = graph_of(spec, template).steps
    assert step.requests == {"cpu": 4000, "memory": 2**30, "nvidia.com/gpu": 1}


def test_a_limit_of_the_pod_counts_where_no_container_asks():
    (step,) = graph_of({}, resources("limits", **{"cpu": "4", "hugepages-2Mi": "8Mi"})).steps
    assert step.requests["cpu"] == 1500
    assert step.requests["hugepages-2Mi"] == 8 * 2**20


def test_a_pod_that_asks_for_less_than_its_containers_is_said(golden):
    graph = graph_of(resources(cpu="1", memory="2Gi"), {})
    assert graph.steps[0].requests["cpu"] == 1500
    ((code, step, message),) = [(each.code, each.step, each.message) for each in graph.notices]
    assert (code, step) == ("pod-resources", "main")
    golden(message)


def test_other_resources_cannot_be_asked_for_by_the_pod_as_a_whole(golden):
    graph = graph_of(resources(**{"nvidia.com/gpu": "2"}), {})
    assert graph.steps[0].requests["nvidia.com/gpu"] == 1
    (notice,) = graph.notices
    golden(notice.message)


@pytest.mark.parametrize("value", ["4", ["cpu"], {"requests": 4}, {"requests": {"cpu": "many"}}])
@pytest.mark.parametrize("where", [0, 1])
def test_malformed_resources_name_the_place(value, where):
    settings: list[Fields] = [{}, {}]
    settings[where] = {"podResources": value}
    with pytest.raises(InputError, match=r"^flow.yaml.*: podResources") as error:
        graph_of(*settings)
    assert "\n" not in str(error.value)


CLAIMS: dict[str, tuple[Fields, Fields, str]] = {
    "spec": ({"resourceClaims": [{"name": "gpu"}, {"name": "nic"}]}, {}, "claims gpu, nic for"),
    "template": (
        {"resourceClaims": [{"name": "gpu"}]},
        {"resourceClaims": [{"name": "nic", "resourceClaimTemplateName": "x"}]},
        "claim nic for",
    ),
    "container": (
        {},
        {"container": {"image": "x", "resources": {"claims": [{"name": "gpu"}]}}},
        "claim gpu for",
    ),
}


@pytest.mark.parametrize(("spec", "template", "names"), CLAIMS.values(), ids=CLAIMS)
def test_claims_for_devices_are_not_counted_and_said_so_once(spec, template, names, golden):
    (notice,) = graph_of(spec, template).notices
    assert (notice.code, notice.step) == ("resource-claims", "main")
    assert names in notice.message
    golden(notice.message)


@pytest.mark.parametrize("claims", [5, ["gpu"], [{"name": ""}], [{}]])
def test_malformed_claims_name_the_place(claims):
    with pytest.raises(InputError, match=r"flow.yaml.*resourceClaims"):
        graph_of({"resourceClaims": claims}, {})


@pytest.mark.parametrize("where", ["spec", "templateDefaults", "template"])
def test_kfp_s_steps_get_what_their_workflow_sets_for_pods(where):
    made = emit_workflow(a_package()[0])
    settings: Fields = {**resources(cpu="6"), "resourceClaims": [{"name": "gpu"}]}
    if where == "spec":
        made["spec"].update(settings)
    elif where == "templateDefaults":
        made["spec"]["templateDefaults"] = settings
    else:
        task = {"name": "executor", "template": "system-container-impl"}
        executor = {"name": "system-container-executor", "dag": {"tasks": [task]}}
        made["spec"]["templates"] += [executor, {"name": "system-container-impl", **settings}]
    graph = read_run(json.dumps(made).encode(), name="flow.yaml")
    assert graph.step("work").requests["cpu"] == 6000
    assert ("resource-claims", "work") in [(each.code, each.step) for each in graph.notices]
