"""A Pod object as the API server prints it -> what kube-scheduler sees of it."""

from collections.abc import Iterable, Mapping

from benchmarks.kube_scheduler.pod import (
    ANY_ADDRESS,
    HostPort,
    LabelSelector,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    SpreadConstraint,
    WeightedTerm,
)
from kfp_placement_engine.model.pod_constraints import Requirement
from kfp_placement_engine.readers.kubernetes.constraints import (
    read_node_affinity,
    read_term,
    read_tolerations,
)
from kfp_placement_engine.readers.kubernetes.pods import read_requests
from kfp_placement_engine.readers.text.fields import Fields

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def read_pod(pod: Fields) -> Pod:
    """Read a pod with all that kube-scheduler's stock profile looks at.

    Raises:
        InputError: the object is malformed.
    """
    metadata, spec = pod.flat("metadata"), pod.flat("spec")
    namespace = metadata.text("namespace") or "default"
    labels = metadata.text_mapping("labels")
    affinity = spec.flat("affinity")
    init, main = spec.entries("initContainers"), spec.entries("containers")
    requests = read_requests(pod)
    # NodeResourcesFit's scorer is made without what is given to the pod as a whole
    # (`noderesources/fit.go`).
    alone = {key: each for key, each in spec.raw.items() if key != "resources"}
    arriving = read_requests(Fields({**pod.raw, "spec": alone}, pod.place))
    containers = [Fields.of(each, pod.place) for each in (*init, *main)]
    return Pod(
        name=metadata.text("name"),
        namespace=namespace,
        labels=labels,
        requests=requests.real,
        scored_requests=requests.scored,
        arrival_requests=arriving.scored,
        node_name=spec.text("nodeName"),
        node_selector=spec.text_mapping("nodeSelector"),
        affinity=read_node_affinity(affinity.fields("nodeAffinity")),
        tolerations=read_tolerations(spec.get("tolerations"), spec.where("tolerations")),
        images=tuple(each.text("image") for each in containers),
        image_volumes=_image_volumes(spec),
        containers=len(containers),
        host_ports=_host_ports(containers[: len(init)], containers[len(init) :]),
        spread=read_spread(spec, labels),
        pod_affinity=read_pod_affinity(affinity.fields("podAffinity"), namespace),
        pod_anti_affinity=read_pod_affinity(affinity.fields("podAntiAffinity"), namespace),
        terminating=metadata.get("deletionTimestamp") is not None,
    )


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


def _image_volumes(spec: Fields) -> tuple[str, ...]:
    return tuple(
        volume.flat("image").text("reference")
        for volume in spec.each_flat("volumes")
        if volume.get("image") is not None
    )


def _host_ports(init: Iterable[Fields], main: Iterable[Fields]) -> tuple[HostPort, ...]:
    sidecars = [each for each in init if each.get("restartPolicy") == "Always"]
    ports = []
    for container in (*sidecars, *main):
        for raw in container.each_flat("ports"):
            port = raw.count("hostPort")
            if port > 0:
                protocol = raw.text("protocol") or "TCP"
                ports.append(HostPort(port, protocol, raw.text("hostIP") or ANY_ADDRESS))
    return tuple(ports)
