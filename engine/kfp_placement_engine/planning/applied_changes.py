"""A run and its cluster with what somebody changes about them; pure."""

import fnmatch
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kfp_placement_engine.contract.keys import HOST_LABEL
from kfp_placement_engine.exceptions import ChangeError, UnknownLoopError, UnknownStepError
from kfp_placement_engine.model.changes import (
    AddNodes,
    Change,
    ChangeStep,
    ClaimAccess,
    HoldImage,
    LoopLimit,
    RemoveNodes,
    ResizeNodes,
)
from kfp_placement_engine.model.cluster import Cluster, Node, Taint
from kfp_placement_engine.model.images import canonical, held_sizes, normalised
from kfp_placement_engine.model.resources import without_zeros
from kfp_placement_engine.model.run_graph import (
    DurationSource,
    GroupKind,
    NodeSelectorTerm,
    Requirement,
    RunGraph,
    Step,
    StepKind,
)
from kfp_placement_engine.model.step_names import StepNames, listed, task_of

_CONDITIONS = "node.kubernetes.io/"
"""Taints with this prefix tell how a machine is (not ready, cordoned, short of memory)."""

_NUMBERED = re.compile(r"(.+)-([0-9]+)", re.DOTALL)


def with_changes(
    graph: RunGraph, cluster: Cluster, changes: Iterable[Change]
) -> tuple[RunGraph, Cluster]:
    """The run and the cluster after the changes, made one after another.

    Args:
        graph: the run.
        cluster: the cluster.
        changes: what changes.

    Raises:
        ChangeError: a node, image or claim that is not there; something that a step does not have;
            or no node is left.
        UnknownLoopError, UnknownStepError: a loop or step that the run does not have.
    """
    for change in changes:
        match change:
            case LoopLimit():
                graph = _with_loop_limit(graph, change)
            case ClaimAccess():
                graph = _with_access(graph, change)
            case ChangeStep():
                graph = _with_step(graph, cluster, change)
            case ResizeNodes(name, resources, None) if not _nodes_called(cluster, name):
                _check_is_node_or_step(graph, cluster, name)
                graph = _with_step(graph, cluster, ChangeStep(name, resources))
            case ResizeNodes():
                cluster = _with_sizes(cluster, change)
            case AddNodes():
                cluster = _with_more_nodes(cluster, change)
            case RemoveNodes():
                cluster = _with_fewer_nodes(cluster, change)
            case HoldImage():
                cluster = _with_image(graph, cluster, change)
    return graph, cluster


def named_nodes(cluster: Cluster, name: str) -> tuple[Node, ...]:
    """The nodes that a name means, in the cluster's order.

    Args:
        cluster: the cluster.
        name: a node's name, `worker` for all of `worker-1`, `worker-2` and so on where no node is
            of that very name, or a pattern with `*`.

    Raises:
        ChangeError: there are none; the message names those that come close.
    """
    nodes = _nodes_called(cluster, name)
    if not nodes:
        StepNames(_node_entries(cluster), noun="node").check(name, ChangeError)
    return nodes


def group_of(name: str) -> str:
    """The name of the group that a node belongs to by its own: `worker` of `worker-2`, or ""."""
    match = _NUMBERED.fullmatch(name)
    return "" if match is None else match[1]


def empty_copy(node: Node, name: str) -> Node:
    """A fresh machine like the node: nothing runs there, it holds no image and is in order."""
    return replace(
        node,
        name=name,
        used={},
        scored_used={},
        labels={**node.labels, HOST_LABEL: name} if HOST_LABEL in node.labels else node.labels,
        taints=lasting_taints(node),
        unschedulable=False,
        images={},
    )


def lasting_taints(node: Node) -> tuple[Taint, ...]:
    """The taints that somebody gave the node, without those that tell how it is just now."""
    return tuple(taint for taint in node.taints if not taint.key.startswith(_CONDITIONS))


