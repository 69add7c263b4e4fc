"""Resource quantities, as far as an API server checks them."""

import re
from collections.abc import Mapping
from typing import Any

_QUANTITY = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+|[numkKMGTPE]|[KMGTPE]i)?")


def is_quantity(value: Any) -> bool:
    """Whether Kubernetes would take this for a quantity."""
    return _QUANTITY.fullmatch(str(value)) is not None


def bad_quantity(resources: Any) -> str | None:
    """The first value in requests or limits that is no quantity, or None."""
    if not isinstance(resources, Mapping):
        return str(resources)
    for part in ("requests", "limits"):
        amounts = resources.get(part) or {}
        if not isinstance(amounts, Mapping):
            return str(amounts)
        for value in amounts.values():
            if not is_quantity(value):
                return str(value)
    return None
