"""KFP's Kubernetes settings of one executor -> constraints and claims of its leaf."""

from collections.abc import Mapping
from typing import Any

from kfp_placement_engine.readers.fields import Fields
from kfp_placement_engine.readers.kfp.values import parameter_source, text_with_inputs
from kfp_placement_engine.readers.tree.expressions import Constant, Expression, Input


class KubernetesConfig:
    """KFP's KubernetesExecutorConfig; keys it may get later are ignored.

    Values given by parameters are resolved in the enclosing DAG, so each becomes an extra input of
    the task (`inputs`), which the leaf then reads.
    """

    def __init__(self, config: Fields, on_pod: Mapping[str, bool]) -> None:
        self._config = config
        self._on_pod = on_pod
        self.inputs: dict[str, Expression] = {}

    def on_pod(self, field: str) -> bool:
        """Whether a kind of setting reaches the pod."""
        return self._on_pod.get(field, True)

    def node_selectors(self) -> tuple[Expression, ...]:
        """Each evaluates to a mapping of labels."""
        selector = self._config.flat("nodeSelector")
        if not selector or not self.on_pod("KUBERNETES_NODE_SELECTOR"):
            return ()
        if selector.get("nodeSelectorJson") is not None:
            given = self._config.fields("nodeSelector").fields("nodeSelectorJson", at="")
            return (self._parameter(given, "nodeSelector"),)
        return (Constant(selector.text_mapping("labels", at="nodeSelector")),)

    def tolerations(self) -> tuple[Expression, ...]:
        """Each evaluates to one toleration or a list."""
        tolerations: list[Expression] = []
        if self.on_pod("KUBERNETES_TOLERATIONS"):
            for entry in self._config.each("tolerations"):
                if entry.get("tolerationJson") is not None:
                    tolerations.append(self._parameter(entry.flat("tolerationJson", at="")))
                else:
                    tolerations.append(Constant(entry.raw))
        return tuple(tolerations)

    def affinities(self) -> tuple[Expression, ...]:
        """Each evaluates to a Kubernetes node affinity."""
        affinities: list[Expression] = []
        if self.on_pod("KUBERNETES_AFFINITY"):
            for entry in self._config.each("nodeAffinity"):
                if entry.get("nodeAffinityJson") is not None:
                    affinities.append(self._parameter(entry.flat("nodeAffinityJson", at="")))
                elif entry.get("matchExpressions") or entry.get("matchFields"):
                    affinities.append(Constant(_affinity(entry.raw)))
        return tuple(affinities)

    def claims(self) -> tuple[Expression, ...]:
        """Each evaluates to the name of a claim."""
        claim_names: list[Expression] = []
        if self.on_pod("KUBERNETES_VOLUMES"):
            for entry in self._config.each("pvcMount"):
                if entry.get("pvcNameParameter") is not None:
                    claim_names.append(self._parameter(entry.flat("pvcNameParameter", at="")))
                elif "constant" in entry:
                    claim_names.append(Constant(entry.text("constant", at="")))
                else:
                    claim_names.append(self._parameter(entry))
        return tuple(claim_names)

    def _parameter(self, spec: Fields, name: str = "") -> Expression:
        """A value from outside of the task; it is an input called as its place unless named."""
        source = parameter_source(spec)
        if isinstance(source, Constant):
            return text_with_inputs(source.value) if isinstance(source.value, str) else source
        name = name or spec.place.spelled
        self.inputs[name] = source
        return Input(name)


def _affinity(term: Mapping[str, Any]) -> dict[str, Any]:
    """KFP's own form of one term, as Kubernetes writes it; a weight makes it a preference."""
    selector = {key: term[key] for key in ("matchExpressions", "matchFields") if key in term}
    if term.get("weight") is not None:
        preferred = [{"weight": term["weight"], "preference": selector}]
        return {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    required = {"nodeSelectorTerms": [selector]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": required}


def on_pod_settings(component: Fields) -> Mapping[str, bool]:
    """Settings that a component wants for itself (trainer jobs) instead of on its pod."""
    settings: dict[str, bool] = {}
    for entry in component.each_flat("taskConfigPassthroughs"):
        field = entry.text("field", at="taskConfigPassthroughs")
        settings[field] = entry.flag("applyToTask")
    return settings
