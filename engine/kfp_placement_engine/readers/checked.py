"""Plain values from files, taken with their type; every refusal names the place and the value."""

from collections.abc import Mapping, Sequence
from typing import Any

from kfp_placement_engine.contract.quantities import parse_resources
from kfp_placement_engine.exceptions import InputError, QuantityError

_INT32_MAX = 2**31 - 1


def shown(value: object) -> str:
    """The value for a message, at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def mapping(value: object, place: str) -> Mapping[str, Any]:
    """An object; None is an empty one.

    Raises:
        InputError: something else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{place}: {shown(value)} is no object (key: value)")
    return value


def sequence(value: object, place: str) -> Sequence[Any]:
    """A list; None is an empty one.

    Raises:
        InputError: something else.
    """
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InputError(f"{place}: {shown(value)} is no list")
    return value


def text(value: object, place: str) -> str:
    """Text; None is empty, and a number is taken as it is written (YAML authors forget quotes).

    Raises:
        InputError: something else.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if not isinstance(value, str):
        raise InputError(f"{place}: {shown(value)} is no text")
    return value


def texts(value: object, place: str) -> tuple[str, ...]:
    """A list of texts.

    Raises:
        InputError: something else.
    """
    return tuple(text(each, place) for each in sequence(value, place))


def text_mapping(value: object, place: str) -> dict[str, str]:
    """An object whose values are texts, such as labels.

    Raises:
        InputError: something else.
    """
    return {key: text(each, f"{place}.{key}") for key, each in mapping(value, place).items()}


def whole_number(value: object, place: str, default: int) -> int:
    """A whole number that fits 32 bits; None is the default.

    Raises:
        InputError: something else.
    """
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _INT32_MAX:
        raise InputError(f"{place}: {shown(value)} is no whole number of at most 32 bits")
    return value


def resources(value: object, place: str) -> dict[str, int]:
    """A Kubernetes resource list in canonical units.

    Raises:
        InputError: no object.
        QuantityError: an amount is malformed, negative or absurd.
    """
    try:
        return parse_resources(mapping(value, place))
    except QuantityError as error:
        raise QuantityError(f"{place}: {error}") from error
