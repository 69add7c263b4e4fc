"""Argo Workflows that KFP did not make: DAGs, steps, loops, defaults, labels."""

import json
from typing import Any

import pytest

from kfp_placement_engine import ReadOptions, RunGraph, read_run
from kfp_placement_engine.exceptions import InputError, LimitError
from kfp_placement_engine.model.concurrency import exclude_each_other
from kfp_placement_engine.model.pod_constraints import NodeSelectorTerm, Requirement, Toleration
from kfp_placement_engine.model.run_graph import RunClaim
from kfp_placement_engine.planning.given_values import with_refusals
from kfp_placement_engine.readers.argo.workflow import read_workflow
from tests.controlplane.argo.small_workflows import arguments, task
from tests.support.packages import Fields, notice_codes

WORK: Fields = {"name": "work", "container": {"image": "work:1"}}


def read(templates: list[Fields], *, metadata: Fields | None = None, **spec: Any) -> RunGraph:
    """A Workflow whose entrypoint is `main`."""
    options = ReadOptions(
        arguments=spec.pop("given", {}),
        loop_widths=spec.pop("loop_widths", {}),
        **spec.pop("options", {}),
    )
    document = {
        "apiVersion": spec.pop("apiVersion", "argoproj.io/v1alpha1"),
        "kind": spec.pop("kind", "Workflow"),
        "metadata": metadata or {"generateName": "flow-"},
        "spec": {"entrypoint": "main", "templates": templates, **spec},
    }
    return read_run(json.dumps(document).encode(), name="flow.yaml", options=options)


def dag(*tasks: Fields, **fields: Any) -> Fields:
    return {"name": "main", "dag": {"tasks": list(tasks)}, **fields}


def read_tasks(*tasks: Fields, **spec: Any) -> RunGraph:
    """A Workflow of these tasks, which run the template `work` if they name no other."""
    return read([dag(*tasks), WORK], **spec)


ONE_TASK = [dag(task("A")), WORK]


def one(template: Fields, **spec: Any):
    """The step of a Workflow with a single task."""
    return read([dag(task("A")), {**WORK, **template}], **spec).step("A")


def test_there_are_no_driver_pods_and_no_groups():
    graph = read_tasks(task("A"), task("B", dependencies=["A"]))
    assert (graph.source, graph.name, graph.groups) == ("argo-workflow", "flow", ())
    assert [step.name for step in graph.steps] == ["A", "B"]
    assert not any(step.has_driver for step in graph.steps)
    assert graph.step("B").depends_on == ("A",)


@pytest.mark.parametrize(
    ("depends", "names"),
    [
        ("A", ("A",)),
        ("A && B", ("A", "B")),
        ("A.Succeeded && (B.Failed || !C-1.Skipped)", ("A", "B", "C-1")),
        ("(A.Succeeded||B.AnySucceeded)", ("A", "B")),
    ],
)
def test_depends_expressions_wait_for_all_they_name(depends, names):
    tasks = [task(name) for name in ("A", "B", "C-1")]
    graph = read_tasks(*tasks, task("D", depends=depends))
    assert graph.step("D").depends_on == names


def test_steps_run_group_after_group():
    main = {
        "name": "main",
        "steps": [[task("a"), task("b")], [task("c")], [task("d", "inner")], [task("e")]],
    }
    inner = {"name": "inner", "steps": [[task("x")], [task("y")]]}
    graph = read([main, inner, WORK])
    depends = {step.name: step.depends_on for step in graph.steps}
    assert depends == {
        "a": (),
        "b": (),
        "c": ("a", "b"),
        "d.x": ("c",),
        "d.y": ("d.x",),
        "e": ("d.y",),
    }


