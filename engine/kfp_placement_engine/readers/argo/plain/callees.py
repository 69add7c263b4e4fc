"""The templates that tasks call: in the same object of Argo, or in another one (`templateRef`)."""

from typing import NamedTuple

from kfp_placement_engine.readers.argo.references.template_library import (
    TemplateLibrary,
    TemplateSource,
)
from kfp_placement_engine.readers.argo.tags import TagReader
from kfp_placement_engine.readers.argo.workflow_templates import WorkflowTemplates
from kfp_placement_engine.readers.text.fields import Fields

_OPEN = "which template it runs is known only at run time: the task counts as one step"


class Callee(NamedTuple):
    """A template that is called.

    Attributes:
        templates: templates of the object that it is in, among which it finds those that it calls.
        name: name of the template there.
    """

    templates: WorkflowTemplates
    name: str

    @property
    def template(self) -> Fields:
        """The template, without any field if there is none of that name."""
        return self.templates.template(self.name)


class CalleeFinder:
    """Finder of the templates that tasks call.

    Args:
        library: templates outside of the Workflow.
        tags: reader of tags.
    """

    def __init__(self, library: TemplateLibrary, tags: TagReader) -> None:
        self._library = library
        self._tags = tags

    def find(self, task: Fields, templates: WorkflowTemplates) -> Callee | str:
        """Return the template that a task calls, or a sentence that it is not known.

        Args:
            task: task or hook, not inline.
            templates: templates of the object that the task is in.

        Raises:
            InputError: the object is known, but has no such template.
        """
        if task.get("templateRef") is None:
            name = self._tags.plain(task.name("template"))
            return _OPEN if "{{" in name else Callee(templates, name)
        reference = task.fields("templateRef")
        named = {key: self._tags.plain(reference.name(key)) for key in ("name", "template")}
        source, name = TemplateSource.of({**reference.raw, **named}), named["template"]
        callee = Callee(self._library.templates(source), name)
        if name in callee.templates:
            return callee
        if "{{" in source.name + name:
            return _OPEN
        if self._library.holds(source):
            raise reference.error(f"{source} has no template {name!r:.80}")
        return f"the task counts as one step, since {self._library.problem(source)}"
