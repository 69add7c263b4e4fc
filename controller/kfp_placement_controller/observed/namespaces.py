"""Namespaces, slimmed to the labels that decide which of their runs are planned."""

from dataclasses import dataclass, field
from typing import NamedTuple

from kfp_placement_engine.contract.keys import ALL_PIPELINES, ENABLED_LABEL, PIPELINES_LABEL
from kfp_placement_engine.readers.text.place import mapping_or_empty, text_or_empty
from kfp_placement_kube.change import Change
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


@dataclass
class Namespaces:
    """The namespaces, and which of them take part.

    Attributes:
        own: namespace of the controller.
        opt_in: whether only namespaces that ask for it take part, or all but those that refuse.
        seen: namespaces as last seen, by name.
    """

    own: str = ""
    opt_in: bool = False
    seen: dict[str, ObservedNamespace] = field(default_factory=dict)

    def changed(self, change: Change[ObservedNamespace]) -> None:
        """Take in that a namespace is new, has changed or is gone."""
        change.apply_to(self.seen, change.key[1])

    def takes_part(self, name: str) -> bool:
        """Return whether the runs of a namespace take part; admission's selectors decide the same.

        One that has not been seen yet takes part: its labels will be read soon.
        """
        if name in (SYSTEM_NAMESPACE, self.own):
            return False
        namespace = self.seen.get(name)
        if namespace is None:
            return True
        return namespace.enabled == "true" if self.opt_in else namespace.enabled != "false"
