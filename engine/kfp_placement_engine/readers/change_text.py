"""A reader of changes from text: `+2 of worker`, `gpu-node cpu=32`, `loop for-loop-1 limit=off`.

Every form begins with its subject and ends with the subject's new state. Names of steps may have
spaces, as in some workflow formats, and so may times (`20 minutes`).
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kfp_placement_engine.exceptions import ChangeError, InputError
from kfp_placement_engine.plans.what_if_changes import (
    ACCESS_MODES,
    OFF,
    AddNodes,
    Change,
    HoldImage,
    Kind,
    RemoveNodes,
    SetProperties,
)
from kfp_placement_engine.readers.kubernetes.nodes import read_speed
from kfp_placement_engine.readers.text.forms import key_advice
from kfp_placement_engine.units.durations import parse_duration, parse_latency_ms
from kfp_placement_engine.units.quantities import parse_memory, parse_resource, parse_whole

FORMS = (
    "+N of NODE",
    "-N of NODE",
    "NODE cpu=N memory=SIZE gpu=N speed=X",
    "loop LOOP limit=N|off",
    "step STEP cpu=N memory=SIZE gpu=N node=NODE",
    "step STEP duration=TIME max-latency=TIME|off",
    "image IMAGE everywhere",
    "volume CLAIM access=MODE",
)
"""Forms of a change; NODE is a node, `worker` for worker-1, worker-2 ..., or a pattern with `*`."""

MAX_CHARACTERS = 1_000
"""Length of the longest change, in characters; names in Kubernetes have at most 253."""

MOST_NODES = 10_000
"""Largest number of nodes that one change adds or removes."""

MOST_ITERATIONS = 10**9
"""Largest limit of a loop; one beyond it would not limit anything."""

_REQUESTED = ("cpu", "memory", "ephemeral-storage", "gpu")
_DEVICE = re.compile(r".*/|hugepages-")
_GPU = "nvidia.com/gpu"
"""The resource that `gpu` is short for."""

_PROPERTIES: Mapping[Kind, tuple[str, ...]] = {
    "node": (*_REQUESTED, "pods", "speed"),
    "loop": ("limit",),
    "step": (*_REQUESTED, "node", "duration", "max-latency"),
    "volume": ("access",),
}
"""Properties of each kind; nodes and steps have other devices as well, such as `amd.com/gpu`."""

_COUNTED = re.compile(r"([+-])\s*([0-9]+)(?:\s*x)?\s+(?:of\s+)?(\S+)")
_IMAGE = re.compile(r"image\s+([^\s=]+)(?:\s+everywhere)?")
_EQUALS = re.compile(r"\s*=\s*")
_BETWEEN = re.compile(r"\s+(?=[^\s=]+=\S)")
"""Space before each `name=value` at the end of a form."""
_UNIT = re.compile(r"(?<=[0-9])\s+(?=[a-zµμ])")
"""Space that people leave between a number and its unit."""


def read_change(text: str) -> Change:
    """Read one change.

    Raises:
        ChangeError: the text has none of the forms, or a bad value; the message shows the forms.
    """
    if len(text) > MAX_CHARACTERS:
        raise ChangeError(
            f"{text!r:.120} has {len(text)} characters; at most {MAX_CHARACTERS} are read"
        )
    cleaned = _EQUALS.sub("=", text.strip())
    several = "; give several changes one by one" if "," in cleaned else ""
    try:
        change = _read(cleaned)
    except InputError as error:
        raise ChangeError(f"{text!r:.120}: {error}{several}") from error
    if change is None:
        advice = several or f"; write one of: {', '.join(FORMS)}"
        raise ChangeError(f"{text!r:.120} is not a change that can be planned{advice}")
    return change


def read_values(values: Iterable[tuple[str, str]]) -> tuple[dict[str, int], dict[str, Any]]:
    """Read the values of properties.

    Args:
        values: names and values of the properties, as people write them.

    Returns:
        Amounts of resources in canonical units; and other values by the names of the model's
        fields, except that `node` is the name of the nodes that a step may go to.

    Raises:
        InputError: a value does not fit its property.
    """
    amounts: dict[str, int] = {}
    fields: dict[str, Any] = {}
    for name, text in values:
        if name in _FIELDS:
            field, read = _FIELDS[name]
            fields[field] = read(text)
        else:
            amounts[name] = parse_memory(text) if name == "memory" else parse_resource(name, text)
            if "/" in name:
                # Only now: a message of `parse_resource` names the resource, this one does not.
                parse_whole(text)
    return amounts, fields


def _read(cleaned: str) -> Change | None:
    """Return the change, or None where the text has none of the forms."""
    if match := _COUNTED.fullmatch(cleaned):
        make = AddNodes if match[1] == "+" else RemoveNodes
        return make(match[3], _whole(match[2], MOST_NODES, "a number of nodes"))
    if match := _IMAGE.fullmatch(cleaned):
        return HoldImage(match[1])
    return _set_properties(cleaned)


def _set_properties(cleaned: str) -> SetProperties | None:
    """Return the change of properties, or None where the text does not set any."""
    subject, *pairs = _BETWEEN.split(cleaned)
    values = _named_values(pairs)
    kinds, called = _subject(subject, values)
    kinds = _kinds_with(values, kinds)
    # Only checked here: a change keeps what people wrote.
    read_values(values.items())
    if "node" in kinds and len(called.split()) > 1:
        # Names of nodes have no spaces; `+1 of worker cpu=8` does not name a step either.
        kinds = () if _COUNTED.match(called) else tuple(kind for kind in kinds if kind != "node")
    is_change = values and kinds and "=" not in called
    return SetProperties(kinds, called, tuple(values.items())) if is_change else None


def _named_values(pairs: Iterable[str]) -> dict[str, str]:
    """Return the values of `name=value` pairs, by the full names of the properties.

    Raises:
        ChangeError: a property is given twice.
    """
    values: dict[str, str] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        name = _GPU if name == "gpu" else name
        if name in values:
            raise ChangeError(f"{name:.60} is given twice")
        values[name] = value
    return values


def _kinds_with(properties: Collection[str], kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
    """Return the kinds that have all of the properties.

    Raises:
        ChangeError: a property that none of the kinds has.
    """
    for name in properties:
        if not any(_has(kind, name) for kind in kinds):
            writable = [*dict.fromkeys(each for kind in kinds for each in _PROPERTIES[kind])]
            if "cpu" in writable:
                writable.append("and devices in full, such as amd.com/gpu")
            advice = key_advice(name, writable)
            raise ChangeError(f"{name!r:.60} is not a property of a {' or '.join(kinds)}; {advice}")
    return tuple(kind for kind in kinds if all(_has(kind, name) for name in properties))


def _subject(text: str, properties: Collection[str]) -> tuple[tuple[Kind, ...], str]:
    """Return the possible kinds of a change's subject, and its name.

    Without a leading kind word they are the kinds with most of the properties.
    """
    word, *names = text.split(maxsplit=1) or [""]
    for kind in _PROPERTIES:
        if kind == word and names:
            return (kind,), names[0]
    fitting = {kind: sum(_has(kind, name) for name in properties) for kind in _PROPERTIES}
    return tuple(kind for kind in fitting if fitting[kind] == max(fitting.values())), text


def _has(kind: Kind, name: str) -> bool:
    properties = _PROPERTIES[kind]
    return name in properties or ("cpu" in properties and _DEVICE.match(name) is not None)


def _whole(digits: str, most: int, what: str, otherwise: str = "") -> int:
    is_number = re.fullmatch("[0-9]+", digits) and len(digits) <= len(str(most))
    if not is_number or not 1 <= int(digits) <= most:
        advice = f"write a whole number from 1 to {most}{otherwise}"
        raise ChangeError(f"{digits!r:.40} is not {what}; {advice}")
    return int(digits)


def _limit(value: str) -> int:
    return 0 if value == OFF else _whole(value, MOST_ITERATIONS, "a limit", f", or {OFF}")


def _max_latency_ms(value: str) -> float | None:
    return None if value == OFF else parse_latency_ms(_UNIT.sub("", value))


def _access_modes(value: str) -> tuple[str, ...]:
    if value not in ACCESS_MODES:
        raise ChangeError(f"access mode {value!r:.60}; choose one of {', '.join(ACCESS_MODES)}")
    return (value,)


_FIELDS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "speed": ("speed", read_speed),
    "limit": ("parallelism", _limit),
    "node": ("node", str),
    "duration": ("duration_seconds", parse_duration),
    "max-latency": ("max_latency_ms", _max_latency_ms),
    "access": ("access_modes", _access_modes),
}
"""Field of the model and reader of its value, for each property that is not an amount."""
