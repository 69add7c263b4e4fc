"""Namespaces: all that matters of one is whether its runs take part."""

from collections.abc import Mapping
from typing import Any

from kfp_placement_engine.contract.keys import ENABLED_LABEL

SYSTEM_NAMESPACE = "kube-system"
"""Never takes part; the controller's own namespace does not either."""


def observe_namespace(raw: Mapping[str, Any]) -> str:
    """What a namespace's label says of taking part; "" = nothing."""
    labels = raw["metadata"].get("labels")
    value = labels.get(ENABLED_LABEL) if isinstance(labels, dict) else None
    return value if isinstance(value, str) else ""


def takes_part(name: str, label: str | None, own_namespace: str, *, opt_in: bool) -> bool:
    """Whether the runs of a namespace take part; admission says the same by its selectors.

    Args:
        name: of the namespace.
        label: what it says, as observed; None = it has not been seen yet. Such a namespace takes
            part: what it says comes soon.
        own_namespace: the controller's.
        opt_in: whether only namespaces that ask for it take part, or all but those that refuse.
    """
    if name in (SYSTEM_NAMESPACE, own_namespace):
        return False
    return label is None or (label == "true" if opt_in else label != "false")
