"""KFP's Kubernetes settings of one executor -> constraints and claims of its leaf."""

from collections.abc import Mapping
from typing import Any

from kfp_placement_engine.readers.fields import (
    as_flag,
    as_list,
    as_mapping,
    as_text,
    as_text_mapping,
)
from kfp_placement_engine.readers.kfp.values import parameter_source, text_with_inputs
from kfp_placement_engine.readers.tree.expressions import Constant, Expression, Input


class KubernetesConfig:
    """KFP's KubernetesExecutorConfig; keys it may get later are ignored.

    Values given by parameters are resolved in the enclosing DAG, so each becomes an extra input of
    the task (`inputs`), which the leaf then reads.
    """

    def __init__(self, config: dict[str, Any], on_pod: Mapping[str, bool], place: str) -> None:
        self._config = config
        self._on_pod = on_pod
        self._place = place
        self.inputs: dict[str, Expression] = {}

    def on_pod(self, field: str) -> bool:
        """Whether a kind of setting reaches the pod."""
        return self._on_pod.get(field, True)

    def node_selectors(self) -> tuple[Expression, ...]:
        """Each evaluates to a mapping of labels."""
        place = f"{self._place}: nodeSelector"
        selector = as_mapping(self._config.get("nodeSelector"), place)
        if not selector or not self.on_pod("KUBERNETES_NODE_SELECTOR"):
            return ()
        if selector.get("nodeSelectorJson") is not None:
            return (self._parameter(selector["nodeSelectorJson"], "nodeSelector", place),)
        return (Constant(dict(as_text_mapping(selector.get("labels"), place))),)

    def tolerations(self) -> tuple[Expression, ...]:
        """Each evaluates to one toleration or a list."""
        found: list[Expression] = []
        if self.on_pod("KUBERNETES_TOLERATIONS"):
            for place, entry in self._entries("tolerations"):
                if entry.get("tolerationJson") is not None:
                    found.append(self._parameter(entry["tolerationJson"], place, place))
                else:
                    found.append(Constant(entry))
        return tuple(found)

    def affinities(self) -> tuple[Expression, ...]:
        """Each evaluates to a Kubernetes node affinity."""
        found: list[Expression] = []
        if self.on_pod("KUBERNETES_AFFINITY"):
            for place, entry in self._entries("nodeAffinity"):
                if entry.get("nodeAffinityJson") is not None:
                    found.append(self._parameter(entry["nodeAffinityJson"], place, place))
                elif entry.get("matchExpressions") or entry.get("matchFields"):
                    found.append(Constant(_affinity(entry)))
        return tuple(found)

    def claims(self) -> tuple[Expression, ...]:
        """Each evaluates to the name of a claim."""
        found: list[Expression] = []
        if self.on_pod("KUBERNETES_VOLUMES"):
            for place, entry in self._entries("pvcMount"):
                if entry.get("pvcNameParameter") is not None:
                    found.append(self._parameter(entry["pvcNameParameter"], place, place))
                elif "constant" in entry:
                    found.append(Constant(as_text(entry["constant"], place)))
                else:
                    found.append(self._parameter(entry, place, place))
        return tuple(found)

    def _entries(self, key: str) -> list[tuple[str, dict[str, Any]]]:
        place = f"{self._place}: {key}"
        entries = enumerate(as_list(self._config.get(key), place))
        return [
            (f"{place}[{index}]", as_mapping(entry, f"{place}[{index}]"))
            for index, entry in entries
        ]

    def _parameter(self, spec: Any, name: str, place: str) -> Expression:
        source = parameter_source(as_mapping(spec, place), place)
        if isinstance(source, Constant):
            return text_with_inputs(source.value) if isinstance(source.value, str) else source
        self.inputs[name] = source
        return Input(name)


def _affinity(term: dict[str, Any]) -> dict[str, Any]:
    """KFP's own form of one term, as Kubernetes writes it; a weight makes it a preference."""
    selector = {key: term[key] for key in ("matchExpressions", "matchFields") if key in term}
    if term.get("weight") is not None:
        preferred = [{"weight": term["weight"], "preference": selector}]
        return {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    required = {"nodeSelectorTerms": [selector]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": required}


def on_pod_settings(component: dict[str, Any], place: str) -> Mapping[str, bool]:
    """Settings that a component wants for itself (trainer jobs) instead of on its pod."""
    settings: dict[str, bool] = {}
    listed = as_list(component.get("taskConfigPassthroughs"), f"{place}: taskConfigPassthroughs")
    for entry in listed:
        fields = as_mapping(entry, f"{place}: taskConfigPassthroughs")
        field = as_text(fields.get("field"), f"{place}: taskConfigPassthroughs")
        settings[field] = as_flag(fields.get("applyToTask"), f"{place}: applyToTask")
    return settings
