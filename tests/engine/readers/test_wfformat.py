"""Workflow instances of WfCommons: tasks, edges, bytes, and what is wrong with bad ones."""

import json
from typing import Any

import pytest

from kfp_placement_engine import ReadOptions, RunGraph, read_run, read_run_file
from kfp_placement_engine.exceptions import InputError, LimitError
from kfp_placement_engine.model.run_graph import DurationSource
from tests.support.effort import cpu_seconds
from tests.support.packages import Fields
from tests.support.run_data import data_files

A = {"name": "a", "id": "a"}


def instance(
    tasks: list[Fields],
    runs: list[Fields] | None = None,
    files: list[Fields] | None = None,
    version: str = "1.5",
) -> Fields:
    return {
        "name": "flow",
        "schemaVersion": version,
        "workflow": {
            "specification": {"tasks": tasks, "files": files or []},
            "execution": {"tasks": runs or []},
        },
    }


def measured(**fields: Any) -> Fields:
    """An instance of a task with what was measured of it."""
    return instance([A], [{"id": "a", **fields}])


def read(document: Fields, **options: Any) -> RunGraph:
    data = json.dumps(document).encode()
    return read_run(data, name="flow.json", options=ReadOptions(**options))


@pytest.mark.parametrize("path", data_files("wfinstances", "*.json"))
def test_every_instance_is_read(path):
    """Against the file itself: tasks, edges, work, bytes."""
    graph = read_run_file(path)
    raw = json.loads(path.read_text())["workflow"]
    tasks = {task["id"]: task for task in raw["specification"]["tasks"]}
    runs = {task["id"]: task for task in raw["execution"]["tasks"]}
    sizes = {file["id"]: file["sizeInBytes"] for file in raw["specification"]["files"]}
    assert {step.name for step in graph.steps} == tasks.keys()
    seen: set[str] = set()
    for step in graph.steps:
        assert set(step.depends_on) == set(tasks[step.name]["parents"])
        assert seen.issuperset(step.depends_on)
        seen.add(step.name)
        assert step.duration_seconds == max(0.01, runs[step.name]["runtimeInSeconds"])
        assert step.requests["cpu"] == 1000
        moved = sum(
            sizes[file]
            for parent in tasks[step.name]["parents"]
            for file in set(tasks[parent]["outputFiles"]) & set(tasks[step.name]["inputFiles"])
        )
        assert sum(data.size_bytes or 0 for data in step.inputs) == moved
    assert graph.direct_transfers
    assert (graph.groups, graph.claims, graph.notices) == ((), (), ())


def test_a_task_is_a_step_under_its_opaque_id():
    tasks = [
        {"name": "a", "id": "x.y[0]", "outputFiles": ["f", "g"]},
        {"name": "b", "id": "b", "parents": ["x.y[0]"], "inputFiles": ["f", "other"]},
    ]
    runs = [
        {"id": "x.y[0]", "runtimeInSeconds": 0, "coreCount": 4, "memoryInBytes": 5000},
        {"id": "b", "runtimeInSeconds": 2.5, "coreCount": 0.5},
    ]
    files = [{"id": "f", "sizeInBytes": 7}, {"id": "g", "sizeInBytes": 9}]
    graph = read(instance(tasks, runs, files))
    first, second = graph.steps
    assert (first.name, first.task, first.display_name) == ("x.y[0]", "x.y[0]", "a")
    assert first.requests == {"cpu": 4000, "memory": 5000}
    assert (first.duration_seconds, first.duration_source) == (0.01, DurationSource.GIVEN)
    assert first.output_bytes == {"f": 7, "g": 9}
    assert second.requests == {"cpu": 500}
    assert [(d.producer, d.key, d.size_bytes) for d in second.inputs] == [("x.y[0]", "f", 7)]


def test_edges_named_by_either_end_count():
    with_child = {"name": "a", "id": "a", "children": ["b"]}
    with_parent = {"name": "c", "id": "c", "parents": ["b"]}
    graph = read(instance([with_child, {"name": "b", "id": "b"}, with_parent]))
    depends = {step.name: step.depends_on for step in graph.steps}
    assert depends == {"a": (), "b": ("a",), "c": ("b",)}


