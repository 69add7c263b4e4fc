"""Every field that a run can have is in one of the lists of its type."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kfp_placement_engine.readers.unused.field_lists import FieldList, FieldType, MappingOf
from kfp_placement_engine.readers.unused.package_fields import PIPELINE_SPEC, PLATFORM_SPEC
from kfp_placement_engine.readers.unused.pod_fields import POD_SPEC
from kfp_placement_engine.readers.unused.workflow_fields import TEMPLATE, WORKFLOW_SPEC
from tests.engine.readers.unused.record_names import RECORD

RECORDED: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
ROOTS = {
    "workflow": WORKFLOW_SPEC,
    "package": PIPELINE_SPEC,
    "platform": PLATFORM_SPEC,
    "pod": POD_SPEC,
}


def listed_types(fields: FieldList, number: int) -> Iterator[tuple[FieldList, int]]:
    """Yield each listed type that a type is made of, with the number of its record."""
    yield fields, number
    recorded = RECORDED["types"][number]
    types: dict[str, FieldType] = dict(fields.types)
    if fields is WORKFLOW_SPEC:
        types["templates"] = TEMPLATE
    for name, kind in types.items():
        inner = kind.each if isinstance(kind, MappingOf) else kind
        if isinstance(inner, FieldList) and recorded[name] is not None:
            yield from listed_types(inner, recorded[name])


@pytest.mark.parametrize("root", ROOTS)
def test_every_field_is_in_a_list_of_its_type(root):
    wrong = {
        number: sorted(fields.names ^ set(RECORDED["types"][number]))
        for fields, number in listed_types(ROOTS[root], RECORDED["roots"][root])
        if fields.names != set(RECORDED["types"][number])
    }
    assert wrong == {}


def test_the_types_that_matter_are_reached():
    reached = {number for _, number in listed_types(WORKFLOW_SPEC, RECORDED["roots"]["workflow"])}
    assert len(reached) >= 13
    assert len(RECORDED["types"]) > 200


def test_the_record_has_all_names_of_the_definition():
    names = {
        name for fields in RECORDED["types"][: RECORDED["roots"]["workflow"] + 1] for name in fields
    }
    assert len(names) == 493


def test_a_field_has_one_list():
    with pytest.raises(ValueError, match="two lists"):
        FieldList(modelled="image", irrelevant="image tty")
