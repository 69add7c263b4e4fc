"""The spec of the run that an object of Argo describes, with what its WorkflowTemplate adds.

Argo joins the specs by a strategic merge patch, in which the Workflow's own values win
(`JoinWorkflowSpec` of its package `workflow/util`). Defaults of Argo's configuration are not known.
"""

from collections.abc import Sequence
from typing import Any

from kfp_placement_engine.exceptions import RequestError
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.readers.argo.keys import TEMPLATE_KINDS
from kfp_placement_engine.readers.argo.references.template_library import (
    TemplateLibrary,
    TemplateSource,
)
from kfp_placement_engine.readers.kubernetes.strategic_merge import merge
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.place import mapping_or_empty, text_or_empty
from kfp_placement_engine.readers.tree.options import ReadOptions

_SPEC_LISTS = {
    "artifacts": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "parameters": "name",
    "tolerations": "key",
    "volumes": "name",
}
"""Lists of a spec whose entries are merged, with the key by which two entries are the same."""

_STEERING = ("activeDeadlineSeconds", "shutdown", "suspend", "workflowTemplateRef")
"""Fields by which a run is steered, or refers to its template."""

_VALUES = ("value", "default", "valueFrom")


def run_metadata(workflow: Fields) -> Fields:
    """Return the metadata of the Workflow that an object is, or of that which Argo makes of it."""
    own = workflow.fields("metadata")
    if workflow.get("kind") not in ("CronWorkflow", *TEMPLATE_KINDS):
        return own
    made = {"generateName": f"{own.text('name')}-", "namespace": own.get("namespace")}
    given = workflow.flat("spec").mapping("workflowMetadata")
    if workflow.get("kind") == "CronWorkflow":
        made |= {key: given[key] for key in ("labels", "annotations") if key in given}
    return Fields(made, own.place)


def run_specs(
    workflow: Fields, library: TemplateLibrary, options: ReadOptions
) -> tuple[Fields, ...]:
    """Return the spec of a run, at the place of its file, and those that may take its place.

    Args:
        workflow: object of Argo.
        library: templates outside of it.
        options: settings, of which the entrypoint is used, and why templates could not be read.

    Raises:
        InputError: the object is malformed, or its steps are in an object that is not known.
        RequestError: the spec has no template of that name.
    """
    spec = workflow.flat("spec")
    if workflow.get("kind") == "CronWorkflow":
        spec = spec.flat("workflowSpec")
    specs: tuple[Fields, ...] = (spec,)
    if spec.get("workflowTemplateRef") is not None:
        specs = _joined(workflow, spec, library, options.templates.unread)
    if options.entrypoint:
        return tuple(_with_entrypoint(each, options.entrypoint) for each in specs)
    if not specs[0].get("entrypoint"):
        is_library = workflow.get("kind") in TEMPLATE_KINDS
        what = f": a {workflow.get('kind')} of templates for others" if is_library else ""
        names = template_names(specs[0])
        way = f"; name the one that runs ({listed(names)})" if names else ""
        way += f": --entrypoint {names[0]:.80} (entrypoint= in Python)" if names else ""
        raise workflow.error(f"spec.entrypoint is missing{what}{way}")
    return specs


def template_names(spec: Fields) -> list[str]:
    """Return the names of a spec's templates."""
    return [name for each in spec.each("templates") if (name := text_or_empty(each.get("name")))]


def _with_entrypoint(spec: Fields, entrypoint: str) -> Fields:
    names = template_names(spec)
    if entrypoint not in names:
        has = f"has {listed(names)}" if names else "has no templates"
        raise spec.place.error(f"no template is called {entrypoint!r:.80}; it {has}", RequestError)
    return Fields({**spec.raw, "entrypoint": entrypoint}, spec.place)


def _joined(
    workflow: Fields, spec: Fields, library: TemplateLibrary, unread: Sequence[str]
) -> tuple[Fields, ...]:
    if spec.get("templates"):
        raise spec.error("has a workflowTemplateRef and templates of its own, which Argo refuses")
    status = workflow.flat("status")
    if status.get("storedWorkflowTemplateSpec") is not None:
        stored = status.flat("storedWorkflowTemplateSpec")
        joined = Fields(joined_specs(stored.raw, spec.raw), workflow.place)
        if spec.get("entrypoint") and not stored.get("entrypoint"):
            return (joined,)
        # As Argo does, which compares pointers to `suspend`: two values are never the same.
        is_joined_again = any(each.get("suspend") is not None for each in (stored, spec)) or (
            stored.get("shutdown") or ""
        ) != (spec.get("shutdown") or "")
        # What Argo itself has stored, it joins without effect. People suspend and resume runs.
        specs = (joined, stored) if is_joined_again else (stored, joined)
        return specs[:1] if _lasting(joined) == _lasting(stored) else specs
    source = TemplateSource.of(spec.mapping("workflowTemplateRef"))
    base = library.spec(source)
    own = workflow.fields("metadata").text("name")
    if base is None and source == (workflow.get("kind"), own):
        raise workflow.error("its workflowTemplateRef names itself, so that no steps are found")
    if base is None:
        why = next((f" ({text})" for text in unread if str(source) in text), "")
        raise workflow.error(f"its steps are in another object{why}: {library.problem(source)}")
    return (Fields(joined_specs(base.raw, spec.raw), workflow.place),)


def _lasting(spec: Fields) -> dict[str, Any]:
    """Return what remains of a spec when a run is suspended, resumed and ended."""
    return {
        key: value
        for key, value in spec.raw.items()
        if key not in _STEERING and value not in (None, {})
    }


def joined_specs(base: RawMapping, own: RawMapping) -> dict[str, Any]:
    """Return the spec of a WorkflowTemplate under that of a Workflow, as Argo joins them.

    Args:
        base: spec of the WorkflowTemplate.
        own: spec of the Workflow, whose values win.
    """
    joined: dict[str, Any] = merge(dict(base), dict(own), _SPEC_LISTS)
    hooks = (mapping_or_empty(spec.get("hooks")) for spec in (base, own))
    # A hook is one value: Argo does not merge what is in it.
    joined["hooks"] = {name: hook for each in hooks for name, hook in each.items()}
    joined["suspend"] = own.get("suspend")
    arguments = mapping_or_empty(joined.get("arguments"))
    if isinstance(arguments.get("parameters"), list):
        parameters = _with_whole_values(arguments["parameters"], own)
        joined["arguments"] = {**arguments, "parameters": parameters}
    return {key: value for key, value in joined.items() if value not in (None, {})}


def _with_whole_values(parameters: list[Any], own: RawMapping) -> list[Any]:
    """Return parameters of which those that the Workflow gives a value are its own as a whole."""
    listed_own = mapping_or_empty(own.get("arguments")).get("parameters")
    whole = {
        str(each.get("name")): each
        for each in (listed_own if isinstance(listed_own, list) else ())
        if isinstance(each, dict) and any(each.get(key) is not None for key in _VALUES)
    }
    return [whole.get(str(mapping_or_empty(each).get("name")), each) for each in parameters]
