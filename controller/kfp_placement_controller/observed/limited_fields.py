"""Fields that anybody may write, read with limits: long texts are cut, and long lists end early."""

from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place

MAX_LISTED = 64
"""Number of items of a list or mapping that are kept, at most."""

MAX_TEXT_CHARACTERS = 1000
"""Longest text for people that is kept; kube-scheduler's own messages are shorter."""

MAX_NAME_CHARACTERS = 317
"""Longest name that is kept: a domain of 253, a slash and 63."""


def entries(fields: Fields, key: str) -> list[Fields]:
    """Read the mappings of a list; its other items do not count."""
    value = fields.get(key)
    items = value[:MAX_LISTED] if isinstance(value, list) else ()
    return [Fields(each, fields.place) for each in items if isinstance(each, dict)]


def limited_text(value: object) -> str:
    """Read text, and cut it if it is too long; "" = the value is not text."""
    return value[:MAX_TEXT_CHARACTERS] if isinstance(value, str) else ""


def text_of(fields: Fields, key: str, most: int | None = MAX_NAME_CHARACTERS) -> str:
    """Read the text of a field, and cut it if it is too long; "" = there is no such field.

    Args:
        fields: fields that the text is among.
        key: key of the text.
        most: number of characters that are kept; None = all. A name that is cut names nothing.

    Raises:
        InputError: the value is not text; the message gives the key alone as its place.
    """
    value = fields.raw.get(key, "")
    text = value if type(value) is str else Place(key).text(value)
    return text[:most]
