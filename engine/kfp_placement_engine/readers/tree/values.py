"""Values before the run: known, produced by a step, missing or unknown."""

import json
from dataclasses import dataclass
from typing import Any, Final

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.text.documents import parse_json
from kfp_placement_engine.readers.text.place import Place, scalar_text

GAP = "{{"
"""Beginning of the placeholders that KFP and Argo fill in at run time."""


@dataclass(frozen=True)
class KnownValue:
    """A value that is known before the run."""

    value: Any


@dataclass(frozen=True)
class Produced:
    """A value that steps of the run make, with step name and output key of each of them."""

    sources: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Unknown:
    """A value of which nothing is known."""


@dataclass(frozen=True)
class Missing:
    """A pipeline parameter without a value; it is unknown, but equal wherever it is used."""

    parameter: str


Value = KnownValue | Produced | Unknown | Missing
UNKNOWN: Final = Unknown()

MAX_CHARACTERS = 2**20
"""Size of the largest value that is put together, as text: a value that doubles at each level of
nested templates would fill the memory."""

_PART_CHARACTERS = 256
"""Size that each part of a list or mapping counts for, besides its text."""

_VALUE = Place("value")


def known_text(value: Value) -> str | None:
    """Return the text of a known value, or None; mappings and lists are JSON."""
    if not isinstance(value, KnownValue):
        return None
    if isinstance(value.value, dict | list):
        return None if has_unknown(value.value) else json.dumps(value.value, sort_keys=True)
    return "" if value.value is None else scalar_text(value.value)


def gapless(text: str | None) -> str | None:
    """Return the text, or None if a part of it is known only at run time."""
    return None if text is None or GAP in text else text


def known_list(value: Value) -> list[Any] | None:
    """Return the list of a known value (a list, or JSON text that holds one), or None."""
    plain = parsed(value)
    return plain if isinstance(plain, list) else None


def item_value(item: Any) -> Value:
    """Return an entry of a list or mapping as a value of its own."""
    return UNKNOWN if isinstance(item, Unknown) else KnownValue(item)


def has_unknown(value: Any, gap: str | None = None) -> bool:
    """Return whether any part of a plain value is known only at run time.

    Args:
        value: plain value.
        gap: mark of text with a part that is filled in at run time; None = no text has any.
    """
    if isinstance(value, dict):
        return any(has_unknown(entry, gap) for entry in value.values())
    if isinstance(value, list):
        return any(has_unknown(entry, gap) for entry in value)
    return isinstance(value, Unknown) or (
        gap is not None and isinstance(value, str) and gap in value
    )


def plain_value(value: Value) -> Any:
    """Return the value as a part of a list or mapping: `UNKNOWN` if not known, or too large."""
    return value.value if isinstance(value, KnownValue) and _is_small(value.value) else UNKNOWN


def _is_small(value: Any) -> bool:
    """Return whether a plain value may be put into a larger one; visits only as many parts."""
    characters, parts = 0, [value]
    while parts and characters <= MAX_CHARACTERS:
        part = parts.pop()
        characters += _PART_CHARACTERS
        if isinstance(part, str):
            characters += len(part)
        elif isinstance(part, list):
            parts += part
        elif isinstance(part, dict):
            parts += [*part, *part.values()]
    return characters <= MAX_CHARACTERS


def parsed(value: Value) -> Any:
    """Return a known value, or the value in it if it is JSON text; None for other text."""
    if not isinstance(value, KnownValue):
        return None
    if isinstance(value.value, str):
        try:
            return parse_json(value.value, place=_VALUE)
        except InputError:
            return None
    return value.value
