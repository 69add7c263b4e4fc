"""Workflows of KFP 3: alone they give the outline of a run, with their package the whole run."""

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from kfp_placement_engine import read_run
from kfp_placement_engine.exceptions import ArgumentError, InputError, UnknownLoopError
from kfp_placement_engine.model.run_graph import RunGraph, Step, StepKind
from kfp_placement_engine.readers.argo.pod_identity import PodIndex
from kfp_placement_engine.readers.argo.workflow import read_workflow
from kfp_placement_engine.readers.tree.options import ReadOptions
from tests.support.data import data_path
from tests.support.outlines import branches_not_taken

PIPELINES = "kfp-2.17.0/pipelines"


def names() -> list[str]:
    """Names of all pairs; one where the data is absent, whose tests skip with the reason."""
    try:
        return sorted(path.stem for path in data_path("kfp-3-draft", "workflows").glob("*.yaml"))
    except pytest.skip.Exception:
        return ["add_numbers"]


def pair(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A Workflow of KFP 3, and the pipeline spec of its package."""
    workflow = data_path("kfp-3-draft", "workflows", f"{name}.yaml").read_text()
    package = data_path(*PIPELINES.split("/"), f"{name}.yaml").read_text()
    documents = list(yaml.load_all(package, yaml.CSafeLoader))
    return yaml.load(workflow, yaml.CSafeLoader), documents[0]


def read(workflow: Any, package: Any = None, **options: Any) -> RunGraph:
    return read_workflow(workflow, "flow.yaml", ReadOptions(package=package, **options))


def without_shape(graph: RunGraph) -> RunGraph:
    """The run without what the KFP that made its Workflow decides: the drivers of iterations."""
    groups = tuple(replace(group, has_driver=True) for group in graph.groups)
    return replace(graph, groups=groups)


@pytest.mark.parametrize("name", names())
def test_with_its_package_a_workflow_is_the_run_that_kfp_2_makes_of_it(name):
    workflow, package = pair(name)
    of_2 = data_path("kfp-2.17.0", "workflows", f"{name}.yaml").read_bytes()
    joined = read(workflow, package)
    assert not joined.is_outline
    assert without_shape(joined) == read_run(of_2, name="flow.yaml")


def outlined(step: Step) -> Step:
    """What is visible of a step without its package."""
    return replace(
        step,
        image="",
        component="",
        requests={},
        containers=(),
        end_limit=None,
        unknown_resources=(),
        conditions=("unknown",) * bool(step.conditions),
        inputs=(),
        arguments={},
        caching_enabled=False,
        display_name="",
        iteration_key="",
        assumed=False,
        branches=(),
        claims=(),
    )


def without_branches(graph: RunGraph, left_out: tuple[str, ...]) -> RunGraph:
    """The run without what is in branches that the package knows not to be taken."""
    inside = tuple(f"{name}." for name in left_out)
    steps = tuple(
        replace(
            step,
            depends_on=tuple(name for name in step.depends_on if not name.startswith(inside)),
        )
        for step in graph.steps
        if not step.name.startswith(inside)
    )
    groups = tuple(group for group in graph.groups if not group.name.startswith(inside))
    return replace(graph, steps=steps, groups=groups)


@pytest.mark.parametrize("name", names())
def test_alone_a_workflow_gives_the_same_run_without_images_and_requests(name):
    workflow, package = pair(name)
    joined = read(workflow, package)
    widths = {group.name: group.width for group in joined.groups if group.width}
    outline = without_branches(read(workflow, loop_widths=widths), branches_not_taken(joined))
    assert outline.is_outline
    outlined_steps = [replace(outlined(step), conditions=()) for step in outline.steps]
    assert outlined_steps == [replace(outlined(each), conditions=()) for each in joined.steps]
    conditional = {step.name for step in outline.steps if step.conditions}
    assert conditional >= {step.name for step in joined.steps if step.conditions}
    assert (outline.name, outline.run_id) == (joined.name, joined.run_id)
    shown = [step for step in outline.steps if step.kind is StepKind.CONTAINER]
    assert not any(step.image or step.component or step.requests for step in shown)
    groups = [(each.name, each.kind, each.parent, each.parallelism) for each in outline.groups]
    assert groups == [(e.name, e.kind, e.parent, e.parallelism) for e in joined.groups]


def a_task(package: Any, name: str) -> Any:
    return package["root"]["dag"]["tasks"][name]


def renamed(package: Any) -> None:
    tasks = package["root"]["dag"]["tasks"]
    tasks["write"] = tasks.pop("write-to-gcs")
    a_task(package, "read-from-gcs")["dependentTasks"] = ["write"]
    for source in a_task(package, "read-from-gcs")["inputs"].values():
        for each in source.values():
            for output in each.values():
                output["producerTask"] = "write"


def added(package: Any) -> None:
    package["root"]["dag"]["tasks"]["extra"] = a_task(package, "read-from-gcs")


def independent(package: Any) -> None:
    a_task(package, "read-from-gcs").pop("dependentTasks")
    a_task(package, "read-from-gcs").pop("inputs")


def without_executor(package: Any) -> None:
    package["deploymentSpec"]["executors"].pop("exec-read-from-gcs")


def as_importer(package: Any) -> None:
    executor = package["deploymentSpec"]["executors"]["exec-read-from-gcs"]
    executor["importer"] = executor.pop("container")


def no_mapping(package: Any) -> None:
    package["components"] = ["comp-read-from-gcs"]


def no_component(package: Any) -> None:
    a_task(package, "read-from-gcs").pop("componentRef")


def no_executor_label(package: Any) -> None:
    package["components"]["comp-read-from-gcs"].pop("executorLabel")


def empty_executor(package: Any) -> None:
    package["deploymentSpec"]["executors"]["exec-read-from-gcs"] = {}


def listed_image(package: Any) -> None:
    package["deploymentSpec"]["executors"]["exec-read-from-gcs"]["container"]["image"] = ["a"]


def with_exit_task(package: Any) -> None:
    final = dict(a_task(package, "read-from-gcs"))
    final["triggerPolicy"] = {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}
    final["dependentTasks"] = ["read-from-gcs"]
    final.pop("inputs")
    package["root"]["dag"]["tasks"]["final"] = final


def of_another_pipeline(package: Any) -> None:
    package["pipelineInfo"]["name"] = "another"


def bad_request(package: Any) -> None:
    container = package["deploymentSpec"]["executors"]["exec-read-from-gcs"]["container"]
    container["resources"] = {"resourceCpuRequest": "many"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (renamed, "the package has no task write-to-gcs"),
        (added, "has no task extra, which the package has"),
        (independent, "only one of Workflow and package lets it wait for write-to-gcs"),
        (without_executor, "the package has no 'exec-read-from-gcs', which this task needs"),
        (as_importer, "is a container, but an importer in the package"),
        (no_component, "componentRef.name: is empty"),
        (no_executor_label, "executorLabel: is empty"),
        (empty_executor, "runs neither a container nor an importer in the package"),
        (listed_image, "image: must be text"),
        (with_exit_task, "has no task final, which the package has"),
        (of_another_pipeline, "package: is of pipeline 'another', not of "),
        (no_mapping, "package: components: must be a mapping"),
        (bad_request, "many"),
    ],
)
def test_a_package_of_another_run_is_not_used(change, problem):
    workflow, package = pair("two_step_pipeline")
    change(package)
    graph = read(workflow, package)
    assert without_shape(replace(graph, notices=())) == without_shape(read(workflow))
    [notice] = graph.notices
    assert notice.code == "other-package"
    assert notice.message.startswith("the package is not of this run, which is planned by its out")
    assert problem in notice.message


def test_tasks_of_one_template_are_compared_with_the_component_of_each():
    """KFP calls the template of a pipeline after its component."""
    workflow, package = pair("pipeline_in_pipeline_complex")
    tasks = package["root"]["dag"]["tasks"]
    name = next(key for key, task in tasks.items() if "dag" in component_of(package, task))
    other = tasks[name]["componentRef"]["name"] + "-other"
    package["components"][other] = component_of(package, tasks[name])
    tasks[name]["componentRef"]["name"] = other
    [notice] = [each for each in read(workflow, package).notices if each.code == "other-package"]
    assert f"does not run '{other}', as in the package" in notice.message


def component_of(package: Any, task: Any) -> Any:
    return package["components"][task["componentRef"]["name"]]


def test_a_package_is_not_needed_for_other_workflows():
    _, package = pair("two_step_pipeline")
    of_2 = data_path("kfp-2.17.0", "workflows", "two_step_pipeline.yaml").read_text()
    workflow = yaml.load(of_2, yaml.CSafeLoader)
    graph = read(workflow, package)
    assert replace(graph, notices=()) == read(workflow)
    assert [notice.code for notice in graph.notices] == ["ignored-package"]


def test_errors_that_are_not_of_the_package_are_raised():
    workflow, package = pair("two_step_pipeline")
    with pytest.raises(UnknownLoopError):
        read(workflow, package, loop_widths={"no-loop": 3})
    with pytest.raises(ArgumentError, match="the arguments of a submitted KFP run are fixed"):
        read(workflow, arguments={"text": "a"})


def claiming_to_be_kfp_3(**changes: Any) -> dict[str, Any]:
    """A Workflow with the driver of KFP 3, whose other templates are made up."""
    parent = {"parameters": [{"name": "parent-dag-task-id"}]}
    driver = {"name": "system-dag-driver", "inputs": parent, "container": {}}
    spec = {"entrypoint": "main", "templates": [driver], **changes}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": spec}


def entry(*tasks: dict[str, Any]) -> dict[str, Any]:
    return {"name": "main", "dag": {"tasks": list(tasks)}}


DRIVER = {"name": "root-driver", "template": "system-dag-driver"}
ROOT = {"name": "root", "template": "root"}


@pytest.mark.parametrize(
    ("templates", "problem"),
    [
        ([], "template main: does not exist"),
        ([entry({"name": "work", "template": "work"})], "must hold the root driver and the root"),
        ([entry(DRIVER, ROOT)], "template root: does not exist"),
        ([entry(DRIVER, ROOT), {"name": "root", "dag": {"tasks": [ROOT]}}], "root"),
        ([entry(DRIVER, ROOT), {"name": "root", "container": {"image": "a"}}], "must be a DAG"),
        ([entry(DRIVER, ROOT), {"name": "root", "dag": {"tasks": "all"}}], "must be a list"),
        (
            [entry(DRIVER, ROOT), {"name": "root", "dag": {"tasks": [{**ROOT, "when": []}]}}],
            "when: must be text",
        ),
    ],
)
def test_a_workflow_that_only_claims_to_be_of_kfp_3_is_refused(templates, problem):
    workflow = claiming_to_be_kfp_3()
    workflow["spec"]["templates"] += templates
    with pytest.raises(InputError, match=r"^flow.yaml") as caught:
        read_run(json.dumps(workflow).encode(), name="flow.yaml")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_task_may_be_called_like_a_level_of_kfp_2():
    """In KFP 3, `iteration-item` after the iterations is a task; the shape of drivers tells."""
    workflow, _ = pair("pipeline_with_loops")
    for template in workflow["spec"]["templates"]:
        for task in template.get("dag", {}).get("tasks", ()):
            if template["name"] == "comp-for-loop-1":
                task["name"] = task["name"].replace("print-text", "iteration-item")
                if "depends" in task:
                    task["depends"] = "iteration-item-driver.Succeeded"
    graph = replace(read(workflow), workflow="wf")
    node = "wf(0).root(0).for-loop-1(0).iteration-iterations(1:1)(0).iteration-item"
    index = PodIndex(graph)
    executor, driver = index.identify(f"{node}(0).executor(0)"), index.identify(f"{node}-driver(0)")
    assert executor is not None
    assert driver is not None
    assert executor.name == driver.name == "for-loop-1[1].iteration-item"
    assert [str(executor.role), str(driver.role)] == ["executor", "driver"]
