"""KFP's PipelineTaskSpec -> `Task`, for packages and Workflows alike."""

from collections.abc import Mapping
from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.fields import (
    as_count,
    as_list,
    as_mapping,
    as_name,
    as_text,
    as_texts,
)
from kfp_placement_engine.readers.kfp.values import parameter_source, text_with_inputs
from kfp_placement_engine.readers.text.documents import parse_json
from kfp_placement_engine.readers.tree.expressions import (
    Constant,
    Expression,
    Input,
    Listed,
    LoopItem,
    Runtime,
    TaskOutput,
)
from kfp_placement_engine.readers.tree.tasks import Dag, Leaf, Loop, OutputSources, Task

EXIT_STRATEGY = "ALL_UPSTREAM_TASKS_COMPLETED"


def dependencies(spec: dict[str, Any], place: str) -> tuple[str, ...]:
    """Tasks that a task waits for: those listed, and the producers of its inputs.

    Raises:
        InputError: malformed.
    """
    names = dict.fromkeys(as_texts(spec.get("dependentTasks"), f"{place}: dependentTasks"))
    inputs = as_mapping(spec.get("inputs"), f"{place}: inputs")
    for kind, key in (("parameters", "taskOutputParameter"), ("artifacts", "taskOutputArtifact")):
        for name, source in as_mapping(inputs.get(kind), f"{place}: inputs").items():
            where = f"{place}: input {name:.80}"
            fields = as_mapping(source, where)
            if fields.get(key) is not None:
                producer = as_mapping(fields[key], where).get("producerTask")
                names[as_name(producer, f"{where}: producerTask")] = None
    return tuple(names)


def is_exit_task(spec: dict[str, Any], place: str) -> bool:
    """Whether a task runs at the end of another, whatever the outcome.

    Raises:
        InputError: malformed.
    """
    trigger = as_mapping(spec.get("triggerPolicy"), f"{place}: triggerPolicy")
    # Protocol buffers write the strategy's name, or its number.
    return as_text(trigger.get("strategy"), f"{place}: strategy") in (EXIT_STRATEGY, "2")


def read_task(
    name: str,
    spec: dict[str, Any],
    body: Leaf | Dag,
    place: str,
    *,
    depends_on: tuple[str, ...] = (),
    exit_of: tuple[str, ...] = (),
    extra_inputs: Mapping[str, Expression] | None = None,
) -> Task:
    """A task of a DAG.

    Args:
        name: its name in the DAG.
        spec: its PipelineTaskSpec.
        body: what it runs.
        place: file and path, for messages.
        depends_on: tasks it waits for.
        exit_of: for an exit task: the tasks after which it runs.
        extra_inputs: inputs of the body besides those of the spec.

    Raises:
        InputError: malformed.
    """
    inputs, own_inputs = _parameters(spec, place)
    inputs.update(extra_inputs or {})
    loop = _loop(spec, inputs, place)
    trigger = as_mapping(spec.get("triggerPolicy"), f"{place}: triggerPolicy")
    info = as_mapping(spec.get("taskInfo"), f"{place}: taskInfo")
    shown = as_text(info.get("name"), f"{place}: taskInfo.name")
    return Task(
        name=name,
        body=body,
        depends_on=depends_on,
        exit_of=exit_of,
        inputs=inputs,
        own_inputs=own_inputs,
        artifacts=_artifacts(spec, place),
        condition=as_text(trigger.get("condition"), f"{place}: condition"),
        loop=loop,
        display_name="" if shown == name else shown,
    )


def dag_outputs(
    component: dict[str, Any], place: str
) -> tuple[dict[str, OutputSources], dict[str, OutputSources]]:
    """Where a DAG's output parameters and artifacts come from.

    Raises:
        InputError: malformed.
    """
    dag = as_mapping(component.get("dag"), f"{place}: dag")
    outputs = as_mapping(dag.get("outputs"), f"{place}: outputs")
    parameters = {}
    for name, output in as_mapping(outputs.get("parameters"), f"{place}: outputs").items():
        where = f"{place}: output {name:.80}"
        fields = as_mapping(output, where)
        one_of = as_mapping(fields.get("valueFromOneof"), where)
        selectors = as_list(one_of.get("parameterSelectors"), where)
        if fields.get("valueFromParameter") is not None:
            selectors = [fields["valueFromParameter"]]
        parameters[name] = _sources(selectors, "outputParameterKey", where)
    artifacts = {}
    for name, output in as_mapping(outputs.get("artifacts"), f"{place}: outputs").items():
        where = f"{place}: output {name:.80}"
        selectors = as_list(as_mapping(output, where).get("artifactSelectors"), where)
        artifacts[name] = _sources(selectors, "outputArtifactKey", where)
    return parameters, artifacts


