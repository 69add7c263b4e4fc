"""Kubernetes resource lists (`{"cpu": "500m", "memory": "1Gi"}`) -> canonical amounts."""

from typing import Any

from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.model.quantities import parse_resources
from kfp_placement_engine.readers.fields import as_mapping


def as_resources(value: Any, place: str) -> dict[str, int]:
    """A resource list in canonical units; nothing counts as an empty one.

    Raises:
        InputError: it is no mapping.
        QuantityError: an amount is malformed, negative or beyond int64.
    """
    try:
        return parse_resources(as_mapping(value, place))
    except QuantityError as error:
        raise QuantityError(f"{place}: {error}") from error
