"""What a step asks for: resources, constraints, labels and hints, from packages and Workflows."""

import json
import re

import pytest

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.pod_constraints import (
    NodeAffinity,
    NodeSelectorTerm,
    PreferredTerm,
    Requirement,
    Toleration,
)
from kfp_placement_engine.model.run_graph import DurationSource
from kfp_placement_engine.readers.kfp.tasks import MAX_DISPLAY_NAME
from tests.support.builders import in_zone
from tests.support.packages import (
    a_dag,
    a_loop,
    a_package,
    a_task,
    constant,
    input_of_dag,
    inputs,
    notice_codes,
    output_of,
    read_package,
    told_steps,
)

HINTS = "kfp-placement.dev/hints"
MARKUP = "<script>alert(1)</script> $(rm -rf) `id` ; & \" ' é"


def hinted(text):
    """Kubernetes config of an executor whose pod has these hints."""
    return {"podMetadata": {"annotations": {HINTS: text}}}


def after_another(work, **options):
    """A package whose tasks `work` come after `decide`, which is another container."""
    return a_package(
        {"decide": a_task("small"), **work},
        executors={"small": {"container": {"image": "small:1"}}},
        **options,
    )


def step_of(read, *, resources=None, kubernetes=None, task=None, parameters=None, **options):
    """The only step of a run, and the graph."""
    graph = read(
        a_package(
            {"work": a_task(**(task or {}))},
            container={"resources": resources} if resources else None,
            kubernetes={"exec-work": kubernetes} if kubernetes else None,
            parameters=parameters,
        ),
        **options,
    )
    return graph.step("work"), graph


@pytest.mark.parametrize(
    ("resources", "requests"),
    [
        ({}, {}),
        ({"resourceCpuRequest": "500m", "cpuRequest": 9.0}, {"cpu": 500}),
        ({"cpuRequest": 0.25, "memoryRequest": 0.268435456}, {"cpu": 250, "memory": 268435456}),
        ({"cpuLimit": 2, "memoryLimit": 1}, {"cpu": 2000, "memory": 10**9}),
        ({"resourceCpuLimit": "1000m", "resourceCpuRequest": "1"}, {"cpu": 1000}),
        ({"resourceMemoryLimit": "2Gi", "memoryRequest": 1.5}, {"memory": 1_500_000_000}),
        (
            {"accelerator": {"resourceType": "nvidia.com/gpu", "resourceCount": "2"}},
            {"nvidia.com/gpu": 2},
        ),
        ({"accelerator": {"type": "nvidia.com/gpu", "count": "1"}}, {"nvidia.com/gpu": 1}),
        ({"accelerator": {"type": "nvidia.com/gpu", "count": "0"}}, {}),
    ],
)
def test_requests_are_what_the_driver_makes_of_resources(read, resources, requests):
    """Text wins over the older numbers, a limit counts where no request is."""
    step, graph = step_of(read, resources=resources)
    assert dict(step.requests) == requests
    assert step.unknown_resources == ()
    assert graph.notices == ()


def test_placeholders_are_followed_through_pipelines_and_defaults(read):
    """Text with a gap in it, a parameter of a nested pipeline, a default of the component."""
    resources = {
        "resourceCpuRequest": "{{$.inputs.parameters['cpu']}}",
        "resourceMemoryLimit": "{{$.inputs.parameters['size']}}Gi",
    }
    task = a_task(inputs=inputs(cpu=input_of_dag("inner")))
    definitions = {"parameters": {"size": {"parameterType": "NUMBER_INTEGER", "defaultValue": 2.0}}}
    components = {
        "work": {"executorLabel": "exec-work", "inputDefinitions": definitions},
        "nested": a_dag({"work": task}),
    }
    documents = a_package(
        {"nested": a_task("nested", inputs=inputs(inner=input_of_dag("cores")))},
        components=components,
        container={"resources": resources},
        parameters={"cores": {"parameterType": "STRING", "defaultValue": "1500m"}},
    )
    assert read(documents).step("nested.work").requests == {"cpu": 1500, "memory": 2 * 2**30}


