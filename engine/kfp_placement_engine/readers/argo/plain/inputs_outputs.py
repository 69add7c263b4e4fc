"""Inputs and outputs of a template: defaults, artifacts from outside of the run, and sources."""

from typing import Any

from kfp_placement_engine.readers.argo.tags import TagReader
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.tree.expressions import (
    Constant,
    Expressions,
    Runtime,
    TaskOutput,
)
from kfp_placement_engine.readers.tree.tasks import OutputKind, Outputs, OutputSources

_WITHIN_RUN = {"name", "path", "mode", "optional", "archive", "globalName"}
"""Fields of an input artifact that comes from the run itself."""


def input_defaults(template: Fields, tags: TagReader) -> dict[str, Any]:
    """Return the values of input parameters that a template sets itself.

    Raises:
        InputError: the template or the spec is malformed.
    """
    # Argo validates a template first as if its caller gave every input (`FakeArguments`).
    unjudged = tags.with_values({})
    values = {
        each.text("name"): unjudged.text(each.get("value", each.get("default")))
        for each in template.fields("inputs").each("parameters")
        # A ConfigMap wins over what is beside it.
        if each.fields("valueFrom").get("configMapKeyRef") is None
    }
    return {
        name: value.value
        for name, value in values.items()
        if isinstance(value, Constant) and value.value is not None
    }


def outside_artifacts(template: Fields) -> Expressions:
    """Return the input artifacts that a template takes from a place outside of the run.

    Raises:
        InputError: an input is malformed.
    """
    return {
        fields.name("name"): Runtime()
        for fields in template.fields("inputs").each("artifacts")
        if set(fields.raw) - _WITHIN_RUN
    }


def outputs_of(template: Fields, tags: TagReader) -> Outputs:
    """Return the sources of the outputs of a template.

    Raises:
        InputError: an output is malformed.
    """

    def sources(value: object) -> OutputSources:
        source = tags.text(value)
        return ((source.task, source.key),) if isinstance(source, TaskOutput) else ()

    listed = template.fields("outputs")
    outputs: dict[tuple[OutputKind, str], OutputSources] = {}
    for fields in listed.each("parameters"):
        source = fields.fields("valueFrom").get("parameter")
        outputs["parameters", fields.text("name")] = sources(source)
    for fields in listed.each("artifacts"):
        outputs["artifacts", fields.text("name")] = sources(fields.get("from"))
    return outputs
