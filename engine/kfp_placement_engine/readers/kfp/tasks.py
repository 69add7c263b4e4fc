"""A reader of KFP's PipelineTaskSpec, for packages and Workflows alike."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from kfp_placement_engine.readers.formulas.cel_condition import CelCondition
from kfp_placement_engine.readers.kfp.values import parameter_source, text_with_inputs
from kfp_placement_engine.readers.text.documents import parse_json
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.expressions import (
    Constant,
    Expression,
    Expressions,
    Input,
    Listed,
    LoopItem,
    Runtime,
    TaskOutput,
    input_names,
)
from kfp_placement_engine.readers.tree.leaves import Leaf
from kfp_placement_engine.readers.tree.tasks import (
    Dag,
    Loop,
    Names,
    OutputKind,
    Outputs,
    OutputSources,
    Task,
)

EXIT_STRATEGY = "ALL_UPSTREAM_TASKS_COMPLETED"


MAX_DISPLAY_NAME = 256
"""Length of the longest display name, in characters; people could not read a longer one."""


def dependencies(spec: Fields) -> Names:
    """Return the tasks that a task waits for: the listed ones, and the producers of its inputs.

    Raises:
        InputError: the spec is malformed.
    """
    names = dict.fromkeys(spec.texts("dependentTasks"))
    inputs = spec.fields("inputs")
    for kind, key in (("parameters", "taskOutputParameter"), ("artifacts", "taskOutputArtifact")):
        for _, source in inputs.each_named(kind):
            if source.get(key) is not None:
                names[source.fields(key).name("producerTask")] = None
    return tuple(names)


def is_exit_task(spec: Fields) -> bool:
    """Return whether a task runs at the end of another, whatever the outcome.

    Raises:
        InputError: the spec is malformed.
    """
    # Protocol buffers write the strategy's name, or its number.
    return spec.fields("triggerPolicy").text("strategy") in (EXIT_STRATEGY, "2")


def exit_targets(
    specs: Mapping[str, Fields], can_have_exit: Callable[[Fields], bool], place: Place
) -> dict[str, Names]:
    """Return a DAG's exit tasks, each with the tasks after which it runs; none = it never runs.

    This is KFP's rule: every task that an exit task waits for gets it as its exit hook, and of two
    exit tasks of one task the last by name wins.

    Args:
        specs: PipelineTaskSpecs of the DAG, by name.
        can_have_exit: function that returns whether KFP attaches an exit task to a task.
        place: place of the DAG, for messages.

    Raises:
        InputError: an exit task waits for a task that does not exist.
    """
    exits = [name for name in sorted(specs) if is_exit_task(specs[name])]
    owner: dict[str, str] = {}
    for name in exits:
        for other in dependencies(specs[name]):
            if other not in specs:
                raise place.error(
                    f"task {name!r:.80} waits for {other!r:.80}, which does not exist"
                )
            owner[other] = name
    targets: dict[str, list[str]] = {name: [] for name in exits}
    for other, name in sorted(owner.items()):
        if other not in targets and can_have_exit(specs[other]):
            targets[name].append(other)
    return {name: tuple(others) for name, others in targets.items()}


def read_task(
    name: str,
    spec: Fields,
    body: Leaf | Dag,
    *,
    depends_on: Names,
    exit_of: Names,
    extra_inputs: Mapping[str, Expression],
    dag: Fields,
) -> Task:
    """Read a task of a DAG.

    Args:
        name: name of the task in the DAG.
        spec: PipelineTaskSpec of the task.
        body: leaf or DAG that the task runs.
        depends_on: tasks that it waits for.
        exit_of: tasks after which an exit task runs; empty for other tasks.
        extra_inputs: inputs of the body besides those of the spec.
        dag: component of the DAG.

    Raises:
        InputError: the spec is malformed.
    """
    inputs, own_inputs = _parameters(spec)
    undefined = _undefined_inputs(inputs, dag)
    inputs.update(extra_inputs)
    loop = _loop(spec, inputs)
    item_input = spec.fields("parameterIterator").text("itemInput")
    if item_input:
        inputs[item_input] = LoopItem()
    condition = spec.fields("triggerPolicy").text("condition")
    shown = spec.fields("taskInfo").text("name")[:MAX_DISPLAY_NAME]
    return Task(
        name=name,
        body=body,
        depends_on=depends_on,
        exit_of=exit_of,
        inputs=inputs,
        own_inputs=own_inputs,
        artifacts=_artifacts(spec),
        # The driver of a loop evaluates it before there are items; no SDK makes such conditions.
        condition=CelCondition(condition, inputs if loop is None else {}) if condition else None,
        loop=loop,
        required_inputs=undefined,
        lost_input=partial(_lost, dag=dag),
        display_name="" if shown == name or not shown.strip() else shown,
    )


def dag_outputs(component: Fields) -> Outputs:
    """Return the sources of a DAG's output parameters and artifacts.

    Raises:
        InputError: the spec is malformed.
    """
    listed = component.fields("dag").fields("outputs")
    outputs: dict[tuple[OutputKind, str], OutputSources] = {}
    for name, output in listed.each_named("parameters"):
        selectors = output.fields("valueFromOneof").each("parameterSelectors")
        if output.get("valueFromParameter") is not None:
            selectors = iter([output.fields("valueFromParameter")])
        outputs["parameters", name] = _sources(selectors, "outputParameterKey")
    for name, output in listed.each_named("artifacts"):
        selectors = output.each("artifactSelectors")
        outputs["artifacts", name] = _sources(selectors, "outputArtifactKey")
    return outputs


def _sources(selectors: Iterable[Fields], key: str) -> OutputSources:
    return tuple((fields.text("producerSubtask"), fields.text(key)) for fields in selectors)


def _parameters(spec: Fields) -> tuple[Expressions, Expressions]:
    """Return inputs from the DAG, and inputs put together from the task's other inputs."""
    inputs: Expressions = {}
    own: Expressions = {}
    for name, source in spec.fields("inputs").each_named("parameters"):
        expression = parameter_source(source)
        if isinstance(expression, Constant) and isinstance(expression.value, str):
            expression = text_with_inputs(expression.value)
            if input_names(expression):
                own[name] = expression
                continue
        inputs[name] = expression
    return inputs, own


