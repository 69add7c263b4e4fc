"""Kubernetes' rules for where a pod may go: node selector, node affinity, taints, cordon, room.

The rules are kube-scheduler v1.36.3's filters NodeUnschedulable, TaintToleration, NodeAffinity and
NodeResourcesFit (`pkg/scheduler/framework/plugins`), object by object. The planner lowers them to
tables once per problem; messages and the scheduler model call them directly.

kube-scheduler knows nothing of platforms: a pod that does not select one may go to any node, and
its images do not start on the wrong one. KFP's images are for Linux; those of plain Workflows may
be for Windows, whose steps must select it (`docs/windows.md` of Argo).
"""

import re
from collections.abc import Iterable, Sequence

from kfp_placement_engine.model.cluster import Node, Taint
from kfp_placement_engine.model.pod_constraints import (
    Labels,
    NodeAffinity,
    NodeSelectorTerm,
    Requirement,
    Toleration,
)
from kfp_placement_engine.model.reasons import Reason, reason

UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""The taint of a cordoned node; a pod that tolerates it may run there (NodeUnschedulable)."""

NOT_READY_TAINT = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")
"""The taint of a node whose Ready condition is not True (set by the node lifecycle controller)."""

AWAY_KEYS = frozenset({NOT_READY_TAINT.key, "node.kubernetes.io/unreachable"})
"""Keys of the taints on a node whose kubelet is not ready, or not heard from."""

PREFER_NO_SCHEDULE = "PreferNoSchedule"
_FILTERING_EFFECTS = ("NoSchedule", "NoExecute")

OS_LABEL = "kubernetes.io/os"
ARCHITECTURE_LABEL = "kubernetes.io/arch"
"""Labels that the kubelet gives to its node."""

USUAL_ARCHITECTURE = "amd64"
"""Architecture for which nearly all images are made."""

MAX_LABEL_VALUE_LENGTH = 63
"""Characters of a label's value."""

_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def shared_modes(access_modes: Iterable[str]) -> bool:
    """Return whether a volume of these access modes may be mounted on several nodes."""
    return any(mode in ("ReadWriteMany", "ReadOnlyMany") for mode in access_modes)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return whether any of the tolerations matches the taint.

    As `Toleration.ToleratesTaint` (k8s.io/api core/v1) with its comparison operators off, which is
    the default: an operator other than Equal and Exists matches nothing.
    """
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def untolerated_taint(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """Return the first untolerated taint that keeps a pod away (NoSchedule, NoExecute), or None."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if taint.effect in _FILTERING_EFFECTS and not tolerates(tolerations, taint):
            return taint
    return None


def untolerated_preferred_taints(tolerations: Iterable[Toleration], node: Node) -> int:
    """Return TaintToleration's raw score: PreferNoSchedule taints that are not tolerated."""
    tolerations = tuple(tolerations)
    return sum(
        taint.effect == PREFER_NO_SCHEDULE and not tolerates(tolerations, taint)
        for taint in node.taints
    )


def matches_term(term: NodeSelectorTerm, node: Node) -> bool:
    """Return whether all requirements of the term hold on the node.

    A term without requirements matches nothing, and neither does one with a requirement that
    Kubernetes cannot parse (`component-helpers/scheduling/corev1/nodeaffinity`).
    """
    return bool(term.requirements) and all(
        _field_holds(each, node) if each.is_field else holds(each, node.labels)
        for each in term.requirements
    )


def matches_any_term(terms: Iterable[NodeSelectorTerm], node: Node) -> bool:
    """Return whether any of the terms matches; no terms match nothing."""
    return any(matches_term(term, node) for term in terms)


def matches_affinity(affinity: NodeAffinity, node: Node) -> bool:
    """Return whether the node satisfies the required node affinity; without one it does."""
    return affinity.required is None or matches_any_term(affinity.required, node)


def matches_node_selector(node_selector: Labels, node: Node) -> bool:
    """Return whether the node has every label of the pod's node selector."""
    return all(node.labels.get(key) == value for key, value in node_selector.items())


def preferred_weight(affinity: NodeAffinity, node: Node) -> int:
    """Return NodeAffinity's raw score: the weights of the preferred terms that match, summed."""
    return sum(each.weight for each in affinity.preferred if matches_term(each.term, node))


def is_not_ready(node: Node) -> bool:
    """Return whether the node's kubelet is not ready, or not heard from."""
    return any(taint.key in AWAY_KEYS for taint in node.taints)


