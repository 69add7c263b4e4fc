"""Typed access to plain values read from a file; every refusal names the place."""

from collections.abc import Mapping
from typing import Any

from kfp_placement_engine.exceptions import InputError

_KINDS = {
    dict: "a mapping",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "empty",
}


def kind_of(value: object) -> str:
    """What a value is, in words."""
    return _KINDS.get(type(value), type(value).__name__)


def as_mapping(value: Any, place: str) -> dict[str, Any]:
    """A mapping; nothing counts as an empty one.

    Raises:
        InputError: it is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{place}: must be a mapping, is {kind_of(value)}")
    return value


def as_list(value: Any, place: str) -> list[Any]:
    """A list; nothing counts as an empty one.

    Raises:
        InputError: it is something else.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{place}: must be a list, is {kind_of(value)}")
    return value


def as_text(value: Any, place: str) -> str:
    """Text; nothing counts as "", and numbers and truth values as what they look like in YAML.

    Raises:
        InputError: it is a mapping or a list.
    """
    if value is None:
        return ""
    if isinstance(value, dict | list):
        raise InputError(f"{place}: must be text, is {kind_of(value)}")
    return scalar_text(value)


def scalar_text(value: Any) -> str:
    """How Kubernetes tools write a scalar: `true`, `3`, `0.5`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def as_name(value: Any, place: str) -> str:
    """Text that is not empty.

    Raises:
        InputError: it is empty or no text.
    """
    text = as_text(value, place)
    if not text:
        raise InputError(f"{place}: is empty; a name is needed")
    return text


def as_texts(value: Any, place: str) -> tuple[str, ...]:
    """A list of texts.

    Raises:
        InputError: it is no list, or an entry is no text.
    """
    return tuple(
        as_text(entry, f"{place}[{index}]") for index, entry in enumerate(as_list(value, place))
    )


def as_text_mapping(value: Any, place: str) -> Mapping[str, str]:
    """A mapping of texts, such as labels.

    Raises:
        InputError: it is no mapping, or a value is no text.
    """
    return {
        str(key): as_text(entry, f"{place}.{key}")
        for key, entry in as_mapping(value, place).items()
    }


def as_count(value: Any, place: str, *, maximum: int = 2**31) -> int:
    """A whole number from 0 to `maximum`; nothing counts as 0; text with digits is accepted.

    Raises:
        InputError: it is something else.
    """
    if value is None:
        return 0
    number = value
    if isinstance(number, str) and number.strip().lstrip("+").isdecimal() and len(number) < 20:
        number = int(number)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= maximum:
        raise InputError(f"{place}: {value!r:.40} must be a whole number from 0 to {maximum}")
    return number


def as_number(value: Any, place: str) -> float:
    """A finite number of 0 or more; nothing counts as 0.

    Raises:
        InputError: it is something else.
    """
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e300:
        raise InputError(f"{place}: {value!r:.40} must be a number of 0 or more")
    return float(value)


def as_flag(value: Any, place: str) -> bool:
    """True or false; nothing counts as false.

    Raises:
        InputError: it is something else.
    """
    if value is None:
        return False
    if not isinstance(value, bool):
        raise InputError(f"{place}: must be true or false, is {kind_of(value)}")
    return value
