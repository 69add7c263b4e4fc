"""Where KFP's inputs come from: constants, inputs of the DAG, outputs of tasks, text with gaps."""

import re

from kfp_placement_engine.readers.fields import Fields
from kfp_placement_engine.readers.tree.expressions import (
    Constant,
    Expression,
    Input,
    Joined,
    Runtime,
    Selected,
    TaskOutput,
)

_INPUT = re.compile(r"""\{\{\$\.inputs\.parameters\[(?:'([^']*)'|"([^"]*)")\]\}\}""")
_SELECTOR = re.compile(r"""^parseJson\(string_value\)\["(.*)"\]$""", re.DOTALL)


def text_with_inputs(text: str) -> Expression:
    """Text in which `{{$.inputs.parameters['x']}}` stands for the task's own input x."""
    parts: list[Expression] = []
    position = 0
    for match in _INPUT.finditer(text):
        if match.start() > position:
            parts.append(Constant(text[position : match.start()]))
        parts.append(Input(match.group(1) if match.group(1) is not None else match.group(2)))
        position = match.end()
    if position < len(text) or not parts:
        parts.append(Constant(text[position:]))
    return parts[0] if len(parts) == 1 else Joined(tuple(parts))


def parameter_source(spec: Fields) -> Expression:
    """Where a task's input parameter comes from, in the enclosing DAG.

    Raises:
        InputError: malformed.
    """
    spec = spec.closed()
    source: Expression
    if "componentInputParameter" in spec:
        source = Input(spec.text("componentInputParameter"))
    elif "taskOutputParameter" in spec:
        output = spec.flat("taskOutputParameter")
        task = output.text("producerTask")
        source = TaskOutput(task, output.text("outputParameterKey"))
    elif "runtimeValue" in spec:
        source = _runtime_value(spec.flat("runtimeValue"))
    else:
        source = Runtime()
    selector = spec.text("parameterExpressionSelector")
    if not selector:
        return source
    match = _SELECTOR.match(selector)
    return Selected(source, match.group(1)) if match else Runtime()


def _runtime_value(value: Fields) -> Expression:
    if "constant" in value:
        return Constant(value.get("constant"))
    if "runtimeParameter" in value:
        return Input(value.text("runtimeParameter"))
    # Packages of schema 2.0: {"constantValue": {"intValue": "3"}}.
    constants = list(value.mapping("constantValue").values())
    return Constant(constants[0]) if constants else Runtime()