@pytest.mark.parametrize(
    ("loop", "images"),
    [
        ({"withItems": ["x", 2, True]}, ["work:x", "work:2", "work:true"]),
        ({"withItems": ["{{workflow.parameters.tag}}"]}, ["work:v1"]),
        ({"withParam": '["x", "y"]'}, ["work:x", "work:y"]),
        ({"withParam": "{{workflow.parameters.tags}}"}, ["work:a", "work:b"]),
        ({"withSequence": {"count": "2"}}, ["work:0", "work:1"]),
        ({"withSequence": {"count": 2, "start": "5"}}, ["work:5", "work:6"]),
        ({"withSequence": {"start": "3", "end": "1"}}, ["work:3", "work:2", "work:1"]),
        ({"withSequence": {"start": "-1", "count": "2"}}, ["work:-1", "work:0"]),
        ({"withSequence": {"start": "200000", "end": "200001"}}, ["work:200000", "work:200001"]),
        ({"withSequence": {"count": "2", "format": "n%d"}}, ["work:n0", "work:n1"]),
        ({"withSequence": {"end": "1", "format": "%02x-%%"}}, ["work:00-%", "work:01-%"]),
        (
            {"withSequence": {"count": "{{workflow.parameters.n}}", "format": "a"}},
            ["work:a%!(EXTRA int=0)"],
        ),
        ({"withSequence": {"count": "1", "format": "%c"}}, [""]),
        ({"withSequence": {"count": "1", "format": "%d%d"}}, [""]),
        ({"withSequence": {"count": "-1"}}, ["work:0", "work:-1", "work:-2"]),
        ({"withSequence": {"count": "{{workflow.parameters.n}}"}}, ["work:0"]),
    ],
)
def test_loops_with_known_items_are_expanded(loop, images):
    work = {
        "name": "work",
        "container": {"image": "work:{{inputs.parameters.item}}"},
    }
    graph = read(
        [dag(task("A", arguments=arguments(item="{{item}}"), **loop)), work],
        arguments=arguments(tag="v1", tags='["a","b"]', n="1"),
    )
    assert [step.image for step in graph.steps] == images
    assert [step.name for step in graph.steps] == [f"A[{i}]" for i in range(len(images))]
    assert {step.task for step in graph.steps} == {"A[*]"}
    assert not any(step.assumed for step in graph.steps)


@pytest.mark.parametrize(
    ("loop", "problem"),
    [
        ({"withParam": "{{workflow.parameters.tags}}"}, "'a b', which is not a JSON list"),
        ({"withParam": '{"a": 1}'}, "not a JSON list"),
        ({"withSequence": {"count": "abc"}}, "'abc', which is not a whole number"),
        ({"withSequence": {"start": "0x1", "end": "3"}}, "'0x1', which is not a whole number"),
    ],
)
def test_loops_over_what_has_no_items_are_refused(loop, problem):
    graph = read_tasks(task("A", **loop), arguments=arguments(tags="a b"))
    (notice,) = graph.notices
    assert (notice.code, notice.step, notice.is_refusal) == ("loop-items", "A", True)
    assert problem in notice.message
    assert [bool(step.refusal) for step in with_refusals(graph).steps] == [True]


def test_fields_that_an_item_lacks_are_refused():
    reading = arguments(n="{{item.p}}")
    (notice,) = read_tasks(task("A", withItems=[{"p": 1}, {"q": 2}], arguments=reading)).notices
    assert (notice.code, notice.step, notice.is_refusal) == ("unknown-tag", "A", True)
    assert notice.message.startswith("an item has no p")
    items = [{"p": 1}, {"p": 2, "q": 3}]
    assert read_tasks(task("A", withItems=items, arguments=reading)).notices == ()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("{{=toJson(filter([1, 2], {# > 1}))}}", "not computed here"),
        ("{{=x}}", "known only at run time"),
    ],
)
def test_items_that_are_not_computed_here_are_not_called_unknown_until_run_time(value, why):
    notice, unlimited = read_tasks(task("A", withParam=value)).notices
    assert notice.code == "loop-width-assumed"
    assert f"iterations is {why}" in notice.message
    assert unlimited.code == "unlimited-loop"


