"""Templates in WorkflowTemplates: references, what Argo has stored, and the joined spec."""

import json
from typing import Any

import pytest

from kfp_placement_engine import ReadOptions, RunGraph, read_run, read_run_file
from kfp_placement_engine.exceptions import ArgumentError, InputError, LimitError, RequestError
from kfp_placement_engine.model.notices import HIDDEN_DEMAND
from kfp_placement_engine.readers.argo.references.template_library import TemplateSource, referred
from kfp_placement_engine.readers.argo.references.workflow_spec import joined_specs
from kfp_placement_engine.readers.argo_files import read_argo_objects
from tests.support.data import data_path
from tests.support.packages import Fields, notice_codes

API = "argoproj.io/v1alpha1"


def pod(name: str, cpu: str = "1", **fields: Any) -> Fields:
    """A template of one container."""
    resources = {"requests": {"cpu": cpu}}
    return {"name": name, "container": {"image": "work:1", "resources": resources}, **fields}


def dag(name: str, **tasks: Fields) -> Fields:
    """A template of tasks by name."""
    return {"name": name, "dag": {"tasks": [{"name": key, **task} for key, task in tasks.items()]}}


def ref(template: str, name: str = "library", **fields: Any) -> Fields:
    """A reference to a template of another object."""
    return {"templateRef": {"name": name, "template": template, **fields}}


def an_object(kind: str, *templates: Fields, name: str = "library", **spec: Any) -> Fields:
    metadata: Fields = {"name": name, **spec.pop("metadata", {})}
    body = {"templates": list(templates), **spec} if templates else spec
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": body}


def library(*templates: Fields, **spec: Any) -> Fields:
    return an_object("WorkflowTemplate", *templates, **spec)


def run(*templates: Fields, **spec: Any) -> Fields:
    return an_object("Workflow", *templates, name="flow", **{"entrypoint": "main", **spec})


def read(*documents: Fields, **options: Any) -> RunGraph:
    """One file of several documents."""
    text = "\n---\n".join(map(json.dumps, documents))
    return read_run(text.encode(), name="flow.yaml", options=ReadOptions(**options))


def cpus(graph: RunGraph) -> dict[str, int]:
    """Requests for cpu by step, in thousandths."""
    return {step.name: step.requests.get("cpu", 0) for step in graph.steps}


MAIN = dag("main", check=ref("check"))


@pytest.mark.parametrize("name", ["together", "stored", "cron"])
def test_cases_of_users_have_the_step_of_the_library(name):
    graph = read_run_file(data_path("user-cases", "04-templateref", f"{name}.yaml"))
    assert cpus(graph) == {"check": 2000}
    assert not graph.notices


def test_names_within_a_library_are_its_own():
    """Both objects have a template `work`; each is meant where it is named."""
    inner = dag("check", a={"template": "work"}, b={"inline": pod("", cpu="4")})
    main = dag("main", x=ref("check"), y={"template": "work"})
    graph = read(run(main, pod("work", cpu="1")), library(inner, pod("work", cpu="2")))
    assert cpus(graph) == {"x.a": 2000, "x.b": 4000, "y": 1000}


def test_a_library_refers_to_a_library_of_the_cluster():
    deep = dag("check", more=ref("check", "library", clusterScope=True))
    of_cluster = an_object("ClusterWorkflowTemplate", pod("check", cpu="3"))
    assert cpus(read(run(MAIN), library(deep), of_cluster)) == {"check.more": 3000}


def test_settings_of_pods_are_the_run_s_and_only_metadata_is_the_library_s():
    theirs = {
        "nodeSelector": {"disk": "theirs"},
        "templateDefaults": {"container": {"image": "theirs:1"}},
        "arguments": {"parameters": [{"name": "cpu", "value": "9"}]},
        "podMetadata": {"labels": {"team": "theirs", "typeOfComponent": "Predict"}},
    }
    check = pod("check", cpu="{{workflow.parameters.cpu}}", metadata={"labels": {"team": "own"}})
    own = {
        "nodeSelector": {"disk": "run"},
        "podMetadata": {"labels": {"team": "run", "typeOfComponent": "Train"}},
        "arguments": {"parameters": [{"name": "cpu", "value": "2"}]},
    }
    (step,) = read(run(MAIN, **own), library(check, **theirs)).steps
    assert step.requests == {"cpu": 2000}
    assert step.node_selector == {"disk": "run"}
    assert step.labels == {"team": "own", "typeOfComponent": "Predict"}


