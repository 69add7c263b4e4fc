"""What an author says about a step, checked: the values of `place` and `placed`.

Knows nothing of kfp, so that everything about values can be tested and reused without it.
"""

import difflib
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from kfp_placement.exceptions import (
    MarkValueError,
    NotConstantError,
    PlacementWarning,
    UnknownOptionError,
)
from kfp_placement_engine.contract.hints import StepHints
from kfp_placement_engine.contract.types import near_scheduler, near_type
from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.constraints import MAX_LABEL_VALUE_LENGTH
from kfp_placement_engine.model.durations import parse_duration, parse_latency_ms
from kfp_placement_engine.model.quantities import (
    MIN_MEMORY_BYTES,
    format_resource,
    parse_cpu,
    parse_quantity,
)

_LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_NOT_LABEL = re.compile(r"[^-A-Za-z0-9_.]+", re.ASCII)
_RESOURCE_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?", re.ASCII)
_KFP_MEMORY = re.compile(r"[0-9]+(?:[EPTGM]i?|Ki)?", re.ASCII)
_CHANNEL = "{{channel:"
"""How KFP writes a pipeline parameter or a step's output into text, f-strings included."""

_MAX_PRIORITY = 1_000_000
_MAX_ACCELERATORS = 1_000
_MOST_CPU_MILLI = 10_000_000
_LONGEST_LIMIT_MS = 60_000.0
_LEAST_IMAGE_BYTES = 1024


@dataclass(frozen=True, kw_only=True)
class Marks:
    """Checked values; None (or empty) = not given.

    Attributes:
        type, location, scheduler: label values.
        duration_seconds: run time on the reference node.
        output_bytes, input_bytes: sizes by name.
        image_bytes: size of the image.
        max_latency_ms: hard limit of the round trip to the location.
        priority: importance of the run among others.
        cpu, memory: requests as KFP takes them, or a KFP channel.
        gpu: number of accelerators as text, or a KFP channel.
        accelerator_type: resource name of the accelerator, or a KFP channel.
    """

    type: str | None = None
    location: str | None = None
    scheduler: str | None = None
    duration_seconds: float | None = None
    output_bytes: Mapping[str, int] = field(default_factory=dict)
    input_bytes: Mapping[str, int] = field(default_factory=dict)
    image_bytes: int | None = None
    max_latency_ms: float | None = None
    priority: int | None = None
    cpu: Any = None
    memory: Any = None
    gpu: Any = None
    accelerator_type: Any = None

    @classmethod
    def checked(
        cls,
        subject: str,
        options: Mapping[str, object],
        *,
        known: Sequence[str] = (),
        constants_only: bool = False,
    ) -> "Marks":
        """Check what the author wrote.

        Args:
            subject: what is marked, for messages (`step 'train'`).
            options: the options of `place` by name; None = not given.
            known: names of the options that exist here; all of `place` if empty.
            constants_only: no pipeline parameters, not even where KFP takes them.

        Raises:
            UnknownOptionError: there is no such option.
            NotConstantError: a pipeline parameter where only constants can stand.
            MarkValueError: a value that cannot be used.
        """
        values: dict[str, Any] = {}
        for name, value in options.items():
            if name not in (known or _OPTIONS):
                raise unknown_option(subject, name, known or list(_OPTIONS))
            if value is None:
                continue
            attribute, check, takes_channels = _OPTIONS[name]
            if constants_only or not (takes_channels and _is_channel(value)):
                _refuse_channels(subject, name, value)
                value = check(subject, name, value)
            values[attribute] = value
        _warn_of_near_words(subject, values)
        return cls(**values)

    def refined_by(self, other: "Marks") -> "Marks":
        """These marks with everything that `other` gives instead; sizes are merged by name."""
        given = {
            item.name: getattr(other, item.name)
            for item in fields(other)
            if getattr(other, item.name) not in (None, {})
        }
        for name in ("output_bytes", "input_bytes"):
            if name in given:
                given[name] = {**getattr(self, name), **given[name]}
        return replace(self, **given)

    def refine_hints(self, hints: StepHints) -> StepHints:
        """The hints with everything that these marks give instead; sizes are merged by name."""
        changes: dict[str, Any] = {}
        for name in ("duration_seconds", "image_bytes", "max_latency_ms", "priority"):
            if getattr(self, name) is not None:
                changes[name] = getattr(self, name)
        for name in ("output_bytes", "input_bytes"):
            if getattr(self, name):
                changes[name] = {**getattr(hints, name), **getattr(self, name)}
        if self.type is not None:
            changes["type_guessed"] = False
        return replace(hints, **changes)