@pytest.mark.parametrize("when", [True, False, 1])
def test_a_when_that_is_not_text_is_refused(when):
    with pytest.raises(InputError, match="must be text"):
        read_tasks(task("A", when=when))


@pytest.mark.parametrize("count", [30_000, 1_000_000, 10**12])
def test_long_sequences_are_refused_whatever_their_length(count):
    with pytest.raises(LimitError, match="a run may have at most 20000"):
        read_tasks(task("A", withSequence={"count": count}))


def test_formats_of_sequences_decide_conditions():
    loop = {"start": "1", "end": "4", "format": "%02d"}
    graph = read_tasks(task("A", when="{{item}} == 02", withSequence=loop))
    assert [step.name for step in graph.steps] == ["A[1]"]
    assert graph.step("A[1]").conditions == ()


def test_items_may_be_mappings():
    passed = arguments(image="{{item.image}}:{{item.tag}}")
    items = [{"image": "debian", "tag": 12}, {"image": "alpine", "tag": "3"}]
    work = {
        "name": "work",
        "container": {"image": "{{inputs.parameters.image}}"},
    }
    graph = read([dag(task("A", arguments=passed, withItems=items)), work])
    assert [step.image for step in graph.steps] == ["debian:12", "alpine:3"]


def test_items_that_double_at_each_level_stay_unknown():
    """Neither memory nor time is spent on them."""
    x = "{{inputs.parameters.x}}"
    loop = {"withItems": [{"a": x, "b": x}], "arguments": arguments(x="{{item}}")}
    levels = [dag(task("t", f"d{depth + 1}", **loop), name=f"d{depth}") for depth in range(40)]
    top = task("top", "d0", arguments=arguments(x="0"))
    assert len(read([dag(top), *levels, {**WORK, "name": "d40"}]).steps) == 1


def test_a_loop_over_an_output_has_an_assumed_width_and_waits():
    each = task("each", withParam="{{tasks.list.outputs.result}}")
    graph = read_tasks(task("list"), each)
    assert [step.assumed for step in graph.steps] == [False, True, True, True]
    assert graph.step("each[2]").depends_on == ("list",)
    assert notice_codes(graph) == ["loop-width-assumed", "unlimited-loop"]
    given = read_tasks(task("list"), each, loop_widths={"each": 1})
    assert len(given.steps) == 2
    # Whoever gives a width may be wrong.
    assert notice_codes(given) == ["unlimited-loop"]


@pytest.mark.parametrize(("most", "is_limited"), [(2, True), (3, True), (4, False)])
@pytest.mark.parametrize("of_workflow", [True, False])
def test_a_loop_over_an_output_is_limited_by_a_parallelism_that_its_plan_reaches(
    most, is_limited, of_workflow
):
    each = task("each", withParam="{{tasks.list.outputs.result}}")
    template = dag(task("list"), each)
    own = {} if of_workflow else {"parallelism": most}
    spec = {"parallelism": most} if of_workflow else {}
    codes = notice_codes(read([{**template, **own}, WORK], **spec))
    assert ("unlimited-loop" not in codes) == is_limited


def test_conditions_and_exit_handlers_are_marked():
    graph = read_tasks(
        task("A", when="{{workflow.parameters.x}} == y"),
        task("B", hooks={"exit": {"template": "work"}}),
        onExit="work",
    )
    assert graph.step("A").conditions == ("{{workflow.parameters.x}} == y",)
    assert [step.name for step in graph.steps if step.exit_task] == ["B.onExit", "onExit"]
    assert graph.step("B.onExit").depends_on == ("B",)
    assert graph.step("onExit").depends_on == ("A", "B", "B.onExit")


