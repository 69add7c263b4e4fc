"""Changes as people write them: `+2 of worker`, `gpu-node cpu=32`, `loop for-loop-1 limit=off`.

Every form begins with what it is about and ends with its new state. Names of steps may hold
spaces, as those of workflow formats do, and so may times (`20 minutes`).
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kfp_placement_engine.exceptions import ChangeError, InputError
from kfp_placement_engine.model.changes import (
    ACCESS_MODES,
    OFF,
    AddNodes,
    Change,
    ChangeStep,
    ClaimAccess,
    HoldImage,
    LoopLimit,
    RemoveNodes,
    ResizeNodes,
)
from kfp_placement_engine.model.durations import parse_duration, parse_latency_ms
from kfp_placement_engine.model.quantities import parse_memory, parse_resource
from kfp_placement_engine.readers.forms import key_advice
from kfp_placement_engine.readers.kubernetes.nodes import read_speed

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
"""All forms; NODE is a node, `worker` for all of worker-1, worker-2, ..., or a pattern with `*`."""

MAX_CHARACTERS = 1_000
"""Longer text is not a change; names in Kubernetes have at most 253 characters."""

MOST_NODES = 10_000
"""Nodes that one change adds or removes, at most."""

MOST_ITERATIONS = 10**9
"""A loop's limit, at most; with more there is no limit."""

_REQUESTED = ("cpu", "memory", "ephemeral-storage")
_FULL_NAME = re.compile(r".*/|hugepages-")
_GPU = {"gpu": "nvidia.com/gpu"}

_COUNTED = re.compile(r"([+-])\s*([0-9]+)(?:\s*x)?\s+(?:of\s+)?(\S+)", re.ASCII)
_IMAGE = re.compile(r"image\s+([^\s=]+)(?:\s+everywhere)?")
_EQUALS = re.compile(r"\s*=\s*")
_BETWEEN = re.compile(r"\s+(?=[^\s=]+=\S)")
"""What is between the parts of a form that ends with `name=value`, once or several times."""
_UNIT = re.compile(r"(?<=[0-9])\s+(?=[a-zµμ])")
"""What people leave between a number and its unit."""


def read_change(text: str) -> Change:
    """Read one change.

    Raises:
        ChangeError: it has none of the forms, or a value that cannot be; the message shows them.
    """
    cleaned = _EQUALS.sub("=", text.strip()) if len(text) <= MAX_CHARACTERS else ""
    several = "; give several changes one by one" if "," in cleaned else ""
    try:
        change = _read(cleaned)
    except InputError as error:
        raise ChangeError(f"{text!r:.120}: {error}{several}") from error
    if change is None:
        forms = f"; write one of: {', '.join(FORMS)}"
        problem = f"{text!r:.120} is not a change that can be planned"
        raise ChangeError(f"{problem}{several or forms}")
    return change


def _read(cleaned: str) -> Change | None:
    """The change; None where the text has none of the forms."""
    if match := _COUNTED.fullmatch(cleaned):
        count = _whole(match[2], MOST_NODES, "a number of nodes")
        return AddNodes(match[3], count) if match[1] == "+" else RemoveNodes(match[3], count)
    if match := _IMAGE.fullmatch(cleaned):
        return HoldImage(match[1])
    subject, *pairs = _BETWEEN.split(cleaned)
    values: dict[str, str] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        name = _GPU.get(key, key)
        if name in values:
            raise ChangeError(f"{key:.60} is given twice")
        values[name] = value
    about, *rest = subject.split(maxsplit=1) or [""]
    if about not in _KINDS or not rest:
        # The kind may be left out where a property tells it.
        kinds = (kind for kind in _KINDS if not values.keys().isdisjoint(_KINDS[kind].properties))
        about, rest = next(kinds, "node"), [subject]
    is_name = "=" not in rest[0] and (about != "node" or rest[0].split() == rest)
    return _KINDS[about].read(about, rest[0], values) if values and is_name else None


@dataclass(frozen=True)
class _Kind:
    """One kind of thing that can be changed.

    Attributes:
        change: makes the change.
        properties: field of the change, and what reads its value, by what people call it.
        resources: amounts of these can be changed, too, and of those that devices bring.
    """

    change: Callable[..., Change]
    properties: Mapping[str, tuple[str, Callable[[str], object]]]
    resources: tuple[str, ...] = ()

    def read(self, about: str, name: str, values: Mapping[str, str]) -> Change:
        """The change that sets these values."""
        fields: dict[str, Any] = {}
        amounts: dict[str, int] = {}
        for key, value in values.items():
            if key in self.properties:
                field, read = self.properties[key]
                fields[field] = read(value)
            elif self.resources and (key in self.resources or _FULL_NAME.match(key)):
                amounts[key] = (
                    parse_memory(value) if key == "memory" else parse_resource(key, value)
                )
            else:
                raise ChangeError(self._unknown(about, key))
        if amounts:
            fields["resources"] = tuple(amounts.items())
        return self.change(name, **fields)

    def _unknown(self, about: str, key: str) -> str:
        known = [*self.resources, *self.properties]
        if self.resources:
            known += [*_GPU, "and devices in full, such as amd.com/gpu"]
        return f"{key!r:.60} is not a property of a {about}; {key_advice(key, known)}"


def _whole(digits: str, most: int, what: str, otherwise: str = "") -> int:
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))
    if not is_number or not 1 <= int(digits) <= most:
        advice = f"write a whole number from 1 to {most}{otherwise}"
        raise ChangeError(f"{digits!r:.40} is not {what}; {advice}")
    return int(digits)


def _limit(value: str) -> int | None:
    return None if value == OFF else _whole(value, MOST_ITERATIONS, "a limit", f", or {OFF}")


def _max_latency_ms(value: str) -> float:
    return math.inf if value == OFF else parse_latency_ms(_UNIT.sub("", value))


def _access_mode(value: str) -> str:
    if value not in ACCESS_MODES:
        raise ChangeError(f"access mode {value!r:.60}; choose one of {', '.join(ACCESS_MODES)}")
    return value


_KINDS = {
    "node": _Kind(ResizeNodes, {"speed": ("speed", read_speed)}, (*_REQUESTED, "pods")),
    "loop": _Kind(LoopLimit, {"limit": ("limit", _limit)}),
    "step": _Kind(
        ChangeStep,
        {
            "node": ("nodes", str),
            "duration": ("seconds", parse_duration),
            "max-latency": ("max_latency_ms", _max_latency_ms),
        },
        _REQUESTED,
    ),
    "volume": _Kind(ClaimAccess, {"access": ("mode", _access_mode)}),
}
