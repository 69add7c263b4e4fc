"""Sources of KFP's inputs: constants, inputs of the DAG, outputs of tasks, text with gaps."""

import re

from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.tree.expressions import (
    Constant,
    Expression,
    Input,
    Runtime,
    Selected,
    TaskOutput,
    text_with_gaps,
)

_INPUT = re.compile(r"""\{\{\$\.inputs\.parameters\[(?:'([^']*)'|"([^"]*)")\]\}\}""")
_SELECTOR = re.compile(r"""^parseJson\(string_value\)\["(.*)"\]$""", re.DOTALL)


def text_with_inputs(text: str) -> Expression:
    """Read text in which `{{$.inputs.parameters['x']}}` stands for the task's own input x."""
    return text_with_gaps(
        text, _INPUT.finditer(text), lambda match: Input(match[1] or match[2] or "")
    )


def parameter_source(spec: Fields) -> Expression:
    """Return the source of a task's input parameter, in the enclosing DAG.

    Raises:
        InputError: the spec is malformed.
    """
    source: Expression
    if "componentInputParameter" in spec:
        source = Input(spec.text("componentInputParameter"))
    elif "taskOutputParameter" in spec:
        output = spec.fields("taskOutputParameter")
        task = output.text("producerTask")
        source = TaskOutput(task, output.text("outputParameterKey"))
    elif "runtimeValue" in spec:
        source = _runtime_value(spec.fields("runtimeValue"))
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


def constant_texts(fields: Fields, key: str) -> dict[str, Expression]:
    """Return a mapping of texts in the file as expressions.

    A number or truth value stays one, so that it can be recognised; as text it is what YAML shows.

    Args:
        fields: fields that have the mapping.
        key: key of the mapping.

    Raises:
        InputError: the value is not a mapping, or an entry is a mapping or a list.
    """
    texts = fields.text_mapping(key)
    plain = {str(name): value for name, value in fields.mapping(key).items()}
    return {
        name: Constant(text if plain[name] is None else plain[name]) for name, text in texts.items()
    }
