"""What a pod asks of a node: requests, and how kube-scheduler's scores count them."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from kfp_placement_engine.model.images import normalised
from kfp_placement_engine.model.latency import LatencyRule
from kfp_placement_engine.model.run_graph import NodeAffinity, RunGraph, Step, StepKind, Toleration
from kfp_placement_engine.units.resources import (
    SCORED_DEFAULTS,
    Resources,
    add_to,
    bounded,
    raise_to,
)

LAUNCHER_REQUESTS: Resources = {"cpu": 100, "memory": 256 * 2**20}
"""The kfp-launcher init container: no executor pod reserves less (KFP 2.17, container.go)."""

DRIVER_REQUESTS: Resources = {"cpu": 100, "memory": 64 * 2**20}
"""KFP driver pods, importers and createpvc pods (KFP 2.17, argo.go)."""

MAX_AMOUNT = 2**60
"""Amounts are cut here, so that sums of many stay within int64: an exbibyte."""

_KFP_CONTAINERS = 4
"""Containers of a KFP executor pod: Argo's init and wait, the launcher, main."""

_ARGO_CONTAINERS = 3
"""Containers of a plain Argo pod: init, wait, main."""


@dataclass(frozen=True)
class PodShape:
    """All that node choice depends on; pods of equal shape are one class.

    Attributes:
        requests: reserved amounts, canonical units, without `pods`.
        scored_requests: (CPU, memory) as the resource scores count them.
        node_selector, affinity, tolerations: as in `run_graph.Step`.
        image: image of the main container as kube-scheduler looks for it, or "".
        containers: number of containers, init containers included.
        location: the location whose round trip matters, or "".
        nearest: the pod goes to the node of least round trip.
        max_latency_ms: its hard limit.
        claims: keys of the volume claims mounted (`volumes.VolumeRules`).
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


def is_kfp(graph: RunGraph) -> bool:
    """Whether the run's pods are KFP's (driver pods and a launcher) rather than plain ones."""
    return bool(graph.groups)


def requests_of(graph: RunGraph, step: Step) -> dict[str, int]:
    """What the planner reserves for the step's pod: the larger of init and main containers."""
    if step.kind is not StepKind.CONTAINER:
        return dict(DRIVER_REQUESTS)
    requests = dict(step.requests)
    if is_kfp(graph):
        raise_to(requests, LAUNCHER_REQUESTS)
    return requests


def driver_shape() -> PodShape:
    """The shape of KFP's driver pods."""
    return PodShape(_frozen(DRIVER_REQUESTS), _scored(DRIVER_REQUESTS, 1), containers=3)


def step_shape(graph: RunGraph, step: Step, rule: LatencyRule, claims: tuple[str, ...]) -> PodShape:
    """The shape of the step's pod under its latency rule, with the keys of its volume claims."""
    requests = requests_of(graph, step)
    if step.kind is not StepKind.CONTAINER:
        return PodShape(_frozen(requests), _scored(requests, 1), containers=3, claims=claims)
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
    )


def shape_key(graph: RunGraph, step: Step, claims: tuple[str, ...]) -> Hashable:
    """All of a step that its shape and its latency rule depend on.

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
    )


def _frozen(requests: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(requests.items()))


def _scored(main: Resources, sidecars: int, floor: Resources | None = None) -> tuple[int, int]:
    """CPU and memory of the main container and of sidecars that request nothing.

    kube-scheduler counts 100m and 200 MiB for each container without a request; init containers
    only where they need more than all others together.
    """
    scored = {name: main.get(name, amount) for name, amount in SCORED_DEFAULTS.items()}
    for _ in range(sidecars):
        add_to(scored, SCORED_DEFAULTS)
    if floor is not None:
        raise_to(scored, floor)
    cut = bounded(scored, MAX_AMOUNT)
    return cut.get("cpu", 0), cut.get("memory", 0)


def resource_names(shapes: Iterable[PodShape]) -> tuple[str, ...]:
    """CPU, memory, pods, then every other resource that a pod asks for."""
    others = {name for shape in shapes for name, amount in shape.requests if amount > 0}
    return ("cpu", "memory", "pods", *sorted(others - {"cpu", "memory", "pods"}))
