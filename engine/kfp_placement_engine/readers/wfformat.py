"""A reader of WfCommons' workflow instances: wfformat 1.5 and 1.6, and simple cases of 1.0 to 1.4.

Task ids are opaque names. Data moves from task to task directly; there are no driver pods.
"""

from dataclasses import dataclass

from kfp_placement_engine.exceptions import ArgumentError, LimitError
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import DataInput, DurationSource, RunGraph, Step
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.task_order import ordered
from kfp_placement_engine.units.durations import MAX_DURATION_SECONDS

SOURCE = "wfformat"

MIN_RUNTIME_SECONDS = 0.01
"""Shortest run time of a task.

Recorded times of 0 s are raised to it so that the task can be drawn.
"""

_KNOWN_VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6")
_KILOBYTE = 1000


@dataclass(frozen=True)
class _WorkflowTask:
    """A task in the terms of version 1.5; its files are the keys of `inputs` and `outputs`."""

    id: str
    name: str
    parents: tuple[str, ...]
    children: tuple[str, ...]
    inputs: dict[str, None]
    outputs: dict[str, None]
    execution: Fields

    @property
    def place(self) -> Place:
        """Place in the file."""
        return self.execution.place


_Tasks = dict[str, _WorkflowTask]
"""Tasks by id."""

_Sizes = dict[str, int]
"""Sizes in bytes of the files that have one, by the file's id."""


def read_wfformat(document: RawMapping, name: str, options: ReadOptions) -> RunGraph:
    """Read a workflow instance.

    Args:
        document: the workflow instance.
        name: name of the file, for messages.
        options: settings, of which the limits are used.

    Raises:
        ArgumentError: arguments or loop widths are given.
        InputError: the instance is malformed, or has dangling or circular dependencies or absurd
            numbers.
        LimitError: the instance has more tasks or dependencies than allowed.
    """
    if options.arguments or options.loop_widths or options.branches:
        raise ArgumentError(
            f"{name}: a workflow instance takes no arguments, loop widths or branches"
        )
    instance = Fields(document, Place(name))
    workflow = instance.fields("workflow")
    read_tasks = _tasks if "specification" in workflow else _older_tasks
    tasks, sizes = read_tasks(workflow)
    if not tasks:
        raise instance.error("holds no task; nothing can be planned")
    if len(tasks) > options.max_steps:
        raise LimitError(f"{name}: {len(tasks)} tasks; at most {options.max_steps} are planned")
    parents = _parents(tasks, options, name)
    position = {task: index for index, task in enumerate(parents)}
    order = ordered(parents, position.__getitem__, instance.place)
    steps = tuple(_step(tasks[task], parents[task], tasks, sizes) for task in order)
    version = instance.text("schemaVersion")
    notices: tuple[Notice, ...] = ()
    if version not in _KNOWN_VERSIONS:
        message = f"wfformat version {version or 'none'!r:.20} is unknown; read as version 1.5"
        notices = (Notice("unknown-version", message),)
    return RunGraph(
        name=instance.text("name") or name,
        source=SOURCE,
        steps=steps,
        notices=notices,
        direct_transfers=True,
    )


def _tasks(workflow: Fields) -> tuple[_Tasks, _Sizes]:
    """Read tasks and sizes of files of version 1.5."""
    sizes: _Sizes = {}
    specification = workflow.fields("specification")
    for file in specification.each("files"):
        key = file.name("id")
        if "sizeInBytes" in file:
            sizes[key] = _bytes(file.at(": file {:.80}", key), "sizeInBytes")
    execution = workflow.fields("execution")
    measured: dict[str, Fields] = {}
    for fields in execution.each("tasks"):
        key = fields.name("id")
        if key in measured:
            raise fields.place.error(f"task {key!r:.80} appears twice")
        measured[key] = fields
    tasks: _Tasks = {}
    for fields in specification.each("tasks"):
        key = fields.where("id").name(fields.get("id") or fields.get("name"))
        task = fields.at(": task {:.80}", key)
        workflow_task = _WorkflowTask(
            id=key,
            name=task.text("name"),
            parents=task.texts("parents"),
            children=task.texts("children"),
            inputs=dict.fromkeys(task.texts("inputFiles")),
            outputs=dict.fromkeys(task.texts("outputFiles")),
            execution=Fields(measured[key].raw if key in measured else {}, task.place),
        )
        _add(tasks, workflow_task, workflow.place)
    return tasks, sizes