def objection(
    node_selector: Labels, affinity: NodeAffinity, tolerations: Iterable[Toleration], node: Node
) -> Reason | None:
    """Return the objection of kube-scheduler's static filters to the pod on the node, or None.

    The filters are asked in kube-scheduler's order and the first that objects is named.
    """
    tolerations = tuple(tolerations)
    if node.unschedulable and not tolerates(tolerations, UNSCHEDULABLE_TAINT):
        return reason("cordoned")
    taint = untolerated_taint(tolerations, node.taints)
    if taint is not None:
        return reason("taint", taint=taint_text(taint))
    if not (matches_node_selector(node_selector, node) and matches_affinity(affinity, node)):
        return reason("selector")
    return None


def objections(
    node_selector: Labels,
    affinity: NodeAffinity,
    tolerations: Iterable[Toleration],
    nodes: Sequence[Node],
    *,
    linux_only: bool,
) -> list[Reason | None]:
    """Return the objection of each node to the pod, None where it has none.

    Those of kube-scheduler's static filters come before those of nodes with Windows.
    """
    tolerations = tuple(tolerations)
    filtered = [objection(node_selector, affinity, tolerations, node) for node in nodes]
    return _with_platforms(filtered, nodes, linux_only=linux_only)


def runs_windows(node: Node) -> bool:
    """Return whether the node runs Windows; one that does not say runs Linux."""
    return _labelled(node, OS_LABEL) == "windows"


def architecture(node: Node) -> str:
    """Return the node's architecture, such as `arm64`; "" = it does not say."""
    return _labelled(node, ARCHITECTURE_LABEL)


def usual_platform(labels: Labels) -> dict[str, str]:
    """Return the platform of a node of which these labels are stated, as its kubelet says it."""
    usual = {OS_LABEL: "linux", ARCHITECTURE_LABEL: USUAL_ARCHITECTURE}
    return {key: labels.get(f"beta.{key}", value) for key, value in usual.items()}


def _labelled(node: Node, key: str) -> str:
    """Return the value of a label, also under its older name, else what the kubelet reports."""
    labels = node.labels
    return labels.get(key) or labels.get(f"beta.{key}") or node.platform.get(key, "")


def _with_platforms(
    objections: Sequence[Reason | None], nodes: Sequence[Node], *, linux_only: bool
) -> list[Reason | None]:
    """Add the objections of nodes with Windows to those of kube-scheduler's filters.

    Args:
        objections: objection of each node to a pod by the filters; None = it has none.
        nodes: the nodes.
        linux_only: whether the pod's images are known to be for Linux. Those of other pods are
            taken to be for Windows only if the pod selects nodes so that no other remain.
    """
    windows = [runs_windows(node) for node in nodes]
    if not any(windows):
        return list(objections)
    for_linux = linux_only or any(
        against is None and not other for against, other in zip(objections, windows, strict=True)
    )
    return [
        reason("windows") if for_linux and against is None and other else against
        for against, other in zip(objections, windows, strict=True)
    ]


def taint_text(taint: Taint) -> str:
    """Return the taint as kubectl writes it: `gpu=true:NoSchedule`, `dedicated:NoExecute`."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def holds(requirement: Requirement, labels: Labels) -> bool:
    """Return whether a requirement on labels holds, of a node or of a pod (apimachinery `labels`).

    One whose values are not label values cannot be parsed and never holds, not even NotIn.
    """
    if not all(is_label_value(value) for value in requirement.values):
        return False
    present = requirement.key in labels
    label = labels.get(requirement.key, "")
    match requirement.operator:
        case "In":
            return present and label in requirement.values
        case "NotIn":
            return bool(requirement.values) and not (present and label in requirement.values)
        case "Exists":
            return present and not requirement.values
        case "DoesNotExist":
            return not present and not requirement.values
        case "Gt" | "Lt":
            return present and _compares(requirement, label)
        case _:
            return False


def is_label_value(text: str) -> bool:
    """Return whether Kubernetes takes the text as the value of a label."""
    return len(text) <= MAX_LABEL_VALUE_LENGTH and _LABEL_VALUE.fullmatch(text) is not None


def _field_holds(requirement: Requirement, node: Node) -> bool:
    if len(requirement.values) != 1:
        return False
    actual = node.name if requirement.key == "metadata.name" else ""
    if requirement.operator == "In":
        return actual == requirement.values[0]
    return requirement.operator == "NotIn" and actual != requirement.values[0]


def _compares(requirement: Requirement, label: str) -> bool:
    if len(requirement.values) != 1:
        return False
    actual, limit = _as_int64(label), _as_int64(requirement.values[0])
    if actual is None or limit is None:
        return False
    return actual > limit if requirement.operator == "Gt" else actual < limit


def _as_int64(text: str) -> int | None:
    """Read what Go's strconv.ParseInt accepts; Python's int() takes underscores and spaces too."""
    if len(text) > 64 or not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if _INT64_MIN <= value <= _INT64_MAX else None