def _sources(selectors: list[Any], key: str, place: str) -> OutputSources:
    found = []
    for selector in selectors:
        fields = as_mapping(selector, place)
        task = as_text(fields.get("producerSubtask"), place)
        found.append((task, as_text(fields.get(key), place)))
    return tuple(found)


def _parameters(
    spec: dict[str, Any], place: str
) -> tuple[dict[str, Expression], dict[str, Expression]]:
    """Inputs from the DAG, and those put together from the task's other inputs."""
    inputs: dict[str, Expression] = {}
    own: dict[str, Expression] = {}
    listed = as_mapping(spec.get("inputs"), f"{place}: inputs")
    for name, source in as_mapping(listed.get("parameters"), f"{place}: inputs").items():
        where = f"{place}: input {name:.80}"
        expression = parameter_source(as_mapping(source, where), where)
        if isinstance(expression, Constant) and isinstance(expression.value, str):
            expression = text_with_inputs(expression.value)
            if tuple(expression.input_names()):
                own[name] = expression
                continue
        inputs[name] = expression
    return inputs, own


def _artifacts(spec: dict[str, Any], place: str) -> dict[str, Expression]:
    artifacts: dict[str, Expression] = {}
    listed = as_mapping(spec.get("inputs"), f"{place}: inputs")
    for name, source in as_mapping(listed.get("artifacts"), f"{place}: inputs").items():
        where = f"{place}: input {name:.80}"
        fields = as_mapping(source, where)
        if fields.get("taskOutputArtifact") is not None:
            output = as_mapping(fields["taskOutputArtifact"], where)
            task = as_text(output.get("producerTask"), where)
            artifacts[name] = TaskOutput(task, as_text(output.get("outputArtifactKey"), where))
        elif fields.get("componentInputArtifact") is not None:
            artifacts[name] = Input(as_text(fields["componentInputArtifact"], where))
        else:
            artifacts[name] = Runtime()
    return artifacts


def _loop(spec: dict[str, Any], inputs: dict[str, Expression], place: str) -> Loop | None:
    """The task's loop; its item becomes one more input."""
    policy = as_mapping(spec.get("iteratorPolicy"), f"{place}: iteratorPolicy")
    parallelism = as_count(policy.get("parallelismLimit"), f"{place}: parallelismLimit")
    if spec.get("artifactIterator") is not None:
        return Loop(Runtime(), parallelism)
    if spec.get("parameterIterator") is None:
        return None
    where = f"{place}: parameterIterator"
    iterator = as_mapping(spec["parameterIterator"], where)
    items = as_mapping(iterator.get("items"), where)
    item_input = as_text(iterator.get("itemInput"), where)
    if items.get("raw") is not None:
        source = _raw_items(as_text(items["raw"], where), inputs, where)
    else:
        name = as_text(items.get("inputParameter"), where)
        source = inputs.get(name, Runtime())
    if item_input:
        inputs[item_input] = LoopItem()
    return Loop(source, parallelism)


def _raw_items(text: str, inputs: Mapping[str, Expression], place: str) -> Expression:
    entries = parse_json(text, place=f"{place}: items")
    if not isinstance(entries, list):
        raise InputError(f"{place}: items must be a JSON list, is {text!r:.60}")
    if "{{$" not in text:
        return Constant(entries)
    return Listed(tuple(_raw_item(entry, inputs) for entry in entries))


def _raw_item(entry: Any, inputs: Mapping[str, Expression]) -> Expression:
    if isinstance(entry, str):
        expression = text_with_inputs(entry)
        if isinstance(expression, Input):
            return inputs.get(expression.name, Runtime())
        return expression if isinstance(expression, Constant) else Runtime()
    return Runtime() if "{{$" in str(entry) else Constant(entry)
