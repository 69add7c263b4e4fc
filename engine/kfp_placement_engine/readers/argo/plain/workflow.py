"""A reader of plain Argo Workflows: DAG and steps templates with our labels on their pods."""

from collections.abc import Iterable, Iterator
from itertools import islice

from kfp_placement_engine.exceptions import ArgumentError
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.readers.argo.keys import SOURCE
from kfp_placement_engine.readers.argo.plain.limits import locks, parallelism, workflow_notices
from kfp_placement_engine.readers.argo.plain.templates import TemplateReader
from kfp_placement_engine.readers.argo.references.template_library import TemplateLibrary
from kfp_placement_engine.readers.argo.tags import TagReader
from kfp_placement_engine.readers.argo.workflow_templates import (
    WorkflowTemplates,
    named_parameters,
    run_claims,
)
from kfp_placement_engine.readers.kfp.arguments import missing_notices, unknown_parameter
from kfp_placement_engine.readers.kubernetes.start_limits import run_limit
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import scalar_text
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.tasks import TaskTree

_SHOWN = 5


def plain_workflow_tree(
    spec: Fields,
    metadata: Fields,
    library: TemplateLibrary,
    options: ReadOptions,
    *,
    is_template: bool,
) -> TaskTree:
    """Read a Workflow that was not made by KFP.

    Args:
        spec: the Workflow's spec, at the place of its file.
        metadata: the Workflow's metadata.
        library: templates outside of the Workflow.
        options: settings, of which the arguments are used.
        is_template: whether Workflows that use it may have further parameters.

    Raises:
        ArgumentError: the Workflow does not take one of the arguments.
        InputError: the Workflow is malformed.
        LimitError: the Workflow is nested too deeply.
    """
    workflow, generated = metadata.text("name"), metadata.text("generateName")
    namespace = metadata.text("namespace")
    parameters, missing = _parameters(spec, options)
    tags = TagReader({**dict.fromkeys(missing), **parameters}, _variables(spec, metadata))
    reader = TemplateReader(spec, library, tags)
    root = reader.root(parameters)
    return TaskTree(
        name=generated.rstrip("-") or workflow or spec.place.spelled,
        source=SOURCE,
        root=root,
        # Argo hands the Workflow's parameters to the entrypoint as its inputs.
        arguments=parameters,
        missing_arguments=tuple(missing),
        parallelism=parallelism(spec),
        locks=locks(spec, tags),
        run_claims=run_claims(spec),
        end_limit=run_limit(spec),
        notices=(
            *missing_notices(missing),
            *_refused_tags(
                text
                for tag, text in tags.refused.items()
                if not (is_template and tag.startswith("workflow."))
            ),
            *workflow_notices(spec),
            *dict.fromkeys(reader.notices),
            *reader.unused.notices(),
        ),
        workflow=workflow,
        namespace=namespace,
    )


def _variables(spec: Fields, metadata: Fields) -> dict[str, str]:
    """Return the values of tags that a Workflow states for good, beside its parameters.

    Labels and annotations are not among them: whoever may change these does so until Argo reads
    them.
    """
    holders = {
        metadata: ("name", "namespace", "uid", "creationTimestamp"),
        spec: ("serviceAccountName", "priority"),
    }
    values = {
        f"workflow.{key}": fields.get(key) for fields, keys in holders.items() for key in keys
    }
    return {tag: scalar_text(value) for tag, value in values.items() if value not in (None, "")}


def _refused_tags(tags: Iterable[str]) -> Iterator[Notice]:
    if named := ", ".join(islice(tags, _SHOWN)):
        message = f"the Workflow has nothing that {named} could stand for, so Argo refuses it"
        yield Notice("unknown-tag", message)


def _parameters(spec: Fields, options: ReadOptions) -> tuple[dict[str, str], list[str]]:
    names = [entry.name("name") for entry in spec.fields("arguments").each("parameters")]
    values = named_parameters(spec)
    if options.entrypoint:
        # A template for others says in its inputs what it takes.
        entry = WorkflowTemplates(spec).template(spec.text("entrypoint"))
        taken = (each.name("name") for each in entry.fields("inputs").each("parameters"))
        names = list(dict.fromkeys((*names, *taken)))
        values = {**named_parameters(entry, "inputs"), **values}
    for given in options.arguments:
        if given not in names:
            raise spec.place.error(unknown_parameter(str(given), names), ArgumentError)
    values.update({key: scalar_text(value) for key, value in options.arguments.items()})
    return values, [key for key in names if key not in values]
