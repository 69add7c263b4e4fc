"""The form of a Cluster file: `kind: Cluster`, nodes in a few lines each, for people to write.

Values become canonical numbers here; `cluster_file` makes a `Cluster` from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kfp_placement_engine.contract.keys import ALL_PIPELINES
from kfp_placement_engine.model.cluster import LimitRange, Quota, Taint
from kfp_placement_engine.model.pod_constraints import NodeSelectorTerm
from kfp_placement_engine.readers.kubernetes.constraints import read_terms
from kfp_placement_engine.readers.kubernetes.nodes import EFFECTS, read_rate, read_speed
from kfp_placement_engine.readers.kubernetes.quotas import read_limit_range, read_quota
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.forms import Form, amount, list_of, mapping_of, number_reader
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.units.durations import parse_duration, parse_latency_ms
from kfp_placement_engine.units.quantities import parse_cpu, parse_quantity, parse_whole

KIND = "Cluster"

MAX_NODES = 20_000
"""Largest number of nodes in a Cluster file, those of `count` included."""

_MAX_LOOP_WIDTH = 100_000
_MARKED_PIPELINES = "marked"


@dataclass(frozen=True)
class NodeEntry:
    """One node, or `count` equal nodes named `name-1` to `name-<count>`.

    Attributes:
        name, cpu, memory, pods, labels, taints, unschedulable: values of Kubernetes in canonical
            units.
        count: number of nodes.
        extended: amounts of other resources, such as `nvidia.com/gpu` or `ephemeral-storage`.
        speed, images: values of the same fields of `Node`.
        store_bandwidth, pull_rate: rates in bytes per second.
        used: sum of the requests of pods that run there already and stay, `pods` included.
        scored_used: CPU and memory of those pods as kube-scheduler's scores count them; None = as
            in `used`.
    """

    name: str
    cpu: int
    memory: int
    count: int = 1
    pods: int = 110
    extended: Mapping[str, int] = field(default_factory=dict)
    speed: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    images: Mapping[str, int] = field(default_factory=dict)
    store_bandwidth: float | None = None
    pull_rate: float | None = None
    used: Mapping[str, int] = field(default_factory=dict)
    scored_used: Mapping[str, int] | None = None


@dataclass(frozen=True)
class ClaimEntry:
    """A volume claim that exists already.

    Attributes:
        name, namespace, access_modes: values of Kubernetes.
        node: name of the node that its volume is bound to; "" = none.
        node_affinity: node selector terms of its volume, where more than one node reaches it.
        used_on: names of nodes on which running pods mount it.
        problem: reason why no pod can mount it; "" = there is none.
    """

    name: str
    namespace: str = ""
    access_modes: tuple[str, ...] = ()
    node: str = ""
    node_affinity: tuple[NodeSelectorTerm, ...] | None = None
    used_on: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class ClusterEntry:
    """A whole Cluster file.

    Attributes:
        api_version, kind: version and kind of the file.
        nodes, claims: entries for nodes and for claims.
        latencies: round trips in milliseconds, by location and by node or entry of several nodes.
        images: sizes of images that no node holds yet.
        defaults: values in place of the built-in assumptions, by field of `Assumptions`.
        policy: the PlacementPolicy's settings for plans, as they came; `defaults` override its own.
        pipelines: namespaces in which all steps of KFP runs count as marked.
        resource_quotas: quotas of namespaces.
        limit_ranges: items of each LimitRange of namespaces.
    """

    api_version: str
    kind: str
    nodes: tuple[NodeEntry, ...]
    latencies: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    claims: tuple[ClaimEntry, ...] = ()
    images: Mapping[str, int] = field(default_factory=dict)
    defaults: Mapping[str, float] = field(default_factory=dict)
    policy: Mapping[str, Any] | None = None
    pipelines: frozenset[str] = frozenset()
    resource_quotas: tuple[Quota, ...] = ()
    limit_ranges: tuple[list[LimitRange], ...] = ()


ASSUMPTION_FIELDS = {
    "duration": "duration_seconds",
    "output": "output_bytes",
    "image": "image_bytes",
    "store_bandwidth": "store_bytes_per_second",
    "pull_rate": "pull_bytes_per_second",
    "driver": "driver_seconds",
    "loop_width": "loop_width",
    "link_bandwidth": "link_bytes_per_second",
}
"""Key of `defaults`, in snake case -> field of `Assumptions`."""


def _taint(place: Place, value: Any) -> Taint:
    """Read a taint: `key=value:Effect`, `key:Effect`, or an object."""
    if isinstance(value, dict):
        taint = Fields(value, place)
        key, text, effect = taint.text("key"), taint.text("value"), taint.text("effect")
    elif isinstance(value, str):
        pair, _, effect = value.rpartition(":")
        key, _, text = pair.partition("=")
    else:
        key, text, effect = "", "", ""
    if not key or effect not in EFFECTS:
        raise place.error(
            f"{value!r:.80} is not a taint; write key=value:Effect with one of {', '.join(EFFECTS)}"
        )
    return Taint(key, text, effect)


def _pipelines(place: Place, value: Any) -> frozenset[str]:
    """Read namespaces and return those with `all`, the value that their label would have."""
    named = place.text_mapping(value)
    for namespace, which in named.items():
        if which not in (ALL_PIPELINES, _MARKED_PIPELINES):
            raise place.field(f"{namespace:.80}").error(
                f"{which!r:.80} is not {ALL_PIPELINES} or {_MARKED_PIPELINES}"
            )
    return frozenset(name for name, which in named.items() if which == ALL_PIPELINES)


def _assumptions(**values: float) -> dict[str, float]:
    return {ASSUMPTION_FIELDS[name]: value for name, value in values.items()}


_SIZE, _RATE, _TIME = amount(parse_quantity), amount(read_rate), amount(parse_duration)

NODE = Form(
    NodeEntry,
    {
        "name": Place.name,
        "count": number_reader(MAX_NODES),
        "cpu": amount(parse_cpu),
        "memory": _SIZE,
        "pods": _SIZE,
        "extended": mapping_of(amount(parse_whole)),
        "speed": amount(read_speed),
        "labels": Place.text_mapping,
        "taints": list_of(_taint),
        "unschedulable": Place.flag,
        "images": mapping_of(_SIZE),
        "storeBandwidth": _RATE,
        "pullRate": _RATE,
        "used": Place.resources,
        "scoredUsed": Place.resources,
    },
    required=("name", "cpu", "memory"),
    others=dict.fromkeys(("gpu", "gpus", "nvidia.com/gpu"), "write extended: {nvidia.com/gpu: 1}"),
)

CLAIM = Form(
    ClaimEntry,
    {
        "name": Place.name,
        "namespace": Place.text,
        "accessModes": list_of(Place.text),
        "node": Place.text,
        "nodeAffinity": lambda place, value: read_terms(value, place),
        "usedOn": list_of(Place.text),
        "problem": Place.text,
    },
    required=("name",),
)

DEFAULTS = Form(
    _assumptions,
    {
        "duration": _TIME,
        "output": _SIZE,
        "image": _SIZE,
        "storeBandwidth": _RATE,
        "pullRate": _RATE,
        "driver": _TIME,
        "loopWidth": number_reader(_MAX_LOOP_WIDTH),
        "linkBandwidth": _RATE,
    },
)

CLUSTER = Form(
    ClusterEntry,
    {
        "apiVersion": Place.text,
        "kind": Place.text,
        "nodes": list_of(NODE),
        "latencies": mapping_of(mapping_of(amount(parse_latency_ms))),
        "claims": list_of(CLAIM),
        "images": mapping_of(_SIZE),
        "defaults": DEFAULTS,
        "policy": Place.mapping,
        "pipelines": _pipelines,
        "resourceQuotas": list_of(lambda place, value: read_quota(Fields.of(value, place))),
        "limitRanges": list_of(lambda place, value: read_limit_range(Fields.of(value, place))),
    },
    required=("apiVersion", "kind", "nodes"),
)