def test_a_template_overrides_the_workflow_s_defaults():
    spec = {
        "nodeSelector": {"disk": "any"},
        "tolerations": [{"key": "all", "operator": "Exists"}],
        "podMetadata": {"labels": {"OurLocation": "HOME-EDGE", "team": "x"}},
        "retryStrategy": {"limit": 2},
    }
    step = one({}, **spec)
    assert step.node_selector == {"disk": "any"}
    assert step.tolerations == (Toleration("all", "Exists"),)
    assert step.location == "HOME-EDGE"
    assert step.attempt_limit == 3
    own = {
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "own"}],
        "metadata": {"labels": {"team": "y", "typeOfComponent": "Predict"}},
        "retryStrategy": {"limit": "4"},
    }
    step = one(own, **spec)
    assert step.node_selector == {"disk": "fast"}
    assert step.tolerations == (Toleration("own"),)
    assert step.labels == {"OurLocation": "HOME-EDGE", "team": "y", "typeOfComponent": "Predict"}
    assert (step.type, step.attempt_limit) == ("Predict", 5)


def test_template_defaults_are_merged_in():
    defaults = {
        "nodeSelector": {"disk": "fast"},
        "container": {"resources": {"requests": {"cpu": "1"}}},
    }
    step = one({}, templateDefaults=defaults)
    assert (step.image, step.requests) == ("work:1", {"cpu": 1000})
    assert step.node_selector == {"disk": "fast"}


def test_resources_affinity_and_hints_of_a_pod():
    expression = {"key": "x", "operator": "In", "values": ["{{workflow.name}}"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    template = {
        "container": {
            "image": "work",
            "resources": {
                "requests": {"cpu": "500m", "memory": "1Gi"},
                "limits": {"cpu": "2", "nvidia.com/gpu": 1},
            },
        },
        "sidecars": [{"name": "side", "resources": {"requests": {"cpu": "250m"}}}],
        "affinity": affinity,
        "metadata": {"annotations": {"kfp-placement.dev/hints": '{"v":1,"duration":"5m"}'}},
        "memoize": {"key": "x"},
    }
    step = one(template, metadata={"name": "flow-1"})
    assert step.requests == {"cpu": 750, "memory": 2**30, "nvidia.com/gpu": 1}
    assert step.affinity.required == (NodeSelectorTerm((Requirement("x", "In", ("flow-1",)),)),)
    assert step.duration_seconds == 300
    assert step.caching_enabled


def test_a_pod_spec_patch_counts():
    patch = "containers:\n- name: main\n  resources:\n    limits:\n      memory: 2Gi\n"
    step = one({"podSpecPatch": patch}, podSpecPatch='{"nodeSelector": {"a": "b"}}')
    assert step.requests == {"memory": 2**31}
    assert step.node_selector == {"a": "b"}


@pytest.mark.parametrize("strategy", [{}, {"limit": "-1"}, {"limit": "{{workflow.parameters.n}}"}])
def test_retries_without_limit_are_many(strategy):
    assert one({"retryStrategy": strategy}).attempt_limit == 1000


def test_volumes_are_claims_where_they_are_mounted():
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("scratch", "data", "own")]
    template = {
        "container": {"image": "work", "volumeMounts": mounts},
        "volumes": [{"name": "own", "persistentVolumeClaim": {"claimName": "{{workflow.name}}-x"}}],
    }
    spec = {
        "volumeClaimTemplates": [
            {"metadata": {"name": "scratch"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
        ],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "datasets"}},
            {"name": "unused", "persistentVolumeClaim": {"claimName": "unused"}},
            {"name": "empty", "emptyDir": {}},
        ],
    }
    graph = read([dag(task("A")), {**WORK, **template}], metadata={"name": "flow-1"}, **spec)
    assert graph.step("A").claims == ("scratch", "datasets", "flow-1-x")
    assert graph.claims == (
        RunClaim(
            "scratch",
            ("ReadWriteOnce",),
            is_workspace=True,
            usage={"persistentvolumeclaims": 1},
        ),
        RunClaim("datasets"),
        RunClaim("flow-1-x"),
    )


