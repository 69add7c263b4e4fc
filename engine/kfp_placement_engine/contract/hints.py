"""Hints of one step: what the annotation `kfp-placement.dev/hints` carries, both ways.

The annotation is JSON text.
"""

import difflib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeGuard

from kfp_placement_engine.exceptions import HintsError, QuantityError
from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.units.durations import (
    exact_duration_text,
    exact_latency_text,
    parse_duration,
    parse_latency_ms,
)
from kfp_placement_engine.units.quantities import (
    format_resource,
    format_resources,
    parse_quantity,
    parse_resources,
    shown_value,
)

CURRENT_VERSION = 1
MAX_VERSION = 1_000_000
"""Largest version of hints that is read; a larger number is a mistake."""

MAX_ANNOTATION_CHARACTERS = 16_384
"""A longer hints annotation is refused; Kubernetes allows 256 KiB for all annotations of a pod."""


MAX_PRIORITY = 1_000_000
"""Priorities lie between its negative and this."""

_Entries = dict[str, Any]
"""Hints by key, or their values by field."""

MAX_QUEUE_NAME_LENGTH = 63
"""Longest name of a RunQueue."""

MAX_WORKERS = 1_000
"""The most pods that a step makes itself."""

_MAX_WORKER_RESOURCES = 32
_MAX_RESOURCE_NAME_LENGTH = 317
_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_RESOURCE_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?", re.ASCII)


@dataclass(frozen=True)
class StepHints:
    """Hints that an author gives about one step beyond its labels.

    `decode_hints` parses values to canonical numbers; `encode_hints` writes them back as text.

    Attributes:
        duration_seconds: run time of the main container on the reference node (speed 1).
        output_bytes: size of each named output.
        input_bytes: size of each named input, where it is not another step's output (or differs
            from it).
        image_bytes: size that a node without the step's image has to pull.
        max_latency_ms: hard limit of the round trip to the step's location.
        priority: importance of the run among others planned at the same time; larger is more
            important. The largest of a run's steps counts. None: the default of the step's type,
            else 0.
        queue: name of the RunQueue in which the run waits; all of a run's steps name the same.
        workers: pods that the step makes itself, such as those of a PyTorchJob, and what each of
            them requests.
        type_guessed: the SDK guessed the step's type from its name.
        version: version of the hints; a newer one is read as far as it is known.
        unknown: keys that this revision does not know, kept as they came.
    """

    duration_seconds: float | None = None
    output_bytes: Mapping[str, int] = field(default_factory=dict)
    input_bytes: Mapping[str, int] = field(default_factory=dict)
    image_bytes: int | None = None
    max_latency_ms: float | None = None
    priority: int | None = None
    queue: str | None = None
    workers: PodGroup | None = None
    type_guessed: bool = False
    version: int = CURRENT_VERSION
    unknown: Mapping[str, Any] = field(default_factory=dict)


def _sizes(value: object) -> dict[str, int]:
    if not isinstance(value, dict):
        raise QuantityError(f"{value!r:.40} is not a mapping of names to sizes")
    return {name: parse_quantity(size) for name, size in value.items()}


