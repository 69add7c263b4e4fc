"""Checks of the values that authors write as marks.

A check takes a `Given` value and returns it in the form of the planner or of KFP. Knows nothing of
kfp.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from kfp_placement.exceptions import MarkValueError, NotConstantError, UnknownOptionError
from kfp_placement_engine.contract.hints import (
    MAX_PRIORITY,
    MAX_QUEUE_NAME_LENGTH,
    MAX_WORKERS,
    is_queue_name,
    is_whole,
)
from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.node_rules.constraints import MAX_LABEL_VALUE_LENGTH
from kfp_placement_engine.units.durations import parse_duration, parse_latency_ms
from kfp_placement_engine.units.quantities import (
    MIN_MEMORY_BYTES,
    format_resource,
    parse_cpu,
    parse_quantity,
)
from kfp_placement_engine.views.formatting import counted

ValueT = TypeVar("ValueT")

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


@dataclass(frozen=True)
class Given:
    """Value of an option, as an author wrote it.

    Attributes:
        subject: subject of the option, for messages: a step, a function.
        option: name of the option.
        value: value of the option.
    """

    subject: str
    option: str
    value: object

    def error(self, message: str) -> MarkValueError:
        """Return the error for the value, which the message describes itself."""
        return MarkValueError(f"{self.subject}: {self.option}: {message}")

    def bad(self, problem: str, remedy: str) -> MarkValueError:
        """Return the error for the value: what is wrong with it, and what to do."""
        written = f"{self.option} = {_shortened(self.value)}"
        return MarkValueError(f"{self.subject}: {written} {problem}; {remedy}")

    def read(self, parse: Callable[[object], ValueT]) -> ValueT:
        """Return the value as the engine parses it.

        Raises:
            MarkValueError: the value cannot be parsed.
        """
        try:
            return parse(self.value)
        except QuantityError as error:
            raise self.error(str(error)) from None


Check = Callable[[Given], Any]
"""Check of a value; returns it in the form of the planner or of KFP."""


def unknown(subject: str, name: str, allowed: Sequence[str]) -> UnknownOptionError:
    """Return the error for an option that does not exist, with the closest one that does."""
    close = difflib.get_close_matches(name, allowed, n=1)
    advice = f"did you mean {close[0]!r}?" if close else "options: " + ", ".join(allowed)
    return UnknownOptionError(f"{subject}: there is no option {name!r:.60}; {advice}")


def _shortened(value: object) -> str:
    """Format a value as Python writes it; of a long one the start, and the quote at the end."""
    written = repr(value)
    return written if len(written) <= 80 else f"{written[:76]}...{written[-1]}"


def is_channel(value: object) -> bool:
    """Return whether a value is a KFP channel itself, and not text that contains one."""
    return not isinstance(value, str) and str(value).startswith(_CHANNEL)


def refuse_channels(given: Given) -> None:
    """Refuse pipeline parameters and outputs of steps.

    Raises:
        NotConstantError: the value is one, or contains one.
    """
    value = given.value
    parts = [*value.keys(), *value.values()] if isinstance(value, Mapping) else [value]
    for part in parts:
        text = str(part)
        if _CHANNEL in text:
            name = re.search(r"name=([^;}]*)", text)
            shown = f" {name[1]!r}" if name else ""
            raise NotConstantError(
                f"{given.subject}: {given.option} is taken from the pipeline parameter or"
                f" output{shown}, but it is written when the pipeline is compiled;"
                " give a constant (for several values, make the pipeline in a function and compile"
                " it once for each)"
            )


_EXAMPLES = {
    "type": "type='Training'",
    "location": "location='HOME-EDGE'",
    "scheduler": "scheduler='kfp-placement'",
}


def label(given: Given) -> str:
    """Check a Kubernetes label value."""
    value = given.value
    if not isinstance(value, str):
        raise given.bad("is not text", f"write for example {_EXAMPLES[given.option]}")
    if len(value) > MAX_LABEL_VALUE_LENGTH:
        problem = f"has {len(value)} characters, and it becomes a Kubernetes label"
        raise given.bad(problem, f"use at most {MAX_LABEL_VALUE_LENGTH}")
    if _LABEL_VALUE.fullmatch(value) is None:
        suggestion = _NOT_LABEL.sub("-", value).strip("-_.")
        advice = f", for example {suggestion!r}" if suggestion else ""
        raise given.bad(
            "is not a Kubernetes label value",
            "use letters, digits, '-', '_' and '.', with a letter or digit at both ends" + advice,
        )
    return value


def check_by(parse: Callable[[object], Any]) -> Check:
    """Return a check of values that the engine parses."""
    return lambda given: given.read(parse)


duration = check_by(parse_duration)
"""A run time in seconds."""


def sizes(given: Given) -> dict[str, int]:
    """Bytes by name."""
    if not isinstance(given.value, Mapping):
        remedy = f"write for example {given.option}={{'model': '50Mi'}}"
        raise given.bad("is not a mapping of names to sizes", remedy)
    bytes_by_name: dict[str, int] = {}
    for name, size in given.value.items():
        if not isinstance(name, str) or not name:
            named = replace(given, value=name)
            raise named.bad("is not a name", "use the component's own names")
        own = Given(given.subject, f"{given.option}[{name!r:.60}]", size)
        bytes_by_name[name] = own.read(parse_quantity)
    return bytes_by_name


def whole_number_check(least: int, most: int, problem: str, remedy: str) -> Check:
    """Return a check of whole numbers between bounds."""

    def check(given: Given) -> int:
        if not is_whole(given.value, least, most):
            raise given.bad(problem, remedy)
        return given.value

    return check


priority = whole_number_check(
    -MAX_PRIORITY,
    MAX_PRIORITY,
    "is not a whole number in range",
    f"use one from -{MAX_PRIORITY} to {MAX_PRIORITY}; larger is more important",
)
"""A run's importance."""

