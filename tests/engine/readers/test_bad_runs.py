"""RUN files that are none, or broken: a clear error that names the place, never anything else."""

import json
from typing import Any

import pytest

from kfp_placement_engine import read_run, read_run_file
from kfp_placement_engine.exceptions import InputError, InputNotFoundError, LimitError
from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES
from tests.support.packages import (
    Fields,
    a_dag,
    a_loop,
    a_package,
    a_task,
    an_exit_task,
    inputs,
    output_of,
    read_as_workflow,
    read_package,
)


def read(text: str | bytes):
    data = text.encode() if isinstance(text, str) else text
    return read_run(data, name="run.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00\x01\x02",
        "hello",
        "- a\n- b",
        "42",
        "{}",
        "a: 1",
        "kind: List\nitems: []",
        "apiVersion: v1\nkind: Node\nmetadata: {name: a}",
        "apiVersion: v1\nkind: List\nitems: [{kind: Pod}]",
        "apiVersion: v1\nkind: ConfigMap",
        "apiVersion: other.io/v1\nkind: Workflow",
        "name: x\nimplementation: {container: {image: y}}",
        "platforms: {kubernetes: {}}",
        "root: {executorLabel: x}\npipelineInfo: {name: x}",
        "kind: Workflow\napiVersion: argoproj.io/v1alpha1",
        "kind: Workflow\napiVersion: argoproj.io/v1alpha1\nspec: [1]",
        "kind: List\nitems: 5",
        "kind: List\nitems: [{kind: Node}, 5]",
        "pipeline_spec: {pipeline_spec: {}, platform_spec: 5}",
    ],
)
def test_other_files_are_refused_with_what_they_are(text, golden):
    with pytest.raises(InputError) as caught:
        read(text)
    golden(str(caught.value))
    assert str(caught.value).startswith("run.yaml")


def test_a_file_with_several_runs_is_refused():
    package = json.dumps(a_package()[0])
    with pytest.raises(InputError, match="holds 2 runs"):
        read(package + "\n" + package)


def test_objects_of_the_api_hold_packages_and_workflows():
    """A Workflow, a PipelineVersion, what KFP's API answers: alone, and in a list."""
    documents = a_package(kubernetes={"exec-work": {"x": 1}})
    workflow = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "spec": {"entrypoint": "a", "templates": [{"name": "a", "container": {"image": "x"}}]},
    }
    spec = {"pipelineSpec": documents[0], "platformSpec": documents[1]}
    for document in (
        workflow,
        {"apiVersion": "pipelines.kubeflow.org/v2beta1", "kind": "PipelineVersion", "spec": spec},
        {"pipeline_spec": documents[0], "platform_spec": documents[1]},
        {"pipeline_spec": {"pipeline_spec": documents[0]}},
    ):
        for given in (document, {"kind": "List", "items": [document]}):
            assert len(read(json.dumps(given)).steps) == 1


