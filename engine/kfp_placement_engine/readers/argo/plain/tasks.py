"""The tasks of a DAG or steps template: what they are given, and what they wait for.

What they run is read elsewhere (`templates`).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kfp_placement_engine.readers.argo.tags import TagReader, output_tasks
from kfp_placement_engine.readers.formulas.depends_condition import read_depends
from kfp_placement_engine.readers.formulas.when_condition import WhenCondition
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.expressions import Expressions, Runtime
from kfp_placement_engine.readers.tree.sequences import NumberSequence
from kfp_placement_engine.readers.tree.tasks import Loop, Names, Task

_DEPENDENCY = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_-]*)(?:\.[A-Za-z]+)?")

_LOOPS = ("withItems", "withParam", "withSequence")


def listed_tasks(template: Fields, tags: TagReader) -> Iterator[tuple[Fields, Task]]:
    """Return each task of a template as it is written, and read except for what it runs.

    Args:
        template: DAG or steps template with its defaults merged in.
        tags: reader of tags.

    Raises:
        InputError: a task is malformed.
    """
    return (_of_steps if template.get("dag") is None else _of_dag)(template, tags)


def _of_dag(template: Fields, tags: TagReader) -> Iterator[tuple[Fields, Task]]:
    entries = list(template.fields("dag").each("tasks"))
    siblings = {entry.name("name"): entry for entry in entries}
    tags = tags.within(template, (f"tasks.{name}" for name in siblings))

    def continues_after(name: str) -> frozenset[str]:
        return _continues_after(siblings[name]) if name in siblings else frozenset()

    def is_loop(name: str) -> bool:
        return name in siblings and _is_loop(siblings[name])

    def has_when(name: str) -> bool:
        return bool(siblings[name].get("when"))

    for entry in entries:
        task = _task(entry, tags, has_items=_is_loop(entry))
        depends = entry.text("depends")
        read = [*task.inputs.values(), *task.artifacts.values()]
        read += [task.loop.items] if task.loop else []
        waits = dict.fromkeys(
            (
                *placed(entry, task.name).texts("dependencies"),
                *_DEPENDENCY.findall(depends),
                *(name for each in read for name in output_tasks(each) if name in siblings),
            )
        )
        trigger = read_depends(depends, continues_after, is_loop, has_when, entry.where("depends"))
        yield entry, replace(task, depends_on=tuple(waits), trigger=trigger)


def _of_steps(template: Fields, tags: TagReader) -> Iterator[tuple[Fields, Task]]:
    groups = [
        list(
            Fields({"steps": group if isinstance(group, list) else [group]}, template.place).each(
                "steps"
            )
        )
        for group in template.entries("steps")
    ]
    tags = tags.within(
        template, (f"steps.{entry.name('name')}" for group in groups for entry in group)
    )
    before: Names = ()
    has_items = False
    for group in groups:
        # Argo takes items for known from the first group with a loop on.
        has_items |= any(map(_is_loop, group))
        tasks = [(entry, _task(entry, tags, before, has_items=has_items)) for entry in group]
        yield from tasks
        before = tuple(task.name for _, task in tasks) or before


def _is_loop(entry: Fields) -> bool:
    return any(entry.get(key) for key in _LOOPS)


def _task(entry: Fields, tags: TagReader, depends_on: Names = (), *, has_items: bool) -> Task:
    name = entry.name("name")
    task = placed(entry, name)
    tags = tags.at(task.place, has_items=has_items)
    inputs, artifacts = _arguments(task.fields("arguments"), tags)
    when = task.get("when", "")
    if not isinstance(when, str):
        problem = f"must be text, not {when!r:.60}, with which Argo refuses the Workflow: quote it"
        raise task.where("when").error(problem)
    return Task(
        name,
        body=None,
        depends_on=depends_on,
        inputs=inputs,
        artifacts=artifacts,
        condition=WhenCondition(when, tags.text(when)) if when else None,
        continues_after=_continues_after(task),
        loop=_loop(task, tags),
    )


def placed(entry: Fields, name: str) -> Fields:
    """Return a task at the place that has its name."""
    return entry.at(": task {:.80}", name)


def _arguments(arguments: Fields, tags: TagReader) -> tuple[Expressions, Expressions]:
    inputs: Expressions = {}
    for fields in arguments.each("parameters"):
        name, value = fields.name("name"), fields.get("value")
        inputs[name] = Runtime() if value is None else tags.text(value)
    artifacts: Expressions = {}
    for fields in arguments.each("artifacts"):
        name, source = fields.name("name"), fields.get("from")
        artifacts[name] = tags.text(source) if isinstance(source, str) else Runtime()
    return inputs, artifacts


def _loop(task: Fields, tags: TagReader) -> Loop | None:
    # What is empty counts as not there, since Go leaves it out.
    if task.get("withItems"):
        return Loop(tags.structure(task.entries("withItems")))
    if task.get("withParam"):
        return Loop(tags.text(task.get("withParam")))
    if task.get("withSequence") is not None:
        fields = task.fields("withSequence")
        names = ("start", "end", "count", "format")
        return Loop(NumberSequence(tuple(tags.text(fields.get(name)) for name in names)))
    return None


def _continues_after(task: Fields) -> frozenset[str]:
    """Return the phases of failures after which Argo still goes on."""
    if "continueOn" not in task:
        return frozenset()
    goes_on = task.fields("continueOn")
    phases = {"failed": "Failed", "error": "Error"}
    return frozenset(phase for key, phase in phases.items() if goes_on.get(key))


def exit_task(
    holder: Fields, name: str, after: Names, tags: TagReader
) -> tuple[Fields, Task] | None:
    """Return what runs after a Workflow or task: its fields, and its task as in `listed_tasks`.

    The hook `exit` wins over `onExit`. None = nothing runs then.

    Args:
        holder: the Workflow's spec, or the task.
        name: name of the exit task.
        after: names of the tasks after whose end it runs, if its expression is true.
        tags: reader of tags.

    Raises:
        InputError: the hook is malformed.
    """
    hook = holder.fields("hooks").fields("exit")
    handler = Fields(hook.raw or {"template": holder.get("onExit")}, holder.place)
    if not handler.get("template") and not handler.get("templateRef"):
        return None
    expression = handler.text("expression")
    condition = WhenCondition(expression, tags.text(f"{{{{={expression}}}}}"))
    return handler, Task(
        name, body=None, exit_of=after, condition=condition if expression else None
    )


def awaiting_hooks(tasks: Mapping[str, Task]) -> dict[str, Task]:
    """Return tasks that wait for the exit hooks of what they wait for, as in Argo."""
    hooks = {name: task.name for task in tasks.values() for name in task.exit_of}
    if not hooks:
        return dict(tasks)
    waits = {
        name: (*task.depends_on, *(hooks[each] for each in task.depends_on if each in hooks))
        for name, task in tasks.items()
    }
    return {name: replace(task, depends_on=waits[name]) for name, task in tasks.items()}


def of_targets(targets: str, tasks: Mapping[str, Task], place: Place) -> dict[str, Task]:
    """Return the tasks that a DAG runs for its targets: these, and what they wait for.

    Args:
        targets: names of tasks, with blanks between them.
        tasks: all tasks of the DAG by name, with their hooks.
        place: place of the names.

    Raises:
        InputError: there is no such task.
    """
    open_names = [name for name in targets.split(" ") if name]
    kept: set[str] = set()
    while open_names:
        name = open_names.pop()
        if name not in tasks:
            raise place.error(f"there is no task {name!r:.80}")
        if name not in kept:
            kept.add(name)
            open_names += tasks[name].depends_on
    return {
        name: task
        for name, task in tasks.items()
        if name in kept or not kept.isdisjoint(task.exit_of)
    }
