"""Remedies that let a step which fits no node onto one.

Lines of Python where a toleration, selector or accelerator is missing; else which resource or label
no node has, or how long the shortest round trip is.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kfp_placement_engine.model.cluster import Cluster, Node, Taint
from kfp_placement_engine.model.constraints import is_not_ready, matches_affinity, untolerated_taint
from kfp_placement_engine.model.round_trips import latencies_to
from kfp_placement_engine.model.run_graph import RunGraph, Step
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.units.durations import given_round_trip_text
from kfp_placement_engine.units.quantities import shown_value
from kfp_placement_engine.units.resources import free_room, lacking, with_pod

Lines = tuple[str, ...]
"""Lines of Python, or sentences in their place."""

SOURCES = frozenset({"kfp-package", "argo-workflow"})
"""Runs that are written in Python with kfp."""

GPU = "nvidia.com/gpu"
"""The accelerator that is meant where nobody names one."""

_ACCELERATED = re.compile(r"gpu|nvidia|accelerator|cuda|\b(?:tpu|gaudi|neuron)", re.IGNORECASE)
"""Resources that are accelerators; labels and taints of nodes that have them."""

_LONGEST_VALUE = 253
"""Characters of what is put into a line; Kubernetes' own names are no longer."""

_VALUES = 5
"""Values of a label that a sentence names."""

_MOST_LINES = 2
"""A node that needs more is another kind of node, not one that was forgotten."""


def with_remedies(plan: Plan, run: RunGraph, cluster: Cluster) -> Plan:
    """Return the plan, with remedies in the reasons of steps that fit no node.

    Args:
        plan: plan of the run on the cluster.
        run: run as it was planned.
        cluster: cluster as it was planned on.
    """
    if not plan.unschedulable or run.source not in SOURCES:
        return plan
    steps = {step.name: step for step in run.steps}
    of_task: dict[str, Lines] = {}
    reasons: dict[str, str] = {}
    for name, reason in plan.unschedulable:
        step = steps.get(name)
        if step is not None and step.task not in of_task:
            of_task[step.task] = tuple(_advice(step, cluster))
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


def _advice(step: Step, cluster: Cluster) -> Iterator[str]:
    """Yield the lines for a step; if there are none, the requirements that no node meets."""
    if lines := remedy(step, cluster):
        yield lines
        return
    yield from _missing_resources(step, cluster)
    yield from _missing_labels(step, cluster)
    yield from _shortest_round_trip(step, cluster)


def _missing_resources(step: Step, cluster: Cluster) -> Iterator[str]:
    for resource, amount in step.requests.items():
        if amount > 0 and not any(node.allocatable.get(resource) for node in cluster.nodes):
            yield f"no node offers {shown_value(resource)}"


def _missing_labels(step: Step, cluster: Cluster) -> Iterator[str]:
    for key, value in step.node_selector.items():
        values = sorted({node.labels[key] for node in cluster.nodes if key in node.labels})
        if value in values:
            continue
        label, shown_key = shown_value(f"{key}={value}"), shown_value(key)
        there = ", ".join(map(shown_value, values[:_VALUES]))
        more = f" and {len(values) - _VALUES} more" if len(values) > _VALUES else ""
        others = (
            f"nodes have {shown_key} = {there}{more}"
            if values
            else f"no node has a label {shown_key}"
        )
        yield f"no node has the label {label} of its node selector; {others}"


def _shortest_round_trip(step: Step, cluster: Cluster) -> Iterator[str]:
    limit_ms, latencies = step.max_latency_ms, latencies_to(step.location, cluster.latencies)
    if limit_ms is None or not latencies:
        return
    latency_ms, node = min((latency_ms, node) for node, latency_ms in latencies.items())
    if latency_ms > limit_ms:
        shortest = given_round_trip_text(latency_ms)
        yield f"the shortest round trip to {step.location} is {shortest}, that of {node}"


def remedy(step: Step, cluster: Cluster) -> str:
    """Return the fewest lines of Python that let a step onto a node; `task` stands for the step.

    Args:
        step: one that fits no node.
        cluster: the cluster.

    Returns:
        The end of a sentence on why no node takes the step; "" where no line helps: there is no
        room, or something else keeps it off.
    """
    fewest, onto = Lines(), ""
    for node in cluster.nodes:
        lines = _lines(step, node)
        if lines is None or len(lines) > _MOST_LINES:
            continue
        if not lines:
            # The node would take it: a volume or a limit of the round trip is in the way.
            return ""
        if not fewest or len(lines) < len(fewest):
            fewest, onto = lines, node.name
    if not fewest:
        return ""
    these = "this line lets" if len(fewest) == 1 else "these lines let"
    return f"{these} it onto {onto}: {'; '.join(fewest)}"


def _lines(step: Step, node: Node) -> Lines | None:
    """Return the lines that let a step onto a node; None if no lines do."""
    if node.unschedulable or is_not_ready(node) or not matches_affinity(step.affinity, node):
        return None
    accelerator = _accelerator(step, node)
    selector = _selector(step.node_selector, node)
    if accelerator is None or selector is None:
        return None
    taints = [each for each in node.taints if untolerated_taint(step.tolerations, (each,))]
    return (*accelerator, *selector, *map(toleration_line, taints))


def _accelerator(step: Step, node: Node) -> Lines | None:
    """Return the accelerator that the node has in place of the one that the step asks for."""
    free = free_room(node.allocatable, node.used)
    short = lacking(with_pod(step.requests), free)
    if not short:
        return ()
    if len(short) > 1 or not _may_be_accelerator(short[0]) or short[0] in node.allocatable:
        return None
    amount = step.requests[short[0]]
    for name in node.allocatable:
        if _ACCELERATED.search(name) and free[name] >= amount:
            return (accelerator_line(name, amount),)
    return None


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


def accelerator_line(resource: str, amount: int = 1) -> str:
    """Return the line that asks for accelerators."""
    return f"task.set_accelerator_type({_quoted(resource)}).set_accelerator_limit({amount})"


def _selector(wanted: Mapping[str, str], node: Node) -> Lines | None:
    """Return selectors with the node's own values; None if one is missing or very different."""
    missing = {key: value for key, value in wanted.items() if node.labels.get(key) != value}
    lines = []
    for key, value in missing.items():
        if key not in node.labels or not _is_near(value, node.labels[key]):
            return None
        arguments = f"label_key={_quoted(key)}, label_value={_quoted(node.labels[key])}"
        lines.append(f"kubernetes.add_node_selector(task, {arguments})")
    return tuple(lines)


def _is_near(wanted: str, present: str) -> bool:
    """Return whether one value may be a misspelling of the other."""
    return bool(difflib.get_close_matches(wanted.lower(), [present.lower()], cutoff=0.75))


def toleration_line(taint: Taint) -> str:
    """Return the line that tolerates a taint."""
    key, value, effect = map(_quoted, (taint.key, taint.value, taint.effect))
    matched = f'operator="Equal", value={value}' if taint.value else 'operator="Exists"'
    return f"kubernetes.add_toleration(task, key={key}, {matched}, effect={effect})"


def _quoted(text: str) -> str:
    """Return text as Python writes it, in double quotes where it can be read."""
    text = text[:_LONGEST_VALUE]
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else repr(text)
