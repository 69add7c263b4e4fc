"""Notices about the fields of a run's file that its plan does not use.

A file is walked once, as it is written: a template that a thousand steps run is looked at once, one
that no step runs never. The walk raises no error: what is malformed is for the readers to refuse.
"""

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.run_graph import NOT_USED, Notice
from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES, load_documents
from kfp_placement_engine.readers.text.fields import RawMapping
from kfp_placement_engine.readers.unused.field_lists import (
    Effect,
    FieldList,
    FieldType,
    MappingOf,
    TemplateName,
)
from kfp_placement_engine.readers.unused.package_fields import PIPELINE_SPEC, PLATFORM_SPEC
from kfp_placement_engine.readers.unused.pod_fields import POD_SPEC
from kfp_placement_engine.readers.unused.workflow_fields import TEMPLATE, WORKFLOW_SPEC

_MOST = 3
"""Places, or unknown fields, that a notice names."""


def unused_in_package(pipeline: RawMapping, platform: RawMapping) -> tuple[Notice, ...]:
    """Return notices about the fields of a package.

    Args:
        pipeline: the pipeline spec.
        platform: the platform spec; empty if there is none.
    """
    walk = _Walk()
    walk.object(pipeline, PIPELINE_SPEC, "")
    walk.object(platform, PLATFORM_SPEC, "")
    return tuple(walk.notices())


def unused_in_workflow(spec: RawMapping) -> tuple[Notice, ...]:
    """Return notices about the fields of a Workflow.

    Args:
        spec: the Workflow's spec.
    """
    walk = _Walk()
    walk.object(spec, WORKFLOW_SPEC, "spec")
    walk.templates(spec.get("templates"))
    return tuple(walk.notices())


class _Walk:
    def __init__(self) -> None:
        self._run: list[str] = []
        self._unused: dict[tuple[str, Effect], list[str]] = {}
        self._unknown: dict[str, str] = {}

    def object(self, raw: RawMapping, fields: FieldList, path: str) -> None:
        """Look at the fields of an object.

        Args:
            raw: the object.
            fields: fields of its type.
            path: place of the object.
        """
        for key, value in raw.items():
            if (effect := fields.effects.get(key)) is not None:
                if effect.applies(value):
                    self._unused.setdefault((key, effect), []).append(path or "package")
            elif (kind := fields.types.get(key)) is not None:
                self._field(value, kind, _in(path, key))
            elif key not in fields.names:
                self._unknown.setdefault(_in(path, key), _meant(key, fields.names))

    def _field(self, value: Any, kind: FieldType, path: str) -> None:
        if isinstance(kind, TemplateName):
            self._run.append(str(value))
        elif isinstance(kind, MappingOf):
            if isinstance(value, dict):
                for name, each in value.items():
                    self._field(each, kind.each, f"{path}[{name:.60}]")
        elif isinstance(value, dict):
            self.object(value, kind, path)
        elif isinstance(value, list):
            for index, each in enumerate(value):
                name = each.get("name", index) if isinstance(each, dict) else index
                self._field(each, kind, f"{path}[{name!s:.60}]")
        elif isinstance(value, str) and kind is POD_SPEC:
            self._patch(value, path)

    def _patch(self, text: str, path: str) -> None:
        if "{{" in text:
            return
        data = text.encode("utf-8", "replace")
        try:
            patch, *_ = load_documents(data, name=path, max_bytes=RUN_MAX_BYTES)
        except InputError:
            return
        if isinstance(patch, dict):
            self.object(patch, POD_SPEC, path)

    def templates(self, listed: Any) -> None:
        """Look at the templates that are run; at all if which are is known only at run time."""
        templates = {
            str(each.get("name")): each
            for each in (listed if isinstance(listed, list) else ())
            if isinstance(each, dict)
        }
        # The list grows: templates that are run name others.
        for name in self._run:
            if "{{" in name:
                self._run.extend(templates)
            if (template := templates.pop(name, None)) is not None:
                self.object(template, TEMPLATE, f"spec.templates[{name:.60}]")

    def notices(self) -> Iterator[Notice]:
        """Yield one notice for each field that is not used, and one for unknown fields."""
        for (field, effect), places in self._unused.items():
            yield Notice(NOT_USED, f"{field} is not used: {effect.text} ({_some(places)})")
        if self._unknown:
            listed = (f"{field}{meant}" for field, meant in self._unknown.items())
            yield Notice("unknown-field", f"unknown fields are not used: {_some(listed)}")


def _in(path: str, field: str) -> str:
    return f"{path}.{field:.60}" if path else f"{field:.60}"


def _meant(field: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(field[:60], names, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _some(texts: Iterable[str]) -> str:
    """Return the first of the texts, and how many more there are."""
    each = list(texts)
    more = len(each) - _MOST
    return f"{', '.join(each[:_MOST])}{f' and {more} more' if more > 0 else ''}"