def unknown_option(subject: str, name: str, known: Sequence[str]) -> UnknownOptionError:
    """The error for an option that does not exist, with the closest one that does."""
    if name in _OPTIONS:
        return UnknownOptionError(
            f"{subject}: {name!r} applies to single steps; use place() or @placed"
        )
    close = difflib.get_close_matches(name, known, n=1)
    advice = f"did you mean {close[0]!r}?" if close else "options: " + ", ".join(known)
    return UnknownOptionError(f"{subject}: there is no option {name!r:.60}; {advice}")


def _bad(subject: str, option: str, value: object, problem: str, remedy: str) -> MarkValueError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return MarkValueError(f"{subject}: {option} = {shown} {problem}; {remedy}")


def _warn_of_near_words(subject: str, values: Mapping[str, Any]) -> None:
    """Warn of a type or scheduler that differs from a known one in a single slip."""
    for option, nearest, effect in _NEAR_WORDS:
        written = values.get(option)
        near = nearest(written) if written else ""
        if near:
            warnings.warn(
                f"{subject}: {option} = {written!r} is taken for {effect}; did you mean {near!r}?",
                PlacementWarning,
                # Whoever called what calls `checked`: `place`, or a decorator.
                stacklevel=4,
            )


_NEAR_WORDS: tuple[tuple[str, Callable[[str], str], str], ...] = (
    ("type", near_type, "a type of your own, to which no rule applies"),
    ("scheduler", near_scheduler, "another scheduler, and its pod waits until that one runs"),
)


def _is_channel(value: object) -> bool:
    """A KFP channel itself; text that merely contains one is not."""
    return not isinstance(value, str) and str(value).startswith(_CHANNEL)


def _refuse_channels(subject: str, option: str, value: object) -> None:
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


def _label(subject: str, option: str, value: object) -> str:
    if not isinstance(value, str):
        raise _bad(subject, option, value, "is not text", f"write for example {_EXAMPLES[option]}")
    if len(value) > MAX_LABEL_VALUE_LENGTH:
        problem = f"has {len(value)} characters, and it becomes a Kubernetes label"
        raise _bad(subject, option, value, problem, f"use at most {MAX_LABEL_VALUE_LENGTH}")
    if _LABEL_VALUE.fullmatch(value) is None:
        suggestion = _NOT_LABEL.sub("-", value).strip("-_.")
        advice = f", for example {suggestion!r}" if suggestion else ""
        raise _bad(
            subject,
            option,
            value,
            "is not a Kubernetes label value",
            "use letters, digits, '-', '_' and '.', with a letter or digit at both ends" + advice,
        )
    return value


def _number(parse: Callable[[object], Any]) -> Callable[[str, str, object], Any]:
    def check(subject: str, option: str, value: object) -> Any:
        try:
            return parse(value)
        except QuantityError as error:
            raise MarkValueError(f"{subject}: {option}: {error}") from error

    return check


def _sizes(subject: str, option: str, value: object) -> dict[str, int]:
    if not isinstance(value, Mapping):
        remedy = f"write for example {option}={{'model': '50Mi'}}"
        raise _bad(subject, option, value, "is not a mapping of names to sizes", remedy)
    sizes: dict[str, int] = {}
    for name, size in value.items():
        if not isinstance(name, str) or not name:
            raise _bad(subject, option, name, "is not a name", "use the component's own names")
        sizes[name] = _number(parse_quantity)(subject, f"{option}[{name!r:.60}]", size)
    return sizes


