"""Namespaces: what matters of one is whether its runs take part, and which of them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kfp_placement_engine.contract.keys import ALL_PIPELINES, ENABLED_LABEL, PIPELINES_LABEL

SYSTEM_NAMESPACE = "kube-system"
"""Never takes part; the controller's own namespace does not either."""


class ObservedNamespace(NamedTuple):
    """What the labels of a namespace say.

    Attributes:
        enabled: of taking part; "" = nothing.
        all_pipelines: all its pipelines are planned, marked or not.
    """

    enabled: str = ""
    all_pipelines: bool = False


def observe_namespace(raw: Mapping[str, Any]) -> ObservedNamespace:
    """Keep what matters of a namespace."""
    labels = raw["metadata"].get("labels")
    if not isinstance(labels, dict):
        return ObservedNamespace()
    enabled = labels.get(ENABLED_LABEL)
    return ObservedNamespace(
        enabled if isinstance(enabled, str) else "", labels.get(PIPELINES_LABEL) == ALL_PIPELINES
    )


def takes_part(
    name: str, namespace: ObservedNamespace | None, own_namespace: str, *, opt_in: bool
) -> bool:
    """Whether the runs of a namespace take part; admission says the same by its selectors.

    Args:
        name: of the namespace.
        namespace: what it says; None = it has not been seen yet. Such a namespace takes part: what
            it says comes soon.
        own_namespace: the controller's.
        opt_in: whether only namespaces that ask for it take part, or all but those that refuse.
    """
    if name in (SYSTEM_NAMESPACE, own_namespace):
        return False
    if namespace is None:
        return True
    return namespace.enabled == "true" if opt_in else namespace.enabled != "false"