def test_items_of_a_loop_give_each_iteration_its_resources(read):
    resources = {"resourceMemoryRequest": "{{$.inputs.parameters['memory']}}"}
    body = {"body": a_dag({"work": a_task(inputs=inputs(memory=input_of_dag("item")))})}
    documents = a_package(
        {"loop": a_loop("body", ["1Gi", "2Gi"])},
        components=body,
        container={"resources": resources},
    )
    assert [step.requests for step in read(documents).steps] == [
        {"memory": 2**30},
        {"memory": 2**31},
    ]


@pytest.mark.parametrize(
    ("resources", "shown"),
    [
        ({"resourceCpuRequest": "2", "resourceCpuLimit": "1500m"}, "cpu request 2 .* limit 1500m"),
        ({"resourceMemoryRequest": "2Gi", "memoryLimit": 1}, "memory request 2Gi .* limit 1"),
    ],
)
def test_a_request_above_its_limit_is_said(read, resources, shown):
    _, graph = step_of(read, resources=resources)
    assert told_steps(graph) == [("request-above-limit", "work")]
    assert re.search(shown, graph.notices[0].message)


@pytest.mark.parametrize("field", ["resourceMemoryRequest", "resourceMemoryLimit"])
def test_memory_without_its_unit_is_said(read, field):
    step, graph = step_of(read, resources={field: "4"})
    assert step.requests == {"memory": 4}
    assert notice_codes(graph) == ["tiny-memory"]


def test_several_resources_known_only_at_run_time_are_one_sentence(read, golden):
    at_run_time = "{{$.inputs.parameters['size']}}"
    documents = after_another(
        {"work": a_task(inputs=inputs(size=output_of("decide")))},
        container={
            "resources": {
                "resourceCpuRequest": at_run_time,
                "resourceMemoryRequest": at_run_time,
                "accelerator": {"resourceType": at_run_time, "resourceCount": "1"},
            }
        },
    )
    (notice,) = read(documents).notices
    golden(notice.message)


def test_what_a_task_s_output_decides_is_unknown(read):
    """Said once, not once per iteration."""
    resources = {
        "resourceCpuRequest": "{{$.inputs.parameters['cpu']}}",
        "resourceMemoryRequest": "1Gi",
    }
    passed = inputs(cpu=output_of("decide"))
    documents = after_another(
        {"loop": a_loop("work", [1, 2, 3], inputs=passed)}, container={"resources": resources}
    )
    graph = read(documents)
    for index in range(3):
        step = graph.step(f"loop[{index}]")
        assert step.requests == {"memory": 2**30}
        assert step.unknown_resources == ("cpu",)
    assert told_steps(graph) == [("unknown-resources", "loop[*]")]


@pytest.mark.parametrize(
    ("resources", "problem"),
    [
        ({"resourceCpuRequest": "-1"}, "negative"),
        ({"resourceMemoryLimit": "lots"}, "'lots' is not a quantity"),
        ({"resourceMemoryLimit": "99999Ei"}, "beyond"),
        ({"cpuRequest": -2}, "0 or more"),
        ({"cpuRequest": "two"}, "number"),
        ({"accelerator": {"type": "gpu", "count": "-1"}}, "negative"),
        ({"accelerator": []}, "mapping"),
    ],
)
def test_bad_resources_are_refused_with_their_place(read, resources, problem):
    with pytest.raises(InputError, match=problem) as caught:
        step_of(read, resources=resources)
    assert "run.yaml" in str(caught.value)
    assert "task work" in str(caught.value)


def test_init_containers_count_by_the_rule_of_kubernetes(read):
    """`kubernetes.add_init_container` of KFP's next SDK."""
    fetch = {"name": "fetch", "image": "f", "resources": {"requests": {"cpu": "3"}}}
    proxy = {"name": "proxy", "image": "p", "resources": {"limits": {"cpu": "500m"}}}
    kubernetes = {"initContainers": [{**proxy, "restartPolicy": "Always"}, fetch]}
    step, _ = step_of(read, resources={"cpuRequest": 1.0}, kubernetes=kubernetes)
    assert step.requests == {"cpu": 3500}
    kubernetes = {"initContainers": [{**proxy, "restartPolicy": "Always"}]}
    step, _ = step_of(read, resources={"cpuRequest": 1.0}, kubernetes=kubernetes)
    assert step.requests == {"cpu": 1500}