def _priority(subject: str, option: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MAX_PRIORITY:
        remedy = f"use one from -{_MAX_PRIORITY} to {_MAX_PRIORITY}; larger is more important"
        raise _bad(subject, option, value, "is not a whole number in range", remedy)
    return value


def _cpu(subject: str, option: str, value: object) -> str:
    amount_milli = _positive(parse_cpu, subject, option, value)
    if amount_milli > _MOST_CPU_MILLI:
        problem = f"is {amount_milli // 1000:,} CPUs, more than any node has"
        raise _bad(subject, option, value, problem, "write for example 2, 0.5 or '500m'")
    return format_resource("cpu", amount_milli)


def _max_latency(subject: str, option: str, value: object) -> float:
    limit_ms: float = _number(parse_latency_ms)(subject, option, value)
    if limit_ms > _LONGEST_LIMIT_MS:
        problem = "is longer than a minute"
        raise _bad(subject, option, value, problem, "write milliseconds as for example '20ms'")
    return limit_ms


def _image_size(subject: str, option: str, value: object) -> int:
    size_bytes: int = _number(parse_quantity)(subject, option, value)
    if 0 < size_bytes < _LEAST_IMAGE_BYTES:
        problem = f"is {size_bytes} bytes, which is less than any image"
        raise _bad(subject, option, value, problem, "give it a unit, for example '3Gi'")
    return size_bytes


def _memory(subject: str, option: str, value: object) -> str:
    amount = _positive(parse_quantity, subject, option, value)
    if amount < MIN_MEMORY_BYTES:
        problem = f"is {amount:,} byte{'' if amount == 1 else 's'}, in which no step can run"
        raise _bad(subject, option, value, problem, "give it a unit, for example '4Gi'")
    text = str(value).strip()
    # "4G" stays as written where KFP takes it; "0.5Gi" or "1e9" are written in a form it takes.
    return text if _KFP_MEMORY.fullmatch(text) else format_resource("memory", amount)


def _positive(parse: Callable[[object], int], subject: str, option: str, value: object) -> int:
    amount: int = _number(parse)(subject, option, value)
    if amount == 0:
        raise _bad(subject, option, value, "requests nothing", f"leave {option} out instead")
    return amount


def _gpu(subject: str, option: str, value: object) -> str:
    text = str(value).strip() if isinstance(value, int | str) and value is not True else ""
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MAX_ACCELERATORS):
        remedy = f"use one from 1 to {_MAX_ACCELERATORS}, or leave {option} out"
        raise _bad(subject, option, value, "is not a whole number of accelerators", remedy)
    return str(int(text))


def _accelerator_type(subject: str, option: str, value: object) -> str:
    if not isinstance(value, str) or _RESOURCE_NAME.fullmatch(value) is None:
        remedy = "use the name nodes offer it under, for example 'nvidia.com/gpu'"
        raise _bad(subject, option, value, "is not a resource name", remedy)
    return value


_Check = Callable[[str, str, object], Any]
_OPTIONS: dict[str, tuple[str, _Check, bool]] = {
    # option: (attribute of Marks, check, KFP takes a pipeline parameter here)
    "type": ("type", _label, False),
    "location": ("location", _label, False),
    "duration": ("duration_seconds", _number(parse_duration), False),
    "outputs": ("output_bytes", _sizes, False),
    "inputs": ("input_bytes", _sizes, False),
    "image_size": ("image_bytes", _image_size, False),
    "max_latency": ("max_latency_ms", _max_latency, False),
    "priority": ("priority", _priority, False),
    "scheduler": ("scheduler", _label, False),
    "cpu": ("cpu", _cpu, True),
    "memory": ("memory", _memory, True),
    "gpu": ("gpu", _gpu, True),
    "accelerator_type": ("accelerator_type", _accelerator_type, True),
}
