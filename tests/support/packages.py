"""Small KFP packages, put together by hand: only what matters for a test varies."""

import json
from collections.abc import Iterable
from typing import Any

from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.readers import ReadOptions, read_run
from tests.support.kfp3_workflow_emitter import emit_kfp3_workflow
from tests.support.kfp_workflow_emitter import emit_workflow

Fields = dict[str, Any]


def a_task(component: str = "work", *, after: Iterable[str] = (), **fields: Any) -> Fields:
    """A task; `after` are the tasks that it waits for."""
    task: Fields = {"componentRef": {"name": component}, **fields}
    if after:
        task["dependentTasks"] = list(after)
    return task


def a_loop(component: str, items: object, **fields: Any) -> Fields:
    """A task that loops over a list, or over an input parameter given by its name."""
    source = {"inputParameter": items} if isinstance(items, str) else {"raw": json.dumps(items)}
    iterator = {"itemInput": "item", "items": source}
    return a_task(component, parameterIterator=iterator, **fields)


def a_loop_over(source: Fields, **fields: Any) -> Fields:
    """A task that runs the component `body` for each item of what a source of inputs gives."""
    return a_loop("body", "items", inputs=inputs(items=source), **fields)


def list_parameter(name: str, default: list[Any]) -> Fields:
    """The definition of a pipeline parameter that is a list."""
    return {name: {"parameterType": "LIST", "defaultValue": default}}


def an_exit_task(*after: str) -> Fields:
    """A task that runs when others have ended, whatever the outcome."""
    trigger = {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}
    return a_task(after=after, triggerPolicy=trigger)


def a_dag(tasks: Fields, **fields: Any) -> Fields:
    """A component that holds tasks."""
    return {"dag": {"tasks": tasks}, **fields}


def constant(value: Any) -> Fields:
    """A value that is written in the package, as a source of an input."""
    return {"runtimeValue": {"constant": value}}


def inputs(**sources: Any) -> Fields:
    """Input parameters of a task: constants, or sources as KFP writes them."""
    parameters = {
        name: source if isinstance(source, dict) else constant(source)
        for name, source in sources.items()
    }
    return {"parameters": parameters}


def output_of(task: str, key: str = "Output") -> Fields:
    """An output parameter of another task."""
    return {"taskOutputParameter": {"producerTask": task, "outputParameterKey": key}}


def input_of_dag(name: str) -> Fields:
    """An input parameter of the enclosing DAG."""
    return {"componentInputParameter": name}


def a_package(
    tasks: Fields | None = None,
    *,
    components: Fields | None = None,
    container: Fields | None = None,
    executors: Fields | None = None,
    parameters: Fields | None = None,
    kubernetes: Fields | None = None,
) -> list[Fields]:
    """The documents of a package.

    Args:
        tasks: tasks of the root; None = one called `work`, of the component `work`.
        components: components besides `work`, a container, and `body`, a DAG of one such task.
        container: container spec of `work`.
        executors: executors of further components, by the components' names.
        parameters: pipeline parameters, by name.
        kubernetes: Kubernetes config of executors, by name.
    """
    pipeline: Fields = {
        "pipelineInfo": {"name": "run"},
        "schemaVersion": "2.1.0",
        "sdkVersion": "kfp-2.17.0",
        "deploymentSpec": {
            "executors": {
                "exec-work": {"container": {"image": "work:1", **(container or {})}},
                **{f"exec-{name}": spec for name, spec in (executors or {}).items()},
            }
        },
        "components": {
            "work": {"executorLabel": "exec-work"},
            "body": a_dag({"work": a_task()}),
            **{name: {"executorLabel": f"exec-{name}"} for name in executors or ()},
            **(components or {}),
        },
        "root": a_dag({"work": a_task()} if tasks is None else tasks),
    }
    if parameters:
        pipeline["root"]["inputDefinitions"] = {"parameters": parameters}
    documents = [pipeline]
    if kubernetes:
        configs = {"executors": kubernetes}
        documents.append({"platforms": {"kubernetes": {"deploymentSpec": configs}}})
    return documents


def notice_codes(graph: RunGraph) -> list[str]:
    """Codes of the notices of a run, in order."""
    return [notice.code for notice in graph.notices]


def told_steps(graph: RunGraph) -> list[tuple[str, str]]:
    """Code and step of every notice of a run, in order."""
    return [(notice.code, notice.step) for notice in graph.notices]


def read_package(documents: list[Fields], **options: Any) -> RunGraph:
    """Read a package from its documents."""
    data = b"\n".join(json.dumps(document).encode() for document in documents)
    return read_run(data, name="run.yaml", options=ReadOptions(**options))


def read_as_workflow(documents: list[Fields], **options: Any) -> RunGraph:
    """Read the Workflow that KFP would make of a package."""
    return _read(emit_workflow(*documents), options)


def read_as_outline(documents: list[Fields], **options: Any) -> RunGraph:
    """Read the Workflow that KFP 3 would make of a package, alone."""
    return _read(emit_kfp3_workflow(*documents), options)


def read_joined(documents: list[Fields], **options: Any) -> RunGraph:
    """Read the Workflow that KFP 3 would make of a package, with this package."""
    return read_as_outline(documents, package=documents[0], **options)


def _read(workflow: Fields, options: Fields) -> RunGraph:
    data = json.dumps(workflow).encode()
    return read_run(data, name="run.yaml", options=ReadOptions(**options))
