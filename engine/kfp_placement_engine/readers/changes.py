"""Changes as people write them: `+2 of worker`, `gpu-node cpu=32`, `loop for-loop-1 limit=off`.

Every form begins with what it is about and ends with its new state. Names of steps may hold
spaces, as those of workflow formats do, and so may times (`20 minutes`).
"""

import difflib
import re
from collections.abc import Callable

from kfp_placement_engine.exceptions import ChangeError, InputError
from kfp_placement_engine.model.changes import (
    ACCESS_MODES,
    OFF,
    AddNodes,
    Change,
    ClaimAccess,
    HoldImage,
    LatencyLimit,
    LoopLimit,
    RemoveNodes,
    ResizeNodes,
    StepDuration,
)
from kfp_placement_engine.model.durations import parse_duration, parse_latency_ms
from kfp_placement_engine.model.quantities import parse_memory, parse_resource
from kfp_placement_engine.readers.kubernetes.nodes import read_speed

FORMS = (
    "+N of NODE",
    "-N of NODE",
    "NODE cpu=N",
    "NODE memory=SIZE",
    "NODE nvidia.com/gpu=N",
    "NODE speed=X",
    "loop LOOP limit=N|off",
    "step STEP duration=TIME",
    "step STEP max-latency=TIME|off",
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

_RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage")
_SPEED = "speed"

_COUNTED = re.compile(r"([+-])\s*([0-9]+)\s+of\s+(\S+)", re.ASCII)
_ABOUT = re.compile(r"(loop|step|volume)\s+(\S|\S.*\S)\s+([a-z-]+)=(\S.*)", re.DOTALL)
_UNIT = re.compile(r"(?<=[0-9])\s+(?=[a-zµμ])")
"""What people leave between a number and its unit."""
_IMAGE = re.compile(r"image\s+(\S+)\s+everywhere")
_NODES = re.compile(r"(\S+)((?:\s+[^\s=]+=\S+)+)")


def read_change(text: str) -> Change:
    """Read one change.

    Raises:
        ChangeError: it has none of the forms, or a value that cannot be; the message shows them.
    """
    cleaned = text.strip() if len(text) <= MAX_CHARACTERS else ""
    try:
        change = _read(cleaned)
    except InputError as error:
        meant = _meant(cleaned)
        advice = f"; did you mean {meant}?" if meant else ""
        raise ChangeError(f"{text!r:.120}: {error}{advice}") from error
    if change is not None:
        return change
    about = _ABOUT.fullmatch(cleaned)
    if about is not None:
        names = " and ".join(name for kind, name in _PROPERTIES if kind == about[1])
        raise ChangeError(f"{text!r:.120}: only the {names} of a {about[1]} can be changed")
    raise ChangeError(f"{text!r:.120} is not a change that can be planned; {_advice(cleaned)}")


def _read(cleaned: str) -> Change | None:
    """The change; None where the text has none of the forms."""
    for pattern, read in _READERS:
        match = pattern.fullmatch(cleaned)
        change = None if match is None else read(match)
        if change is not None:
            return change
    return None


def _advice(cleaned: str) -> str:
    """What to write in place of text that has none of the forms."""
    meant = _meant(cleaned)
    if meant:
        return f"did you mean {meant}?"
    if cleaned.startswith("+") and _COUNTED.match(cleaned) and "=" in cleaned:
        return "an added node equals those of that name; for others, plan with another cluster"
    return f"write one of: {', '.join(FORMS)}"


def _meant(cleaned: str) -> str:
    """What was probably meant by text that has none of the forms, or ""."""
    parts = [part.strip() for part in cleaned.split(",")]
    if len(parts) > 1 and all(map(_is_change, parts)):
        return f"{len(parts)} changes, to be given one by one: {', '.join(map(repr, parts))}"
    for pattern, form in _NEAR_FORMS:
        near = pattern.sub(form, cleaned)
        if near != cleaned and _is_change(near):
            return repr(near)
    return ""


def _is_change(text: str) -> bool:
    try:
        return _read(text) is not None
    except InputError:
        return False


def _counted(match: re.Match[str]) -> Change:
    sign, digits, nodes = match.groups()
    count = _whole(digits, MOST_NODES, "a number of nodes")
    return AddNodes(nodes, count) if sign == "+" else RemoveNodes(nodes, count)


def _about(match: re.Match[str]) -> Change | None:
    """A change of a loop, a step or a volume; None where that has no such property."""
    read = _PROPERTIES.get((match[1], match[3]))
    return None if read is None else read(match[2], match[4])


def _loop_limit(loop: str, value: str) -> Change:
    if value == OFF:
        return LoopLimit(loop, None)
    try:
        return LoopLimit(loop, _whole(value, MOST_ITERATIONS, "a limit"))
    except ChangeError as error:
        raise ChangeError(f"{error}, or {OFF}") from error


def _duration(step: str, value: str) -> Change:
    return StepDuration(step, parse_duration(value))


def _latency_limit(step: str, value: str) -> Change:
    return LatencyLimit(step, None if value == OFF else parse_latency_ms(_UNIT.sub("", value)))


def _access(claim: str, value: str) -> Change:
    if value not in ACCESS_MODES:
        raise ChangeError(f"access mode {value!r:.60}; choose one of {', '.join(ACCESS_MODES)}")
    return ClaimAccess(claim, value)


def _image(match: re.Match[str]) -> Change:
    return HoldImage(match[1])


def _resize(match: re.Match[str]) -> Change:
    values: dict[str, str] = {}
    for pair in match[2].split():
        name, _, value = pair.partition("=")
        if name in values:
            raise ChangeError(f"{name:.60} is given twice")
        values[name] = value
    speed = values.pop(_SPEED, None)
    amounts = tuple((_resource(name), _amount(name, values[name])) for name in values)
    return ResizeNodes(match[1], amounts, None if speed is None else read_speed(speed))


def _amount(name: str, value: str) -> int:
    return parse_memory(value) if name == "memory" else parse_resource(name, value)


def _resource(name: str) -> str:
    """The name of a resource; those of devices have a domain (`nvidia.com/gpu`)."""
    if name in _RESOURCES or "/" in name or name.startswith("hugepages-"):
        return name
    known = (*_RESOURCES, _SPEED)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    advice = f"did you mean {close[0]}?" if close else f"write {', '.join(known)} or nvidia.com/gpu"
    raise ChangeError(f"{name!r:.60} is not a property of a node; {advice}")


def _whole(digits: str, most: int, what: str) -> int:
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))
    if not is_number or not 1 <= int(digits) <= most:
        raise ChangeError(f"{digits!r:.40} is not {what}; write a whole number from 1 to {most}")
    return int(digits)


_PROPERTIES: dict[tuple[str, str], Callable[[str, str], Change]] = {
    ("loop", "limit"): _loop_limit,
    ("step", "duration"): _duration,
    ("step", "max-latency"): _latency_limit,
    ("volume", "access"): _access,
}

_NEAR_FORMS = (
    (re.compile(r"([+-]\s*[0-9]+)\s*(?:x\s*)?(\S+)", re.ASCII), r"\1 of \2"),
    (re.compile(r"image\s+(\S+)"), r"image \1 everywhere"),
    (re.compile(r"\s*=\s*"), "="),
    (re.compile(r"^(?![-+])([^=]*\S)\s+([^\s=]+)$"), r"\1=\2"),
    (re.compile(r"^(\S+)\s+((?:duration|max-latency)=)"), r"step \1 \2"),
    (re.compile(r"^(\S+)\s+(limit=)"), r"loop \1 \2"),
    (re.compile(r"^nodes?\s+(\S+\s+[^\s=]+=)"), r"\1"),
)
"""What people write in place of a form, and the form: `+2 worker`, `worker cpu 8`."""

_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Change | None]], ...] = (
    (_COUNTED, _counted),
    (_IMAGE, _image),
    (_ABOUT, _about),
    (_NODES, _resize),
)
