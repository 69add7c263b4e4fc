"""A writer of the short Cluster file that people read, and that `cluster_file` reads back."""

from collections.abc import Callable, Mapping
from typing import Any

from kfp_placement_engine.contract.keys import (
    ALL_PIPELINES,
    API_VERSION,
    HOST_LABEL,
    PULL_RATE_LABEL,
    SPEED_LABEL,
    STORE_BANDWIDTH_LABEL,
)
from kfp_placement_engine.model.cluster import Claim, Cluster, LimitRange, Node, Quota, Taint
from kfp_placement_engine.model.node_rules.constraints import usual_platform
from kfp_placement_engine.model.node_rules.round_trips import latencies_from_labels
from kfp_placement_engine.model.pod_constraints import NodeSelectorTerm, node_term
from kfp_placement_engine.model.policy import PlanningPolicy
from kfp_placement_engine.readers.cluster_form import ASSUMPTION_FIELDS, KIND, NodeEntry
from kfp_placement_engine.readers.kubernetes.nodes import from_label, read_rate, read_speed
from kfp_placement_engine.readers.text.yaml_text import yaml_text
from kfp_placement_engine.units.durations import exact_latency_text, exact_seconds_text
from kfp_placement_engine.units.quantities import format_resource
from kfp_placement_engine.units.resources import Resources

_Entry = dict[str, Any]
"""Part of the file, by its keys."""


def write_cluster_file(cluster: Cluster) -> str:
    """Write a cluster as a Cluster file; notices and source are left out."""
    document: _Entry = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "nodes": [_node(node) for node in cluster.nodes],
    }
    names = {node.name for node in cluster.nodes}
    optional = {
        "latencies": _latencies(cluster),
        "claims": [_claim(claim, names) for claim in cluster.claims],
        "images": _image_sizes(cluster.image_bytes),
        "policy": _policy(cluster.policy),
        "defaults": _defaults(cluster),
        "resourceQuotas": list(map(_quota, cluster.quotas)),
        "limitRanges": list(map(_limit_range, cluster.limit_ranges)),
        "pipelines": dict.fromkeys(sorted(cluster.all_pipelines), ALL_PIPELINES),
    }
    return yaml_text(document | _given(optional))


def _node(node: Node) -> _Entry:
    sizes = dict(node.allocatable)
    cpu, memory, pods = (sizes.pop(name, 0) for name in ("cpu", "memory", "pods"))
    entry: _Entry = {
        "name": node.name,
        "cpu": _amount("cpu", cpu),
        "memory": _amount("memory", memory),
    }
    if pods != NodeEntry.pods:
        entry["pods"] = pods

    def labelled(key: str, read: Callable[[object], float]) -> float | None:
        return from_label(key, read, node.labels, node.name, [])

    scored = {key: node.scored_used[key] for key in ("cpu", "memory") if key in node.scored_used}
    own = {key: node.used[key] for key in ("cpu", "memory") if key in node.used}
    optional = {
        "extended": _amounts(sizes),
        "speed": node.speed if node.speed != (labelled(SPEED_LABEL, read_speed) or 1) else None,
        "labels": _labels(node),
        "taints": [_taint(taint) for taint in node.taints],
        "unschedulable": node.unschedulable,
        "images": _image_sizes(node.images),
        "storeBandwidth": _rate(
            node.store_bytes_per_second, labelled(STORE_BANDWIDTH_LABEL, read_rate)
        ),
        "pullRate": _rate(node.pull_bytes_per_second, labelled(PULL_RATE_LABEL, read_rate)),
        "used": _amounts(node.used),
    }
    entry |= _given(optional)
    if scored != own:
        entry["scoredUsed"] = _amounts(scored)
    return entry


def _given(optional: Mapping[str, Any]) -> _Entry:
    """Return the entries that are not empty."""
    return {key: value for key, value in optional.items() if value}


def _labels(node: Node) -> dict[str, str]:
    """Return all labels but those that each node of a Cluster file has anyway.

    The platform that a kubelet reports has no other place there.
    """
    anyway = {HOST_LABEL: node.name, **usual_platform(node.labels)}
    labels = {**node.platform, **node.labels}
    return {key: value for key, value in labels.items() if anyway.get(key) != value}


def _image_sizes(images: Mapping[str, int]) -> dict[str, int | str]:
    return {name: _amount("memory", size) for name, size in images.items()}


