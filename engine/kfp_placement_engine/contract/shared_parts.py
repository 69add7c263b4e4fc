"""Parts that all our custom resources share: field types, metadata, conditions.

Inside are canonical numbers, outside is Kubernetes' text. What a field type says of itself as JSON
schema is what the CRDs in `deploy/crds` say of it; a test compares both.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel

from kfp_placement_engine.contract.hints import MAX_PRIORITY
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.node_rules.constraints import MAX_LABEL_VALUE_LENGTH
from kfp_placement_engine.model.objective import MakespanWithin, parse_makespan_within
from kfp_placement_engine.model.promise import confidence_text, parse_confidence
from kfp_placement_engine.units.durations import (
    duration_text,
    latency_text,
    parse_duration,
    parse_latency_ms,
)
from kfp_placement_engine.units.quantities import format_resource, parse_cpu, parse_quantity

_FIRST_YEAR, _LAST_YEAR = 1970, 9000

MAX_VALUE_CHARACTERS = 32
"""Longest text of a duration, latency or quantity in a resource."""

_QUANTITY_SCHEMA = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "maxLength": MAX_VALUE_CHARACTERS,
    "pattern": r"^([0-9]+([.][0-9]*)?|[.][0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][0-9]{1,2})?$",
}


def _text_schema(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "maxLength": MAX_VALUE_CHARACTERS, "pattern": pattern})


def _parsed(parse: Callable[[object], object]) -> BeforeValidator:
    """Read text; a number that is canonical already stays."""

    def validate(value: object) -> object:
        try:
            return parse(value)
        except QuantityError as error:
            raise ValueError(str(error)) from error

    return BeforeValidator(validate)


def _makespan_text(seconds: float) -> str:
    return duration_text(round(seconds, 1))


Seconds = Annotated[
    float,
    _parsed(parse_duration),
    PlainSerializer(duration_text),
    _text_schema(r"^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h|d))+$"),
]
"""A duration; Go's form plus `d`."""

Makespan = Annotated[Seconds, PlainSerializer(_makespan_text)]
"""A duration written to a tenth of a second, as rows are; `kubectl get` prints it as it is."""


def _rounded_duration(value: object) -> float:
    """Return a duration whose range CEL checks: CEL drops what is less than a nanosecond."""
    return round(parse_duration(value), 6)


_CelDuration = Annotated[
    float,
    _parsed(_rounded_duration),
    PlainSerializer(duration_text),
    _text_schema(r"^([0-9]+([.][0-9]+)?(ms|s|m|h))+$"),
]
"""A duration in the form that CEL can compare."""

Budget = Annotated[_CelDuration, Field(le=600)]
"""A duration up to ten minutes; a CEL rule checks the range."""

Deadline = Annotated[_CelDuration, Field(ge=1, le=3600)]
"""A duration from a second to an hour; a CEL rule checks the range."""

LongWait = Annotated[_CelDuration, Field(ge=60, le=8760 * 3600)]
"""A duration from a minute to a year; a CEL rule checks the range."""

Milliseconds = Annotated[
    float,
    _parsed(parse_latency_ms),
    PlainSerializer(latency_text),
    _text_schema(r"^[0-9]+([.][0-9]+)?(us|ms|s)$"),
]
"""A round trip; always with its unit."""

MakespanWithinText = Annotated[
    MakespanWithin,
    _parsed(parse_makespan_within),
    PlainSerializer(lambda within: within.text, return_type=str),
    _text_schema(r"^-?([0-9]+([.][0-9]+)?%|([0-9]+([.][0-9]+)?(ms|s|m|h))+)$"),
]
"""A percentage or a duration; CEL rules check the range, and say that it is negative."""

Confidence = Annotated[
    float,
    _parsed(parse_confidence),
    PlainSerializer(confidence_text),
    _text_schema(r"^[0-9]+([.][0-9]+)?%$"),
]
"""Share of cases in which a range is to hold, as a percentage; a CEL rule checks its limits."""

Bytes = Annotated[
    int,
    _parsed(parse_quantity),
    PlainSerializer(partial(format_resource, "memory")),
    WithJsonSchema(_QUANTITY_SCHEMA),
]
"""A size, or bytes per second."""


def _quantity_text(value: object) -> object:
    """Return a quantity as text, since its meaning depends on the resource."""
    parse_quantity(value)
    return value if isinstance(value, str) else str(value)


QuantityText = Annotated[str, _parsed(_quantity_text), WithJsonSchema(_QUANTITY_SCHEMA)]
"""An amount of a resource that is named beside it, as it is written."""

MilliCpu = Annotated[
    int,
    _parsed(parse_cpu),
    PlainSerializer(partial(format_resource, "cpu")),
    WithJsonSchema(_QUANTITY_SCHEMA),
]
"""An amount of CPU."""


