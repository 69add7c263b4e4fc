"""Patches of pods with tags: what is known before the run counts, and the rest is named."""

import json
from typing import Any

import pytest

from kfp_placement_engine import RunGraph
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.argo.plain import leaves
from kfp_placement_engine.readers.run_files import read_run_file
from tests.controlplane.argo.small_workflows import arguments, task
from tests.engine.readers.argo.test_plain_workflows import dag, read
from tests.support.data import data_path
from tests.support.packages import Fields, notice_codes

GIB = 2**30


def patch(requests: Any, **fields: Any) -> str:
    container = {"name": "main", "resources": {"requests": requests}}
    return json.dumps({"containers": [container], **fields})


def of_task(text: str, *, workflow: str | None = None, **fields: Any) -> RunGraph:
    """The run of a single task `a` whose template has this patch and the input `m`."""
    template: Fields = {
        "name": "work",
        "inputs": {"parameters": [{"name": "m", "value": "2Gi"}]},
        "podSpecPatch": text,
        "container": {"image": "work:1"},
    }
    whole: Fields = {} if workflow is None else {"podSpecPatch": workflow}
    return read([dag(task("a", **fields)), template], **whole)


def test_a_user_s_patches_count():
    path = data_path("user-cases", "02-podspecpatch-parameter", "patch.yaml")
    requests = {step.name: dict(step.requests) for step in read_run_file(path).steps}
    assert requests == {
        "e": {"cpu": 2000, "memory": 8 * GIB},
        "g": {"nvidia.com/gpu": 1},
        "t[0]": {"cpu": 1000, "memory": GIB},
        "t[1]": {"cpu": 3000, "memory": 6 * GIB},
    }


@pytest.mark.parametrize(
    "text",
    [
        patch({"memory": "{{inputs.parameters.m}}"}),
        patch({"memory": "{{=inputs.parameters.m}}"}),
        '{"containers": [{"name": main, "resources": {"requests": {"memory": '
        "{{inputs.parameters.m}}}}}]}",
        "containers:\n- name: main\n  resources: {requests: {memory: '{{inputs.parameters.m}}'}}",
    ],
)
def test_inputs_stand_wherever_a_value_is(text):
    assert dict(of_task(text).step("a").requests) == {"memory": 2 * GIB}
    graph = of_task(text, arguments=arguments(m="3Gi"))
    assert dict(graph.step("a").requests) == {"memory": 3 * GIB}


def test_a_patch_that_is_a_parameter_as_a_whole_is_read_for_each_step():
    items = [{"p": patch({"cpu": "1"})}, {"p": patch({"cpu": "3"})}, {"p": ""}]
    given = {"arguments": arguments(m="{{item.p}}"), "withItems": items}
    graph = of_task("{{inputs.parameters.m}}", workflow=patch({"memory": "1Gi"}), **given)
    requests = [dict(step.requests) for step in graph.steps]
    assert requests == [{"cpu": 1000, "memory": GIB}, {"cpu": 3000, "memory": GIB}, {"memory": GIB}]


def test_the_known_rest_of_a_patch_counts():
    made = {"cpu": "2", "memory": "{{workflow.creationTimestamp}}"}
    graph = of_task(patch(made, nodeSelector={"kind": "{{inputs.parameters.m}}"}))
    step = graph.step("a")
    assert (dict(step.requests), step.unknown_resources) == ({"cpu": 2000}, ("memory",))
    assert step.node_selector == {"kind": "2Gi"}
    assert notice_codes(graph) == ["unknown-resources"]


def test_a_patch_that_only_the_run_makes_is_named():
    graph = of_task("{{tasks.ask.outputs.result}}")
    assert notice_codes(graph) == ["unknown-patch"]
    of_pod = json.dumps({"resources": {"requests": {"cpu": "{{tasks.ask.outputs.result}}"}}})
    assert notice_codes(of_task(of_pod)) == ["unknown-resources"]


def test_a_patch_without_tags_that_is_malformed_is_an_error():
    with pytest.raises(InputError, match="podSpecPatch"):
        of_task('{"containers": [')
    with pytest.raises(InputError, match="podSpecPatch"):
        of_task("{{inputs.parameters.m}}", arguments=arguments(m="{"))