def test_constraints_are_read_in_every_form(read):
    term = [{"key": "zone", "operator": "In", "values": ["a", "b"]}]
    field = [{"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]}]
    kubernetes = {
        "nodeSelector": {"labels": {"disk": "fast"}},
        "tolerations": [
            {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "pool", "value": "batch", "tolerationSeconds": 60},
        ],
        "nodeAffinity": [
            {"matchExpressions": term},
            {"matchFields": field},
            {"matchExpressions": term, "weight": 50},
            {},
        ],
        "somethingNewer": {"x": 1},
    }
    step, graph = step_of(read, kubernetes=kubernetes)
    zone = in_zone("a", "b")
    name = NodeSelectorTerm((Requirement("metadata.name", "NotIn", ("node-1",), is_field=True),))
    assert step.node_selector == {"disk": "fast"}
    assert step.tolerations == (
        Toleration("gpu", "Exists", "", "NoSchedule"),
        Toleration("pool", "Equal", "batch", ""),
    )
    assert step.affinity == NodeAffinity((zone, name), (PreferredTerm(50, zone),))
    # A Workflow has no configuration of its executors.
    codes = [each.code for each in graph.notices]
    assert codes == (["unknown-field"] if graph.source == "kfp-package" else [])


def test_constraints_given_as_json_parameters_are_followed(read):
    """Mappings, lists, constants, defaults; nothing given counts as no constraint."""
    selector = {"disk": "fast"}
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}]
        }
    }
    tolerations = [{"key": "a"}, {"key": "b", "operator": "Exists"}]
    kubernetes = {
        "nodeSelector": {
            "labels": {"not": "used"},
            "nodeSelectorJson": {"componentInputParameter": "selector"},
        },
        "tolerations": [
            {"tolerationJson": {"componentInputParameter": "tolerations"}},
            {"tolerationJson": constant({"key": "c"})},
            {"tolerationJson": {"componentInputParameter": "nothing"}},
            {"tolerationJson": {"componentInputParameter": "empty"}},
        ],
        "nodeAffinity": [{"nodeAffinityJson": {"componentInputParameter": "affinity"}}],
    }
    parameters = {
        "selector": {"parameterType": "STRUCT", "defaultValue": selector},
        "tolerations": {"parameterType": "LIST", "defaultValue": tolerations},
        "nothing": {"parameterType": "STRUCT", "isOptional": True},
        "empty": {"parameterType": "STRUCT", "defaultValue": {}},
        "affinity": {"parameterType": "STRUCT", "defaultValue": affinity},
    }
    step, graph = step_of(read, kubernetes=kubernetes, parameters=parameters)
    assert step.node_selector == selector
    assert [toleration.key for toleration in step.tolerations] == ["a", "b", "c"]
    required = (NodeSelectorTerm((Requirement("x", "Exists"),)),)
    assert step.affinity == NodeAffinity(required)
    assert graph.notices == ()


def test_constraints_known_only_at_run_time_are_said(read):
    kubernetes = {"exec-work": {"tolerations": [{"tolerationJson": output_of("decide")}]}}
    graph = read(after_another({"work": a_task(after=["decide"])}, kubernetes=kubernetes))
    assert graph.step("work").tolerations == ()
    assert told_steps(graph) == [("unknown-constraint", "work")]


@pytest.mark.parametrize(
    "kubernetes",
    [
        {"tolerations": [{"operator": "Maybe"}]},
        {"tolerations": "all"},
        {"nodeAffinity": [{"matchExpressions": [{"key": "x", "operator": "Like"}]}]},
        {"nodeAffinity": [{"matchExpressions": "x"}]},
        {"nodeAffinity": [{"matchExpressions": [{"key": "x", "operator": "In"}], "weight": 500}]},
        {"nodeSelector": {"labels": ["x"]}},
        {"podMetadata": {"labels": {"x": {}}}},
        {"pvcMount": {}},
    ],
)
def test_malformed_constraints_are_refused_with_their_place(read, kubernetes):
    with pytest.raises(InputError, match="task work"):
        step_of(read, kubernetes=kubernetes)