Count = Annotated[int, Field(ge=0)]
"""A number of things."""

Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""Seed of a random generator."""

Priority = Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)]
"""Importance of a run."""

ObjectName = Annotated[str, Field(min_length=1, max_length=253)]
"""Name of a Kubernetes object, or no longer than one."""

LabelValue = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_LABEL_VALUE_LENGTH,
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
    ),
]
"""A value of a label."""

WorkflowUid = Annotated[str, Field(alias="workflowUID", min_length=1, max_length=63)]
"""Uid of a Workflow; a new one of the same name is another run."""


def one_of(words: Iterable[str]) -> WithJsonSchema:
    """Return the schema of a field whose words we write, but that is read whatever it says.

    A newer revision may know more words than we do; the API server checks them.
    """
    return WithJsonSchema({"type": "string", "enum": [*map(str, words)]})


_UNIT = re.compile(r"_(seconds|ms|bytes|milli)$")


def _name_outside(field: str) -> str:
    """Return the name of a field in a resource: without the unit, which the text there has."""
    return to_camel(_UNIT.sub("", field))


class ResourceModel(BaseModel):
    """Part of a resource: frozen; fields of a newer revision are skipped."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=_name_outside, populate_by_name=True
    )


def unknown_fields(
    model: ResourceModel, given: Mapping[str, object]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the fields of a model that are unknown and skipped; for files that people write.

    Yields:
        Where it is (`engine.serchBudget`), and the names that are known there.
    """
    names = {name: field.alias or name for name, field in type(model).model_fields.items()}
    fields = {alias: name for name, alias in names.items()} | {name: name for name in names}
    for key, value in given.items():
        if key not in fields:
            yield str(key), tuple(names.values())
            continue
        for place, inner, given_there in _parts(str(key), getattr(model, fields[key]), value):
            for below, keys in unknown_fields(inner, given_there):
                yield f"{place}.{below}", keys


def _parts(
    place: str, part: object, value: object
) -> Iterator[tuple[str, ResourceModel, Mapping[str, object]]]:
    """Yield the models in a field, alone or in a list, each with its place and its stored form."""
    if isinstance(part, ResourceModel) and isinstance(value, Mapping):
        yield place, part, value
    elif isinstance(part, tuple) and isinstance(value, list) and len(part) == len(value):
        for number, (each, given) in enumerate(zip(part, value, strict=True)):
            yield from _parts(f"{place}[{number}]", each, given)


def readable_fields(model: type[ResourceModel], given: object) -> dict[str, Any]:
    """Return the valid fields of a part of a resource; invalid ones are left out.

    Args:
        model: model of the part.
        given: stored form of the part; if it is not a mapping, no field is valid.
    """
    if not isinstance(given, dict):
        return {}
    readable = {}
    for field, described in model.model_fields.items():
        name = described.alias or field
        if given.get(name) is not None:
            with suppress(ValidationError):
                model.model_validate({name: given[name]})
                readable[name] = given[name]
    return readable


class OwnerReference(ResourceModel):
    """The owner of an object, which is deleted with its owner."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMetadata(ResourceModel):
    """The parts of Kubernetes' object metadata that we use."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    generation: int | None = None
    resource_version: str | None = None
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


def _in_a_sane_year(value: datetime) -> datetime:
    if not _FIRST_YEAR <= value.year <= _LAST_YEAR:
        raise ValueError(f"is not in the years {_FIRST_YEAR} to {_LAST_YEAR}")
    return value


Moment = Annotated[AwareDatetime, AfterValidator(_in_a_sane_year)]
"""A time that others may have written: with it can be calculated, whatever its zone is."""

_DATE = re.compile(r"([0-9]{4})-[01][0-9]-[0-3][0-9][Tt ][0-9:.]{8,}([Zz]|[+-][0-9:]{5})")


def _in_the_nearest_year(value: object) -> object:
    match = _DATE.fullmatch(str(value))
    year = int(match[1]) if match else _FIRST_YEAR
    nearest = min(max(year, _FIRST_YEAR), _LAST_YEAR + 1)
    return value if year == nearest else datetime(nearest, 1, 1, tzinfo=UTC)


Border = Annotated[AwareDatetime, BeforeValidator(_in_the_nearest_year)]
"""Limit for times: every time that the API server takes, such as the year 9999
for "all there will ever be"; one beyond every `Moment` counts as the nearest that lies so, too."""


class Condition(ResourceModel):
    """A condition as `metav1.Condition` defines it."""

    type: str = Field(min_length=1, max_length=316, pattern=r"^[A-Za-z][A-Za-z0-9./-]*$")
    status: Annotated[str, one_of(("True", "False", "Unknown"))]
    reason: str = Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z][A-Za-z0-9_,:]*$")
    message: str = Field(max_length=32768)
    last_transition_time: Moment
    observed_generation: Count | None = None


@dataclass(frozen=True, slots=True)
class ConditionFinding:
    """A wanted condition of an object, without the time since which it holds or does not.

    Attributes:
        condition: type of the condition.
        holds: status of the condition.
        reason: reason in one word.
        message: explanation for people.
    """

    condition: str
    holds: bool
    reason: str
    message: str = ""


Conditions = Annotated[tuple[Condition, ...], Field(max_length=32)]


class ResourceStatus(ResourceModel):
    """Status of our resources that tells of the state of their spec by conditions."""

    observed_generation: Count | None = None
    """Generation of the object that the status describes."""

    conditions: Conditions = ()

    def condition(self, name: str) -> Condition | None:
        """Return the condition of a type, or None if there is none."""
        return next((each for each in self.conditions if each.type == name), None)


class Resource(ResourceModel):
    """One of our custom resources as the API serves it."""

    api_version: str = API_VERSION
    metadata: ObjectMetadata = ObjectMetadata()

    def to_object(self) -> dict[str, Any]:
        """Return the object for the API: Kubernetes' names and text, without unknown fields."""
        written: dict[str, Any] = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return written