def _artifacts(spec: Fields) -> Expressions:
    artifacts: Expressions = {}
    for name, fields in spec.fields("inputs").each_named("artifacts"):
        if fields.get("taskOutputArtifact") is not None:
            output = fields.fields("taskOutputArtifact")
            task = output.text("producerTask")
            artifacts[name] = TaskOutput(task, output.text("outputArtifactKey"))
        elif fields.get("componentInputArtifact") is not None:
            artifacts[name] = Input(fields.text("componentInputArtifact"))
        else:
            artifacts[name] = Runtime()
    return artifacts


def _loop(spec: Fields, inputs: Expressions) -> Loop | None:
    """Return the task's loop, which may be over one of its inputs; None without a loop."""
    parallelism = spec.fields("iteratorPolicy").count("parallelismLimit")
    if spec.get("artifactIterator") is not None:
        return Loop(Runtime(), parallelism)
    if spec.get("parameterIterator") is None:
        return None
    iterator = spec.fields("parameterIterator")
    items = iterator.fields("items")
    if items.get("raw") is not None:
        source = _raw_items(items.text("raw"), inputs, iterator.place)
    else:
        source = inputs.get(items.text("inputParameter"), Runtime())
    return Loop(source, parallelism)


def _raw_items(text: str, inputs: Expressions, place: Place) -> Expression:
    entries = parse_json(text, place=place.field("items"))
    if not isinstance(entries, list):
        raise place.error(f"items must be a JSON list, is {text!r:.60}")
    if "{{$" not in text:
        return Constant(entries)
    return Listed(tuple(_raw_item(entry, inputs) for entry in entries))


def _raw_item(entry: Any, inputs: Expressions) -> Expression:
    if isinstance(entry, str):
        expression = text_with_inputs(entry)
        if isinstance(expression, Input):
            return inputs.get(expression.name, Runtime())
        return expression if isinstance(expression, Constant) else Runtime()
    return Runtime() if "{{$" in str(entry) else Constant(entry)


def _undefined_inputs(inputs: Expressions, dag: Fields) -> Names:
    """Return the inputs of a DAG that a task reads, but that the DAG's component does not define.

    A defined one may have no value: KFP's driver hands on that it has none (`driver/resolve.go`).
    """
    if dag.get("dag") is None:
        # The component is not in the file, as in the Workflows of KFP 3.
        return ()
    defined = dag.fields("inputDefinitions").mapping("parameters")
    read = {name: None for source in inputs.values() for name in input_names(source)}
    return tuple(name for name in read if name not in defined)


def _lost(name: str, dag: Fields) -> tuple[str, str]:
    """Return the problem of a task that reads a parameter which its DAG does not get."""
    group = dag.place.spelled.split()[-1].removeprefix("comp-")
    parameter = name.removeprefix("pipelinechannel--")
    items, is_field, key = parameter.partition("-loop-item-subvar-")
    if is_field:
        parameter = f"field {key:.80} of the items of {items}"
    return (
        "lost-parameter",
        f"it reads {parameter:.200}, which the SDK does not hand to {group:.80}: KFP's driver stops"
        " the run here; give a step of that group the value as an argument, too, or set the request"
        " outside of the group",
    )