def test_a_task_without_measurement_has_no_duration():
    step = read(instance([A])).steps[0]
    assert (step.duration_seconds, step.duration_source) == (None, DurationSource.ASSUMED)
    assert step.requests == {"cpu": 1000}


@pytest.mark.parametrize(
    ("version", "runtime", "size", "memory"),
    [
        ("1.4", "runtimeInSeconds", "sizeInBytes", {"memoryInBytes": 3000}),
        ("1.3", "runtime", "size", {"memory": 3}),
    ],
)
def test_older_versions_name_tasks_and_list_their_files(version, runtime, size, memory):
    tasks = [
        {
            "name": "a",
            "id": "ID1",
            runtime: 5,
            "cores": 2,
            **memory,
            "files": [{"link": "output", "name": "f", size: 11}],
        },
        {
            "name": "b",
            "id": "ID2",
            runtime: 6,
            "parents": ["a"],
            "files": [{"link": "input", "name": "f"}],
        },
    ]
    document = {"name": "old", "schemaVersion": version, "workflow": {"tasks": tasks}}
    first, second = read(document).steps
    assert (first.name, first.duration_seconds) == ("a", 5)
    assert first.requests == {"cpu": 2000, "memory": 3000}
    assert second.depends_on == ("a",)
    assert [(d.producer, d.size_bytes) for d in second.inputs] == [("a", 11)]


def test_an_unknown_version_is_a_warning():
    (notice,) = read(instance([A], version="9.9")).notices
    assert notice.code == "unknown-version"
    assert read(instance([A], version="1.6")).notices == ()


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (instance([]), "holds no task"),
        (instance([A, A]), "two tasks are called 'a'"),
        (instance([{"name": "", "id": ""}]), "empty"),
        (instance([{**A, "parents": ["z"]}]), "'z', which does not exist"),
        (instance([{**A, "children": ["z"]}]), "'z', which does not exist"),
        (instance([{**A, "parents": ["a"]}]), "circle"),
        (instance([{**A, "parents": "a"}]), "must be a list"),
        (measured(runtimeInSeconds=-1), "0 or more"),
        (measured(runtimeInSeconds="1"), "number"),
        (measured(runtimeInSeconds=1e12), "ten years"),
        (measured(runtimeInSeconds=1e300), "0 or more"),
        (measured(coreCount=-1), "coreCount"),
        (measured(coreCount=1e12), "more than any machine"),
        (measured(memoryInBytes=1e30), "more than there are"),
        (instance([A], [{"id": "a"}, {"id": "a"}]), "appears twice"),
        (instance([A], files=[{"id": "f", "sizeInBytes": -5}]), "sizeInBytes"),
        ({"name": "x", "workflow": {"specification": []}}, "must be a mapping"),
        ({"name": "x", "workflow": {"tasks": 5}}, "must be a list"),
    ],
)
def test_bad_instances_are_refused_with_the_place(document, problem):
    with pytest.raises(InputError, match=problem) as caught:
        read(document)
    assert str(caught.value).startswith("flow.json")


def test_limits_hold_here_too():
    tasks = [{"name": str(number), "id": str(number)} for number in range(11)]
    with pytest.raises(LimitError, match="at most 10"):
        read(instance(tasks), max_steps=10)
    chained = [{**task, "parents": ["0"]} for task in tasks[1:]]
    with pytest.raises(LimitError, match="dependencies"):
        read(instance([tasks[0], *chained]), max_dependencies=9)


def test_outputs_that_no_child_reads_take_no_time():
    names = list(map(str, range(4000)))
    alone, below = (
        instance([{**A, "outputFiles": names}, *({"id": each, "parents": above} for each in names)])
        for above in ([], ["a"])
    )
    assert cpu_seconds(read, below) < 3 * cpu_seconds(read, alone)


def test_arguments_have_no_meaning_here():
    for options in ({"arguments": {"x": 1}}, {"loop_widths": {"x": 1}}):
        with pytest.raises(InputError, match="no arguments, loop widths or branches"):
            read(instance([A]), **options)
