"""A reader of dumps of a cluster, as `kubectl get -A -o yaml` prints them.

The kinds are those of `GIVE`.
A dump is a List, several Lists, single objects, several documents or JSON arrays. Locations, the
PlacementPolicy and namespaces may be among them (`kubectl get nodes,pods,pvc,pv,loc,plpol,ns`); of
a namespace only counts whether it lets all steps of KFP runs count as marked. Nothing in a dump is
trusted: a bad node is an error, as no plan is right without it, and so is what has no kind; any
other bad object is left out with a notice.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kfp_placement_engine.contract.keys import (
    ALL_PIPELINES,
    API_VERSION,
    ENABLED_LABEL,
    PIPELINES_LABEL,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.cluster import Claim, Cluster, Node
from kfp_placement_engine.model.keys import ClaimKey
from kfp_placement_engine.model.node_rules.round_trips import latencies_from_labels, with_places
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.readers.kubernetes.claims import mounted_claims, read_claim, read_volume
from kfp_placement_engine.readers.kubernetes.nodes import bad_latency_labels, read_node
from kfp_placement_engine.readers.kubernetes.placement_objects import (
    hidden_label_notices,
    policy_in_force,
    read_location,
    read_policy,
)
from kfp_placement_engine.readers.kubernetes.pods import read_requests
from kfp_placement_engine.readers.kubernetes.quotas import read_limit_range, read_quota
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place, kind_of
from kfp_placement_engine.units.resources import Amounts, add_to, bounded, with_pod

_KINDS = {
    "Node": "v1",
    "Pod": "v1",
    "PersistentVolumeClaim": "v1",
    "PersistentVolume": "v1",
    "Namespace": "v1",
    "ResourceQuota": "v1",
    "LimitRange": "v1",
    "Location": API_VERSION,
    "PlacementPolicy": API_VERSION,
}
"""API versions of the kinds that are read."""

GIVE = "give what `kubectl get nodes,pods,pvc,pv,resourcequotas,limitranges -A -o yaml` prints"
"""Advice for a file that lacks something."""

_ENDED = ("Succeeded", "Failed")
_SHOWN_NOTICES = 20


class _Collected:
    """Objects of a dump by kind, with the notices about them."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.objects: dict[str, list[Fields]] = {kind: [] for kind in _KINDS}
        self.ignored: Counter[str] = Counter()
        self.notices: list[Notice] = []

    def skip(self, error: InputError) -> None:
        """Note that an object is left out."""
        self.notices.append(Notice("malformed-object", f"left out: {error}"))


def read_dump(documents: Iterable[Any], *, name: str) -> Cluster:
    """Read a cluster from plain values.

    Args:
        documents: values of the file's documents.
        name: name of the file, for messages.

    Raises:
        InputError: the dump has no nodes, two of one name, or one that cannot be read; or
            something in it is not a Kubernetes object.
    """
    collected = _Collected(name)
    for document in documents:
        if not isinstance(document, dict | list):
            raise InputError(
                f"{name}: is neither a Cluster file nor Kubernetes objects, but"
                f" {kind_of(document)}; {GIVE}"
            )
        _collect(document, collected, Place(name))
    nodes = _read_nodes(collected)
    claims_used: dict[ClaimKey, list[str]] = {}
    nodes = _with_used_room(nodes, collected, claims_used)
    claims = _read_claims(collected, claims_used)
    locations = _each(collected, "Location", read_location)
    by_label = latencies_from_labels(nodes)
    latencies = with_places(by_label, locations, nodes)
    collected.notices.extend(hidden_label_notices(by_label, latencies))
    collected.notices.extend(bad_latency_labels(nodes, latencies))
    policy = policy_in_force(_each(collected, "PlacementPolicy", read_policy))
    all_pipelines = frozenset(filter(None, _each(collected, "Namespace", _of_all_pipelines)))
    quotas = tuple(_each(collected, "ResourceQuota", lambda raw: read_quota(raw.at(", quota"))))
    ranges = _each(collected, "LimitRange", lambda raw: read_limit_range(raw.at(", limit range")))
    limit_ranges = tuple(item for items in ranges for item in items)
    if collected.ignored:
        kinds = ", ".join(f"{count} {kind:.80}" for kind, count in collected.ignored.most_common(5))
        more = ", ..." if len(collected.ignored) > 5 else ""
        collected.notices.append(Notice("ignored-objects", f"not used: {kinds}{more}"))
    return Cluster(
        nodes=nodes,
        latencies=latencies,
        claims=claims,
        quotas=quotas,
        limit_ranges=limit_ranges,
        notices=_shortened(collected.notices),
        source=name,
        policy=policy,
        all_pipelines=all_pipelines,
    )


def _of_all_pipelines(raw: Fields) -> str:
    """Return the name of a namespace where all steps of KFP runs count as marked, else ""."""
    metadata = raw.at(", namespace").fields("metadata")
    labels = metadata.fields("labels")
    if labels.get(PIPELINES_LABEL) != ALL_PIPELINES or labels.get(ENABLED_LABEL) == "false":
        return ""
    return metadata.text("name")