def test_artifacts_are_followed_through_nested_dags():

    def artifact(name: str, source: str) -> Fields:
        return {"artifacts": [{"name": name, "from": f"{{{{{source}}}}}"}]}

    inner = dag(
        task("use", arguments=artifact("x", "inputs.artifacts.in")),
        name="inner",
        inputs={"artifacts": [{"name": "in"}]},
        outputs=artifact("out", "tasks.use.outputs.artifacts.y"),
    )
    main = dag(
        task("make"),
        task("inner", "inner", arguments=artifact("in", "tasks.make.outputs.artifacts.model")),
        task("last", arguments=artifact("x", "tasks.inner.outputs.artifacts.out")),
    )
    graph = read([main, inner, WORK])
    data = {step.name: [(d.producer, d.key) for d in step.inputs] for step in graph.steps}
    assert data == {"make": [], "inner.use": [("make", "model")], "last": [("inner.use", "y")]}
    assert graph.step("last").depends_on == ("inner.use",)


def test_the_entrypoint_gets_the_workflow_s_parameters():
    work = {
        "name": "main",
        "inputs": {"parameters": [{"name": "tag"}, {"name": "cpu", "value": "2"}]},
        "container": {
            "image": "work:{{inputs.parameters.tag}}",
            "resources": {"requests": {"cpu": "{{inputs.parameters.cpu}}"}},
        },
    }
    old = arguments(tag="old")
    step = read([work], arguments=old, given={"tag": "new"}).step("main")
    assert (step.image, step.requests) == ("work:new", {"cpu": 2000})
    with pytest.raises(InputError, match="no parameter 'tga'; did you mean 'tag'"):
        read([work], arguments=old, given={"tga": "new"})


def test_templates_elsewhere_and_recursion_are_said():
    graph = read_tasks(
        task("A", templateRef={"name": "library", "template": "x"}),
        task("B", "main", depends="A"),
        task("C", depends="B"),
    )
    assert [step.name for step in graph.steps] == ["A", "C"]
    assert set(notice_codes(graph)) == {"template-elsewhere", "recursive-template"}


def test_other_kinds_hold_runs_too():
    for kind in ("WorkflowTemplate", "ClusterWorkflowTemplate"):
        assert len(read(ONE_TASK, kind=kind).steps) == 1
    inner = {"entrypoint": "main", "templates": ONE_TASK}
    assert len(read([], kind="CronWorkflow", workflowSpec=inner).steps) == 1


def test_a_workflow_of_a_template_is_read_as_argo_stores_it():
    document: Fields = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "flow"},
        "spec": {"workflowTemplateRef": {"name": "library"}},
    }
    with pytest.raises(InputError, match="WorkflowTemplate library"):
        read_run(json.dumps(document).encode(), name="flow.yaml")
    stored = {"entrypoint": "main", "templates": ONE_TASK}
    document["status"] = {"storedWorkflowTemplateSpec": stored}
    assert len(read_run(json.dumps(document).encode(), name="flow.yaml").steps) == 1


def test_another_api_version_is_a_warning():
    assert notice_codes(read(ONE_TASK, apiVersion="argoproj.io/v2")) == ["unknown-version"]


def test_a_workflow_of_kfp_before_2_3_is_a_warning():
    """It keeps in annotations what is in arguments since."""
    annotations = {"pipelines.kubeflow.org/components-root": "{}"}
    (notice,) = read(ONE_TASK, metadata={"name": "old", "annotations": annotations}).notices
    assert notice.code == "unknown-version"
    assert "KFP backend before 2.3" in notice.message


