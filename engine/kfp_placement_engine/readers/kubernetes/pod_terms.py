"""What a pod spec says about other pods, as Kubernetes writes it: affinity, topology spread."""

from collections.abc import Mapping

from kfp_placement_engine.model.pod import (
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
    SpreadConstraint,
    WeightedTerm,
)
from kfp_placement_engine.model.run_graph import Requirement
from kfp_placement_engine.readers.fields import Fields
from kfp_placement_engine.readers.kubernetes.constraints import read_term

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def read_label_selector(fields: Fields, key: str) -> LabelSelector | None:
    """Read a label selector; None selects nothing, an empty one everything.

    Raises:
        InputError: it is malformed.
    """
    if fields.get(key) is None:
        return None
    raw = fields.flat(key)
    labels = raw.flat("matchLabels")
    equal = tuple(Requirement(each, "In", (labels.text(each),)) for each in labels.raw)
    # A label selector's expressions have the form of a node selector term's.
    expressions = {"matchExpressions": raw.get("matchExpressions")}
    return LabelSelector(equal + read_term(Fields(expressions, raw.place)).requirements)


def read_pod_affinity(raw: Fields, namespace: str) -> PodAffinity:
    """Read `spec.affinity.podAffinity` or `podAntiAffinity` of a pod in `namespace`.

    Raises:
        InputError: it is malformed.
    """
    preferred = []
    for entry in raw.each_flat(_PREFERRED):
        weight = entry.count("weight", maximum=100)
        preferred.append(WeightedTerm(weight, _pod_term(entry.flat("podAffinityTerm"), namespace)))
    required = [_pod_term(each, namespace) for each in raw.each_flat(_REQUIRED)]
    return PodAffinity(tuple(required), tuple(preferred))


def read_spread(spec: Fields, labels: Mapping[str, str]) -> tuple[SpreadConstraint, ...]:
    """Read `spec.topologySpreadConstraints` of a pod with these labels.

    Raises:
        InputError: they are malformed.
    """
    constraints = []
    place = spec.place.field("spread")
    for item in spec.each_flat("topologySpreadConstraints"):
        raw = Fields(item.raw, place)
        selector = read_label_selector(raw, "labelSelector")
        own = [key for key in raw.texts("matchLabelKeys") if key in labels]
        if selector is not None and own:
            extra = tuple(Requirement(key, "In", (labels[key],)) for key in own)
            selector = LabelSelector(extra + selector.requirements)
        constraints.append(
            SpreadConstraint(
                topology_key=raw.text("topologyKey"),
                max_skew=raw.count("maxSkew") if "maxSkew" in raw else 1,
                required=raw.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule",
                selector=selector,
                min_domains=raw.count("minDomains") if "minDomains" in raw else 1,
                honours_affinity=raw.get("nodeAffinityPolicy", "Honor") == "Honor",
                honours_taints=raw.get("nodeTaintsPolicy", "Ignore") == "Honor",
            )
        )
    return tuple(constraints)


def _pod_term(raw: Fields, namespace: str) -> PodAffinityTerm:
    names = raw.texts("namespaces")
    if not names and raw.get("namespaceSelector") is None:
        names = (namespace,)
    return PodAffinityTerm(
        topology_key=raw.text("topologyKey"),
        selector=read_label_selector(raw, "labelSelector"),
        namespaces=frozenset(names),
        namespace_selector=read_label_selector(raw, "namespaceSelector"),
    )
