"""Fields that Kueue's objects have in common, read with limits because anybody may write them."""

from dataclasses import dataclass

from kfp_placement_engine.readers.text.fields import Fields

MAX_LISTED = 64
"""Limit of conditions, checks, flavors and labels that are read of one object."""

MAX_TEXT_CHARACTERS = 1000
"""Longest text that is kept, in characters."""


@dataclass(frozen=True, slots=True)
class KueueCondition:
    """A condition of one of Kueue's objects.

    Attributes:
        holds: whether the condition is true.
        reason: reason of its state, as one word.
        message: reason of its state, for people.
    """

    holds: bool
    reason: str
    message: str


def conditions_of(status: Fields) -> dict[str, KueueCondition]:
    """Read the conditions of a status, by type."""
    return {
        limited_text(each.get("type")): KueueCondition(
            each.get("status") == "True",
            limited_text(each.get("reason")),
            limited_text(each.get("message")),
        )
        for each in entries(status, "conditions")
    }


def entries(fields: Fields, key: str) -> list[Fields]:
    """Read the mappings of a list; its other items do not count."""
    value = fields.get(key)
    items = value[:MAX_LISTED] if isinstance(value, list) else ()
    return [Fields(each, fields.place) for each in items if isinstance(each, dict)]


def limited_text(value: object) -> str:
    """Read text, and cut it if it is too long; "" = the value is not text."""
    return value[:MAX_TEXT_CHARACTERS] if isinstance(value, str) else ""


def number_or_zero(value: object) -> int:
    """Read a whole number; 0 = the value is not a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