def _older_tasks(workflow: Fields) -> tuple[_Tasks, _Sizes]:
    """Read tasks and sizes of files up to version 1.4.

    Tasks refer to each other by name, and list their files.
    """
    tasks: _Tasks = {}
    sizes: _Sizes = {}
    listed = "tasks" if "tasks" in workflow else "jobs"
    for fields in workflow.each(listed):
        key = fields.name("name")
        task = fields.at(": task {:.80}", key)
        files: dict[str, dict[str, None]] = {"input": {}, "output": {}}
        for file in task.each("files"):
            file_id = file.text("path") + file.name("name")
            size = "sizeInBytes" if "sizeInBytes" in file else "size"
            if size in file:
                sizes[file_id] = _bytes(file.at(": file {:.80}", file_id), size)
            link = file.text("link").lower()
            files["input" if link == "input" else "output"][file_id] = None
        workflow_task = _WorkflowTask(
            id=key,
            name=key,
            parents=task.texts("parents"),
            children=task.texts("children"),
            inputs=files["input"],
            outputs=files["output"],
            execution=_older_execution(task),
        )
        _add(tasks, workflow_task, workflow.place)
    return tasks, sizes


def _older_execution(task: Fields) -> Fields:
    execution = {
        "runtimeInSeconds": task.get("runtimeInSeconds", task.get("runtime")),
        "coreCount": task.get("cores"),
        "memoryInBytes": task.get("memoryInBytes"),
    }
    if task.get("memory") is not None:
        execution["memoryInBytes"] = task.number("memory") * _KILOBYTE
    return Fields(execution, task.place)


def _add(tasks: _Tasks, task: _WorkflowTask, file: Place) -> None:
    if task.id in tasks:
        raise file.error(f"two tasks are called {task.id!r:.80}")
    tasks[task.id] = task


def _bytes(fields: Fields, key: str) -> int:
    number = fields.number(key)
    if number >= 2**63:
        raise fields.where(key).error(f"{fields.get(key)!r:.40} bytes are more than there are")
    return int(number)


def _parents(tasks: _Tasks, options: ReadOptions, name: str) -> dict[str, tuple[str, ...]]:
    """Return the sorted parents of each task, whichever end of the edge names it."""
    parents_of: dict[str, set[str]] = {task: set() for task in tasks}
    for task in tasks.values():
        for other in (*task.parents, *task.children):
            if other not in tasks:
                raise task.place.error(f"refers to task {other!r:.80}, which does not exist")
        parents_of[task.id].update(task.parents)
        for child in task.children:
            parents_of[child].add(task.id)
    if sum(map(len, parents_of.values())) > options.max_dependencies:
        raise LimitError(f"{name}: more than {options.max_dependencies} dependencies")
    return {task: tuple(sorted(parents)) for task, parents in parents_of.items()}


def _step(task: _WorkflowTask, parents: tuple[str, ...], tasks: _Tasks, sizes: _Sizes) -> Step:
    inputs = tuple(
        DataInput(parent, file, sizes.get(file))
        for parent in parents
        for file in sorted(task.inputs.keys() & tasks[parent].outputs.keys())
    )
    seconds = _seconds(task)
    return Step(
        name=task.id,
        task=task.id,
        display_name="" if task.name == task.id else task.name,
        requests=_requests(task),
        duration_seconds=seconds,
        duration_source=DurationSource.ASSUMED if seconds is None else DurationSource.GIVEN,
        output_bytes={file: sizes[file] for file in task.outputs if file in sizes},
        inputs=inputs,
        depends_on=parents,
    )


def _seconds(task: _WorkflowTask) -> float | None:
    value = task.execution.get("runtimeInSeconds")
    if value is None:
        return None
    seconds = task.execution.number("runtimeInSeconds")
    if seconds > MAX_DURATION_SECONDS:
        raise task.place.error(f"runtimeInSeconds {value!r:.40} is longer than ten years")
    return max(MIN_RUNTIME_SECONDS, seconds)


def _requests(task: _WorkflowTask) -> dict[str, int]:
    cores = task.execution.number("coreCount") or 1.0
    if cores > 1e9:
        raise task.place.error(f"coreCount {cores:g} is more than any machine has")
    requests = {"cpu": max(1, round(cores * 1000))}
    memory = _bytes(task.execution, "memoryInBytes")
    if memory:
        requests["memory"] = memory
    return requests
