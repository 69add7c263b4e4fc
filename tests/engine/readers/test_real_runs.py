"""KFP's own packages and Workflows: all are read, and both ways give the same graph."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kfp_placement_engine.model.quantities import parse_cpu, parse_quantity
from kfp_placement_engine.model.run_graph import GroupKind, RunGraph, StepKind
from kfp_placement_engine.readers import ReadOptions, read_run_file
from tests.support.data import data_path
from tests.support.run_data import data_files

PACKAGES = data_files("kfp-2.17.0/pipelines", "*.yaml")
LABELLED = data_files("labelled/pipelines", "*.yaml")


def workflow_of(package: Path) -> Path:
    return package.parent.parent / "workflows" / package.name


def comparable(graph: RunGraph) -> RunGraph:
    """Without what only one of the two files tells."""
    return replace(graph, source="", workflow="", run_id="", namespace="")


@pytest.mark.parametrize("package", [*PACKAGES, *LABELLED])
def test_package_and_workflow_give_the_same_graph(package: Path) -> None:
    """Steps, groups, claims, notices: everything."""
    read = read_run_file(package)
    assert read.source == "kfp-package"
    from_workflow = read_run_file(workflow_of(package))
    assert from_workflow.source == "argo-workflow"
    assert comparable(read) == comparable(from_workflow)


@pytest.mark.parametrize("package", [*PACKAGES, *LABELLED])
def test_leaves_are_those_of_the_package(package: Path) -> None:
    """Image, resources and labels of every leaf, against a plain walk over the package."""
    loaded = yaml.load_all(package.read_bytes(), Loader=yaml.CSafeLoader)
    documents = [document for document in loaded if document]
    expected = dict(raw_leaves(documents))
    graph = read_run_file(package)
    tasks = {step.task.replace("[*]", ""): step for step in graph.steps}
    assert tasks.keys() == expected.keys()
    for path, leaf in expected.items():
        step = tasks[path]
        # What KFP's driver does itself has a stub's name for an image, and no pod that pulls it.
        assert step.image == (leaf["image"] if step.kind is StepKind.CONTAINER else "")
        assert dict(step.labels) == leaf["labels"]
        if step.kind is StepKind.CONTAINER:
            assert dict(step.requests) == leaf["requests"]


def raw_leaves(documents: list[dict[str, Any]]):
    """(path, facts) of every leaf of a package, read without any of the readers."""
    pipeline = documents[0]
    platform = documents[1] if len(documents) > 1 else {}
    configs = platform.get("platforms", {}).get("kubernetes", {}).get("deploymentSpec", {})

    def walk(component: dict[str, Any], path: str):
        for name, task in component["dag"]["tasks"].items():
            inner = pipeline["components"][task["componentRef"]["name"]]
            if "dag" in inner:
                yield from walk(inner, f"{path}{name}.")
                continue
            label = inner["executorLabel"]
            container = pipeline["deploymentSpec"]["executors"][label].get("container", {})
            metadata = configs.get("executors", {}).get(label, {}).get("podMetadata", {})
            yield (
                path + name,
                {
                    "image": container.get("image", ""),
                    "labels": metadata.get("labels", {}),
                    "requests": raw_requests(container.get("resources", {})),
                },
            )

    yield from walk(pipeline["root"], "")


def raw_requests(resources: dict[str, Any]) -> dict[str, int]:
    found = {}
    for name, parse in (("cpu", parse_cpu), ("memory", parse_quantity)):
        for kind in ("Request", "Limit"):
            text = resources.get(f"resource{name.title()}{kind}")
            if text and "{{" not in text:
                found[name] = parse(text)
                break
    accelerator = resources.get("accelerator", {})
    if "type" in accelerator:
        found[accelerator["type"]] = int(accelerator["count"])
    return found


def test_they_hold_what_they_are_known_to_hold() -> None:
    """73 packages: 228 leaves in 168 DAGs; 37 loops."""
    packages = sorted(data_path("kfp-2.17.0", "pipelines").glob("*.yaml"))
    kinds: Counter[StepKind] = Counter()
    groups: Counter[GroupKind] = Counter()
    exits = 0
    for package in packages:
        graph = read_run_file(package)
        tasks = {step.task: step for step in graph.steps}
        kinds.update(step.kind for step in tasks.values())
        exits += sum(step.exit_task for step in tasks.values())
        names = {(group.kind, without_indexes(group.name)) for group in graph.groups}
        groups.update(kind for kind, _ in names)
    assert len(packages) == 73
    assert kinds == {StepKind.CONTAINER: 221, StepKind.IMPORTER: 5, StepKind.CREATE_PVC: 2}
    assert groups[GroupKind.LOOP] == groups[GroupKind.ITERATION] == 37
    assert groups[GroupKind.ROOT] + groups[GroupKind.DAG] + groups[GroupKind.LOOP] == 168
    assert exits == 9


def without_indexes(name: str) -> str:
    return "".join(
        part.partition("]")[2] if index else part for index, part in enumerate(name.split("["))
    )


def test_hints_of_the_labelled_runs_are_used() -> None:
    """The thesis' taxi pipeline, from its package."""
    graph = read_run_file(data_path("labelled", "pipelines", "taxi.yaml"))
    train = graph.step("train")
    assert train.duration_seconds == 1200
    assert train.output_bytes == {"model": 50 * 2**20}
    assert train.requests == {"cpu": 4000, "memory": 4 * 2**30}
    assert (train.type, train.location, train.scheduler) == ("Training", "", "kfp-placement")
    predict = graph.step("predict")
    assert (predict.type, predict.location) == ("Predict", "HOME-EDGE")
    assert predict.depends_on == ("drop-header", "train")
    sizes = {data.producer: data.size_bytes for data in predict.inputs}
    assert sizes == {"train": 50 * 2**20, "drop-header": None}
    assert graph.notices == ()