def _amount(name: str, amount: int) -> int | str:
    text = format_resource(name, amount)
    return int(text) if text.isdecimal() else text


def _amounts(resources: Resources) -> dict[str, int | str]:
    return {name: _amount(name, amount) for name, amount in resources.items()}


def _rate(bytes_per_second: float | None, labelled: float | None) -> int | None:
    if bytes_per_second is None or bytes_per_second == labelled:
        return None
    return int(bytes_per_second)


def _taint(taint: Taint) -> str | dict[str, str]:
    if not {":", "="} & set(taint.key) and ":" not in taint.value:
        value = f"={taint.value}" if taint.value else ""
        return f"{taint.key}{value}:{taint.effect}"
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}


def _latencies(cluster: Cluster) -> dict[str, dict[str, str]]:
    """Return the round trips that the nodes' labels do not state already."""
    labelled = latencies_from_labels(cluster.nodes)
    return {
        location: missing
        for location, trips in cluster.latencies.items()
        if (
            missing := {
                name: exact_latency_text(latency_ms)
                for name, latency_ms in trips.items()
                if labelled.get(location, {}).get(name) != latency_ms
            }
        )
    }


def _claim(claim: Claim, nodes: set[str]) -> _Entry:
    optional = {"namespace": claim.namespace, "accessModes": list(claim.access_modes)}
    entry = {"name": claim.name, **_given(optional)}
    if claim.required_terms is not None:
        node = _only_node(claim.required_terms)
        if node in nodes:
            entry["node"] = node
        else:
            entry["nodeAffinity"] = [_term(term) for term in claim.required_terms]
    return entry | _given({"usedOn": list(claim.used_on), "problem": claim.problem})


def _quota(quota: Quota) -> _Entry:
    """Return a quota in the form of a ResourceQuota."""
    spec = _given({"hard": _quota_amounts(quota.hard), "scopes": list(quota.scopes)})
    metadata = {"name": quota.name, "namespace": quota.namespace}
    used = {"used": _quota_amounts(quota.used)}
    return {"metadata": metadata, "spec": spec} | _given({"status": _given(used)})


def _quota_amounts(amounts: Resources) -> dict[str, int | str]:
    """Return amounts by names such as `requests.cpu`, of which the first part has no unit."""
    return {name: _amount(name.partition(".")[2], amount) for name, amount in amounts.items()}


def _limit_range(item: LimitRange) -> _Entry:
    """Return one item in the form of a LimitRange."""
    limits = {
        "type": "Pod" if item.of_pod else "Container",
        "min": _amounts(item.least),
        "max": _amounts(item.most),
        "default": _amounts(item.default_limits),
        "defaultRequest": _amounts(item.default_requests),
        "maxLimitRequestRatio": {name: f"{each:g}" for name, each in item.most_ratio.items()},
    }
    metadata = {"name": item.name, "namespace": item.namespace}
    return {"metadata": metadata, "spec": {"limits": [_given(limits)]}}


def _only_node(terms: tuple[NodeSelectorTerm, ...]) -> str | None:
    """Return the node that the terms name, or None unless they are one name and nothing else."""
    names = {name for term in terms for each in term.requirements for name in each.values}
    name = next(iter(names), "")
    return name if terms == (node_term(name),) else None


def _term(term: NodeSelectorTerm) -> _Entry:
    entry: _Entry = {}
    for requirement in term.requirements:
        kind = "matchFields" if requirement.is_field else "matchExpressions"
        expression: _Entry = {"key": requirement.key, "operator": requirement.operator}
        if requirement.values:
            expression["values"] = list(requirement.values)
        entry.setdefault(kind, []).append(expression)
    return entry


def _policy(policy: PlanningPolicy | None) -> _Entry:
    """Return the policy's own settings for plans."""
    if policy is None:
        return {}
    from kfp_placement_engine.contract.planned_policy import policy_spec

    return policy_spec(policy).model_dump(mode="json", by_alias=True, exclude_unset=True)


def _defaults(cluster: Cluster) -> _Entry:
    """Return the cluster's own assumptions."""
    keys = {assumption: key for key, assumption in ASSUMPTION_FIELDS.items()}
    written: _Entry = {}
    for assumption, value in cluster.defaults.items():
        first, *rest = keys[assumption].split("_")
        name = first + "".join(word.title() for word in rest)
        if assumption.endswith("seconds"):
            written[name] = exact_seconds_text(value)
        else:
            written[name] = int(value)
    return written
