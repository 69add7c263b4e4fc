"""Workflow instances of WfCommons (wfformat 1.5, and the simple cases of 1.0 to 1.4) -> run graph.

Task ids are opaque names. Data moves from task to task directly; there are no driver pods.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kfp_placement_engine.exceptions import ArgumentError, InputError, LimitError
from kfp_placement_engine.model.durations import MAX_DURATION_SECONDS
from kfp_placement_engine.model.run_graph import DataInput, DurationSource, Notice, RunGraph, Step
from kfp_placement_engine.readers.fields import (
    as_list,
    as_mapping,
    as_name,
    as_number,
    as_text,
    as_texts,
)
from kfp_placement_engine.readers.options import ReadOptions

SOURCE = "wfformat"

MIN_RUNTIME_SECONDS = 0.01
"""Some recorded tasks took no time at all; a task that takes some can be drawn and ordered."""

_KNOWN_VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6")
_KILOBYTE = 1000


def is_wfformat(document: dict[str, Any]) -> bool:
    """Whether a document is a workflow instance."""
    workflow = document.get("workflow")
    return isinstance(workflow, dict) and any(
        key in workflow for key in ("specification", "tasks", "jobs")
    )


@dataclass(frozen=True)
class _WorkflowTask:
    """One task, in the terms of version 1.5."""

    id: str
    name: str
    parents: tuple[str, ...]
    children: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    execution: Mapping[str, Any]
    place: str


def read_wfformat(document: dict[str, Any], name: str, options: ReadOptions) -> RunGraph:
    """Read a workflow instance.

    Args:
        document: the instance.
        name: the file's name, for messages.
        options: the limits are taken from here.

    Raises:
        ArgumentError: arguments or loop widths are given.
        InputError: malformed, dangling or circular dependencies, absurd numbers.
        LimitError: more tasks or dependencies than allowed.
    """
    if options.arguments or options.loop_widths:
        raise ArgumentError(f"{name}: a workflow instance takes neither arguments nor loop widths")
    workflow = as_mapping(document.get("workflow"), f"{name}: workflow")
    sizes: dict[str, int] = {}
    if "specification" in workflow:
        tasks = _tasks(workflow, sizes, name)
    else:
        tasks = _older_tasks(workflow, sizes, name)
    if not tasks:
        raise InputError(f"{name}: holds no task; nothing can be planned")
    if len(tasks) > options.max_steps:
        raise LimitError(f"{name}: {len(tasks)} tasks; at most {options.max_steps} are planned")
    parents = _parents(tasks, options, name)
    steps = tuple(
        _step(tasks[task], parents[task], tasks, sizes) for task in _ordered(parents, name)
    )
    version = as_text(document.get("schemaVersion"), f"{name}: schemaVersion")
    notices: tuple[Notice, ...] = ()
    if version not in _KNOWN_VERSIONS:
        message = f"wfformat version {version or 'none'!r:.20} is unknown; read as version 1.5"
        notices = (Notice("unknown-version", message),)
    title = as_text(document.get("name"), f"{name}: name")
    return RunGraph(
        name=title or name,
        source=SOURCE,
        steps=steps,
        notices=notices,
        direct_transfers=True,
    )


def _tasks(workflow: dict[str, Any], sizes: dict[str, int], name: str) -> dict[str, _WorkflowTask]:
    """Tasks of version 1.5; `sizes` is filled with the sizes of all files."""
    specification = as_mapping(workflow["specification"], f"{name}: workflow.specification")
    for entry in as_list(specification.get("files"), f"{name}: files"):
        file = as_mapping(entry, f"{name}: files")
        key = as_name(file.get("id"), f"{name}: files: id")
        sizes[key] = _bytes(file.get("sizeInBytes"), f"{name}: file {key:.80}: sizeInBytes")
    execution = as_mapping(workflow.get("execution"), f"{name}: workflow.execution")
    measured: dict[str, dict[str, Any]] = {}
    for entry in as_list(execution.get("tasks"), f"{name}: execution.tasks"):
        fields = as_mapping(entry, f"{name}: execution.tasks")
        key = as_name(fields.get("id"), f"{name}: execution.tasks: id")
        if key in measured:
            raise InputError(f"{name}: execution.tasks: task {key!r:.80} stands twice")
        measured[key] = fields
    tasks: dict[str, _WorkflowTask] = {}
    for entry in as_list(specification.get("tasks"), f"{name}: specification.tasks"):
        fields = as_mapping(entry, f"{name}: specification.tasks")
        key = as_name(fields.get("id") or fields.get("name"), f"{name}: specification.tasks: id")
        place = f"{name}: task {key:.80}"
        task = _WorkflowTask(
            id=key,
            name=as_text(fields.get("name"), f"{place}: name"),
            parents=as_texts(fields.get("parents"), f"{place}: parents"),
            children=as_texts(fields.get("children"), f"{place}: children"),
            inputs=as_texts(fields.get("inputFiles"), f"{place}: inputFiles"),
            outputs=as_texts(fields.get("outputFiles"), f"{place}: outputFiles"),
            execution=measured.get(key, {}),
            place=place,
        )
        _add(tasks, task, name)
    return tasks


def _older_tasks(
    workflow: dict[str, Any], sizes: dict[str, int], name: str
) -> dict[str, _WorkflowTask]:
    """Tasks up to version 1.4, where tasks refer to each other by name and list their files."""
    tasks: dict[str, _WorkflowTask] = {}
    listed = workflow.get("tasks", workflow.get("jobs"))
    for entry in as_list(listed, f"{name}: workflow.tasks"):
        fields = as_mapping(entry, f"{name}: workflow.tasks")
        key = as_name(fields.get("name"), f"{name}: workflow.tasks: name")
        place = f"{name}: task {key:.80}"
        files: dict[str, list[str]] = {"input": [], "output": []}
        for item in as_list(fields.get("files"), f"{place}: files"):
            file = as_mapping(item, f"{place}: files")
            path = as_text(file.get("path"), f"{place}: files")
            file_id = path + as_name(file.get("name"), f"{place}: files: name")
            size = file.get("sizeInBytes", file.get("size"))
            sizes[file_id] = _bytes(size, f"{place}: file {file_id:.80}: sizeInBytes")
            link = as_text(file.get("link"), f"{place}: files").lower()
            files["input" if link == "input" else "output"].append(file_id)
        task = _WorkflowTask(
            id=key,
            name=key,
            parents=as_texts(fields.get("parents"), f"{place}: parents"),
            children=as_texts(fields.get("children"), f"{place}: children"),
            inputs=tuple(files["input"]),
            outputs=tuple(files["output"]),
            execution=_older_execution(fields, place),
            place=place,
        )
        _add(tasks, task, name)
    return tasks


def _older_execution(fields: dict[str, Any], place: str) -> dict[str, Any]:
    execution = {
        "runtimeInSeconds": fields.get("runtimeInSeconds", fields.get("runtime")),
        "coreCount": fields.get("cores"),
        "memoryInBytes": fields.get("memoryInBytes"),
    }
    if fields.get("memory") is not None:
        execution["memoryInBytes"] = as_number(fields["memory"], f"{place}: memory") * _KILOBYTE
    return execution


def _add(tasks: dict[str, _WorkflowTask], task: _WorkflowTask, name: str) -> None:
    if task.id in tasks:
        raise InputError(f"{name}: two tasks are called {task.id!r:.80}")
    tasks[task.id] = task


def _bytes(value: Any, place: str) -> int:
    number = as_number(value, place)
    if number >= 2**63:
        raise InputError(f"{place}: {value!r:.40} bytes are more than there are")
    return int(number)


def _parents(
    tasks: Mapping[str, _WorkflowTask], options: ReadOptions, name: str
) -> dict[str, tuple[str, ...]]:
    """Parents of each task, whichever end of the edge names it, sorted."""
    found: dict[str, set[str]] = {task: set() for task in tasks}
    for task in tasks.values():
        for other in (*task.parents, *task.children):
            if other not in tasks:
                raise InputError(
                    f"{task.place}: refers to task {other!r:.80}, which does not exist"
                )
        found[task.id].update(task.parents)
        for child in task.children:
            found[child].add(task.id)
    if sum(map(len, found.values())) > options.max_dependencies:
        raise LimitError(f"{name}: more than {options.max_dependencies} dependencies")
    return {task: tuple(sorted(parents)) for task, parents in found.items()}


def _ordered(parents: Mapping[str, tuple[str, ...]], name: str) -> list[str]:
    """Tasks after their parents, otherwise in the order of the file."""
    position = {task: index for index, task in enumerate(parents)}
    children: dict[str, list[str]] = {task: [] for task in parents}
    for task, before in parents.items():
        for parent in before:
            children[parent].append(task)
    waiting = {task: len(before) for task, before in parents.items()}
    ready = [(position[task], task) for task, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, task = heapq.heappop(ready)
        order.append(task)
        for child in children[task]:
            waiting[child] -= 1
            if waiting[child] == 0:
                heapq.heappush(ready, (position[child], child))
    if len(order) < len(parents):
        circle = [task for task, count in waiting.items() if count][:5]
        raise InputError(
            f"{name}: tasks wait for each other in a circle, among them "
            + ", ".join(f"{task:.80}" for task in circle)
        )
    return order


def _step(
    task: _WorkflowTask,
    parents: tuple[str, ...],
    tasks: Mapping[str, _WorkflowTask],
    sizes: Mapping[str, int],
) -> Step:
    needed = dict.fromkeys(task.inputs)
    inputs = tuple(
        DataInput(parent, file, sizes.get(file))
        for parent in parents
        for file in dict.fromkeys(tasks[parent].outputs)
        if file in needed
    )
    seconds = _seconds(task)
    return Step(
        name=task.id,
        task=task.id,
        display_name="" if task.name == task.id else task.name,
        requests=_requests(task),
        duration_seconds=seconds,
        duration_source=DurationSource.ASSUMED if seconds is None else DurationSource.HISTORY,
        output_bytes={file: sizes[file] for file in task.outputs if file in sizes},
        inputs=inputs,
        depends_on=parents,
    )


def _seconds(task: _WorkflowTask) -> float | None:
    value = task.execution.get("runtimeInSeconds")
    if value is None:
        return None
    seconds = as_number(value, f"{task.place}: runtimeInSeconds")
    if seconds > MAX_DURATION_SECONDS:
        raise InputError(f"{task.place}: runtimeInSeconds {value!r:.40} is longer than ten years")
    return max(MIN_RUNTIME_SECONDS, seconds)


def _requests(task: _WorkflowTask) -> dict[str, int]:
    cores = as_number(task.execution.get("coreCount"), f"{task.place}: coreCount") or 1.0
    if cores > 1e9:
        raise InputError(f"{task.place}: coreCount {cores:g} is more than any machine has")
    requests = {"cpu": max(1, round(cores * 1000))}
    memory = _bytes(task.execution.get("memoryInBytes"), f"{task.place}: memoryInBytes")
    if memory:
        requests["memory"] = memory
    return requests
