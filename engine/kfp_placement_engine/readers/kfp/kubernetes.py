"""A reader of KFP's Kubernetes settings of one executor: constraints and claims of its leaf."""

from collections.abc import Iterable, Mapping
from typing import Any

from kfp_placement_engine.readers.kfp.values import parameter_source, text_with_inputs
from kfp_placement_engine.readers.kubernetes.start_limits import DEADLINE
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.tree.expressions import Constant, Expression, Input


class KubernetesConfig:
    """KFP's KubernetesExecutorConfig of one executor; unknown keys of later versions are ignored.

    Values given by parameters are resolved in the enclosing DAG, so each becomes an extra input of
    the task (`inputs`), which the leaf then reads.
    """

    def __init__(self, config: Fields, on_pod: Mapping[str, bool]) -> None:
        self._config = config
        self._on_pod = on_pod
        self.inputs: dict[str, Expression] = {}

    def on_pod(self, field: str) -> bool:
        """Return whether a kind of setting reaches the pod."""
        return self._on_pod.get(field, True)

    def node_selectors(self) -> tuple[Expression, ...]:
        """Return node selectors, each of which evaluates to a mapping of labels."""
        selector = self._config.fields("nodeSelector")
        if not selector or not self.on_pod("KUBERNETES_NODE_SELECTOR"):
            return ()
        if selector.get("nodeSelectorJson") is not None:
            return (self._parameter(selector.fields("nodeSelectorJson")),)
        return (Constant(selector.text_mapping("labels")),)

    def tolerations(self) -> tuple[Expression, ...]:
        """Return tolerations, each of which evaluates to one toleration or a list."""
        entries = self._entries("KUBERNETES_TOLERATIONS", "tolerations")
        return tuple(
            self._given(entry, "tolerationJson") or Constant(entry.raw) for entry in entries
        )

    def affinities(self) -> tuple[Expression, ...]:
        """Return affinities, each of which evaluates to a Kubernetes node affinity."""
        affinities: list[Expression] = []
        for entry in self._entries("KUBERNETES_AFFINITY", "nodeAffinity"):
            if given := self._given(entry, "nodeAffinityJson"):
                affinities.append(given)
            elif entry.get("matchExpressions") or entry.get("matchFields"):
                affinities.append(Constant(_affinity(entry.raw)))
        return tuple(affinities)

    def claims(self) -> tuple[Expression, ...]:
        """Return claims, each of which evaluates to the name of a claim."""
        claim_names: list[Expression] = []
        for entry in self._entries("KUBERNETES_VOLUMES", "pvcMount"):
            if given := self._given(entry, "pvcNameParameter"):
                claim_names.append(given)
            elif "constant" in entry:
                claim_names.append(Constant(entry.text("constant")))
            else:
                claim_names.append(self._parameter(entry))
        return tuple(claim_names)

    def end_limits(self) -> dict[str, Expression]:
        """Return the limit that `set_timeout` gives the pod; empty = there is none."""
        seconds = self._config.count(DEADLINE)
        return {"set_timeout": Constant(str(seconds))} if seconds else {}

    def _entries(self, setting: str, key: str) -> Iterable[Fields]:
        return self._config.each(key) if self.on_pod(setting) else ()

    def _given(self, entry: Fields, key: str) -> Expression | None:
        """Return the parameter that an entry is given by, or None for a literal entry."""
        return None if entry.get(key) is None else self._parameter(entry.fields(key))

    def _parameter(self, spec: Fields) -> Expression:
        """Return a value from outside of the task, as an input with the name of its place."""
        source = parameter_source(spec)
        if isinstance(source, Constant):
            return text_with_inputs(source.value) if isinstance(source.value, str) else source
        name = spec.place.spelled
        self.inputs[name] = source
        return Input(name)


def _affinity(term: Mapping[str, Any]) -> dict[str, Any]:
    """Convert KFP's form of one term to Kubernetes' form; a weight makes it a preference."""
    selector = {key: term[key] for key in ("matchExpressions", "matchFields") if key in term}
    if term.get("weight") is not None:
        preferred = [{"weight": term["weight"], "preference": selector}]
        return {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    required = {"nodeSelectorTerms": [selector]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": required}


def on_pod_settings(component: Fields) -> Mapping[str, bool]:
    """Return which settings reach a component's pod; trainer jobs want some for themselves."""
    entries = component.each("taskConfigPassthroughs")
    return {entry.text("field"): entry.flag("applyToTask") for entry in entries}
