"""Notices about the fields of a run's file that its plan does not use.

A file is looked at once, as it is written: a template that a thousand steps run counts once, one
that no step runs never. Nothing raises an error: what is malformed is for the readers to refuse.
"""

import difflib
import functools
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.notices import HIDDEN_DEMAND, NOT_USED, Notice
from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES, load_documents
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.place import UNNAMED, Place
from kfp_placement_engine.readers.text.tags import with_replaced_tags
from kfp_placement_engine.readers.unused.field_lists import (
    Effect,
    FieldList,
    FieldType,
    MappingOf,
)
from kfp_placement_engine.readers.unused.package_fields import PIPELINE_SPEC, PLATFORM_SPEC
from kfp_placement_engine.readers.unused.pod_fields import POD_SPEC
from kfp_placement_engine.readers.unused.workflow_fields import TEMPLATE, WORKFLOW_SPEC

_TEMPLATES = FieldList(types={"templates": TEMPLATE})

_SPEC = Place("spec", joint=".")

_MOST = 3
"""Places, or unknown fields, that a notice names."""


def unused_in_package(pipeline: RawMapping, platform: RawMapping) -> Iterator[Notice]:
    """Yield notices about the fields of a package.

    Args:
        pipeline: the pipeline spec.
        platform: the platform spec; empty if there is none.
    """
    unused = UnusedFields()
    unused.look_at(pipeline, PIPELINE_SPEC, UNNAMED)
    unused.look_at(platform, PLATFORM_SPEC, UNNAMED)
    yield from unused.notices()


def unused_in_workflow(spec: Fields) -> Iterator[Notice]:
    """Yield notices about the fields of a Workflow that runs all of its templates.

    Args:
        spec: the Workflow's spec, at the place of its file.
    """
    unused = UnusedFields(spec)
    unused.look_at({"templates": spec.get("templates")}, _TEMPLATES, _SPEC)
    yield from unused.notices()


def unused_in_patch(text: str, place: Place) -> Iterator[Notice]:
    """Yield notices about the fields of a patch of pods.

    Args:
        text: the patch; any text stands for its tags.
        place: place of the patch.
    """
    unused = UnusedFields()
    unused.look_at_patch(text, place)
    yield from unused.notices()


class UnusedFields:
    """Collector of the fields of a run's file that its plan does not use."""

    def __init__(self, spec: Fields | None = None) -> None:
        """Look at the spec of a Workflow, but not yet at its templates.

        Args:
            spec: the spec, at the place of its file; None = the run is a package.
        """
        self._file = "" if spec is None else f"{spec.place.spelled}: "
        self._seen: set[str] = set()
        self._unused: dict[tuple[str, Effect], list[Place]] = {}
        self._unknown: dict[str, tuple[str, FieldList]] = {}
        self._folded: dict[str, str] = {}
        self._removing: dict[str, None] = {}
        if spec is not None:
            self.look_at(spec.raw, WORKFLOW_SPEC, _SPEC)

    def look_at_template(self, template: Fields) -> None:
        """Look at a template of a Workflow; once, however often it is run."""
        place = template.place.spelled
        if place not in self._seen:
            self._seen.add(place)
            self.look_at(template.raw, TEMPLATE, template.place)

    def look_at(self, raw: RawMapping, fields: FieldList, place: Place) -> None:
        """Look at the fields of an object.

        Args:
            raw: the object.
            fields: fields of its type.
            place: place of the object.
        """
        for key, value in raw.items():
            if key in fields.plain:
                continue
            if (effect := fields.effects.get(key)) is not None:
                if effect.applies(value):
                    self._unused.setdefault((key, effect), []).append(place)
            elif (kind := fields.types.get(key)) is not None:
                self._field(value, kind, place.field(key))
            elif (folded := key.casefold()) in (names := _by_folded_name(fields)):
                self._folded.setdefault(place.field(key[:60]).spelled, names[folded])
            else:
                self._unknown.setdefault(place.field(key[:60]).spelled, (key, fields))

    def _field(self, value: Any, kind: FieldType, place: Place) -> None:
        if isinstance(kind, MappingOf):
            if isinstance(value, dict):
                for name, each in value.items():
                    if not kind.each.all_plain(each):
                        self._field(each, kind.each, _item(place, name))
        elif isinstance(value, dict):
            self.look_at(value, kind, place)
        elif isinstance(value, list):
            for index, each in enumerate(value):
                if not kind.all_plain(each):
                    name = each.get("name") if isinstance(each, dict) else None
                    self._field(each, kind, _item(place, index if name is None else name))
        elif isinstance(value, str) and kind is POD_SPEC:
            self.look_at_patch(value, place)

    def look_at_patch(self, text: str, place: Place) -> None:
        """Look at the fields of a patch of pods, if it can be read whatever its tags stand for."""
        data = with_replaced_tags(text, lambda _: "tag").encode("utf-8", "replace")
        if b":" not in data:  # No mapping, as in Workflows of KFP, where it is a tag.
            return
        try:
            patch, *_ = load_documents(data, name=place.spelled, max_bytes=RUN_MAX_BYTES)
        except InputError:
            return
        if isinstance(patch, dict):
            self.look_at(patch, POD_SPEC, place)
            if _removes(patch):
                self._removing[place.spelled] = None

    def notices(self) -> Iterator[Notice]:
        """Yield one notice for each field that is not used, and one for unknown fields."""
        for (field, effect), places in self._unused.items():
            where = self._some(place.spelled for place in places)
            yield Notice(NOT_USED, f"{field} is not used: {effect.text} ({where})")
        if self._unknown:
            # Only for those that the notice names: a file may have any number of them.
            meant = {
                place: _meant(field, fields.names)
                for place, (field, fields) in islice(self._unknown.items(), _MOST)
            }
            where = self._some(f"{place}{meant.get(place, '')}" for place in self._unknown)
            yield Notice("unknown-field", f"unknown fields are not used: {where}")
        if self._folded:
            where = self._some(f"{field} for {name}" for field, name in self._folded.items())
            message = f"fields are not used whose case is another, but Argo may use them: {where}"
            yield Notice("folded-field", message)
        if self._removing:
            message = "null and directives such as $patch are not used, with which a patch removes"
            yield Notice(HIDDEN_DEMAND, f"{message} what a pod has: {self._some(self._removing)}")

    def _some(self, places: Iterable[str]) -> str:
        """Return the first of the places, without their file, and how many more there are."""
        each = [place.removeprefix(self._file) for place in places]
        more = len(each) - _MOST
        return f"{', '.join(each[:_MOST])}{f' and {more} more' if more > 0 else ''}"


@functools.cache
def _by_folded_name(fields: FieldList) -> Mapping[str, str]:
    """Return the names of fields as Go compares them, which reads JSON without regard to case."""
    return {name.casefold(): name for name in fields.names}


def _removes(patch: Any) -> bool:
    """Return whether a strategic merge patch removes something, perhaps a request below a limit."""
    if isinstance(patch, dict):
        is_directive = any(str(key).startswith("$") for key in patch)
        return is_directive or any(map(_removes, patch.values()))
    return patch is None or (isinstance(patch, list) and any(map(_removes, patch)))


def _item(place: Place, name: object) -> Place:
    return Place("[{!s:.60}]", (name,), place, ".")


def _meant(field: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(field[:60], names, n=1)
    return f" (did you mean {near[0]}?)" if near else ""
