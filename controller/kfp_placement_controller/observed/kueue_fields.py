"""What Kueue's objects have in common, read with limits: others write them too."""

from dataclasses import dataclass

from kfp_placement_engine.readers.text.fields import Fields

MAX_LISTED = 64
"""Conditions, checks, flavors and labels that are read of one object."""

MAX_TEXT_CHARACTERS = 1000
"""Of each text."""


@dataclass(frozen=True, slots=True)
class KueueCondition:
    """A condition of one of Kueue's objects.

    Attributes:
        holds: whether it is so.
        reason: one word.
        message: for people.
    """

    holds: bool
    reason: str
    message: str


def conditions_of(status: Fields) -> dict[str, KueueCondition]:
    """The conditions of a status, by type."""
    return {
        short_text(each.get("type")): KueueCondition(
            each.get("status") == "True",
            short_text(each.get("reason")),
            short_text(each.get("message")),
        )
        for each in entries(status, "conditions")
    }


def entries(fields: Fields, key: str) -> list[Fields]:
    """The mappings of a list; whatever else is there does not count."""
    value = fields.get(key)
    entries = value[:MAX_LISTED] if isinstance(value, list) else ()
    return [Fields(each, fields.place) for each in entries if isinstance(each, dict)]


def short_text(value: object) -> str:
    """Text, cut where it is too long; "" = it is something else."""
    return value[:MAX_TEXT_CHARACTERS] if isinstance(value, str) else ""


def whole_number(value: object) -> int:
    """A whole number; 0 = it is something else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
