"""Namespaces: all that matters of one is whether its runs take part."""

from collections.abc import Mapping
from typing import Any

from kfp_placement_engine.contract.keys import ENABLED_LABEL


def observe_namespace(raw: Mapping[str, Any]) -> str:
    """What a namespace's label says of taking part; "" = nothing."""
    labels = raw["metadata"].get("labels")
    value = labels.get(ENABLED_LABEL) if isinstance(labels, dict) else None
    return value if isinstance(value, str) else ""
