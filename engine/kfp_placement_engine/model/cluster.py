"""The cluster as the planner sees it: nodes, the room taken on them, latencies, volume claims."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.pod_constraints import Labels, NodeSelectorTerm
from kfp_placement_engine.model.policy import PlanningPolicy
from kfp_placement_engine.units.resources import Resources


@dataclass(frozen=True)
class Taint:
    """A node's taint, as in Kubernetes."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True)
class Node:
    """One node.

    Attributes:
        name: the node's name.
        allocatable: room for pods, in canonical units, with `pods` for the number of pods.
        used: requests of the pods that are bound to it, same units, `pods` included.
        scored_used: CPU and memory of the same pods as kube-scheduler's resource scores count them
            (100m and 200 MiB for each container that requests none).
        labels: node labels.
        taints: node taints; those of a cordoned or not-ready node included.
        unschedulable: cordoned.
        speed: run times are divided by it (1 = the reference node).
        images: sizes in bytes of the images it holds, by reference.
        store_bytes_per_second: bandwidth to the object store; None = assumed.
        pull_bytes_per_second: image pull rate; None = assumed.
        platform: operating system and architecture that its kubelet reports, by the labels that say
            the same. The labels themselves may be missing, and pods select by these.
    """

    name: str
    allocatable: Resources
    used: Resources = field(default_factory=dict)
    scored_used: Resources = field(default_factory=dict)
    labels: Labels = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    speed: float = 1.0
    images: Mapping[str, int] = field(default_factory=dict)
    store_bytes_per_second: float | None = None
    pull_bytes_per_second: float | None = None
    platform: Labels = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """A volume claim that exists in the cluster.

    Attributes:
        name: claim name.
        namespace: namespace of the claim, or "" in a Cluster file.
        access_modes: access modes as in Kubernetes.
        required_terms: node affinity of the bound volume (any term must match), or None.
        used_on: names of the nodes where running pods mount it.
        problem: reason why no pod can mount it, in kube-scheduler's words; "" = there is none.
    """

    name: str
    namespace: str = ""
    access_modes: tuple[str, ...] = ()
    required_terms: tuple[NodeSelectorTerm, ...] | None = None
    used_on: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Quota:
    """A ResourceQuota of a namespace, as far as it counts pods and what they request.

    Attributes:
        name, namespace: name and namespace of the object.
        hard: largest amounts, by the quota's name of the resource: `pods`, `requests.cpu`,
            `limits.memory`; in canonical units.
        used: amounts that are in use, by the same names.
        scopes: kinds of pods that alone it counts; empty = it counts all.
    """

    name: str
    namespace: str
    hard: Resources
    used: Resources = field(default_factory=dict)
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LimitRange:
    """One item of a LimitRange of a namespace, with the API server's own defaults filled in.

    Attributes:
        name, namespace: name and namespace of the object.
        of_pod: whether it is about the sums of pods; else about single containers.
        least, most: bounds of requests and limits.
        default_requests, default_limits: amounts that containers get which state none.
        most_ratio: largest limit for one unit of the request, by resource.
    """

    name: str
    namespace: str
    of_pod: bool = False
    least: Resources = field(default_factory=dict)
    most: Resources = field(default_factory=dict)
    default_requests: Resources = field(default_factory=dict)
    default_limits: Resources = field(default_factory=dict)
    most_ratio: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Cluster:
    """A snapshot of a cluster.

    Attributes:
        nodes: the nodes, in the order in which the source lists them.
        latencies: location (as written) -> node name -> round trip in milliseconds.
        claims: existing volume claims.
        quotas: ResourceQuotas of namespaces.
        limit_ranges: items of LimitRanges of namespaces.
        notices: warnings of the reader for people.
        source: origin of the description, for people.
        image_bytes: sizes of images, by reference, for those that no node reports.
        defaults: assumptions that the source itself sets, by field of `Assumptions`; they count
            before those of the policy.
        policy: part of the cluster's PlacementPolicy that changes plans.
        all_pipelines: namespaces in which all steps of KFP runs count as marked.
    """

    nodes: tuple[Node, ...]
    latencies: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    quotas: tuple[Quota, ...] = ()
    limit_ranges: tuple[LimitRange, ...] = ()
    notices: tuple[Notice, ...] = ()
    source: str = ""
    image_bytes: Mapping[str, int] = field(default_factory=dict)
    defaults: Mapping[str, float] = field(default_factory=dict)
    policy: PlanningPolicy | None = None
    all_pipelines: frozenset[str] = frozenset()
