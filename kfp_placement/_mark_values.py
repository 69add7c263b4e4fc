"""Checks of the values that authors write as marks.

A check takes what is marked and the option's name, both for messages, and the value. Knows nothing
of kfp.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kfp_placement.exceptions import MarkValueError, NotConstantError, UnknownOptionError
from kfp_placement_engine.contract.hints import (
    MAX_PRIORITY,
    MAX_QUEUE_NAME_LENGTH,
    MAX_WORKERS,
    is_queue_name,
    is_whole,
)
from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.constraints import MAX_LABEL_VALUE_LENGTH
from kfp_placement_engine.units.durations import parse_duration, parse_latency_ms
from kfp_placement_engine.units.quantities import (
    MIN_MEMORY_BYTES,
    format_resource,
    parse_cpu,
    parse_quantity,
)
from kfp_placement_engine.views.formatting import counted

_LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_NOT_LABEL = re.compile(r"[^-A-Za-z0-9_.]+", re.ASCII)
_RESOURCE_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?", re.ASCII)
_KFP_MEMORY = re.compile(r"[0-9]+(?:[EPTGM]i?|Ki)?", re.ASCII)
_CHANNEL = "{{channel:"
"""Pattern of a pipeline parameter or a step's output in text, as KFP writes them."""

_MAX_ACCELERATORS = 1_000
_MOST_CPU_MILLI = 10_000_000
_LONGEST_LIMIT_MS = 60_000.0
_LEAST_IMAGE_BYTES = 1024


def bad(subject: str, option: str, value: object, problem: str, remedy: str) -> MarkValueError:
    """Return the error for a value: what is wrong with it, and what to do."""
    return MarkValueError(f"{subject}: {option} = {_shortened(value)} {problem}; {remedy}")


def unknown(subject: str, name: str, known: Sequence[str]) -> UnknownOptionError:
    """Return the error for an option that does not exist, with the closest one that does."""
    close = difflib.get_close_matches(name, known, n=1)
    advice = f"did you mean {close[0]!r}?" if close else "options: " + ", ".join(known)
    return UnknownOptionError(f"{subject}: there is no option {name!r:.60}; {advice}")


def _shortened(value: object) -> str:
    """Format a value as Python writes it; of a long one the start, and the quote at the end."""
    written = repr(value)
    return written if len(written) <= 80 else f"{written[:76]}...{written[-1]}"


def is_channel(value: object) -> bool:
    """Return whether a value is a KFP channel itself, and not text that contains one."""
    return not isinstance(value, str) and str(value).startswith(_CHANNEL)


def refuse_channels(subject: str, option: str, value: object) -> None:
    """Refuse pipeline parameters and outputs of steps.

    Raises:
        NotConstantError: the value is one, or contains one.
    """
    parts = [*value.keys(), *value.values()] if isinstance(value, Mapping) else [value]
    for part in parts:
        text = str(part)
        if _CHANNEL in text:
            name = re.search(r"name=([^;}]*)", text)
            shown = f" {name[1]!r}" if name else ""
            raise NotConstantError(
                f"{subject}: {option} is taken from the pipeline parameter or output{shown}, but it"
                " is written when the pipeline is compiled; give a constant (for several values,"
                " make the pipeline in a function and compile it once for each)"
            )


_EXAMPLES = {
    "type": "type='Training'",
    "location": "location='HOME-EDGE'",
    "scheduler": "scheduler='kfp-placement'",
}


def label(subject: str, option: str, value: object) -> str:
    """Check a Kubernetes label value."""
    if not isinstance(value, str):
        raise bad(subject, option, value, "is not text", f"write for example {_EXAMPLES[option]}")
    if len(value) > MAX_LABEL_VALUE_LENGTH:
        problem = f"has {len(value)} characters, and it becomes a Kubernetes label"
        raise bad(subject, option, value, problem, f"use at most {MAX_LABEL_VALUE_LENGTH}")
    if _LABEL_VALUE.fullmatch(value) is None:
        suggestion = _NOT_LABEL.sub("-", value).strip("-_.")
        advice = f", for example {suggestion!r}" if suggestion else ""
        raise bad(
            subject,
            option,
            value,
            "is not a Kubernetes label value",
            "use letters, digits, '-', '_' and '.', with a letter or digit at both ends" + advice,
        )
    return value


def number(parse: Callable[[object], Any]) -> Callable[[str, str, object], Any]:
    """Return a check of values that the engine parses."""

    def check(subject: str, option: str, value: object) -> Any:
        try:
            return parse(value)
        except QuantityError as error:
            raise MarkValueError(f"{subject}: {option}: {error}") from None

    return check


duration = number(parse_duration)
"""A run time in seconds."""


