"""A reader of clusters from files: dumps of kubectl, and short Cluster files by people.

`cluster_writer` turns a dump into a Cluster file that an admin can give to authors: it has nothing
of the environment of pods.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kfp_placement_engine.contract.keys import (
    API_GROUP,
    API_VERSION,
    HOST_LABEL,
    PULL_RATE_LABEL,
    SPEED_LABEL,
    STORE_BANDWIDTH_LABEL,
)
from kfp_placement_engine.exceptions import InputError, LimitError
from kfp_placement_engine.model.cluster import Claim, Cluster, Node
from kfp_placement_engine.model.node_rules.constraints import UNSCHEDULABLE_TAINT, usual_platform
from kfp_placement_engine.model.node_rules.images import normalised
from kfp_placement_engine.model.node_rules.round_trips import latencies_from_labels
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.pod_constraints import NodeSelectorTerm, node_term
from kfp_placement_engine.model.policy import Actuator, PlanningPolicy
from kfp_placement_engine.plans.progress import Progress, no_progress
from kfp_placement_engine.readers.cluster_form import (
    CLUSTER,
    KIND,
    MAX_NODES,
    ClaimEntry,
    ClusterEntry,
    NodeEntry,
)
from kfp_placement_engine.readers.kubernetes.nodes import (
    bad_latency_labels,
    from_label,
    node_size,
    read_rate,
    read_speed,
)
from kfp_placement_engine.readers.run_files import run_in
from kfp_placement_engine.readers.text.documents import CLUSTER_MAX_BYTES, load_documents, read_file
from kfp_placement_engine.readers.text.forms import FormError, key_advice
from kfp_placement_engine.readers.text.other_texts import HELM, is_helm, way_out
from kfp_placement_engine.readers.text.place import UNNAMED, Place
from kfp_placement_engine.units.quantities import MIN_MEMORY_BYTES
from kfp_placement_engine.units.resources import without_zeros

UNUSED_KEYS = frozenset(
    {
        "addresses", "annotations", "args", "command", "configMap", "data", "downwardAPI", "env",
        "envFrom", "finalizers", "hostIPs", "imagePullSecrets", "lastState", "lifecycle",
        "livenessProbe", "managedFields", "nodeInfo", "ownerReferences", "podIPs", "projected",
        "readinessProbe", "secret", "securityContext", "startupProbe", "state", "volumeMounts",
        "volumesAttached", "volumesInUse",
    }
)  # fmt: skip
"""Keys whose objects and lists are dropped while reading: they are most of a dump of pods."""

_SHOWN_PROBLEMS = 5


def read_cluster_file(path: str | Path, *, progress: Progress = no_progress) -> Cluster:
    """Read a cluster from a file of either form.

    Raises:
        InputNotFoundError: there is no such file.
        InputError: the file cannot be understood; the message names the place in it.
        LimitError: the file is beyond the limits of `text.documents`.
    """
    return read_cluster(
        read_file(path, max_bytes=CLUSTER_MAX_BYTES), name=str(path), progress=progress
    )


def read_cluster(data: bytes, *, name: str, progress: Progress = no_progress) -> Cluster:
    """Read a cluster from the bytes of a file of either form.

    Raises:
        InputError: the file cannot be understood; the message names the place in it.
        LimitError: the file is beyond the limits of `text.documents`.
    """
    # In a Cluster file these keys may be names, such as those of locations.
    documents = load_documents(
        data,
        name=name,
        max_bytes=CLUSTER_MAX_BYTES,
        progress=progress,
        drop=frozenset() if API_VERSION.encode() in data else UNUSED_KEYS,
    )
    first = documents[0]
    if run := run_in(first, Place(name)):
        raise InputError(
            f"{name}: describes a run ({run}), not a cluster; a cluster is what"
            " `kubectl get nodes,pods,pvc,pv,resourcequotas,limitranges -A -o yaml` prints or a"
            " Cluster file"
        )
    if isinstance(first, dict) and "Name" in first and (what := way_out(data)):
        raise InputError(f"{name}: {what}")
    # A look at all values of a large dump takes long.
    if (b".Values." in data or b".Release." in data) and is_helm(documents):
        raise InputError(f"{name}: {HELM}")
    if not isinstance(first, dict) or not _is_cluster(first, name):
        # Reading our own objects needs a library of models, which costs as much as a small plan.
        from kfp_placement_engine.readers.kubernetes.dumps import GIVE, read_dump

        cluster = read_dump(documents, name=name)
        if any(node.used.get("pods") for node in cluster.nodes):
            return cluster
        message = f"the file holds no running pods, so every node is taken to be empty; {GIVE}"
        return replace(cluster, notices=(*cluster.notices, Notice("no-pods", message)))
    if len(documents) > 1:
        raise InputError(f"{name}: holds {len(documents)} documents; a Cluster file is one")
    return _read_entry(first, name)


def _is_cluster(document: Mapping[str, Any], name: str) -> bool:
    version, kind = document.get("apiVersion"), document.get("kind")
    # A dump may begin with a Location or a PlacementPolicy, which are in our group as well.
    is_form = kind == KIND or "nodes" in document
    ours = is_form and isinstance(version, str) and version.startswith(f"{API_GROUP}/")
    if kind in (None, KIND) and version is None and "nodes" in document:
        raise InputError(
            f"{name}: begin a Cluster file with `apiVersion: {API_VERSION}` and `kind: {KIND}`"
        )
    if ours and (version != API_VERSION or kind != KIND):
        raise InputError(
            f"{name}: apiVersion {version!r:.60}, kind {kind!r:.60} cannot be read as a cluster; "
            f"this version reads apiVersion {API_VERSION}, kind {KIND}"
        )
    return ours


def _read_entry(document: Mapping[str, Any], name: str) -> Cluster:
    try:
        entry = CLUSTER(UNNAMED, document)
    except FormError as error:
        raise InputError(f"{name}: {_shown(error.problems)}") from error
    if not entry.nodes:
        raise InputError(f"{name}: nodes: is empty; a cluster needs at least one")
    total = sum(node.count for node in entry.nodes)
    if total > MAX_NODES:
        raise LimitError(f"{name}: describes {total} nodes; at most {MAX_NODES} are read")
    notices: list[Notice] = []
    members: dict[str, list[str]] = {}
    nodes: dict[str, Node] = {}
    for index, node_entry in enumerate(entry.nodes):
        for node in _nodes(node_entry, notices):
            if node.name in nodes:
                raise InputError(f"{name}: nodes[{index}]: node {node.name!r:.80} appears twice")
            nodes[node.name] = node
            members.setdefault(node_entry.name, []).append(node.name)
    # The name of a node wins over that of an entry: entry `a` has `a-1`, and `a-1` has `a-1-1`.
    by_name = members | {each: [each] for each in nodes}
    latencies = _latencies(entry, tuple(nodes.values()), by_name, name)
    notices.extend(bad_latency_labels(nodes.values(), latencies))
    notices.extend(_without_units(entry.nodes))
    policy = None if entry.policy is None else _policy(entry.policy, name)
    return Cluster(
        nodes=tuple(nodes.values()),
        latencies=latencies,
        claims=tuple(
            _claim(claim, nodes, f"{name}: claims[{index}]")
            for index, claim in enumerate(entry.claims)
        ),
        notices=tuple(notices),
        source=name,
        image_bytes=dict(entry.images),
        defaults=entry.defaults,
        policy=policy,
        all_pipelines=entry.pipelines,
        quotas=entry.resource_quotas,
        limit_ranges=tuple(item for items in entry.limit_ranges for item in items),
    )


def _without_units(entries: Sequence[NodeEntry]) -> list[Notice]:
    """Return a notice about nodes in whose memory no container runs: `memory: 8` is 8 bytes."""
    tiny = [entry for entry in entries if 0 < entry.memory < MIN_MEMORY_BYTES]
    if not tiny:
        return []
    more = f", and that of {len(tiny) - 1} more," if len(tiny) > 1 else ""
    message = (
        f"the memory of node {tiny[0].name:.80}{more} is {tiny[0].memory:,} bytes, too little"
        " for any step; give it a unit, for example 16Gi"
    )
    return [Notice("memory-unit", message)]


def _nodes(entry: NodeEntry, notices: list[Notice]) -> Iterator[Node]:
    taints = entry.taints
    if entry.unschedulable and UNSCHEDULABLE_TAINT.key not in {taint.key for taint in taints}:
        taints = (*taints, UNSCHEDULABLE_TAINT)
    scored = entry.used if entry.scored_used is None else entry.scored_used
    labelled = (entry.labels, entry.name, notices)
    speed = entry.speed or from_label(SPEED_LABEL, read_speed, *labelled)
    store = entry.store_bandwidth or from_label(STORE_BANDWIDTH_LABEL, read_rate, *labelled)
    pull = entry.pull_rate or from_label(PULL_RATE_LABEL, read_rate, *labelled)
    sizes = {"cpu": entry.cpu, "memory": entry.memory, "pods": entry.pods}
    for number in range(1, entry.count + 1):
        node_name = entry.name if entry.count == 1 else f"{entry.name}-{number}"
        yield Node(
            name=node_name,
            allocatable=node_size({**entry.extended, **sizes}),
            used=without_zeros(entry.used),
            scored_used=without_zeros({key: scored.get(key, 0) for key in ("cpu", "memory")}),
            labels={HOST_LABEL: node_name, **usual_platform(entry.labels), **entry.labels},
            taints=taints,
            unschedulable=entry.unschedulable,
            speed=speed or 1.0,
            images={normalised(image): size for image, size in entry.images.items()},
            store_bytes_per_second=store,
            pull_bytes_per_second=pull,
        )


def _latencies(
    entry: ClusterEntry, nodes: tuple[Node, ...], by_name: Mapping[str, Sequence[str]], name: str
) -> dict[str, dict[str, float]]:
    """Return round trips from labels, and from `latencies`, which win."""
    latencies = latencies_from_labels(nodes)
    spelled = {location.lower(): location for location in latencies}
    for location, trips in entry.latencies.items():
        place = spelled.setdefault(location.lower(), location)
        for node_name, latency_ms in trips.items():
            if node_name not in by_name:
                raise InputError(
                    f"{name}: latencies.{location:.80}: no node or entry is named {node_name!r:.80}"
                )
            for member in by_name[node_name]:
                latencies.setdefault(place, {})[member] = latency_ms
    return latencies


def _claim(entry: ClaimEntry, nodes: Mapping[str, Node], place: str) -> Claim:
    for node_name in (entry.node, *entry.used_on):
        if node_name and node_name not in nodes:
            raise InputError(f"{place}: no node is named {node_name!r:.80}")
    terms: tuple[NodeSelectorTerm, ...] | None = entry.node_affinity
    if entry.node:
        if terms is not None:
            raise InputError(f"{place}: give node or nodeAffinity, not both")
        terms = (node_term(entry.node),)
    return Claim(
        entry.name, entry.namespace, entry.access_modes, terms, entry.used_on, entry.problem
    )


def _policy(settings: Mapping[str, Any], name: str) -> PlanningPolicy:
    """Read `policy`, which has the form of a PlacementPolicy's spec."""
    if settings == {"actuator": Actuator.GATES}:
        # Most files have only this; the import of what reads the rest takes longer than a plan.
        return PlanningPolicy(actuator=Actuator.GATES)
    from kfp_placement_engine.contract.custom_resources import PlacementPolicy, read_resource
    from kfp_placement_engine.contract.planned_policy import planning_policy
    from kfp_placement_engine.contract.shared_parts import unknown_fields

    try:
        spec = read_resource(PlacementPolicy, {"spec": settings}).spec
    except InputError as error:
        raise InputError(f"{name}: policy: {error}") from error
    # A policy in a cluster may be of a newer revision; a file is written for this one.
    for place, keys in unknown_fields(spec, settings):
        parent, _, key = f"policy.{place}".rpartition(".")
        raise InputError(f"{name}: {parent}.{key:.80}: is not known here; {key_advice(key, keys)}")
    return planning_policy(spec)


def _shown(problems: Sequence[str]) -> str:
    """Return the first problems as one text, at most five."""
    more = len(problems) - _SHOWN_PROBLEMS
    return "; ".join(problems[:_SHOWN_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
