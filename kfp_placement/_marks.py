"""Marks of a step: the checked values of `place` and `placed`.

Knows nothing of kfp, so that everything about values can be tested and reused without it.
"""

import difflib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kfp_placement import _mark_values
from kfp_placement.exceptions import PlacementWarning, UnknownOptionError
from kfp_placement.workers import Workers
from kfp_placement_engine.contract.hints import StepHints
from kfp_placement_engine.contract.step_types import near_scheduler, near_type
from kfp_placement_engine.model.demand import PodGroup


@dataclass(frozen=True, kw_only=True)
class Marks:
    """Checked values of an author; None = not given.

    Attributes:
        type, location, scheduler: label values.
        hints: hints to the planner, beyond the labels.
        cpu, memory: requests as KFP takes them, or a KFP channel.
        gpu: number of accelerators as text, or a KFP channel.
        accelerator_type: resource name of the accelerator, or a KFP channel.
    """

    type: str | None = None
    location: str | None = None
    scheduler: str | None = None
    hints: StepHints = field(default_factory=StepHints)
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
        allowed: Sequence[str] = (),
        constants_only: bool = False,
    ) -> "Marks":
        """Check what the author wrote.

        Args:
            subject: subject of the marks, for messages (`step 'train'`).
            options: the options by name; None = not given.
            allowed: names of the options that exist here; all of `place` if empty.
            constants_only: whether pipeline parameters are refused even where KFP takes them.

        Raises:
            UnknownOptionError: there is no such option.
            NotConstantError: a pipeline parameter where only constants can stand.
            MarkValueError: a value that cannot be used.
        """
        values, hints = dict[str, Any](), dict[str, Any]()
        for name, value in options.items():
            if name not in (allowed or _STEP_OPTIONS):
                raise unknown_option(subject, name, allowed or _STEP_OPTIONS)
            if value is None:
                continue
            attribute, check = _OPTIONS[name]
            takes_channels = name in _RESOURCES and not constants_only
            if not (takes_channels and _mark_values.is_channel(value)):
                given = _mark_values.Given(subject, name, value)
                _mark_values.refuse_channels(given)
                value = check(given)
            (hints if attribute in _HINTS else values)[attribute] = value
        _warn_of_near_words(subject, values)
        return cls(**values, hints=StepHints(**hints))

    def refined_by(self, other: "Marks") -> "Marks":
        """Merge with `other`, whose values win; sizes are merged by name."""
        names = (*_LABELS, *_RESOURCES)
        given = {name: getattr(other, name) for name in names if getattr(other, name) is not None}
        return replace(self, **given, hints=_refined(self.hints, other.hints))

    def refine_hints(self, hints: StepHints) -> StepHints:
        """Return `hints`, overridden by what these marks set; sizes are merged by name."""
        refined = _refined(hints, self.hints)
        return refined if self.type is None else replace(refined, type_guessed=False)


def _refined(hints: StepHints, given: StepHints) -> StepHints:
    """Return `hints`, overridden by each hint in `given`; sizes are merged by name."""
    changes: dict[str, Any] = {}
    for name in _HINTS:
        value = getattr(given, name)
        if isinstance(value, Mapping):
            changes[name] = {**getattr(hints, name), **value}
        elif value is not None:
            changes[name] = value
    return replace(hints, **changes)


def unknown_option(subject: str, name: str, allowed: Sequence[str]) -> UnknownOptionError:
    """Return the error for an option that does not exist, with the closest one that does."""
    if name == "queue":
        return UnknownOptionError(
            f"{subject}: {name!r} applies to whole runs, since a run waits in its queue as a whole;"
            " use @placed_pipeline(queue=...)"
        )
    if name in _OPTIONS:
        close = difflib.get_close_matches(name, allowed, n=1, cutoff=0.8)
        here = f", or here {close[0]!r}" if close else ""
        return UnknownOptionError(
            f"{subject}: {name!r} applies to single steps; use place() or @placed{here}"
        )
    return _mark_values.unknown(subject, name, allowed)


def _warn_of_near_words(subject: str, values: Mapping[str, Any]) -> None:
    """Warn of a type or scheduler that is one typing error away from a known one."""
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


def _workers(given: _mark_values.Given) -> PodGroup:
    if not isinstance(given.value, Workers):
        remedy = "write for example workers=Workers(3, gpu=1)"
        raise given.bad("does not name workers", remedy)
    return given.value.pods


_OPTIONS: dict[str, tuple[str, _mark_values.Check]] = {
    "type": ("type", _mark_values.label),
    "location": ("location", _mark_values.label),
    "duration": ("duration_seconds", _mark_values.duration),
    "outputs": ("output_bytes", _mark_values.sizes),
    "inputs": ("input_bytes", _mark_values.sizes),
    "image_size": ("image_bytes", _mark_values.image_size),
    "max_latency": ("max_latency_ms", _mark_values.max_latency),
    "priority": ("priority", _mark_values.priority),
    "queue": ("queue", _mark_values.queue),
    "workers": ("workers", _workers),
    "scheduler": ("scheduler", _mark_values.label),
    "cpu": ("cpu", _mark_values.cpu),
    "memory": ("memory", _mark_values.memory),
    "gpu": ("gpu", _mark_values.gpu),
    "accelerator_type": ("accelerator_type", _mark_values.accelerator_type),
}
"""Option -> attribute of `Marks` or of its hints, and the check of the value."""

_LABELS = ("type", "location", "scheduler")
"""Options that become labels."""

_RESOURCES = ("cpu", "memory", "gpu", "accelerator_type")
"""Options for which KFP takes a pipeline parameter."""

_STEP_OPTIONS = [name for name in _OPTIONS if name != "queue"]
"""Options of `place` and `@placed`: a run waits in its queue as a whole."""

_HINTS = [
    attribute
    for option, (attribute, _) in _OPTIONS.items()
    if option not in (*_LABELS, *_RESOURCES)
]
"""Attributes of `StepHints` that authors set."""
