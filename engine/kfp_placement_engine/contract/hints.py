"""Hints of one step: what the annotation `kfp-placement.dev/hints` carries, both ways.

The annotation is JSON text.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from kfp_placement_engine.exceptions import HintsError, QuantityError
from kfp_placement_engine.model.durations import (
    exact_duration_text,
    exact_latency_text,
    parse_duration,
    parse_latency_ms,
)
from kfp_placement_engine.model.quantities import format_resource, parse_quantity

CURRENT_VERSION = 1

MAX_ANNOTATION_CHARACTERS = 16_384
"""A longer hints annotation is refused; Kubernetes allows 256 KiB for all annotations of a pod."""


def _as_value_error(parse: Any) -> BeforeValidator:
    def validate(value: Any) -> Any:
        try:
            return parse(value)
        except QuantityError as error:
            raise ValueError(str(error)) from error

    return BeforeValidator(validate)


Seconds = Annotated[float, _as_value_error(parse_duration)]
Bytes = Annotated[int, _as_value_error(parse_quantity)]
Milliseconds = Annotated[float, _as_value_error(parse_latency_ms)]


class StepHints(BaseModel):
    """What an author says about one step beyond its labels.

    Values are parsed to canonical numbers; `encode_hints` writes them back as text.
    """

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)

    version: int = Field(default=CURRENT_VERSION, alias="v", ge=1)
    """Version of the hints; a newer one is read as far as it is known."""

    duration_seconds: Seconds | None = Field(default=None, alias="duration")
    """Run time of the main container on the reference node (speed 1)."""

    output_bytes: Mapping[str, Bytes] = Field(default_factory=dict, alias="outputs")
    """Size of each named output."""

    input_bytes: Mapping[str, Bytes] = Field(default_factory=dict, alias="inputs")
    """Size of each named input, where it is not another step's output (or differs from it)."""

    max_latency_ms: Milliseconds | None = Field(default=None, alias="maxLatency")
    """Hard limit of the round trip to the step's location."""

    priority: int | None = Field(default=None, ge=-1_000_000, le=1_000_000)
    """Importance of the run among others planned at the same time; larger is more important.

    The largest of a run's steps counts. None: the default of the step's type, else 0.
    """

    type_guessed: bool = Field(default=False, alias="typeGuessed")
    """The SDK guessed the step's type from its name."""


_FIELD_NAMES = {
    name for name, field in StepHints.model_fields.items() if field.alias not in (None, name)
}


def encode_hints(hints: StepHints) -> str:
    """Write hints as the annotation's JSON: compact, sorted, only what is set."""
    entries: dict[str, Any] = dict(hints.model_extra or {})
    if hints.duration_seconds is not None:
        entries["duration"] = exact_duration_text(hints.duration_seconds)
    if hints.output_bytes:
        entries["outputs"] = {name: _bytes_text(size) for name, size in hints.output_bytes.items()}
    if hints.input_bytes:
        entries["inputs"] = {name: _bytes_text(size) for name, size in hints.input_bytes.items()}
    if hints.max_latency_ms is not None:
        entries["maxLatency"] = exact_latency_text(hints.max_latency_ms)
    if hints.priority is not None:
        entries["priority"] = hints.priority
    if hints.type_guessed:
        entries["typeGuessed"] = True
    return json.dumps({"v": hints.version, **entries}, sort_keys=True, separators=(",", ":"))


def decode_hints(text: str) -> tuple[StepHints, list[str]]:
    """Read the annotation; returns the hints and warnings for people.

    Unknown keys are kept and named in a warning. A newer version is read as far as it is known: its
    fields that cannot be read are dropped with a warning.

    Raises:
        HintsError: no JSON object, too large, or a known field of a known version with a bad value.
    """
    entries, repeated = _load(text)
    version = entries.get("v", CURRENT_VERSION)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise HintsError(f"hints version {version!r:.40} is not a positive whole number")
    warnings = [f"key {key:.40} stands twice; the last value counts" for key in repeated[:10]]
    if version > CURRENT_VERSION:
        warnings.append(
            f"hints version {version} is newer than {CURRENT_VERSION}; read as far as known"
        )
    # Python's names of the fields are no keys of the annotation.
    foreign = {key: entries.pop(key) for key in _FIELD_NAMES & entries.keys()}
    hints = _validated(entries, version, warnings)
    unknown = sorted({*(hints.model_extra or {}), *foreign})
    if unknown:
        warnings.append(
            "unknown hints kept but not used: " + ", ".join(f"{key:.40}" for key in unknown[:10])
        )
    return hints, warnings


def max_latency_ms_in(text: str) -> float | None:
    """The hard limit of the round trip in an annotation, in milliseconds; None = none.

    Hints that cannot be read limit nothing, as for the planner.
    """
    # Few steps have one, and reading hints takes as long as all else of a pod. JSON may escape
    # letters, but then a backslash stands there.
    if "maxLatency" not in text and "\\" not in text:
        return None
    try:
        return decode_hints(text)[0].max_latency_ms
    except HintsError:
        return None


def _load(text: str) -> tuple[dict[str, Any], list[str]]:
    """The JSON object, and the keys that one of its objects has more than once."""
    if len(text) > MAX_ANNOTATION_CHARACTERS:
        raise HintsError(
            f"hints of {len(text)} characters; at most {MAX_ANNOTATION_CHARACTERS} are read"
        )
    repeated: dict[str, None] = {}

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            repeated.update((key, None) for key, count in counts.items() if count > 1)
        return entries

    try:
        entries = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=collect)
        # Half a surrogate pair could be written nowhere.
        json.dumps(entries, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise HintsError(f"hints are no JSON: {error!s:.120}") from error
    if not isinstance(entries, dict):
        raise HintsError('hints must be a JSON object such as {"v": 1, "duration": "20m"}')
    return entries, list(repeated)


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number")


def _validated(entries: dict[str, Any], version: int, warnings: list[str]) -> StepHints:
    try:
        return StepHints.model_validate(entries)
    except ValidationError as error:
        problems = [
            (str(item["loc"][0]) if item["loc"] else "", str(item["msg"]))
            for item in error.errors()
        ]
        if version > CURRENT_VERSION:
            bad = {key for key, _ in problems}
            warnings.append(
                "hints of the newer version that cannot be read: " + ", ".join(sorted(bad))
            )
            return StepHints.model_validate(
                {key: value for key, value in entries.items() if key not in bad}
            )
        key, message = problems[0]
        raise HintsError(f"hints field {key}: {message.removeprefix('Value error, ')}") from error


def _bytes_text(size: int) -> str:
    return format_resource("memory", size)