def is_whole(value: object, least: int, most: float) -> TypeGuard[int]:
    """Return whether a value is a whole number in a range; True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _priority(value: object) -> int:
    if not is_whole(value, -MAX_PRIORITY, MAX_PRIORITY):
        raise QuantityError(
            f"{value!r:.40} is not a whole number from -{MAX_PRIORITY} to {MAX_PRIORITY}"
        )
    return value


def is_queue_name(text: str) -> bool:
    """Return whether a RunQueue can have that name: a DNS-1123 name of at most 63 characters."""
    return len(text) <= MAX_QUEUE_NAME_LENGTH and _DNS_NAME.fullmatch(text) is not None


def _queue(value: object) -> str:
    if not isinstance(value, str) or not is_queue_name(value):
        raise QuantityError(
            f"{shown_value(value)} is not the name of a RunQueue; use at most"
            f" {MAX_QUEUE_NAME_LENGTH} lower-case letters, digits, '-' and '.'"
        )
    return value


def _workers(value: object) -> PodGroup:
    if not isinstance(value, dict) or not {"count"} <= value.keys() <= {"count", "requests"}:
        raise QuantityError(
            f"{shown_value(value)} does not name workers; write"
            ' {"count": 3, "requests": {"cpu": "4"}}'
        )
    count = value["count"]
    if not is_whole(count, 1, MAX_WORKERS):
        raise QuantityError(
            f"count {shown_value(count)} is not a whole number from 1 to {MAX_WORKERS:,}"
        )
    return PodGroup(count, _requests(value.get("requests", {})))


def _requests(value: object) -> dict[str, int]:
    """Return the requests of each worker, in canonical units."""
    if not isinstance(value, dict) or len(value) > _MAX_WORKER_RESOURCES:
        raise QuantityError(
            f"requests {shown_value(value)} is not a mapping of at most {_MAX_WORKER_RESOURCES}"
            " resources to quantities"
        )
    for name in value:
        is_name = len(name) <= _MAX_RESOURCE_NAME_LENGTH and _RESOURCE_NAME.fullmatch(name)
        if not is_name or name == "pods":
            raise QuantityError(
                f"{shown_value(name)} is not a resource that a pod can request; write for example"
                " nvidia.com/gpu"
            )
    return parse_resources(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise QuantityError(f"{value!r:.40} is not true or false")
    return value


_bytes_text = partial(format_resource, "memory")


def _sizes_text(sizes: Mapping[str, int]) -> dict[str, str]:
    return {name: _bytes_text(size) for name, size in sizes.items()}


def _workers_text(workers: PodGroup) -> _Entries:
    return {"count": workers.count, "requests": format_resources(workers.requests)}


def _as_it_is(value: Any) -> Any:
    return value


_HINTS: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "duration": ("duration_seconds", parse_duration, exact_duration_text),
    "outputs": ("output_bytes", _sizes, _sizes_text),
    "inputs": ("input_bytes", _sizes, _sizes_text),
    "imageSize": ("image_bytes", parse_quantity, _bytes_text),
    "maxLatency": ("max_latency_ms", parse_latency_ms, exact_latency_text),
    "priority": ("priority", _priority, _as_it_is),
    "queue": ("queue", _queue, _as_it_is),
    "workers": ("workers", _workers, _workers_text),
    "typeGuessed": ("type_guessed", _flag, _as_it_is),
}
"""Key of the annotation -> field of `StepHints`, what reads it, and what writes it."""

HINT_KEYS = ("v", *_HINTS)
"""Keys of the annotation that this revision knows."""

_NOTHING = StepHints()


def encode_hints(hints: StepHints) -> str:
    """Write hints as the annotation's JSON: compact, sorted, only what is set."""
    entries: _Entries = dict(hints.unknown)
    for key, (name, _, write) in _HINTS.items():
        value = getattr(hints, name)
        if value != getattr(_NOTHING, name):
            entries[key] = write(value)
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
    if not is_whole(version, 1, MAX_VERSION):
        raise HintsError(
            f"hints version {shown_value(version)} is not a whole number from 1 to {MAX_VERSION}"
        )
    warnings = [f"key {key:.40} appears twice; the last value counts" for key in repeated[:10]]
    if version > CURRENT_VERSION:
        warnings.append(
            f"hints version {version} is newer than {CURRENT_VERSION}; read as far as known"
        )
    values, problems = _values(entries)
    if problems and version == CURRENT_VERSION:
        raise HintsError(f"hints field {problems[0][0]}: {problems[0][1]}")
    if problems:
        bad = ", ".join(sorted(key for key, _ in problems))
        warnings.append(f"hints of the newer version that cannot be read: {bad}")
    unknown = {key: value for key, value in entries.items() if key not in HINT_KEYS}
    if unknown:
        named = ", ".join(map(_with_near_key, sorted(unknown)[:10]))
        warnings.append(f"unknown hints kept but not used: {named}")
    return StepHints(**values, version=version, unknown=unknown), warnings


def _with_near_key(key: str) -> str:
    near = difflib.get_close_matches(key[:40], HINT_KEYS, n=1)
    return f"{key:.40} (did you mean {near[0]}?)" if near else f"{key:.40}"


def _values(entries: Mapping[str, Any]) -> tuple[_Entries, list[tuple[str, str]]]:
    """Return the known hints by field, and the key and reason of each that cannot be read."""
    values: _Entries = {}
    problems = []
    for key, (name, read, _) in _HINTS.items():
        if entries.get(key) is None:
            continue
        try:
            values[name] = read(entries[key])
        except QuantityError as error:
            problems.append((key, str(error)))
    return values, problems


def max_latency_ms_in(text: str) -> float | None:
    """Return the round-trip limit in an annotation, in milliseconds, or None if it has none.

    Hints that cannot be read limit nothing, as for the planner.
    """
    # Few steps have one, and reading hints takes as long as all else of a pod. JSON may escape
    # letters, but then there is a backslash.
    if "maxLatency" not in text and "\\" not in text:
        return None
    try:
        return decode_hints(text)[0].max_latency_ms
    except HintsError:
        return None


def _load(text: str) -> tuple[_Entries, list[str]]:
    """Return the JSON object, and the keys that one of its objects has more than once."""
    if len(text) > MAX_ANNOTATION_CHARACTERS:
        raise HintsError(
            f"hints of {len(text)} characters; at most {MAX_ANNOTATION_CHARACTERS} are read"
        )
    repeated: dict[str, None] = {}

    def collect(pairs: list[tuple[str, Any]]) -> _Entries:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            repeated.update((key, None) for key, count in counts.items() if count > 1)
        return entries

    try:
        entries = json.loads(text, object_pairs_hook=collect)
        # Half a surrogate pair could be written nowhere, and NaN or 1e999 not as JSON.
        json.dumps(entries, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise HintsError(f"hints are not JSON: {error!s:.120}") from error
    if not isinstance(entries, dict):
        raise HintsError('hints must be a JSON object such as {"v": 1, "duration": "20m"}')
    return entries, list(repeated)