def _node_entries(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    return ((node.name, group_of(node.name) or node.name, "") for node in cluster.nodes)


def _nodes_called(cluster: Cluster, name: str) -> tuple[Node, ...]:
    meant = set(StepNames(_node_entries(cluster)).meant(name))
    if not meant and "*" in name:
        meant.update(fnmatch.filter((node.name for node in cluster.nodes), name))
    return tuple(node for node in cluster.nodes if node.name in meant)


def _with_more_nodes(cluster: Cluster, change: AddNodes) -> Cluster:
    """The new nodes come last, and are as far from every place as the one they are like."""
    like = named_nodes(cluster, change.like)
    model = like[0]
    if any(_capacity(node) != _capacity(model) for node in like):
        raise ChangeError(
            f"the nodes called {change.like!r:.120} differ in size, speed or taints; name one of "
            f"{listed([node.name for node in like])}"
        )
    taken = {node.name for node in cluster.nodes}
    stem = group_of(model.name) or model.name
    free = (name for at in itertools.count(2) if (name := f"{stem}-{at}") not in taken)
    names = list(itertools.islice(free, change.count))
    latencies = {
        place: {**trips, **{name: trips[model.name] for name in names if model.name in trips}}
        for place, trips in cluster.latencies.items()
    }
    nodes = (*cluster.nodes, *(empty_copy(model, name) for name in names))
    return replace(cluster, nodes=nodes, latencies=latencies)


def _capacity(node: Node) -> tuple[object, ...]:
    return node.allocatable, node.speed, lasting_taints(node)


def _with_fewer_nodes(cluster: Cluster, change: RemoveNodes) -> Cluster:
    named = named_nodes(cluster, change.nodes)
    if change.count > len(named):
        raise ChangeError(
            f"{change.text!r:.120}: the cluster has {len(named)} nodes of that name; "
            f"at most {len(named)} can be taken away"
        )
    gone = {node.name for node in named[-change.count :]}
    nodes = tuple(node for node in cluster.nodes if node.name not in gone)
    if not nodes:
        raise ChangeError(f"{change.text!r:.120} leaves no node on which a step could run")
    return replace(cluster, nodes=nodes)


def _with_sizes(cluster: Cluster, change: ResizeNodes) -> Cluster:
    named = {node.name for node in named_nodes(cluster, change.nodes)}

    def resized(node: Node) -> Node:
        speed = node.speed if change.speed is None else change.speed
        allocatable = {**node.allocatable, **dict(change.resources)}
        return replace(node, allocatable=allocatable, speed=speed)

    nodes = (resized(node) if node.name in named else node for node in cluster.nodes)
    return replace(cluster, nodes=tuple(nodes))


def _with_image(graph: RunGraph, cluster: Cluster, change: HoldImage) -> Cluster:
    """Nodes that hold the image, under whatever name, stay as they are."""
    image = canonical(change.image)
    used = list(dict.fromkeys(step.image for step in graph.steps if step.image))
    spelled = next((each for each in used if canonical(each) == image), "")
    if not spelled:
        raise ChangeError(_plain_names(used, "image").problem(change.image))
    held = held_sizes(cluster.nodes, [image])[image]
    added = {normalised(spelled): next((size for size in held if size is not None), 0)}
    nodes = (
        replace(node, images={**node.images, **added}) if size is None else node
        for node, size in zip(cluster.nodes, held, strict=True)
    )
    return replace(cluster, nodes=tuple(nodes))


def _with_loop_limit(graph: RunGraph, change: LoopLimit) -> RunGraph:
    loops = [group for group in graph.groups if group.kind is GroupKind.LOOP]
    names = StepNames(
        ((loop.name, task_of(loop.name), loop.display_name) for loop in loops), noun="loop"
    )
    meant = names.check(change.loop, UnknownLoopError, f"{graph.name:.80}: ")
    groups = (
        replace(group, parallelism=change.limit or 0) if group.name in meant else group
        for group in graph.groups
    )
    return replace(graph, groups=tuple(groups))


def _with_access(graph: RunGraph, change: ClaimAccess) -> RunGraph:
    names = [claim.name for claim in graph.claims]
    if change.claim not in names:
        raise ChangeError(_plain_names(names, "volume claim").problem(change.claim))
    claims = list(graph.claims)
    at = names.index(change.claim)
    claims[at] = replace(claims[at], access_modes=(change.mode,))
    return replace(graph, claims=tuple(claims))


def _plain_names(names: Iterable[str], noun: str) -> StepNames:
    return StepNames(((name, name, "") for name in names), noun)


def _step_entries(graph: RunGraph) -> Iterator[tuple[str, str, str]]:
    return ((step.name, step.task, step.display_name) for step in graph.steps)


def _check_is_node_or_step(graph: RunGraph, cluster: Cluster, name: str) -> None:
    known = (*_node_entries(cluster), *_step_entries(graph))
    StepNames(known, noun="node or step").check(name, ChangeError)


def _with_step(graph: RunGraph, cluster: Cluster, change: ChangeStep) -> RunGraph:
    names = StepNames(_step_entries(graph))
    meant = set(names.check(change.step, UnknownStepError, f"{graph.name:.80}: "))
    _check(change, [step for step in graph.steps if step.name in meant])
    fields: dict[str, Any] = {}
    if change.seconds is not None:
        fields |= {"duration_seconds": change.seconds, "duration_basis": None}
        fields["duration_source"] = DurationSource.GIVEN
    if change.max_latency_ms is not None:
        limit = change.max_latency_ms
        fields["max_latency_ms"] = None if math.isinf(limit) else limit
    terms = None
    if change.nodes is not None:
        # In Kubernetes a match of fields has a single value, and any of several terms may hold.
        terms = tuple(
            NodeSelectorTerm((Requirement("metadata.name", "In", (node.name,), is_field=True),))
            for node in named_nodes(cluster, change.nodes)
        )
        fields["node_selector"] = {}

    amounts = dict(change.resources)

    def changed(step: Step) -> Step:
        return replace(
            step,
            requests=without_zeros({**step.requests, **amounts}),
            unknown_resources=tuple(name for name in step.unknown_resources if name not in amounts),
            affinity=step.affinity if terms is None else replace(step.affinity, required=terms),
            **fields,
        )

    steps = (changed(step) if step.name in meant else step for step in graph.steps)
    return replace(graph, steps=tuple(steps))


def _check(change: ChangeStep, steps: Sequence[Step]) -> None:
    """Refuse what would change nothing.

    Raises:
        ChangeError: the message says why.
    """
    limit, kind = change.max_latency_ms, steps[0].kind
    if limit is not None and limit < math.inf and not any(step.location for step in steps):
        problem = "the step has no location, so there is no round trip to limit"
    elif kind is not StepKind.CONTAINER and (change.resources or change.nodes):
        problem = (
            f"requests and nodes of a step of kind {kind.value} cannot be changed; name a step that"
            " runs a container"
        )
    else:
        return
    raise ChangeError(f"{change.text!r:.120}: {problem}")
