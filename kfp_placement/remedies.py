"""Remedies that let a step which fits no node onto one.

Lines in the author's language where a toleration, selector or accelerator is missing; else which
resource or label no node has, or how long the shortest round trip is.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kfp_placement_engine.model.cluster import Cluster, Node, Taint
from kfp_placement_engine.model.node_rules.constraints import (
    is_not_ready,
    matches_affinity,
    matches_any_term,
    matches_term,
    runs_windows,
    untolerated_taint,
)
from kfp_placement_engine.model.node_rules.round_trips import latencies_to
from kfp_placement_engine.model.pod_constraints import NodeSelectorTerm
from kfp_placement_engine.model.run_graph import RunGraph, Step
from kfp_placement_engine.planning.author_languages import AuthorLanguage, language_of
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.units.durations import given_round_trip_text
from kfp_placement_engine.units.quantities import shown_value
from kfp_placement_engine.units.resources import UNSTATED, free_room, lacking, with_pod

_SOURCES = frozenset({"kfp-package", "argo-workflow"})
"""Runs that go to Kubernetes."""

GPU = "nvidia.com/gpu"
"""The accelerator that is meant where nobody names one."""

_ACCELERATED = re.compile(r"gpu|nvidia|accelerator|cuda|\b(?:tpu|gaudi|neuron)", re.IGNORECASE)
"""Resources that are accelerators; labels and taints of nodes that have them."""

_PART = re.compile(r"\bmig-|[.-]shared\b", re.IGNORECASE)
"""Parts of accelerators: MIG slices, and GPUs that several pods share."""

_VENDOR = re.compile(r"nvidia|amd|tpu|gaudi|neuron")
_OF_NVIDIA = re.compile(r"(?:^|[-_])[abhklptv]\d", re.IGNORECASE)
"""Names of GPUs without their vendor: `A100` and the like."""

_VALUES = 5
"""Values of a label that a sentence names."""

_MOST_CHANGES = 2
"""A node that needs more is another kind of node, not one that was forgotten."""


@dataclass(frozen=True)
class _Lacking:
    """Requests of a step that would let it onto a node.

    Attributes:
        accelerators: accelerators of the node, in place of those that the step asks for.
        labels: values of the node's labels, in place of those that the step asks for.
        taints: taints to tolerate.
    """

    accelerators: Mapping[str, int]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]

    def __len__(self) -> int:
        return len(self.accelerators) + len(self.labels) + len(self.taints)

    def lines(self, language: AuthorLanguage, step: Step) -> tuple[str, ...]:
        """Return the lines that the step needs."""
        return (
            *(language.accelerator(name, amount) for name, amount in self.accelerators.items()),
            *language.node_selectors(self.labels),
            *language.tolerations(self.taints, has_others=bool(step.tolerations)),
        )


def with_remedies(plan: Plan, run: RunGraph, cluster: Cluster) -> Plan:
    """Return the plan, with remedies in the reasons of steps that fit no node.

    Args:
        plan: plan of the run on the cluster.
        run: run as it was planned.
        cluster: cluster as it was planned on.
    """
    if not plan.unschedulable or run.source not in _SOURCES:
        return plan
    steps, language = {step.name: step for step in run.steps}, language_of(run)
    of_task: dict[str, tuple[str, ...]] = {}
    reasons: dict[str, str] = {}
    for name, reason in plan.unschedulable:
        step = steps.get(name)
        if step is not None and step.task not in of_task:
            of_task[step.task] = tuple(_advice(step, cluster, language))
        advice = () if step is None else of_task[step.task]
        reasons[name] = "; ".join((reason, *advice))
    return replace(
        plan,
        unschedulable=tuple(reasons.items()),
        steps=tuple(
            replace(step, explanation=replace(step.explanation, sentence=reasons[step.name]))
            if step.name in reasons
            else step
            for step in plan.steps
        ),
    )


def _advice(step: Step, cluster: Cluster, language: AuthorLanguage) -> Iterator[str]:
    """Yield the lines for a step; if there are none, the requirements that no node meets."""
    if step.refusal:
        return
    if lines := remedy(step, cluster, language):
        yield lines
        return
    yield from _missing_resources(step, cluster)
    yield from _missing_labels(step, cluster)
    yield from _shortest_round_trip(step, cluster)


def _missing_resources(step: Step, cluster: Cluster) -> Iterator[str]:
    for resource, amount in step.requests.items():
        if amount > 0 and not any(
            node.allocatable.get(resource, UNSTATED.get(resource)) for node in cluster.nodes
        ):
            others = ""
            if _may_be_accelerator(resource):
                whole = {name for node in cluster.nodes for name in _offered(node, resource)}
                others = f"; nodes offer {', '.join(sorted(whole)[:_VALUES])}" if whole else ""
            yield f"no node offers {shown_value(resource)}{others}"


def _missing_labels(step: Step, cluster: Cluster) -> Iterator[str]:
    for key, value in step.node_selector.items():
        if not any(node.labels.get(key) == value for node in cluster.nodes):
            label = shown_value(f"{key}={value}")
            yield f"its node selector asks for {label}; {_present(key, cluster)}"
    terms = step.affinity.required or ()
    if any(matches_any_term(terms, node) for node in cluster.nodes):
        return
    for term in terms[:_VALUES]:
        single = ((each, NodeSelectorTerm((each,))) for each in term.requirements)
        unmet = [
            each
            for each, alone in single
            if not any(matches_term(alone, node) for node in cluster.nodes)
        ]
        asked = ", ".join(shown_value(str(each)) for each in unmet or term.requirements)
        there = _present(unmet[0].key, cluster) if unmet else "no node has all of these"
        yield f"its node affinity asks for {asked}; {there}"


def _present(key: str, cluster: Cluster) -> str:
    """Return the values that nodes have of a label."""
    values = sorted({node.labels[key] for node in cluster.nodes if key in node.labels})
    if not values:
        return f"no node has a label {shown_value(key)}"
    there = ", ".join(map(shown_value, values[:_VALUES]))
    more = f" and {len(values) - _VALUES} more" if len(values) > _VALUES else ""
    return f"nodes have {shown_value(key)} = {there}{more}"


def _shortest_round_trip(step: Step, cluster: Cluster) -> Iterator[str]:
    limit_ms, latencies = step.max_latency_ms, latencies_to(step.location, cluster.latencies)
    if limit_ms is None or not latencies:
        return
    latency_ms, node = min((latency_ms, node) for node, latency_ms in latencies.items())
    if latency_ms > limit_ms:
        shortest = given_round_trip_text(latency_ms)
        yield f"the shortest round trip to {step.location} is {shortest}, that of {node}"


def remedy(step: Step, cluster: Cluster, language: AuthorLanguage) -> str:
    """Return the fewest lines that let a step onto a node.

    Args:
        step: one that fits no node.
        cluster: the cluster.
        language: language of the lines.

    Returns:
        The end of a sentence on why no node takes the step; "" where no line helps: there is no
        room, or something else keeps it off.
    """
    lacking_on = {node.name: _lacking_on(step, node) for node in cluster.nodes}
    possible = {name: each for name, each in lacking_on.items() if each is not None}
    if not possible:
        return ""
    onto, fewest = min(possible.items(), key=lambda item: len(item[1]))
    # Without any, the node would take it: a volume or a limit of the round trip is in the way.
    if not 0 < len(fewest) <= _MOST_CHANGES:
        return ""
    lines = fewest.lines(language, step)
    these = "this line lets" if len(lines) == 1 else "these lines let"
    return f"{these} it onto {onto}: {'; '.join(lines)}"


def _lacking_on(step: Step, node: Node) -> _Lacking | None:
    """Return what lets a step onto a node; None if nothing does."""
    if node.unschedulable or is_not_ready(node) or runs_windows(node):
        return None
    if not matches_affinity(step.affinity, node):
        return None
    accelerators, labels = _accelerators(step, node), _labels(step.node_selector, node)
    if accelerators is None or labels is None:
        return None
    taints = (each for each in node.taints if untolerated_taint(step.tolerations, (each,)))
    return _Lacking(accelerators, labels, tuple(taints))


def _accelerators(step: Step, node: Node) -> Mapping[str, int] | None:
    """Return the accelerator that the node has in place of the one that the step asks for."""
    free = free_room(node.allocatable, node.used)
    short = lacking(with_pod(step.requests), free)
    if not short:
        return {}
    if len(short) > 1 or not _may_be_accelerator(short[0]) or short[0] in node.allocatable:
        return None
    amount = step.requests[short[0]]
    for name in _offered(node, short[0]):
        if free[name] >= amount:
            return {name: amount}
    return None


def _offered(node: Node, wanted: str) -> list[str]:
    """Return the accelerators of a node, as parts only if the wanted name is one of a part.

    Names of Vertex AI (`NVIDIA_TESLA_A100`, `TPU_V3`) and labels of GKE (`nvidia-tesla-t4`) mean
    whole ones of their vendor.
    """
    parts_too = bool(_PART.search(wanted))
    vendors = _vendors(wanted) or ({"nvidia"} if _OF_NVIDIA.search(wanted) else set[str]())
    return [
        name
        for name in node.allocatable
        if _ACCELERATED.search(name)
        and (parts_too or not _PART.search(name))
        and vendors <= _vendors(name)
    ]


def _vendors(name: str) -> set[str]:
    return set(_VENDOR.findall(name.lower()))


def _may_be_accelerator(resource: str) -> bool:
    """Return whether KFP asks for a resource as an accelerator; old names have no domain."""
    return resource not in ("cpu", "memory", "pods", "ephemeral-storage") and not (
        resource.startswith(("hugepages-", "attachable-volumes-"))
    )


def accelerated_by(step: Step) -> str:
    """Return what suggests accelerators for a step that requests none, or ""."""
    if any(_may_be_accelerator(name) for name in (*step.requests, *step.unknown_resources)):
        return ""
    for toleration in step.tolerations:
        if _ACCELERATED.search(toleration.key):
            return f"toleration of {toleration.key!r:.80}"
    for key, value in step.node_selector.items():
        if _ACCELERATED.search(f"{key} {value}"):
            return f"node selector {key!r:.80}"
    return ""


def _labels(wanted: Mapping[str, str], node: Node) -> Mapping[str, str] | None:
    """Return the node's own values; None if one is missing or very different."""
    missing = {key: value for key, value in wanted.items() if node.labels.get(key) != value}
    if all(
        key in node.labels and _is_near(value, node.labels[key]) for key, value in missing.items()
    ):
        return {key: node.labels[key] for key in missing}
    return None


def _is_near(wanted: str, present: str) -> bool:
    """Return whether one value may be a misspelling of the other."""
    return bool(difflib.get_close_matches(wanted.lower(), [present.lower()], cutoff=0.75))