def test_a_dynamic_loop_takes_a_given_width() -> None:
    """Assumed widths show; given ones do not count as assumed."""
    path = data_path("labelled", "pipelines", "fan_out.yaml")
    graph = read_run_file(path)
    loop = next(group for group in graph.groups if group.name == "for-loop-3")
    assert (loop.width, loop.width_assumed) == (3, True)
    assert [notice.code for notice in graph.notices] == ["loop-width-assumed"]
    given = read_run_file(path, options=ReadOptions(loop_widths={"for-loop-3": 6}))
    loop = next(group for group in given.groups if group.name == "for-loop-3")
    assert (loop.width, loop.width_assumed) == (6, False)
    assert given.notices == ()
    assert not any(step.assumed for step in given.steps)


def test_control_flow_of_the_labelled_run() -> None:
    """Nested pipeline, branches, exit handler and retry under their names."""
    graph = read_run_file(data_path("labelled", "workflows", "control_flow.yaml"))
    names = [step.name for step in graph.steps]
    handler = "exit-handler-1"
    assert f"{handler}.inner.work-2" in names
    assert graph.step("notify").exit_task
    assert set(graph.step("notify").depends_on) == {
        f"{handler}.condition-branches-2.condition-3.work-2",
        f"{handler}.condition-branches-2.condition-4.work-3",
    }
    assert graph.step(f"{handler}.work").attempt_limit == 3
    assert all(
        len(graph.step(name).conditions) == 1 for name in names if "condition-branches" in name
    )


def test_sharers_of_volumes_use_the_same_claims() -> None:
    """The workspace and an existing claim."""
    graph = read_run_file(data_path("labelled", "workflows", "shared_volume.yaml"))
    users: dict[str, list[str]] = {}
    for step in graph.steps:
        for use in step.claims:
            users.setdefault(use.claim, []).append(step.name)
    assert users == {"kfp-workspace": ["write-file", "read-file"], "datasets": ["work", "work-2"]}
    claims = {claim.name: claim for claim in graph.claims}
    assert claims["kfp-workspace"].is_workspace
    assert claims["kfp-workspace"].access_modes == ("ReadWriteOnce",)
    assert claims["datasets"].access_modes == ()


def test_a_volume_made_by_the_run_is_followed_into_a_loop() -> None:
    path = data_path("kfp-2.17.0", "workflows", "parallel_for_mount_pvc.yaml")
    graph = read_run_file(path)
    assert graph.step("createpvc").kind is StepKind.CREATE_PVC
    assert graph.step("for-loop-2[0].example-component").claims[0].claim == "createpvc"
    assert graph.claims[0].created_by == "createpvc"
    assert graph.claims[0].access_modes == ("ReadWriteOnce",)


def test_resources_of_other_tasks_outputs_are_shown_as_unknown() -> None:
    path = data_path(
        "kfp-2.17.0", "pipelines", "pipeline_with_string_machine_fields_task_output.yaml"
    )
    graph = read_run_file(path)
    step = graph.step("sum-numbers")
    assert step.requests == {}
    assert set(step.unknown_resources) == {"cpu", "memory", "accelerator"}
    assert [notice.step for notice in graph.notices] == ["sum-numbers"]


def test_an_importer_that_downloads_shares_the_workspace_with_its_readers() -> None:
    path = data_path("kfp-2.17.0", "workflows", "pipeline_with_importer_workspace.yaml")
    graph = read_run_file(path)
    users = {step.name for step in graph.steps if step.claims}
    assert any(graph.step(name).kind is StepKind.IMPORTER for name in users)
    assert len(users) > 1
