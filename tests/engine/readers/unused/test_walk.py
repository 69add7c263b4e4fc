"""A plan says which fields of its run's file it does not use."""

from typing import Any

import pytest
import yaml

from kfp_placement_engine.contract.gates import REQUIRED
from kfp_placement_engine.model.notices import NOT_USED
from kfp_placement_engine.readers.run_files import read_run
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import UNNAMED
from kfp_placement_engine.readers.unused.walk import unused_in_package, unused_in_workflow
from tests.support.data import data_path

WORKFLOW = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}
POD = {"container": {"image": "alpine:3.20"}}


def spec_of(*templates: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"entrypoint": "main", "templates": [*templates], **fields}


def messages(*templates: dict[str, Any], **fields: Any) -> list[str]:
    spec = spec_of(*templates, **fields)
    notices = read_run(yaml.safe_dump({**WORKFLOW, "spec": spec}).encode(), name="w.yaml").notices
    return [each.message for each in notices if each.code in (NOT_USED, "unknown-field")]


def test_a_field_of_the_spec_a_template_and_a_container_is_named_with_its_place(golden):
    port = {"image": "a:1", "ports": [{"containerPort": 80, "hostPort": 80}]}
    main = {"name": "main", "priorityClassName": "high", "container": port}
    listed = messages(main, podPriorityClassName="high", volumes=[{"name": "v", "hostPath": {}}])
    golden("\n".join(listed))


def test_a_field_of_many_templates_is_named_once():
    names = ["main", *(f"t{i}" for i in range(7))]
    tasks = [{"name": name, "template": name} for name in names[1:]]
    listed = [{"name": name, "schedulerName": "volcano", **POD} for name in names[1:]]
    (message,) = messages({"name": "main", "dag": {"tasks": tasks}}, *listed)
    assert message.count("schedulerName") == 1
    assert message.endswith("(template t0, template t1, template t2 and 4 more)")


def test_a_template_that_nothing_runs_is_not_looked_at():
    other = {"name": "other", "schedulerName": "volcano", **POD}
    assert messages({"name": "main", **POD}, other) == []
    assert messages({"name": "main", "steps": [[{"name": "a", "template": "other"}]]}, other)
    assert messages({"name": "main", **POD}, other, onExit="other")
    hook = {"exit": {"template": "other"}}
    step = {"name": "a", "template": "work", "hooks": hook}
    assert messages({"name": "main", "steps": [[step]]}, {"name": "work", **POD}, other)


def test_a_template_of_another_object_is_looked_at():
    library = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "WorkflowTemplate",
        "metadata": {"name": "library"},
        "spec": {"templates": [{"name": "work", "schedulerName": "volcano", **POD}]},
    }
    reference = {"name": "library", "template": "work"}
    step = {"name": "a", "templateRef": reference}
    workflow = {**WORKFLOW, "spec": spec_of({"name": "main", "steps": [[step]]})}
    text = yaml.safe_dump_all([workflow, library])
    (message,) = (each.message for each in read_run(text.encode(), name="w.yaml").notices)
    assert "schedulerName is not used" in message
    assert "WorkflowTemplate library: template work" in message


def test_a_pod_patch_is_looked_at():
    patch = yaml.safe_dump({"runtimeClassName": "gvisor"})
    (message,) = messages({"name": "main", "podSpecPatch": patch, **POD})
    assert "template main: podSpecPatch" in message
    assert messages({"name": "main", "podSpecPatch": "{{inputs.parameters.p}}", **POD}) == []


@pytest.mark.parametrize(
    "template",
    [
        {"schedulerName": "default-scheduler"},
        {"schedulerName": ""},
        {"container": {"image": "a:1", "imagePullPolicy": "IfNotPresent"}},
        {"container": {"image": "a:1", "ports": [{"containerPort": 80}]}},
        {"affinity": {"nodeAffinity": {}}},
        {"securityContext": {"runAsUser": 8737}, "serviceAccountName": "default"},
        {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]},
    ],
)
def test_what_changes_nothing_is_not_named(template):
    assert messages({"name": "main", **POD, **template}) == []