@pytest.mark.parametrize(
    ("templates", "problem"),
    [
        ([dag(task("A", "gone"))], "template 'gone' does not exist"),
        ([dag(task("A"), task("A")), WORK], "two tasks are called A"),
        ([dag(task("A")), WORK, WORK], "two templates are called work"),
        ([dag(task("A", depends="B")), WORK], "waits for 'B', which does not exist"),
        ([dag(task("A", dependencies=["B"]), task("B", depends="A")), WORK], "circle"),
        ([dag(task("A")), {"name": "work"}], "no container"),
        ([dag({"name": "A"}), WORK], "template: is empty"),
        ([dag({"template": "work"}), WORK], "name: is empty"),
        ([WORK], "template 'main' does not exist"),
        ([dag()], "holds no step"),
        ([{"name": "main", "dag": []}], "must be a mapping"),
        ([dag(task("A", withItems="x")), WORK], "must be a list"),
        ([dag(task("A")), {**WORK, "retryStrategy": {"limit": "many"}}], "whole number"),
        ([dag(task("A")), {**WORK, "podSpecPatch": "a: ["}], "podSpecPatch"),
    ],
)
def test_malformed_workflows_are_refused_with_the_place(templates, problem):
    with pytest.raises(InputError, match=problem) as caught:
        read(templates)
    assert str(caught.value).startswith("flow.yaml")


@pytest.mark.parametrize("depth", [98, 99])
def test_templates_written_in_tasks_are_nested_as_deep_as_named_ones(depth):
    """A cluster's objects are nested deeper than files may be; Argo runs 99 with the pod."""
    template = WORK
    for _ in range(depth):
        template = {"name": "main", "dag": {"tasks": [{"name": "a", "inline": template}]}}
    document = {"metadata": {"name": "f"}, "spec": {"entrypoint": "main", "templates": [template]}}
    if depth == 98:
        assert len(read_workflow(document, "flow.yaml", ReadOptions()).steps) == 1
        return
    with pytest.raises(LimitError, match="deeper than 98"):
        read_workflow(document, "flow.yaml", ReadOptions())


@pytest.mark.parametrize(
    ("when", "refused"),
    [
        ("{{workflow.parameters.q}} == 1", "{{workflow.parameters.q}}"),
        ("{{tasks.nope.outputs.result}} == 1", "{{tasks.nope.outputs.result}}"),
        ("{{steps.a.outputs.result}} == 1", "{{steps.a.outputs.result}}"),
        ("{{inputs.parameters.p}} == 1", "{{inputs.parameters.p}}"),
        ("{{tasks.a.outputs.result}} == {{tasks.name}}", ""),
        ("{{workflow.parameters.p}} == {{workflow.uid}}", ""),
        ("{{item.size}} == 1", "{{item.size}}"),
        ("{{item}} == 1", "{{item}}"),
        ("{{=item.size}} == 1", ""),
        ("{{itemised}} == 1", ""),
        # Argo does not look at expressions before it starts a run.
        ("{{=tasks.nope.outputs.result}} == 1", ""),
    ],
)
def test_tags_that_stand_for_nothing_are_refused_as_by_argo(when, refused):
    tasks = task("a"), {**task("b", depends="a"), "when": when}
    spec = {"arguments": {"parameters": [{"name": "p", "value": "1"}]}}
    graph = read([dag(*tasks), WORK], **spec)
    named = [each for each in graph.notices if each.code == "unknown-tag"]
    assert [refused in each.message and each.is_refusal for each in named] == [True] * bool(refused)


def test_items_are_those_of_a_loop():
    """Argo takes those of steps for known from the first group with a loop on."""
    looped, plain = ({"name": name, "template": "work"} for name in "lp")
    looped, plain = {**looped, "withParam": "[1]"}, {**plain, "when": "{{item.a}} == 1"}
    assert notice_codes(read([dag(looped, plain), WORK])) == ["unknown-tag"]
    assert "unknown-tag" not in notice_codes(read([dag({**plain, "withItems": [{"a": 1}]}), WORK]))
    for groups, is_refused in (([[plain], [looped]], True), ([[looped], [plain]], False)):
        graph = read([{"name": "main", "steps": groups}, WORK])
        assert ("unknown-tag" in notice_codes(graph)) is is_refused