def test_what_argo_has_stored_wins_over_the_library():
    stored = {
        "namespaced/library/check": dag("check", a={"template": "work"}),
        "namespaced/library/work": pod("work", cpu="7"),
        "cluster/library/work": pod("work", cpu="8"),
    }
    document = {**run(MAIN), "status": {"storedTemplates": stored}}
    changed = library(pod("check", cpu="1"))
    assert cpus(read(document)) == cpus(read(document, changed)) == {"check.a": 7000}


def inline(**kinds: str) -> Fields:
    """A template `check` of several DAGs, each with a task `a` whose template is inline."""
    dags = {name: {"template": name} for name in kinds}
    inner = [dag(name, a={"inline": pod("", cpu=cpu)}) for name, cpu in kinds.items()]
    return library(dag("check", **dags), *inner)


def test_an_inline_template_that_argo_has_stored_wins():
    stored = {"namespaced/library/inline/a": pod("", cpu="7")}
    document = {**run(MAIN), "status": {"storedTemplates": stored}}
    assert cpus(read(document, inline(x="1"))) == {"check.x.a": 7000}


@pytest.mark.parametrize(("other", "is_hidden"), [("1", False), ("2", True)])
def test_inline_templates_of_one_name_in_another_object_hide_what_a_run_needs(other, is_hidden):
    """Argo stores one of them, and runs it for all tasks of that name."""
    graph = read(run(MAIN), inline(x="1", y=other))
    assert any(each.hides_demand for each in graph.notices) == is_hidden


def test_a_stored_spec_is_joined_again_where_argo_does_so():
    both = [pod("small", cpu="1"), pod("big", cpu="3")]
    stored = {"entrypoint": "small", "templates": both}
    own = {"workflowTemplateRef": {"name": "library"}, "entrypoint": "big"}
    for more, cpu in (({}, 1000), ({"suspend": False}, 3000), ({"shutdown": "Stop"}, 3000)):
        document = {**run(MAIN), "spec": {**own, **more}}
        document["status"] = {"storedWorkflowTemplateSpec": stored}
        graph = read(document)
        assert list(cpus(graph).values()) == [cpu], more
        # Whoever suspends or resumes the run makes Argo join the specs.
        assert [each.code for each in graph.notices if each.hides_demand] == [HIDDEN_DEMAND]


THREE_CPU = '{"containers": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]}'
ONE_NAMED = {"arguments": {"parameters": [{"name": "cpu", "value": "2"}]}}


@pytest.mark.parametrize(
    "own",
    [
        {},
        {"suspend": True},
        {"suspend": False, "hooks": {}},
        {"shutdown": "Stop"},
        {"activeDeadlineSeconds": 0},
        {"entrypoint": "check"},
        ONE_NAMED,
        {"podMetadata": {"labels": {"team": "own"}}},
    ],
    ids=str,
)
def test_a_stored_spec_that_argo_itself_has_joined_is_read_without_doubt(own):
    own = {"workflowTemplateRef": {"name": "library"}, **own}
    theirs = {"entrypoint": "check", "templates": [pod("check")], "priority": 1}
    document = {**run(MAIN), "spec": own}
    document["status"] = {"storedWorkflowTemplateSpec": joined_specs(theirs, own)}
    graph = read(document)
    assert cpus(graph) == {"check": 1000}
    assert not [each for each in graph.notices if each.hides_demand]


@pytest.mark.parametrize(
    "own",
    [
        {"entrypoint": "big"},
        {"onExit": "big"},
        {"hooks": {"running": {"template": "big", "expression": "true"}}},
        {"podSpecPatch": THREE_CPU},
        {"templateDefaults": {"podSpecPatch": THREE_CPU}},
        {"artifactGC": {"podSpecPatch": "{}"}},
        {"entrypoint": "gone"},
        ONE_NAMED,
    ],
    ids=str,
)
def test_a_stored_spec_that_argo_has_not_joined_hides_what_the_run_needs(own):
    stored = {
        "entrypoint": "small",
        "templates": [pod("small", cpu="{{workflow.parameters.cpu}}"), pod("big", cpu="3")],
        "arguments": {"parameters": [{"name": "cpu", "value": "1"}]},
    }
    document = {**run(MAIN), "spec": {"workflowTemplateRef": {"name": "library"}, **own}}
    document["status"] = {"storedWorkflowTemplateSpec": stored}
    graph = read(document)
    assert cpus(graph) == {"small": 1000}
    assert any(each.code == HIDDEN_DEMAND for each in graph.notices)