def test_an_unknown_field_is_named_with_the_one_that_was_meant(golden):
    golden("\n".join(messages({"name": "main", "tolleration": [], **POD}, entrypont="main")))


LONG_S = "\N{LATIN SMALL LETTER LONG S}"


@pytest.mark.parametrize(
    "step",
    [
        {f"with{LONG_S}equence": {"count": "3"}},
        {"withSequence": {"end": "1", f"{LONG_S}tart": "0"}},
        {"arguments": {"Parameters": []}},
        {"arguments": {"parameters": [{"name": "a", "Value": "3"}]}},
        {"hooks": {"exit": {"Template": "main"}}},
        {"templateRef": {"name": "w", "Template": "main"}},
    ],
)
def test_a_field_of_another_case_may_hide_what_a_step_requests(step):
    """Argo decodes steps as JSON, for which Go compares names of fields without regard to case."""
    spec = {"templates": [{"name": "main", "steps": [[{"name": "a", **step}]]}]}
    (notice,) = unused_in_workflow(Fields(spec, UNNAMED))
    assert notice.code == "folded-field"
    assert notice.hides_demand


@pytest.mark.parametrize("value", [None, 3, "text", "{", [], [None, 3], {"name": 3}, [[["x"]]]])
def test_what_is_malformed_is_left_to_the_readers(value):
    for key in ("templates", "volumes", "affinity", "hooks", "podSpecPatch", "entrypoint"):
        spec = {"templates": [{"name": "main", key: value}], key: value}
        assert not [
            each for each in unused_in_workflow(Fields(spec, UNNAMED)) if each.code == NOT_USED
        ]
    for key in ("components", "root", "deploymentSpec"):
        assert not [*unused_in_package({key: value}, {"platforms": {"kubernetes": value}})][1:]


def test_a_field_of_a_package_is_named_with_its_executor(golden):
    config = {
        "imagePullPolicy": "Never",
        "podAffinity": [{"topologyKey": "zone"}],
        "nodeSelector": {},
        "activeDeadlineSeconds": "0",
    }
    platform = {"platforms": {"kubernetes": {"deploymentSpec": {"executors": {"exec-a": config}}}}}
    golden("\n".join(each.message for each in unused_in_package({}, platform)))


def test_what_a_reader_returns_says_it():
    template = {"name": "main", "schedulerName": "volcano", **POD}
    workflow = {**WORKFLOW, "spec": spec_of(template)}
    graph = read_run(yaml.safe_dump(workflow).encode(), name="w.yaml")
    assert [each.code for each in graph.notices if each.code == NOT_USED] == [NOT_USED]
    package = data_path("kfp-2.17.0", "pipelines")
    for path in sorted(package.glob("*.yaml"))[:5]:
        assert not [
            each for each in read_run(path.read_bytes(), name="p").notices if each.code == NOT_USED
        ]


def test_a_patch_with_tags_is_looked_at():
    patch = '{"nodeName": "n", "priorityClassName": {{inputs.parameters.a}}, "containers": []}'
    main = {"name": "main", "inputs": {"parameters": [{"name": "a", "value": "1"}]}, **POD}
    (first, second) = messages({**main, "podSpecPatch": patch})
    assert first.startswith("nodeName is not used")
    assert second.startswith("priorityClassName is not used")


@pytest.mark.parametrize(
    ("field", "value", "effect"),
    [
        ("affinity", {"podAffinity": {REQUIRED: [{}]}}, "podAffinity is not used: the pods"),
        (
            "podSpecPatch",
            "topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1}]",
            "topologySpreadConstraints is not used: its pods are spread over nodes or zones",
        ),
    ],
)
def test_pods_beside_others_are_named(field, value, effect):
    (message,) = messages({"name": "main", **POD, field: value})
    assert message.startswith(effect)
