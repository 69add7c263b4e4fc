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
from kfp_placement_engine.readers.fields import as_count, as_list, as_mapping, as_text, as_texts
from kfp_placement_engine.readers.kubernetes.constraints import read_term

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def read_label_selector(value: object, place: str) -> LabelSelector | None:
    """Read a label selector; None selects nothing, an empty one everything.

    Raises:
        InputError: it has another form.
    """
    if value is None:
        return None
    raw = as_mapping(value, place)
    labels = as_mapping(raw.get("matchLabels"), place)
    equal = tuple(Requirement(key, "In", (as_text(label, place),)) for key, label in labels.items())
    # A label selector's expressions have the form of a node selector term's.
    expressions = {"matchExpressions": raw.get("matchExpressions")}
    return LabelSelector(equal + read_term(expressions, place).requirements)


def read_pod_affinity(value: object, namespace: str, place: str) -> PodAffinity:
    """Read `spec.affinity.podAffinity` or `podAntiAffinity` of a pod in `namespace`.

    Raises:
        InputError: it has another form.
    """
    raw = as_mapping(value, place)
    preferred = []
    for item in as_list(raw.get(_PREFERRED), place):
        entry = as_mapping(item, place)
        weight = as_count(entry.get("weight"), f"{place}.weight", maximum=100)
        preferred.append(
            WeightedTerm(weight, _pod_term(entry.get("podAffinityTerm"), namespace, place))
        )
    required = as_list(raw.get(_REQUIRED), place)
    return PodAffinity(
        tuple(_pod_term(item, namespace, place) for item in required), tuple(preferred)
    )


def read_spread(
    value: object, labels: Mapping[str, str], place: str
) -> tuple[SpreadConstraint, ...]:
    """Read `spec.topologySpreadConstraints` of a pod with these labels.

    Raises:
        InputError: they have another form.
    """
    found = []
    for item in as_list(value, place):
        raw = as_mapping(item, place)
        selector = read_label_selector(raw.get("labelSelector"), place)
        own = [key for key in as_texts(raw.get("matchLabelKeys"), place) if key in labels]
        if selector is not None and own:
            extra = tuple(Requirement(key, "In", (labels[key],)) for key in own)
            selector = LabelSelector(extra + selector.requirements)
        found.append(
            SpreadConstraint(
                topology_key=as_text(raw.get("topologyKey"), place),
                max_skew=as_count(raw.get("maxSkew", 1), f"{place}.maxSkew"),
                required=raw.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule",
                selector=selector,
                min_domains=as_count(raw.get("minDomains", 1), f"{place}.minDomains"),
                honours_affinity=raw.get("nodeAffinityPolicy", "Honor") == "Honor",
                honours_taints=raw.get("nodeTaintsPolicy", "Ignore") == "Honor",
            )
        )
    return tuple(found)


def _pod_term(value: object, namespace: str, place: str) -> PodAffinityTerm:
    raw = as_mapping(value, place)
    names = as_texts(raw.get("namespaces"), place)
    by_labels = raw.get("namespaceSelector")
    if not names and by_labels is None:
        names = (namespace,)
    return PodAffinityTerm(
        topology_key=as_text(raw.get("topologyKey"), place),
        selector=read_label_selector(raw.get("labelSelector"), place),
        namespaces=frozenset(names),
        namespace_selector=read_label_selector(by_labels, place),
    )
