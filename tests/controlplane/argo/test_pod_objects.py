"""The pod object: against a pod that the real controller made, and by hand."""

import json

import pytest

from tests.controlplane.argo.names import node_id, pod_name
from tests.controlplane.argo.simulated_workflow import SimulatedWorkflow
from tests.controlplane.argo.small_workflows import NO_DEFAULTS, dag, step, task, workflow
from tests.controlplane.argo.strategic_merge import strategic_merge
from tests.controlplane.argo.test_recordings import simulated_recording
from tests.support.data import data_json, data_path

DEFAULTED = ("terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy")
DEFAULTED_IN_SPEC = (
    "terminationGracePeriodSeconds",
    "dnsPolicy",
    "serviceAccount",
    "priority",
    "enableServiceLinks",
    "preemptionPolicy",
    "tolerations",
)


def _comparable(pod):
    """A pod without what an API server fills in; JSON in variables is read."""
    spec = {key: value for key, value in pod["spec"].items() if key not in DEFAULTED_IN_SPEC}
    for part in ("initContainers", "containers"):
        spec[part] = [
            {key: value for key, value in entry.items() if key not in DEFAULTED}
            for entry in spec[part]
        ]
        for container in spec[part]:
            container["env"] = [_variable(entry) for entry in container["env"]]
    return spec


def _variable(entry):
    if entry["name"] == "ARGO_TEMPLATE":
        template = json.loads(entry["value"])
        template["podSpecPatch"] = json.loads(template["podSpecPatch"])
        template["podSpecPatch"]["containers"][0].pop("command")
        return {"name": entry["name"], "value": template}
    if "valueFrom" in entry:
        field = {"apiVersion": "v1", **entry["valueFrom"]["fieldRef"]}
        return {**entry, "valueFrom": {"fieldRef": field}}
    return {key: value for key, value in entry.items() if value != ""}


def test_the_whole_spec_of_a_real_pod():
    """The recording's drivers gave the command `x`; ours give the launcher's."""
    request = data_json("labelled", "extender", "filter-taxi-predict.json")
    recorded = request.get("pod") or request["Pod"]
    recording = data_path("labelled", "recordings", "taxi.json")
    simulated = simulated_recording(json.loads(recording.read_text()))
    simulated.complete_all()

    made = simulated.cluster.pods[recorded["metadata"]["name"]]
    made["spec"]["containers"][1]["command"][-1] = "x"

    assert _comparable(made) == _comparable(recorded)


def test_names():
    assert node_id("wf", "wf") == "wf"
    assert node_id("wf", "foobar") == f"wf-{0xBF9CF968}"
    assert pod_name("wf", "foobar", "work") == f"wf-work-{0xBF9CF968}"
    assert pod_name("wf", "wf", "work") == "wf"
    assert len(pod_name("w" * 200, "n", "t" * 100)) <= 253


@pytest.mark.parametrize("patch", ["{", "[]"])
def test_a_patch_that_is_none_is_an_error_of_the_step(patch):
    simulated = SimulatedWorkflow(
        workflow(dag("main", task("a")), step(podSpecPatch=patch)), settings=NO_DEFAULTS
    )
    simulated.settle()
    assert simulated.nodes()[".a"]["phase"] == "Error"
    assert simulated.phase == "Error"


def test_strategic_merge():
    original = {
        "containers": [{"name": "main", "env": [{"name": "A", "value": "1"}], "args": ["x"]}],
        "tolerations": [{"key": "a"}],
        "nodeSelector": {"a": "1", "b": "2"},
    }
    patch = {
        "containers": [{"name": "main", "env": [{"name": "B", "value": "2"}], "args": ["y", "z"]}],
        "tolerations": [{"key": "b"}],
        "volumes": [{"name": "new"}],
        "nodeSelector": {"a": None, "c": "3"},
    }
    assert strategic_merge(original, patch) == {
        "containers": [
            {
                "name": "main",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "args": ["y", "z"],
            }
        ],
        "tolerations": [{"key": "b"}],
        "volumes": [{"name": "new"}],
        "nodeSelector": {"b": "2", "c": "3"},
    }
    assert original["nodeSelector"] == {"a": "1", "b": "2"}
