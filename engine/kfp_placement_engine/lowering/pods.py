"""The demands of a pod on its node: requests, rules, and amounts as kube-scheduler scores them."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from kfp_placement_engine.lowering.apart import Shares
from kfp_placement_engine.model.node_rules.images import normalised
from kfp_placement_engine.model.node_rules.latency import LatencyRule
from kfp_placement_engine.model.pod_constraints import NodeAffinity, Toleration
from kfp_placement_engine.model.run_graph import RunGraph, Step, StepKind
from kfp_placement_engine.units.resources import (
    SCORED_DEFAULTS,
    Resources,
    add_to,
    bounded,
    raise_to,
    with_pod,
)

LAUNCHER_REQUESTS: Resources = {"cpu": 100, "memory": 256 * 2**20}
"""Requests of kfp-launcher's init container, the least of an executor pod (2.17, container.go)."""

DRIVER_REQUESTS: Resources = {"cpu": 100, "memory": 64 * 2**20}
"""Requests of KFP driver pods, importers and createpvc pods (KFP 2.17, argo.go)."""

MAX_AMOUNT = 2**60
"""Largest amount, an exbibyte; larger ones are cut, so that sums of many stay within int64."""

_KFP_CONTAINERS = 4
"""Number of containers of a KFP executor pod: Argo's init and wait, the launcher, main."""

_ARGO_CONTAINERS = 3
"""Number of containers of a plain Argo pod: init, wait, main."""


@dataclass(frozen=True)
class PodShape:
    """The properties of a pod that the choice of its node depends on.

    Pods of equal shape are one class.

    Attributes:
        requests: reserved amounts in canonical units, without `pods`.
        scored_requests: (CPU, memory) as the resource scores count them.
        node_selector, affinity, tolerations: rules as in `run_graph.Step`.
        image: image of the main container as kube-scheduler looks for it, or "".
        containers: number of containers, init containers included.
        location: location to which the round trip matters, or "".
        nearest: whether the pod goes to the node of least round trip.
        max_latency_ms: hard limit of the round trip, or None.
        claims: keys of the volume claims that it mounts (`volumes.VolumeRules`).
        linux_only: whether its images are known to be for Linux, as KFP's are.
        shares: amounts of made-up resources that it takes (`apart.ApartRules`).
        is_refused: whether no node ever gets it, since it is refused before.
    """

    requests: tuple[tuple[str, int], ...]
    scored_requests: tuple[int, int]
    node_selector: tuple[tuple[str, str], ...] = ()
    affinity: NodeAffinity = field(default_factory=NodeAffinity)
    tolerations: tuple[Toleration, ...] = ()
    image: str = ""
    containers: int = 1
    location: str = ""
    nearest: bool = False
    max_latency_ms: float | None = None
    claims: tuple[str, ...] = ()
    linux_only: bool = False
    shares: Shares = ()
    is_refused: bool = False

    @property
    def taken(self) -> Resources:
        """Amounts that the pod takes of its node, made-up resources and `pods` included."""
        return with_pod({**dict(self.requests), **dict(self.shares)})


def is_kfp(graph: RunGraph) -> bool:
    """Return whether the run's pods are KFP's, with driver pods and a launcher, or plain ones."""
    return bool(graph.groups)


def requests_of(graph: RunGraph, step: Step) -> dict[str, int]:
    """Return the room to reserve for the step's pod: the larger of init and main containers."""
    if not step.kind.has_pod:
        return {}
    if step.kind is not StepKind.CONTAINER:
        return dict(DRIVER_REQUESTS)
    requests = dict(step.requests)
    if is_kfp(graph):
        raise_to(requests, LAUNCHER_REQUESTS)
    return requests


def driver_shape() -> PodShape:
    """Return the shape of KFP's driver pods."""
    requests, scored = _frozen(DRIVER_REQUESTS), _scored(DRIVER_REQUESTS, 1)
    return PodShape(requests, scored, containers=3, linux_only=True)


def step_shape(graph: RunGraph, step: Step, rule: LatencyRule, claims: tuple[str, ...]) -> PodShape:
    """Return the shape of the step's pod under its latency rule; `claims` are keys of claims."""
    requests = requests_of(graph, step)
    if step.kind is not StepKind.CONTAINER:
        scored = _scored(requests, 1)
        return PodShape(_frozen(requests), scored, containers=3, claims=claims, linux_only=True)
    on_argo = graph.source != "wfformat"
    containers = _KFP_CONTAINERS if is_kfp(graph) else _ARGO_CONTAINERS if on_argo else 1
    return PodShape(
        requests=_frozen(requests),
        scored_requests=_scored(step.requests, 1 if on_argo else 0, floor=requests),
        node_selector=tuple(sorted(step.node_selector.items())),
        affinity=step.affinity,
        tolerations=step.tolerations,
        image=normalised(step.image) if step.image else "",
        containers=containers,
        location=rule.location,
        nearest=rule.nearest,
        max_latency_ms=step.max_latency_ms if rule.location else None,
        claims=claims,
        linux_only=is_kfp(graph),
        is_refused=bool(step.refusal),
    )


def shape_key(graph: RunGraph, step: Step, claims: tuple[str, ...]) -> Hashable:
    """Return a key of the step's properties on which its shape and its latency rule depend.

    Steps of equal keys have equal shapes; a key is made and compared in a fraction of the time.
    """
    return (
        is_kfp(graph),
        graph.source,
        step.kind,
        tuple(step.requests.items()),
        tuple(step.node_selector.items()),
        step.affinity,
        step.tolerations,
        step.image,
        step.type,
        step.location,
        step.max_latency_ms,
        claims,
        bool(step.refusal),
    )


def _frozen(requests: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(requests.items()))


def _scored(main: Resources, sidecars: int, floor: Resources | None = None) -> tuple[int, int]:
    """Return CPU and memory of the main container and of sidecars without requests.

    kube-scheduler counts 100m and 200 MiB for each container without a request. Init containers
    count only where they need more than all others together (`floor`).
    """
    scored = {name: main.get(name, amount) for name, amount in SCORED_DEFAULTS.items()}
    for _ in range(sidecars):
        add_to(scored, SCORED_DEFAULTS)
    if floor is not None:
        raise_to(scored, floor)
    cut = bounded(scored, MAX_AMOUNT)
    return cut.get("cpu", 0), cut.get("memory", 0)


def resource_names(shapes: Iterable[PodShape]) -> tuple[str, ...]:
    """Return CPU, memory, pods, and then every other resource that a pod takes."""
    others = {name for shape in shapes for name, amount in shape.taken.items() if amount > 0}
    return ("cpu", "memory", "pods", *sorted(others - {"cpu", "memory", "pods"}))
