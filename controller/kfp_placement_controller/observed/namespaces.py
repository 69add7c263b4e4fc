"""Namespaces, slimmed to the labels that decide which of their runs are planned."""

from typing import NamedTuple

from kfp_placement_engine.contract.keys import ALL_PIPELINES, ENABLED_LABEL, PIPELINES_LABEL
from kfp_placement_engine.readers.text.place import mapping_or_empty, text_or_empty
from kfp_placement_kube.kinds import JsonObject

SYSTEM_NAMESPACE = "kube-system"
"""Namespace that never takes part; the controller's own namespace does not either."""


class ObservedNamespace(NamedTuple):
    """Decisions in the labels of a namespace.

    Attributes:
        enabled: value of the label by which it takes part or refuses; "" = it has no such label.
        all_pipelines: whether all its pipelines are planned, marked or not.
    """

    enabled: str = ""
    all_pipelines: bool = False


def observe_namespace(raw: JsonObject) -> ObservedNamespace:
    """Slim a namespace as the API server prints it."""
    labels = mapping_or_empty(raw["metadata"].get("labels"))
    return ObservedNamespace(
        text_or_empty(labels.get(ENABLED_LABEL)), labels.get(PIPELINES_LABEL) == ALL_PIPELINES
    )


def takes_part(
    name: str, namespace: ObservedNamespace | None, own_namespace: str, *, opt_in: bool
) -> bool:
    """Return whether the runs of a namespace take part; admission's selectors decide the same.

    Args:
        name: name of the namespace.
        namespace: decisions in its labels; None = it has not been seen yet. Such a namespace takes
            part: its labels will be read soon.
        own_namespace: namespace of the controller.
        opt_in: whether only namespaces that ask for it take part, or all but those that refuse.
    """
    if name in (SYSTEM_NAMESPACE, own_namespace):
        return False
    if namespace is None:
        return True
    return namespace.enabled == "true" if opt_in else namespace.enabled != "false"