pod_count = whole_number_check(
    1, MAX_WORKERS, "is not a whole number of pods", f"use one from 1 to {MAX_WORKERS:,}"
)
"""Check of the number of pods that a step creates itself."""


def text(fits: Callable[[str], object], problem: str, remedy: str) -> Check:
    """Return a check of text of some form."""

    def check(given: Given) -> str:
        if not isinstance(given.value, str) or not fits(given.value):
            raise given.bad(problem, remedy)
        return given.value

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


def cpu(given: Given) -> str:
    """CPUs, as KFP takes them."""
    amount_milli = _positive(given, parse_cpu)
    if amount_milli > _MOST_CPU_MILLI:
        problem = f"is {amount_milli // 1000:,} CPUs, more than any node has"
        raise given.bad(problem, "write for example 2, 0.5 or '500m'")
    return format_resource("cpu", amount_milli)


def max_latency(given: Given) -> float:
    """Check a limit of round trips, in milliseconds."""
    limit_ms = given.read(parse_latency_ms)
    if limit_ms > _LONGEST_LIMIT_MS:
        problem = "is longer than a minute"
        raise given.bad(problem, "write milliseconds as for example '20ms'")
    return limit_ms


def image_size(given: Given) -> int:
    """Bytes of an image."""
    size_bytes = given.read(parse_quantity)
    if 0 < size_bytes < _LEAST_IMAGE_BYTES:
        problem = f"is {size_bytes} bytes, which is less than any image"
        raise given.bad(problem, "give it a unit, for example '3Gi'")
    return size_bytes


def memory(given: Given) -> str:
    """Memory, as KFP takes it."""
    amount = _positive(given, parse_quantity)
    if amount < MIN_MEMORY_BYTES:
        problem = f"is {counted(amount, 'byte')}, in which no step can run"
        raise given.bad(problem, "give it a unit, for example '4Gi'")
    text = str(given.value).strip()
    # "4G" stays as written where KFP takes it; "0.5Gi" or "1e9" are written in a form it takes.
    return text if _KFP_MEMORY.fullmatch(text) else format_resource("memory", amount)


def _positive(given: Given, parse: Callable[[object], int]) -> int:
    amount = given.read(parse)
    if amount == 0:
        raise given.bad("requests nothing", f"leave {given.option} out instead")
    return amount


def gpu(given: Given) -> str:
    """Check a number of accelerators and return it as text."""
    value = given.value
    text = str(value).strip() if isinstance(value, int | str) and value is not True else ""
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MAX_ACCELERATORS):
        remedy = f"use one from 1 to {_MAX_ACCELERATORS}, or leave {given.option} out"
        raise given.bad("is not a whole number of accelerators", remedy)
    return str(int(text))
