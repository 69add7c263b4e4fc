"""Kubernetes quantities: text to exact numbers and back.

Canonical units everywhere in the engine: CPU in milli-CPU, bytes for memory and storage, whole
units for extended resources; `durations` has seconds for durations and milliseconds for latencies.
"""

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.units.resources import Resources

_SUFFIXES: dict[str, Fraction] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_QUANTITY = re.compile(
    r"^([+-]?(?:\d+\.?\d*|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?$", re.ASCII
)

MAX_CHARACTERS = 400
"""Longer text is neither a quantity nor a duration; the smallest number needs some 340 digits."""

_USUAL_CHARACTERS = 32
"""Longer text is not remembered, whoever writes it."""

MAX_QUANTITY = 2**63 - 1
"""Kubernetes keeps quantities in int64; what is larger is refused."""

MIN_MEMORY_BYTES = 2**20
"""Smallest memory that a container can start in: whoever asks for less left out the unit."""


def shown_value(value: object) -> str:
    """Return a value for a message, cut."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def short_text(text: str | int) -> str:
    """Return a number as text, or "" if it is too long to be looked at."""
    if isinstance(text, int):
        return str(text) if abs(text) < 10**60 else ""
    return text.strip() if len(text) <= MAX_CHARACTERS else ""


_WITH_BYTES = re.compile(
    r"(\d+\.?\d*|\.\d+)\s*([kmgtpe])(i?)(?:b|bytes?)?", re.ASCII | re.IGNORECASE
)
"""A size as people write it elsewhere: `4GB`, `4 GiB`, `4g`."""


def _no_quantity(value: object, per_unit: int) -> QuantityError:
    """Return the error for a bad value; for a size with its unit it says what may be meant."""
    is_size = isinstance(value, str) and per_unit == 1
    meant = _WITH_BYTES.fullmatch(short_text(str(value))) if is_size else None
    advice = "for example 4Gi, 500M or 2" if per_unit == 1 else "for example 500m or 2"
    if meant is not None:
        number, letter, binary = meant.groups()
        letter = letter.upper()
        decimal = "k" if letter == "K" else letter
        units = [f"{letter}i"] if binary else [decimal, f"{letter}i"]
        advice = " or ".join(number + unit for unit in units)
    return QuantityError(f"{shown_value(value)} is not a quantity; write {advice}")


def _quantity(value: object, per_unit: int) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _no_quantity(value, per_unit)
    match = _QUANTITY.match(repr(value) if isinstance(value, float) else short_text(value))
    if match is None:
        raise _no_quantity(value, per_unit)
    number, suffix, exponent = match.groups()
    factor = Fraction(10) ** int(exponent) if exponent is not None else _SUFFIXES[suffix or ""]
    quantity = Fraction(number) * factor
    if quantity < 0:
        raise QuantityError(f"{shown_value(value)} is negative; a quantity must be 0 or more")
    return quantity


def _rounded_up(value: object, per_unit: int) -> int:
    """Return a quantity as a whole number of parts, `per_unit` of which are one unit."""
    return math.ceil(_quantity(value, per_unit) * per_unit)


_cached = lru_cache(maxsize=4096)(_rounded_up)
"""`_rounded_up` with a cache, since the pods of a cluster have the same few amounts."""


def _amount(value: object, per_unit: int, *, is_stored: bool = False) -> int:
    is_usual = isinstance(value, str) and len(value) <= _USUAL_CHARACTERS
    amount = (_cached if is_usual else _rounded_up)(value, per_unit)
    if amount > MAX_QUANTITY:
        if is_stored:
            return MAX_QUANTITY
        raise QuantityError(f"{shown_value(value)} is beyond what Kubernetes can hold (2^63 - 1)")
    return amount


def parse_quantity(value: object) -> int:
    """Read a Kubernetes quantity ("2Gi", "1e3", 4) as whole units, rounded up as Kubernetes does.

    Raises:
        QuantityError: malformed, negative, or beyond int64.
    """
    return _amount(value, 1)


def parse_whole(value: object) -> int:
    """Read a quantity that must be a whole number: half a device must not become one.

    Raises:
        QuantityError: malformed, negative, beyond int64, or not whole.
    """
    if _quantity(value, 1) % 1:
        raise QuantityError(f"{shown_value(value)} is not a whole number; write for example 1")
    return parse_quantity(value)


def is_whole(value: object) -> bool:
    """Return whether a quantity is a whole number of units, such as `2` or `1k`.

    Raises:
        QuantityError: malformed or negative.
    """
    return _quantity(value, 1).denominator == 1


def parse_cpu(value: object) -> int:
    """Read a CPU quantity ("500m", "2", 0.5) as milli-CPU, rounded up.

    Raises:
        QuantityError: malformed, negative, or beyond int64.
    """
    return _amount(value, 1000)


def parse_memory(value: object) -> int:
    """Read an amount of memory in bytes: 0, or enough for a container.

    Raises:
        QuantityError: malformed, negative, beyond int64, or written without its unit.
    """
    size_bytes = parse_quantity(value)
    if 0 < size_bytes < MIN_MEMORY_BYTES:
        raise QuantityError(
            f"memory {shown_value(value)} is less than any container needs; give it a unit, for"
            " example 16Gi"
        )
    return size_bytes


def parse_resource(name: str, value: object, *, is_stored: bool = False) -> int:
    """Read one entry of a resource list in canonical units.

    Args:
        name: name of the resource.
        value: the quantity.
        is_stored: whether an API server has stored it. Then an amount beyond int64 counts as the
            largest, as for Kubernetes, which does not refuse it.

    Raises:
        QuantityError: malformed, negative, or beyond int64; the message names the resource.
    """
    try:
        return _amount(value, 1000 if name == "cpu" else 1, is_stored=is_stored)
    except QuantityError as error:
        raise QuantityError(f"{name}: {error}") from error


def parse_resources(entries: Mapping[str, object]) -> dict[str, int]:
    """Read a Kubernetes resource list ({"cpu": "500m", "memory": "1Gi"}) in canonical units.

    Raises:
        QuantityError: one entry is malformed; the message names the resource.
    """
    return {name: parse_resource(name, text) for name, text in entries.items()}


def format_resource(name: str, amount: int) -> str:
    """Write an amount as the shortest exact Kubernetes quantity ("500m", "2", "4Gi")."""
    if name == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    is_of_bytes = name == "memory" or name.endswith("storage") or name.startswith("hugepages-")
    if amount and is_of_bytes:
        for suffix in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
            factor = int(_SUFFIXES[suffix])
            if amount % factor == 0:
                return f"{amount // factor}{suffix}"
    return str(amount)


def in_base_units(name: str, amount: int) -> float:
    """Return a canonical amount as metrics give it: cores of CPU, bytes, or a number."""
    return amount / 1000 if name == "cpu" else float(amount)


def format_resources(resources: Resources) -> dict[str, str]:
    """Write canonical amounts as Kubernetes quantities, in the order given."""
    return {name: format_resource(name, amount) for name, amount in resources.items()}