def _collect(value: Any, collected: _Collected, place: Place) -> None:
    """Sort an object, or the items of a list, by kind; lists within lists are followed."""
    waiting = [(value, place, "")]
    while waiting:
        value, place, list_kind = waiting.pop()
        if isinstance(value, list):
            items, place, kind = value, place, ""
        else:
            raw = Fields.of(value, place)
            kind = raw.text("kind") or list_kind
            if not kind.endswith("List") or "items" not in raw:
                _sort(raw, kind, collected)
                continue
            items, place, kind = raw.entries("items"), raw.where("items"), kind.removesuffix("List")
        # The last one first, so that they are taken in their order.
        waiting += [(each, place.item(index), kind) for index, each in enumerate(items)][::-1]


def _sort(raw: Fields, kind: str, collected: _Collected) -> None:
    if not kind:
        raise raw.error("is not a Kubernetes object: it has no kind")
    version = raw.text("apiVersion") or "v1"
    if _KINDS.get(kind) == version:
        collected.objects[kind].append(raw)
    else:
        collected.ignored[kind if version == "v1" else f"{kind} ({version:.60})"] += 1


def _read_nodes(collected: _Collected) -> tuple[Node, ...]:
    nodes: dict[str, Node] = {}
    for raw in collected.objects["Node"]:
        node, notices = read_node(raw.at(", node"))
        if node.name in nodes:
            raise raw.error(f"node {node.name:.80} appears twice")
        nodes[node.name] = node
        collected.notices.extend(notices)
    if not nodes:
        read = [kind for kind, objects in collected.objects.items() if objects]
        others = [f"{kind:.80}" for kind, _ in collected.ignored.most_common(5)]
        seen = ", ".join([*read, *others])
        raise InputError(
            f"{collected.source}: holds no Node of apiVersion v1"
            + (f" (only {seen})" if seen else "")
            + f"; {GIVE}"
        )
    return tuple(nodes.values())


def _with_used_room(
    nodes: tuple[Node, ...], collected: _Collected, claims_used: dict[ClaimKey, list[str]]
) -> tuple[Node, ...]:
    """Return the nodes with the room that bound pods take; fill `claims_used` with their claims."""
    used: dict[str, Amounts] = {node.name: {"pods": 0} for node in nodes}
    scored: dict[str, Amounts] = {node.name: {"cpu": 0, "memory": 0} for node in nodes}
    seen: set[tuple[str, str]] = set()
    lost = 0
    for raw in collected.objects["Pod"]:
        try:
            node_name, identity = _bound_to(raw)
            if node_name is None or identity in seen:
                continue
            if node_name not in used:
                lost += 1
                continue
            pod = raw.at(", pod {:.160}", "/".join(identity))
            requests, claims = read_requests(pod), mounted_claims(pod)
        except InputError as error:
            collected.skip(error)
            continue
        seen.add(identity)
        add_to(used[node_name], with_pod(requests.real))
        add_to(scored[node_name], requests.scored)
        for claim in claims:
            claims_used.setdefault(claim, []).append(node_name)
    if lost:
        bound = "1 pod is" if lost == 1 else f"{lost} pods are"
        collected.notices.append(
            Notice("unknown-node", f"{bound} bound to nodes that are not in the file")
        )
    return tuple(
        replace(node, used=bounded(used[node.name]), scored_used=bounded(scored[node.name]))
        for node in nodes
    )


def _bound_to(raw: Fields) -> tuple[str | None, tuple[str, str]]:
    """Return the node whose room a pod takes, or None, and the pod's namespace and name."""
    metadata = raw.fields("metadata")
    name, namespace = metadata.text("name"), metadata.text("namespace") or "default"
    pod = raw.at(", pod {:.80}", name)
    status, spec = pod.fields("status"), pod.fields("spec")
    node_name = spec.text("nodeName")
    if not node_name or status.get("phase") in _ENDED:
        return None, (namespace, name)
    return node_name, (namespace, name)


def _read_claims(
    collected: _Collected, users: Mapping[ClaimKey, Iterable[str]]
) -> tuple[Claim, ...]:
    read = _each(collected, "PersistentVolume", lambda raw: read_volume(raw.at(", volume")))
    volumes = dict(read)
    claims = _each(
        collected,
        "PersistentVolumeClaim",
        lambda raw: read_claim(raw.at(", claim"), volumes, users),
    )
    return tuple({ClaimKey(claim.namespace, claim.name): claim for claim in claims}.values())


def _each(collected: _Collected, kind: str, read: Callable[[Fields], Any]) -> Iterator[Any]:
    for raw in collected.objects[kind]:
        try:
            yield read(raw)
        except InputError as error:
            collected.skip(error)


def _shortened(notices: list[Notice]) -> tuple[Notice, ...]:
    if len(notices) <= _SHOWN_NOTICES:
        return tuple(notices)
    left = len(notices) - _SHOWN_NOTICES
    return (*notices[:_SHOWN_NOTICES], Notice("more-notices", f"and {left} more of the same file"))