def sizes(subject: str, option: str, value: object) -> dict[str, int]:
    """Bytes by name."""
    if not isinstance(value, Mapping):
        remedy = f"write for example {option}={{'model': '50Mi'}}"
        raise bad(subject, option, value, "is not a mapping of names to sizes", remedy)
    found: dict[str, int] = {}
    for name, size in value.items():
        if not isinstance(name, str) or not name:
            raise bad(subject, option, name, "is not a name", "use the component's own names")
        found[name] = number(parse_quantity)(subject, f"{option}[{name!r:.60}]", size)
    return found


def whole_number(
    least: int, most: int, problem: str, remedy: str
) -> Callable[[str, str, object], int]:
    """Return a check of whole numbers between bounds."""

    def check(subject: str, option: str, value: object) -> int:
        if not is_whole(value, least, most):
            raise bad(subject, option, value, problem, remedy)
        return value

    return check


priority = whole_number(
    -MAX_PRIORITY,
    MAX_PRIORITY,
    "is not a whole number in range",
    f"use one from -{MAX_PRIORITY} to {MAX_PRIORITY}; larger is more important",
)
"""A run's importance."""

pod_count = whole_number(
    1, MAX_WORKERS, "is not a whole number of pods", f"use one from 1 to {MAX_WORKERS:,}"
)
"""Check of the number of pods that a step creates itself."""


def text(
    fits: Callable[[str], object], problem: str, remedy: str
) -> Callable[[str, str, object], str]:
    """Return a check of text of some form."""

    def check(subject: str, option: str, value: object) -> str:
        if not isinstance(value, str) or not fits(value):
            raise bad(subject, option, value, problem, remedy)
        return value

    return check


queue = text(
    is_queue_name,
    "is not the name of a RunQueue",
    f"use at most {MAX_QUEUE_NAME_LENGTH} lower-case letters, digits, '-' and '.', with a letter or"
    " digit at both ends, for example queue='gpu'",
)
"""The name of a RunQueue."""

accelerator_type = text(
    _RESOURCE_NAME.fullmatch,
    "is not a resource name",
    "use the name nodes offer it under, for example 'nvidia.com/gpu'",
)
"""The resource name of an accelerator."""


def cpu(subject: str, option: str, value: object) -> str:
    """CPUs, as KFP takes them."""
    amount_milli = _positive(parse_cpu, subject, option, value)
    if amount_milli > _MOST_CPU_MILLI:
        problem = f"is {amount_milli // 1000:,} CPUs, more than any node has"
        raise bad(subject, option, value, problem, "write for example 2, 0.5 or '500m'")
    return format_resource("cpu", amount_milli)


def max_latency(subject: str, option: str, value: object) -> float:
    """Check a limit of round trips, in milliseconds."""
    limit_ms: float = number(parse_latency_ms)(subject, option, value)
    if limit_ms > _LONGEST_LIMIT_MS:
        problem = "is longer than a minute"
        raise bad(subject, option, value, problem, "write milliseconds as for example '20ms'")
    return limit_ms


def image_size(subject: str, option: str, value: object) -> int:
    """Bytes of an image."""
    size_bytes: int = number(parse_quantity)(subject, option, value)
    if 0 < size_bytes < _LEAST_IMAGE_BYTES:
        problem = f"is {size_bytes} bytes, which is less than any image"
        raise bad(subject, option, value, problem, "give it a unit, for example '3Gi'")
    return size_bytes


def memory(subject: str, option: str, value: object) -> str:
    """Memory, as KFP takes it."""
    amount = _positive(parse_quantity, subject, option, value)
    if amount < MIN_MEMORY_BYTES:
        problem = f"is {counted(amount, 'byte')}, in which no step can run"
        raise bad(subject, option, value, problem, "give it a unit, for example '4Gi'")
    text = str(value).strip()
    # "4G" stays as written where KFP takes it; "0.5Gi" or "1e9" are written in a form it takes.
    return text if _KFP_MEMORY.fullmatch(text) else format_resource("memory", amount)


def _positive(parse: Callable[[object], int], subject: str, option: str, value: object) -> int:
    amount: int = number(parse)(subject, option, value)
    if amount == 0:
        raise bad(subject, option, value, "requests nothing", f"leave {option} out instead")
    return amount


def gpu(subject: str, option: str, value: object) -> str:
    """Check a number of accelerators and return it as text."""
    text = str(value).strip() if isinstance(value, int | str) and value is not True else ""
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MAX_ACCELERATORS):
        remedy = f"use one from 1 to {_MAX_ACCELERATORS}, or leave {option} out"
        raise bad(subject, option, value, "is not a whole number of accelerators", remedy)
    return str(int(text))
