"""Templates of other objects: where the references of a run lead, and which are not known.

Argo resolves `templateRef` by the names alone. Within a WorkflowTemplate, a template's name means a
template of the same object; everything else is that of the run: parameters, defaults, selectors.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from typing_extensions import override

from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.readers.argo.keys import TEMPLATE_KINDS
from kfp_placement_engine.readers.argo.workflow_templates import WorkflowTemplates
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.place import mapping_or_empty, text_or_empty

TEMPLATE_KIND, CLUSTER_KIND = TEMPLATE_KINDS

INLINE = "inline/"
"""Beginning of the names under which Argo stores templates that are inline in tasks."""

_SHOWN = 5

_SCOPES = {"namespaced": TEMPLATE_KIND, "cluster": CLUSTER_KIND}
"""Kinds by the first part of a key in `status.storedTemplates`."""


class TemplateSource(NamedTuple):
    """The object that a reference leads to; as text, that for people.

    Attributes:
        kind: one of `TEMPLATE_KINDS`.
        name: name of the object.
    """

    kind: str
    name: str

    @override
    def __str__(self) -> str:
        return f"{self.kind} {self.name:.80}"

    @classmethod
    def of(cls, reference: RawMapping) -> "TemplateSource":
        """Return the object that a `templateRef` or `workflowTemplateRef` names."""
        kind = CLUSTER_KIND if reference.get("clusterScope") is True else TEMPLATE_KIND
        return cls(kind, str(reference.get("name")))


def referred(document: object) -> Iterator[TemplateSource]:
    """Yield the objects that an object of Argo refers to, as often as it does.

    Args:
        document: object of Argo, any part of which may be malformed.
    """
    open_values = [document]
    while open_values:
        value = open_values.pop()
        if isinstance(value, dict):
            for key in ("templateRef", "workflowTemplateRef"):
                if isinstance(mapping_or_empty(value.get(key)).get("name"), str):
                    yield TemplateSource.of(value[key])
            open_values.extend(value.values())
        elif isinstance(value, list):
            open_values.extend(value)


class TemplateLibrary:
    """The templates outside of a Workflow that it may refer to."""

    def __init__(
        self, objects: Iterable[Fields], stored: Fields, namespace: str, advice: str = ""
    ) -> None:
        """Index the objects.

        Args:
            objects: WorkflowTemplates and ClusterWorkflowTemplates; others do not count.
            stored: templates that Argo has stored in the Workflow's status.
            namespace: namespace of the run; "" = not known.
            advice: advice for whoever lacks one of the objects.
        """
        self._namespace, self._advice = namespace, advice
        self._objects: dict[TemplateSource, list[Fields]] = {}
        for each in objects:
            if each.get("kind") in TEMPLATE_KINDS:
                source = TemplateSource(str(each.get("kind")), _metadata_text(each, "name"))
                self._objects.setdefault(source, []).append(each)
        self._stored_at = stored.place
        self._stored: dict[TemplateSource, dict[str, Any]] = {}
        for key, template in stored.raw.items():
            scope, _, path = key.partition("/")
            name, _, template_name = path.partition("/")
            if scope in _SCOPES and isinstance(template, dict):
                of_source = self._stored.setdefault(TemplateSource(_SCOPES[scope], name), {})
                of_source[template_name] = {**template, "name": template_name}
        self._scopes: dict[TemplateSource, WorkflowTemplates] = {}

    def spec(self, source: TemplateSource) -> Fields | None:
        """Return the spec of an object, or None if it is not known.

        Raises:
            InputError: the object is malformed, or two different ones have its name.
        """
        chosen = self._object(source)
        return None if chosen is None else chosen.flat("spec")

    def templates(self, source: TemplateSource) -> WorkflowTemplates:
        """Return the templates of an object; those that Argo has stored win, as they are run.

        Raises:
            InputError: the object is malformed, or two different ones have its name.
        """
        if source not in self._scopes:
            self._scopes[source] = self._templates(source)
        return self._scopes[source]

    def holds(self, source: TemplateSource) -> bool:
        """Return whether an object itself is known, and not only what Argo has stored of it."""
        return source in self._objects and self._object(source) is not None

    def problem(self, source: TemplateSource) -> str:
        """Return the sentence that an object is not known, with what comes close or what to do."""
        is_cluster = source.kind == CLUSTER_KIND
        other = TemplateSource(TEMPLATE_KIND if is_cluster else CLUSTER_KIND, source.name)
        if self.holds(other):
            scope = "false" if is_cluster else "true"
            return f"{source} is not known, but {other} is: write clusterScope: {scope}"
        if elsewhere := self._objects.get(source):
            where = _metadata_text(elsewhere[0], "namespace")
            return (
                f"{source} is known in namespace {where:.80} only, and the run is in"
                f" {self._namespace:.80}, where Argo looks for it"
            )
        others = listed([str(each) for each in self._objects], _SHOWN)
        return f"{source} is not known{f' (known: {others})' if others else ''}; {self._advice}"

    def _templates(self, source: TemplateSource) -> WorkflowTemplates:
        chosen, stored = self._object(source), self._stored.get(source, {})
        place = (self._stored_at if chosen is None else chosen.place).then(": {}", source)
        own = Fields({}, place) if chosen is None else Fields(chosen.mapping("spec"), place)
        metadata = own.mapping("podMetadata")
        own_templates = [_with_metadata(each.raw, metadata) for each in own.each("templates")]
        others = [each for each in own_templates if each.get("name") not in stored]
        return WorkflowTemplates(Fields({"templates": [*others, *stored.values()]}, place))

    def _object(self, source: TemplateSource) -> Fields | None:
        """Return the object of this name in the run's namespace; files may leave that out."""
        chosen: Fields | None = None
        for each in self._objects.get(source, ()):
            if not self._is_near(each):
                continue
            if chosen is not None and chosen.get("spec") != each.get("spec"):
                raise each.error(
                    f"{source} is also in {chosen.place.spelled}, with other content; give only one"
                )
            chosen = each
        return chosen

    def _is_near(self, each: Fields) -> bool:
        namespace = _metadata_text(each, "namespace")
        # What counts in the whole cluster is in no namespace, whatever its file says.
        is_everywhere = each.get("kind") == CLUSTER_KIND or not namespace
        return is_everywhere or self._namespace in ("", namespace)


def _metadata_text(each: Fields, key: str) -> str:
    return text_or_empty(mapping_or_empty(each.get("metadata")).get(key))


def _with_metadata(template: RawMapping, metadata: Mapping[str, Any]) -> RawMapping:
    """Return a template with the `podMetadata` of its WorkflowTemplate; its own values win."""
    if not metadata:
        return template
    own = mapping_or_empty(template.get("metadata"))
    joined = {
        key: {**mapping_or_empty(metadata.get(key)), **mapping_or_empty(own.get(key))}
        for key in ("labels", "annotations")
    }
    return {**template, "metadata": joined}