def test_a_refused_tag_is_named_with_its_task_and_what_may_be_meant():
    parameters = {"parameters": [{"name": "gpus", "value": "1"}]}
    graph = read_tasks(task("t", when="{{workflow.parameters.gpu}} == 1"), arguments=parameters)
    assert (
        "{{workflow.parameters.gpu}} (flow.yaml: template main: dag.tasks[0]: task t; did you mean"
        " {{workflow.parameters.gpus}}?) could" in str(graph.notices)
    )


def _with_default(name="p"):
    inputs = {"parameters": [{"name": name, "value": "{{workflow.parameters.q}}"}]}
    return {**WORK, "inputs": inputs}


@pytest.mark.parametrize("given", [{"arguments": {"parameters": [{"name": "p", "value": 1}]}}, {}])
def test_tags_of_defaults_are_not_judged_where_a_task_calls_the_template(given):
    """Argo validates it first as if all inputs were given, and each template only once."""
    graph = read([dag(task("a", **given)), _with_default()])
    assert not any(each.is_refusal for each in graph.notices)


@pytest.mark.parametrize(("name", "is_refused"), [("p", False), ("r", True)])
def test_tags_of_defaults_of_the_entrypoint_count_unless_the_workflow_gives_the_input(
    name, is_refused
):
    entry = {**_with_default(name), "name": "main"}
    graph = read([entry], arguments={"parameters": [{"name": "p", "value": "1"}]})
    named = [each.message for each in graph.notices if each.code == "unknown-tag"]
    assert ["workflow.parameters.q" in each for each in named] == [True] * is_refused


def test_a_workflow_template_may_be_given_parameters_that_it_does_not_have():
    tasks = task("a", when="{{workflow.parameters.q}} == 1")
    graph = read([dag(tasks), WORK], kind="WorkflowTemplate", metadata={"name": "t"})
    assert not any(each.code == "unknown-tag" for each in graph.notices)


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("serviceAccountName", "runner"),
        ("priority", "7"),
        ("namespace", "lab"),
    ],
)
def test_what_a_workflow_says_of_itself_decides_conditions(tag, value):
    metadata = {"generateName": "flow-", "namespace": "lab"}
    tasks = [
        task("yes", when=f"{{{{workflow.{tag}}}}} == {value}"),
        task("no", when=f"{{{{workflow.{tag}}}}} != {value}"),
    ]
    graph = read([dag(*tasks), WORK], metadata=metadata, serviceAccountName="runner", priority=7)
    assert [step.name for step in graph.steps] == ["yes"]


@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_labels_and_annotations_decide_nothing_since_they_may_be_changed_later(kind):
    tag = f"{{{{workflow.{kind}.x}}}}"
    both = [task("yes", when=f"{tag} == 1"), task("no", when=f"{tag} != 1")]
    stated = {kind: {"x": "1"}}
    tree = [dag(*both), WORK]
    graph = read(tree, metadata={"name": "wf", **stated}, workflowMetadata=stated)
    assert [step.name for step in graph.steps] == ["no", "yes"]


def test_a_value_of_the_run_that_is_not_known_is_the_same_for_all_tasks():
    graph = read_tasks(
        task("even", when="{{workflow.creationTimestamp.d}} == 1"),
        task("odd", when="{{workflow.creationTimestamp.d}} != 1"),
    )
    assert exclude_each_other(graph.step("even").branches, graph.step("odd").branches)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a" * 2001, "has 2001 characters; at most 2000 are read"),
        ("a" + ".a" * 201, "is in 201 groups, by its dots and brackets; at most 200 are read"),
        ("a" + "[0]" * 201, "is in 201 groups"),
    ],
)
def test_names_that_would_take_long_to_look_up_are_refused(name, problem):
    with pytest.raises(LimitError, match=problem):
        read_tasks(task(name))
    assert read_tasks(task(name[:300])).steps