CPU_3 = {"limits": {"cpu": "3"}}
ON_G = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"containers": [{"name": "main", "resources": {{inputs.parameters.m}}}]}', CPU_3),
        ('{"containers": {{inputs.parameters.m}}}', [{"name": "main", "resources": CPU_3}]),
        ("containers:\n- name: main\n  resources:\n    limits: {{inputs.parameters.m}}", "cpu: 3"),
        ("containers:\n- name: main\n  resources: {{=inputs.parameters.m}}", CPU_3),
        (
            'containers:\n- name: main\n  resources: {{=toJson({"limits": {"cpu":'
            " inputs.parameters.m} })}}",
            "3",
        ),
        (
            'containers: [{name: main, resources: {limits: {"{{inputs.parameters.m}}": 3}}}]',
            "cpu",
        ),
    ],
)
def test_a_tag_stands_for_a_mapping_a_list_or_a_key(text, value):
    plain = value if isinstance(value, str) else json.dumps(value)
    if plain == "cpu: 3":
        plain = "{cpu: 3}"
    assert dict(of_task(text, arguments=arguments(m=plain)).step("a").requests) == {"cpu": 3000}


def test_a_tag_stands_for_an_affinity():
    text = "affinity: {nodeAffinity: {{inputs.parameters.m}}}"
    required = {"requiredDuringSchedulingIgnoredDuringExecution": ON_G}
    graph = of_task(text, arguments=arguments(m=json.dumps(required)))
    assert graph.step("a").affinity.required
    assert graph.notices == ()


def test_a_mapping_that_only_the_run_makes_takes_its_whole_patch_away():
    text = (
        "{nodeSelector: {a: b}, containers: [{name: main, resources: {{tasks.x.outputs.result}}}]}"
    )
    assert notice_codes(of_task(text)) == ["unknown-patch"]
    text = "{nodeSelector: {a: {{inputs.parameters.m}}}, tolerations: {{tasks.x.outputs.result}}}"
    graph = of_task(text)
    assert graph.step("a").node_selector == {"a": "2Gi"}
    assert notice_codes(graph) == ["unknown-constraint"]


def test_a_key_that_only_the_run_makes_is_named_as_it_is_written():
    text = "containers: [{name: main, resources: {limits: {'{{tasks.x.outputs.result}}': 3}}}]"
    assert "tag-of-argo" not in str(of_task(text).notices)


def test_a_value_that_makes_a_patch_malformed_is_an_error():
    with pytest.raises(InputError, match=r"resources: must be a mapping, is text"):
        of_task("containers: [{name: main, resources: {{inputs.parameters.m}}}]")


def test_a_claim_of_a_patch_is_used():
    volume = {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}
    container = {"name": "main", "volumeMounts": [{"name": "d", "mountPath": "/d"}]}
    graph = of_task(json.dumps({"volumes": [volume], "containers": [container]}))
    assert graph.step("a").claims == ("data",)


def test_many_patches_of_one_template_are_each_that_of_its_step(monkeypatch):
    monkeypatch.setattr(leaves, "_MAX_VARIANTS", 20)
    text = "containers:\n- {name: main, resources: {requests: {memory: {{inputs.parameters.m}}Gi}}}"
    graph = of_task(text, withSequence={"count": "300"}, arguments=arguments(m="{{item}}"))
    amounts = [step.requests.get("memory", 0) for step in graph.steps]
    assert amounts == [number * GIB for number in range(300)]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ('{"hostNetwork": true}', ["not-used"]),
        ('{"schedulerName": "z", "nodeSelector": {"a": "b"}}', ["not-used"]),
        ('{"nodeSelectors": {"a": "b"}}', ["unknown-field"]),
        ('{"containers": [{"name": "main", "resources": {"Requests": {}}}]}', ["folded-field"]),
        ('{"nodeSelector": {"a": "b"}}', []),
    ],
)
def test_fields_of_a_patch_that_is_a_parameter_are_looked_at(text, codes):
    graph = of_task("{{inputs.parameters.m}}", arguments=arguments(m=text))
    assert notice_codes(graph) == codes


def test_fields_of_a_patch_with_open_tags_are_named_once():
    graph = of_task("{hostNetwork: true, nodeSelector: {a: {{inputs.parameters.m}}}}")
    assert notice_codes(graph) == ["not-used"]


def _container_patch(**container: Any) -> str:
    return json.dumps({"containers": [container]})


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (_container_patch(name="mian", resources={"requests": {"cpu": 1}}), "did you mean main?"),
        (_container_patch(name="x-1"), "the containers are main, wait"),
        ('{"initContainers": [{"name": "innit"}]}', "did you mean init?"),
        ('{"containers": [{"name": "mian", {{inputs.parameters.m}}: 1}]}', "did you mean main?"),
        (_container_patch(name="mian", image="b:1"), ""),
        (_container_patch(name="wait"), ""),
        (_container_patch(name="supervisor"), ""),
        (_container_patch(name="{{tasks.ask.outputs.result}}"), ""),
    ],
)
def test_a_container_that_a_patch_adds_without_an_image_is_refused(text: str, advice: str):
    """Kubernetes merges containers by name, and no pod has a container without an image."""
    named = [each for each in of_task(text).notices if each.code == "patched-container"]
    assert [advice in each.message and each.is_refusal for each in named] == [True] * bool(advice)