def test_settings_that_a_trainer_job_takes_over_are_not_on_the_pod(read):
    """TaskConfig passthrough: the component gets them, its pod does not."""
    passthroughs = [
        {"field": "RESOURCES"},
        {"field": "KUBERNETES_TOLERATIONS", "applyToTask": True},
        {"field": "KUBERNETES_NODE_SELECTOR", "applyToTask": False},
    ]
    documents = a_package(
        components={"work": {"executorLabel": "exec-work", "taskConfigPassthroughs": passthroughs}},
        container={"resources": {"resourceCpuRequest": "4"}},
        kubernetes={
            "exec-work": {"tolerations": [{"key": "a"}], "nodeSelector": {"labels": {"x": "y"}}}
        },
    )
    step = read(documents).step("work")
    assert step.requests == {}
    assert step.node_selector == {}
    assert step.tolerations == (Toleration("a"),)


def test_marks_and_hints_are_read_from_pod_metadata(read):
    hints = {"v": 1, "duration": "20m", "outputs": {"model": "50Mi"}, "maxLatency": "20ms"}
    metadata = {
        "labels": {
            "typeOfComponent": "Training",
            "OurLocation": "HOME-EDGE",
            "kfp-placement.dev/scheduler": "kfp-placement",
            "team": "x",
        },
        "annotations": {HINTS: json.dumps({**hints, "priority": 4, "typeGuessed": True})},
    }
    step, graph = step_of(read, kubernetes={"podMetadata": metadata})
    assert (step.type, step.location, step.scheduler) == ("Training", "HOME-EDGE", "kfp-placement")
    assert step.type_guessed
    assert dict(step.labels) == metadata["labels"]
    assert (step.duration_seconds, step.duration_source) == (1200, DurationSource.HINT)
    assert (step.output_bytes, step.max_latency_ms, step.priority) == ({"model": 50 * 2**20}, 20, 4)
    assert graph.notices == ()


@pytest.mark.parametrize(("value", "unplanned"), [("true", True), ("false", False)])
def test_a_step_may_be_left_to_the_default_scheduler(read, value, unplanned):
    labels = {"kfp-placement.dev/unplanned": value}
    step, _ = step_of(read, kubernetes={"podMetadata": {"labels": labels}})
    assert (step.unplanned, step.scheduler) == (unplanned, "")


def test_unmarked_steps_get_no_type(read):
    """Guessing is the SDK's alone."""
    step, _ = step_of(read)
    assert (step.type, step.location, step.scheduler, step.type_guessed) == ("", "", "", False)
    assert (step.duration_seconds, step.duration_source) == (None, DurationSource.ASSUMED)


@pytest.mark.parametrize(
    ("text", "code", "word"),
    [
        ("gpu", "bad-hints", "JSON"),
        ('{"v":1,"duration":"-5m"}', "bad-hints", "negative"),
        ('{"v":1,"duration":"4000d"}', "bad-hints", "ten years"),
        ('{"v":1,"colour":"red"}', "hints", "colour"),
        ('{"v":9,"duration":"5m"}', "hints", "newer"),
        ('{"duration":"1m","duration":"5m"}', "hints", "key duration appears twice"),
        ('{"duration":"5m","outputs":{"a":1,"a":2}}', "hints", "key a appears twice"),
    ],
)
def test_odd_hints_are_warnings(read, text, code, word):
    step, graph = step_of(read, kubernetes=hinted(text))
    assert told_steps(graph) == [(code, "work")]
    assert word in graph.notices[0].message
    assert step.duration_seconds == (300 if "5m" in text and code == "hints" else None)


@pytest.mark.parametrize("value", ["x" * 64, "a b", "-a", "a/b", "café"])
def test_labels_that_kubernetes_refuses_are_said(read, value):
    metadata = {"labels": {"OurLocation": value}}
    step, graph = step_of(read, kubernetes={"podMetadata": metadata})
    assert step.location == value
    assert notice_codes(graph) == ["invalid-label"]