def test_templates_beside_a_reference_and_an_empty_stored_spec_are_not_read():
    """Argo refuses the former, unless a status keeps it from looking; it would merge them."""
    refers = {"workflowTemplateRef": {"name": "library"}}
    theirs = library(pod("main"), entrypoint="main")
    with pytest.raises(InputError, match="templates of its own, which Argo refuses"):
        read(run(pod("main"), **refers), theirs)
    for own in ({}, {"entrypoint": "main"}):
        document = {**run(), "spec": {**refers, **own}}
        document["status"] = {"storedWorkflowTemplateSpec": {}}
        with pytest.raises(InputError):
            read(document, theirs)


def test_a_patch_of_the_pods_that_delete_artifacts_hides_what_they_need():
    collected = {"strategy": "OnWorkflowCompletion"}
    own = [each.hides_demand for each in read(run(pod("main"), artifactGC=collected)).notices]
    assert not any(own)
    collected["podSpecPatch"] = THREE_CPU
    (notice,) = read(run(pod("main"), artifactGC=collected)).notices
    assert (notice.code, notice.hides_demand) == (HIDDEN_DEMAND, True)
    referred = {"spec": {"workflowTemplateRef": {"name": "library"}}}
    (notice,) = read(
        run() | referred, library(pod("main"), entrypoint="main", artifactGC=collected)
    ).notices
    assert notice.code == HIDDEN_DEMAND


def test_exit_tasks_and_steps_can_be_elsewhere():
    main = {
        "name": "main",
        "steps": [[{"name": "a", **ref("check"), "hooks": {"exit": ref("end")}}]],
    }
    graph = read(run(main), library(pod("check"), pod("end", cpu="2")))
    assert cpus(graph) == {"a": 1000, "a.onExit": 2000}


@pytest.mark.parametrize(
    "beside",
    [
        [],
        [an_object("ClusterWorkflowTemplate", pod("check"))],
        [library(pod("check"), name="other")],
        [library(pod("check"), metadata={"namespace": "other"})],
    ],
)
def test_a_library_that_is_not_known_is_a_notice(beside, golden):
    document = run(MAIN, metadata={"namespace": "team"})
    graph = read(document, *beside)
    assert (notice_codes(graph), cpus(graph)) == (["template-elsewhere"], {"check": 0})
    golden(graph.notices[0].message)


def test_a_name_that_a_step_makes_is_a_notice():
    graph = read(run(dag("main", check=ref("{{inputs.parameters.x}}"))), library(pod("check")))
    assert "known only at run time" in graph.notices[0].message


@pytest.mark.parametrize("scope", ["Workflow", "CronWorkflow"])
def test_a_workflow_of_a_template_has_both_specs(scope):
    reference = {"workflowTemplateRef": {"name": "library"}}
    own = {**reference, "arguments": {"parameters": [{"name": "cpu", "value": "3"}]}}
    spec = {"workflowSpec": own} if scope == "CronWorkflow" else own
    base = library(
        pod("main", cpu="{{workflow.parameters.cpu}}"),
        entrypoint="main",
        nodeSelector={"disk": "fast"},
        arguments={"parameters": [{"name": "cpu", "value": "1"}]},
    )
    graph = read(an_object(scope, name="nightly", **spec), base)
    assert (graph.name, cpus(graph)) == ("nightly", {"main": 3000})
    assert graph.steps[0].node_selector == {"disk": "fast"}


def test_a_workflow_of_a_template_that_is_not_known_is_refused(golden):
    document = an_object("Workflow", workflowTemplateRef={"name": "library", "clusterScope": True})
    with pytest.raises(InputError) as caught:
        read(document, library(pod("main"), entrypoint="main"))
    golden(str(caught.value))


def test_a_cluster_s_template_is_in_no_namespace_whatever_its_file_says():
    """`kubectl` exports of older clusters name one."""
    run = an_object(
        "Workflow", workflowTemplateRef={"name": "library"}, metadata={"namespace": "a"}
    )
    other = an_object(
        "ClusterWorkflowTemplate", pod("main"), metadata={"namespace": "b"}, entrypoint="main"
    )
    with pytest.raises(InputError, match="write clusterScope: true"):
        read(run, other)
    run["spec"]["workflowTemplateRef"]["clusterScope"] = True
    assert len(read(run, other).steps) == 1


