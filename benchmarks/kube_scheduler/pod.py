"""A pod as kube-scheduler sees it: only what its stock filters and scores look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kfp_placement_engine.model.node_rules.constraints import holds
from kfp_placement_engine.model.pod_constraints import NodeAffinity, Requirement, Toleration
from kfp_placement_engine.units.resources import Resources

ANY_ADDRESS = "0.0.0.0"
"""A host port without an address is taken on all addresses of the node."""


@dataclass(frozen=True)
class LabelSelector:
    """Requirements on labels that must all hold; without any it matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether it selects an object with these labels."""
        return all(holds(requirement, labels) for requirement in self.requirements)


@dataclass(frozen=True)
class PodAffinityTerm:
    """Pods that attract or repel, and the domain in which they do.

    Attributes:
        topology_key: node label whose value names the domain.
        selector: the pods; None selects none.
        namespaces: namespaces of these pods.
        namespace_selector: further namespaces by their labels; None adds none.
    """

    topology_key: str
    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None = None

    def selects(self, pod: "Pod", namespace_labels: Mapping[str, str]) -> bool:
        """Return whether `pod`, in a namespace with these labels, is one of the pods."""
        selector, by_labels = self.selector, self.namespace_selector
        if selector is None or not (
            pod.namespace in self.namespaces
            or (by_labels is not None and by_labels.matches(namespace_labels))
        ):
            return False
        return selector.matches(pod.labels)


@dataclass(frozen=True)
class WeightedTerm:
    """A preferred term; the weight is 1 to 100."""

    weight: int
    term: PodAffinityTerm


@dataclass(frozen=True)
class PodAffinity:
    """Affinity or anti-affinity to other pods.

    Attributes:
        required: terms that must all be met.
        preferred: terms that count for scores.
    """

    required: tuple[PodAffinityTerm, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()


@dataclass(frozen=True)
class SpreadConstraint:
    """One of a pod's topology spread constraints, as in Kubernetes.

    Attributes:
        topology_key: node label whose value names the domain.
        max_skew: tolerated difference between domains.
        required: DoNotSchedule; else ScheduleAnyway.
        selector: the pods that are counted; None counts none.
        min_domains: number of domains below which the global minimum is 0.
        honours_affinity: whether only nodes that the pod's node affinity allows count.
        honours_taints: whether only nodes whose taints the pod tolerates count.
    """

    topology_key: str
    max_skew: int = 1
    required: bool = False
    selector: LabelSelector | None = None
    min_domains: int = 1
    honours_affinity: bool = True
    honours_taints: bool = False


@dataclass(frozen=True)
class HostPort:
    """A port of the node itself."""

    port: int
    protocol: str = "TCP"
    address: str = ANY_ADDRESS


@dataclass(frozen=True)
class Pod:
    """One pod.

    Attributes:
        name: the pod's name.
        namespace: namespace of the pod.
        labels: labels of the pod.
        requests: total requests (containers, sidecars, init peaks, overhead), in canonical
            units.
        scored_requests: CPU and memory as the resource scores count them, with defaults.
        arrival_requests: CPU and memory that count while the pod itself is being placed; None =
            `scored_requests`. The scorer of NodeResourcesFit then leaves out resources given to
            the pod as a whole.
        node_name: node it is bound to, or "".
        node_selector: labels that a node must have.
        affinity: node affinity.
        tolerations: tolerated taints.
        images: image references of init containers and containers, repeated ones repeated.
        image_volumes: references of image volumes; scored since 1.36.
        containers: number of init containers and containers.
        host_ports: ports of the node that it needs.
        spread: topology spread constraints.
        pod_affinity: affinity to other pods.
        pod_anti_affinity: anti-affinity to other pods.
        terminating: whether it is being deleted, so that topology spread no longer counts it.
    """

    name: str
    namespace: str = "default"
    labels: Mapping[str, str] = field(default_factory=dict)
    requests: Resources = field(default_factory=dict)
    scored_requests: Resources = field(default_factory=dict)
    arrival_requests: Resources | None = None
    node_name: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: NodeAffinity = field(default_factory=NodeAffinity)
    tolerations: tuple[Toleration, ...] = ()
    images: tuple[str, ...] = ()
    image_volumes: tuple[str, ...] = ()
    containers: int = 1
    host_ports: tuple[HostPort, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    pod_affinity: PodAffinity = field(default_factory=PodAffinity)
    pod_anti_affinity: PodAffinity = field(default_factory=PodAffinity)
    terminating: bool = False