def test_large_files_are_refused_unread(tmp_path):
    data = b"a: 1\n" * (RUN_MAX_BYTES // 5 + 1)
    with pytest.raises(LimitError, match="larger than 16 MiB"):
        read(data)
    path = tmp_path / "large.yaml"
    path.write_bytes(data)
    with pytest.raises(LimitError, match="larger than 16 MiB"):
        read_run_file(path)
    with pytest.raises(InputNotFoundError):
        read_run_file(tmp_path / "gone.yaml")


def broken(change) -> list[Fields]:
    """A small package, broken by `change(pipeline)`."""
    documents = a_package(
        {"first": a_task(), "second": a_task(after=["first"]), "loop": a_loop("body", [1])}
    )
    change(documents[0])
    return documents


def tasks_of(pipeline: Fields) -> Fields:
    tasks: Fields = pipeline["root"]["dag"]["tasks"]
    return tasks


def in_task(name: str, **fields: Any):
    """Give a task other fields."""
    return lambda pipeline: tasks_of(pipeline)[name].update(fields)


def in_components(**components: Any):
    """Give a package other components."""
    return lambda pipeline: pipeline["components"].update(components)


def looping_over(raw: str):
    """Let the loop run over other items."""
    return in_task("loop", parameterIterator={"itemInput": "item", "items": {"raw": raw}})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            in_task("first", dependentTasks=["second"]),
            "root: tasks wait for each other in a circle, among them first, second",
        ),
        (in_task("first", dependentTasks=["first"]), "circle, among them first"),
        (
            in_task("first", dependentTasks=["gone"]),
            "root: task 'first' waits for 'gone', which does not exist",
        ),
        (in_task("first", inputs=inputs(x=output_of("gone"))), "'first' waits for 'gone'"),
        (lambda p: tasks_of(p).update(late=an_exit_task("gone")), "'late' waits for 'gone'"),
        (in_task("first", dependentTasks="second"), "task first: dependentTasks: must be a list"),
        (
            in_task("first", componentRef={"name": "gone"}),
            "task first: component 'gone' does not exist",
        ),
        (in_task("first", componentRef={}), "componentRef.name: is empty"),
        (lambda p: tasks_of(p).update({"": a_task()}), "is empty; a name is needed"),
        (lambda p: tasks_of(p).update(first=[]), "task first: must be a mapping"),
        (in_components(work={}), "neither dag nor executorLabel"),
        (in_components(work={"executorLabel": "gone"}), "executor 'gone' does not exist"),
        (
            lambda p: p["deploymentSpec"]["executors"].update({"exec-work": {"customJob": {}}}),
            "runs customJob, which KFP on Kubernetes cannot run",
        ),
        (in_components(body=a_dag({"x": a_task("body")})), "component body: contains itself"),
        (looping_over("[1, 2"), "task loop: parameterIterator.items, line 1: not valid JSON"),
        (looping_over('{"a": 1}'), "items must be a JSON list"),
        (
            in_task("loop", iteratorPolicy={"parallelismLimit": -1}),
            "parallelismLimit: -1 must be a whole number",
        ),
        (
            in_task("first", retryPolicy={"maxRetryCount": -3}),
            "maxRetryCount: -3 must be a whole number",
        ),
        (in_task("first", retryPolicy={"maxRetryCount": 1e300}), "maxRetryCount"),
        (
            in_task("first", cachingOptions={"enableCache": "maybe"}),
            "enableCache: must be true or false",
        ),
        (lambda p: p["root"].update(dag={"tasks": {}}), "holds no step"),
        (
            lambda p: (
                tasks_of(p).update({"a.b": a_task(), "a": a_task("named"), "x": a_task()})
                or p["components"].update(named=a_dag({"b": a_task()}))
            ),
            "two steps are called 'a.b'",
        ),
    ],
)
def test_broken_packages_are_refused_with_the_place(change, problem):
    with pytest.raises(InputError) as caught:
        read_package(broken(change))
    assert problem in str(caught.value)
    assert str(caught.value).startswith("run.yaml")


def test_an_unknown_schema_version_is_a_warning():
    documents = a_package()
    documents[0]["schemaVersion"] = "3.0.0"
    assert [notice.code for notice in read_package(documents).notices] == ["unknown-version"]


def test_what_stands_beside_a_run_is_a_warning(golden):
    documents = a_package(kubernetes={"exec-work": {}})
    assert len(documents) == 2
    assert read_package(documents).notices == ()
    (notice,) = read_package([*documents, {"apiVersion": "v1", "kind": "ConfigMap"}]).notices
    assert notice.code == "ignored-objects"
    golden(notice.message)
    assert "ConfigMap" in notice.message


def test_a_submitted_run_takes_no_arguments():
    documents = a_package(parameters={"x": {"parameterType": "STRING"}})
    with pytest.raises(InputError, match="arguments of a submitted KFP run are fixed"):
        read_as_workflow(documents, arguments={"x": "1"})


@pytest.mark.parametrize("length", [64, 2_000])
def test_long_names_are_cut_in_messages_only(length):
    name = "x" * length
    assert read_package(a_package({name: a_task()})).steps[0].name == name
    with pytest.raises(InputError) as caught:
        read_package(a_package({name: a_task("gone" * length)}))
    assert len(str(caught.value)) < 500