def test_specs_are_joined_as_argo_joins_them():
    """As `JoinWorkflowSpec` of Argo 4.1.2 does."""
    base = {
        "suspend": True,
        "nodeSelector": {"a": "base", "b": "base"},
        "tolerations": [{"key": "a", "effect": "NoSchedule"}, {"key": "b"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "volumeClaimTemplates": [{"metadata": {"name": "base"}}],
        "hooks": {"exit": {"template": "base", "expression": "x"}, "running": {"template": "r"}},
        "arguments": {
            "parameters": [
                {"name": "x", "value": "base", "enum": ["base", "own"]},
                {"name": "y", "default": "base"},
                {"name": "z", "value": "base"},
            ]
        },
    }
    own = {
        "nodeSelector": {"b": "own"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "volumeClaimTemplates": [{"metadata": {"name": "own"}}],
        "hooks": {"exit": {"template": "own"}},
        "arguments": {"parameters": [{"name": "x", "value": "own"}, {"name": "y"}]},
    }
    assert joined_specs(base, own) == {
        "nodeSelector": {"a": "base", "b": "own"},
        "tolerations": [{"key": "a", "effect": "NoSchedule", "operator": "Exists"}, {"key": "b"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "volumeClaimTemplates": [{"metadata": {"name": "own"}}],
        "hooks": {"exit": {"template": "own"}, "running": {"template": "r"}},
        "arguments": {
            "parameters": [
                {"name": "x", "value": "own"},
                {"name": "y", "default": "base"},
                {"name": "z", "value": "base"},
            ]
        },
    }


def test_a_library_alone_is_no_run_without_an_entrypoint(golden):
    path = data_path("user-cases", "05-no-entrypoint", "library.yaml")
    with pytest.raises(InputError) as caught:
        read_run(path.read_bytes(), name="library.yaml")
    golden(str(caught.value))
    options = ReadOptions(entrypoint="sync", arguments={"what": "some"})
    assert cpus(read_run_file(path, options)) == {"sync": 1000}


def test_an_entrypoint_takes_its_own_inputs_as_arguments():
    inputs = {"parameters": [{"name": "cpu", "default": "1"}, {"name": "needed"}]}
    sync = pod("sync", cpu="{{inputs.parameters.cpu}}", inputs=inputs)
    graph = read(library(sync), entrypoint="sync")
    assert (cpus(graph), notice_codes(graph)) == ({"sync": 1000}, ["missing-argument"])
    given = {"cpu": 2, "needed": "x"}
    graph = read(library(sync), entrypoint="sync", arguments=given)
    assert (cpus(graph), notice_codes(graph)) == ({"sync": 2000}, [])
    with pytest.raises(ArgumentError, match="other"):
        read(library(sync), entrypoint="sync", arguments={"other": 1})


def test_among_templates_with_an_entrypoint_the_run_is_the_one_that_no_other_refers_to():
    check = library(pod("check", cpu="2"), entrypoint="check")
    main = library(MAIN, entrypoint="main", name="main")
    assert cpus(read(main, check)) == cpus(read(check, main)) == {"check": 2000}


def test_the_template_with_an_entrypoint_is_the_run_among_templates():
    main = library(MAIN, entrypoint="main", name="main")
    assert cpus(read(library(pod("check", cpu="2")), main)) == {"check": 2000}


LOOP = [
    library(dag("check", a=ref("check", "other"))),
    library(dag("check", b=ref("check")), name="other"),
]
DEEP = [library(dag("check", a=ref("check", f"l{i + 1}")), name=f"l{i}") for i in range(1000)]


@pytest.mark.parametrize(
    ("documents", "kind"),
    [
        ([run(MAIN), run(MAIN)], InputError),
        ([run(MAIN), library(pod("other"))], InputError),
        ([run(MAIN), library(pod("check"), pod("check"))], InputError),
        ([run(MAIN), library(pod("check")), library(pod("check", cpu="2"))], InputError),
        ([run(MAIN), library(pod("check"), podMetadata=5)], InputError),
        ([run(dag("main", x=ref("check", "l0"))), *DEEP], LimitError),
        ([run(dag("main", x={"templateRef": {"name": "library"}}))], InputError),
        ([library(pod("a"), name="a"), library(pod("b"), name="b")], InputError),
        ([run()], InputError),
    ],
)
def test_bad_references_are_refused_with_the_place(documents, kind, golden):
    with pytest.raises(kind) as caught:
        read(*documents)
    assert type(caught.value) is kind
    golden(str(caught.value))


def test_a_circle_without_steps_is_named():
    with pytest.raises(InputError, match=r"holds no step.*template check calls itself"):
        read(run(dag("main", x=ref("check"))), *LOOP)


CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "limits"},
    "data": {"gpu": "2", "text": "many", "none": "0"},
}


@pytest.mark.parametrize("given", [{}, {"semaphores": {"limits/gpu": 1}}])
def test_a_config_map_beside_the_run_limits_semaphores(given):
    key = {"configMapKeyRef": {"name": "limits", "key": "gpu"}}
    work = pod("work", synchronization={"semaphores": [key]})
    main = dag("main", x={"template": "work", "withItems": [1, 2, 3]})
    graph = read(run(main, work), CONFIG_MAP, **given)
    assert [limit.most for limit in graph.limits] == [1 if given else 2]
    assert [each.code for each in graph.notices] == ["shared-lock"]


def test_a_config_map_among_the_templates_limits_semaphores(tmp_path):
    key = {"configMapKeyRef": {"name": "limits", "key": "gpu"}}
    work = pod("work", synchronization={"semaphores": [key]})
    main = dag("main", x={"template": "work", "withItems": [1, 2, 3]})
    path = tmp_path / "limits.json"
    path.write_text(json.dumps(CONFIG_MAP))
    graph = read(run(main, work), templates=read_argo_objects(path))
    assert [limit.most for limit in graph.limits] == [2]


def test_a_config_map_without_limits_is_not_used():
    other = {**CONFIG_MAP, "data": {"text": "many"}}
    graph = read(run(dag("main", x={"template": "work"}), pod("work")), other)
    assert notice_codes(graph) == ["ignored-objects"]


def test_references_in_a_circle_are_planned_once():
    graph = read(run(dag("main", x=ref("check"), y={"template": "work"}), pod("work")), *LOOP)
    assert (notice_codes(graph), cpus(graph)) == (["recursive-template"], {"y": 1000})


def test_an_entrypoint_that_is_not_there_is_refused(golden):
    with pytest.raises(RequestError) as caught:
        read(library(pod("sync"), pod("report")), entrypoint="main")
    golden(str(caught.value))


def test_equal_copies_of_a_library_are_one():
    assert len(read(run(MAIN), library(pod("check")), library(pod("check"))).steps) == 1


def test_all_references_of_an_object_are_found():
    document = {
        "spec": {
            "workflowTemplateRef": {"name": "a"},
            "templates": [
                dag(
                    "main",
                    x=ref("t", "b"),
                    y={"inline": dag("", z=ref("t", "c", clusterScope=True))},
                )
            ],
            "hooks": {"exit": ref("t", "d")},
        },
        "templateRef": {"name": 5},
    }
    kind = "WorkflowTemplate"
    assert set(referred(document)) == {
        TemplateSource(kind, "a"),
        TemplateSource(kind, "b"),
        TemplateSource(f"Cluster{kind}", "c"),
        TemplateSource(kind, "d"),
    }


def test_an_entrypoint_chooses_among_several_templates():
    both = (library(pod("a", cpu="1"), name="one"), library(pod("b", cpu="2"), name="two"))
    assert cpus(read(*both, entrypoint="b")) == {"b": 2000}
    with pytest.raises(InputError, match=r"holds 2 runs \(.* one, .* two\); .* \(a, b\): --ent"):
        read(*both, entrypoint="c")
    # Both have it, so that no name of a template says which is meant.
    with pytest.raises(InputError, match=r"holds 2 runs .* templates=\)$"):
        read(*(library(pod("b"), name=name) for name in ("two", "three")), entrypoint="b")


def test_a_folder_of_config_maps_alone_limits_semaphores(tmp_path):
    (tmp_path / "limits.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits}\ndata: {gpu: '2'}\n"
    )
    (tmp_path / "chart.yaml").write_text("kind: ConfigMap\ndata: {{ .Values.data }}\n")
    objects = read_argo_objects(tmp_path)
    assert ([each.get("kind") for each in objects.objects], objects.unread) == (["ConfigMap"], ())


def test_a_reference_to_itself_is_said():
    template = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "WorkflowTemplate",
        "metadata": {"name": "a"},
        "spec": {"workflowTemplateRef": {"name": "a"}},
    }
    with pytest.raises(InputError, match="its workflowTemplateRef names itself"):
        read_run(json.dumps(template).encode(), name="a.yaml")