@pytest.mark.parametrize(("kind", "what"), [("labels", "label"), ("annotations", "annotation")])
def test_metadata_of_a_package_that_is_no_text_is_said(kind, what, golden):
    """KFP's backend reads packages as protobuf messages, where these are maps of texts."""
    metadata = {kind: {"OurLocation": 5, "fine": "5"}}
    step, graph = step_of(read_package, kubernetes={"podMetadata": metadata})
    (notice,) = graph.notices
    assert (notice.code, notice.step) == ("invalid-label", "work")
    golden(notice.message)
    assert f"{what} OurLocation = 5 " in notice.message
    assert step.location == ("5" if kind == "labels" else "")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        # Escaping is the report's task; readers neither execute nor change anything.
        (MARKUP, MARKUP),
        ("  ", ""),
        ("x" * 60_000, "x" * MAX_DISPLAY_NAME),
    ],
    ids=["markup", "blank", "long"],
)
def test_a_display_name_is_kept_as_it_is_up_to_a_bound(read, name, shown):
    step, _ = step_of(read, task={"taskInfo": {"name": name}})
    assert step.display_name == shown


@pytest.mark.parametrize(
    ("retry", "limit"), [(None, 1), ({}, 1), ({"maxRetryCount": 2}, 3), ({"maxRetryCount": "5"}, 6)]
)
def test_retries_and_caching_are_the_task_s(read, retry, limit):
    fields = {"cachingOptions": {"enableCache": True}}
    if retry is not None:
        fields["retryPolicy"] = retry
    step, _ = step_of(read, task=fields)
    assert step.attempt_limit == limit
    assert step.caching_enabled
    assert not step_of(read, task={"cachingOptions": {}})[0].caching_enabled


def test_data_is_followed_to_the_step_that_wrote_it(read):
    """Through nested pipelines' outputs, collected over a loop, sized by the writer's hints."""
    sizes = hinted('{"v":1,"outputs":{"table":"3Mi"}}')
    artifact = {"producerSubtask": "work", "outputArtifactKey": "table"}
    body = a_dag({"work": a_task()})
    body["dag"]["outputs"] = {"artifacts": {"tables": {"artifactSelectors": [artifact]}}}
    source = {"taskOutputArtifact": {"producerTask": "loop", "outputArtifactKey": "tables"}}
    reads = {"artifacts": {"all": source, "own": {"componentInputArtifact": "given"}}}
    documents = a_package(
        {"loop": a_loop("body", [1, 2]), "use": a_task(inputs=reads)},
        components={"body": body},
        kubernetes={"exec-work": sizes},
    )
    step = read(documents).step("use")
    assert [(data.producer, data.key, data.size_bytes) for data in step.inputs] == [
        ("loop[0].work", "table", 3 * 2**20),
        ("loop[1].work", "table", 3 * 2**20),
        ("", "own", None),
    ]
    assert step.depends_on == ("loop[0].work", "loop[1].work")


def test_a_step_s_own_input_sizes_count_before_the_writer_s(read):
    """And data from outside the run is named by the hint alone."""
    hints = '{"v":1,"inputs":{"table":"5Mi","bucket":"1Gi"}}'
    source = {"taskOutputArtifact": {"producerTask": "make", "outputArtifactKey": "table"}}
    tasks = {"make": a_task(), "work": a_task(inputs={"artifacts": {"table": source}})}
    config = {"exec-work": hinted(hints)}
    step = read(a_package(tasks, kubernetes=config)).step("work")
    assert [(data.producer, data.key, data.size_bytes) for data in step.inputs] == [
        ("make", "table", 5 * 2**20),
        ("", "bucket", 2**30),
    ]


def test_a_disabled_cache_shows_in_the_workflow_only():
    """A server that caches nothing tells its drivers so, as a flag or with a value."""
    from kfp_placement_engine.readers import read_run
    from tests.support.kfp_workflow_emitter import emit_workflow

    documents = a_package({"work": a_task(cachingOptions={"enableCache": True})})
    workflow = emit_workflow(documents[0])
    for flag, expected in (
        ("--cache_disabled", False),
        ("--cache_disabled=true", False),
        ("--cache_disabled=false", True),
    ):
        drivers = [t for t in workflow["spec"]["templates"] if t["name"] == "system-dag-driver"]
        drivers[0]["container"] = {"args": ["--pipeline_name", "run", flag]}
        graph = read_run(json.dumps(workflow).encode(), name="run.yaml")
        assert graph.step("work").caching_enabled is expected
