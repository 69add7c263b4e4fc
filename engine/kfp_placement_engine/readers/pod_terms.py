"""Scheduling terms of a pod spec, as Kubernetes writes them -> tolerations, affinity, selectors."""

from kfp_placement_engine.kube_scheduler.pod import (
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
    SpreadConstraint,
    WeightedTerm,
)
from kfp_placement_engine.readers.checked import mapping, sequence, text, texts, whole_number
from kfp_placement_engine.run_graph import (
    NodeAffinity,
    NodeSelectorTerm,
    PreferredTerm,
    Requirement,
    Toleration,
)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def read_tolerations(value: object, place: str) -> tuple[Toleration, ...]:
    """Read `spec.tolerations`.

    Raises:
        InputError: they have another form.
    """
    found = []
    for item in sequence(value, place):
        raw = mapping(item, place)
        found.append(
            Toleration(
                text(raw.get("key"), place),
                text(raw.get("operator"), place) or "Equal",
                text(raw.get("value"), place),
                text(raw.get("effect"), place),
            )
        )
    return tuple(found)


def read_node_affinity(value: object, place: str) -> NodeAffinity:
    """Read `spec.affinity.nodeAffinity`.

    Raises:
        InputError: it has another form.
    """
    raw = mapping(value, place)
    required = raw.get(_REQUIRED)
    preferred = []
    for item in sequence(raw.get(_PREFERRED), place):
        entry = mapping(item, place)
        weight = whole_number(entry.get("weight"), f"{place}: weight", 0)
        preferred.append(PreferredTerm(weight, _node_term(entry.get("preference"), place)))
    return NodeAffinity(
        None if required is None else read_node_terms(required, place), tuple(preferred)
    )


def read_node_terms(value: object, place: str) -> tuple[NodeSelectorTerm, ...]:
    """Read a node selector: an object with `nodeSelectorTerms`.

    Raises:
        InputError: it has another form.
    """
    terms = sequence(mapping(value, place).get("nodeSelectorTerms"), place)
    return tuple(_node_term(term, place) for term in terms)


def read_label_selector(value: object, place: str) -> LabelSelector | None:
    """Read a label selector; None selects nothing, an empty one everything.

    Raises:
        InputError: it has another form.
    """
    if value is None:
        return None
    raw = mapping(value, place)
    labels = mapping(raw.get("matchLabels"), place)
    equal = tuple(Requirement(key, "In", (text(label, place),)) for key, label in labels.items())
    return LabelSelector(equal + _requirements(raw.get("matchExpressions"), place))


def read_pod_affinity(value: object, namespace: str, place: str) -> PodAffinity:
    """Read `spec.affinity.podAffinity` or `podAntiAffinity` of a pod in `namespace`.

    Raises:
        InputError: it has another form.
    """
    raw = mapping(value, place)
    preferred = []
    for item in sequence(raw.get(_PREFERRED), place):
        entry = mapping(item, place)
        weight = whole_number(entry.get("weight"), f"{place}: weight", 0)
        preferred.append(
            WeightedTerm(weight, _pod_term(entry.get("podAffinityTerm"), namespace, place))
        )
    required = sequence(raw.get(_REQUIRED), place)
    return PodAffinity(
        tuple(_pod_term(item, namespace, place) for item in required), tuple(preferred)
    )


def read_spread(value: object, labels: dict[str, str], place: str) -> tuple[SpreadConstraint, ...]:
    """Read `spec.topologySpreadConstraints` of a pod with these labels.

    Raises:
        InputError: they have another form.
    """
    found = []
    for item in sequence(value, place):
        raw = mapping(item, place)
        selector = read_label_selector(raw.get("labelSelector"), place)
        own = [key for key in texts(raw.get("matchLabelKeys"), place) if key in labels]
        if selector is not None and own:
            extra = tuple(Requirement(key, "In", (labels[key],)) for key in own)
            selector = LabelSelector(extra + selector.requirements)
        found.append(
            SpreadConstraint(
                topology_key=text(raw.get("topologyKey"), place),
                max_skew=whole_number(raw.get("maxSkew"), f"{place}: maxSkew", 1),
                required=raw.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule",
                selector=selector,
                min_domains=whole_number(raw.get("minDomains"), f"{place}: minDomains", 1),
                honours_affinity=raw.get("nodeAffinityPolicy", "Honor") == "Honor",
                honours_taints=raw.get("nodeTaintsPolicy", "Ignore") == "Honor",
            )
        )
    return tuple(found)


def _node_term(value: object, place: str) -> NodeSelectorTerm:
    raw = mapping(value, place)
    labels = _requirements(raw.get("matchExpressions"), place)
    return NodeSelectorTerm(labels + _requirements(raw.get("matchFields"), place, is_field=True))


def _requirements(value: object, place: str, *, is_field: bool = False) -> tuple[Requirement, ...]:
    found = []
    for item in sequence(value, place):
        raw = mapping(item, place)
        key, operator = text(raw.get("key"), place), text(raw.get("operator"), place)
        found.append(Requirement(key, operator, texts(raw.get("values"), place), is_field))
    return tuple(found)


def _pod_term(value: object, namespace: str, place: str) -> PodAffinityTerm:
    raw = mapping(value, place)
    names = texts(raw.get("namespaces"), place)
    by_labels = raw.get("namespaceSelector")
    if not names and by_labels is None:
        names = (namespace,)
    return PodAffinityTerm(
        topology_key=text(raw.get("topologyKey"), place),
        selector=read_label_selector(raw.get("labelSelector"), place),
        namespaces=frozenset(names),
        namespace_selector=read_label_selector(by_labels, place),
    )
