"""A run and its cluster with what somebody changes about them; pure."""

import difflib
import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kfp_placement_engine.contract.keys import HOST_LABEL
from kfp_placement_engine.exceptions import ChangeError, UnknownLoopError, UnknownStepError
from kfp_placement_engine.model.changes import (
    AddNodes,
    Change,
    ClaimAccess,
    HoldImage,
    LatencyLimit,
    LoopLimit,
    RemoveNodes,
    ResizeNodes,
    StepDuration,
)
from kfp_placement_engine.model.cluster import Cluster, Node, Taint
from kfp_placement_engine.model.images import canonical, held_sizes, normalised
from kfp_placement_engine.model.run_graph import GroupKind, RunGraph
from kfp_placement_engine.model.step_names import StepNames, listed, task_of
from kfp_placement_engine.planning.overrides import with_durations

_CONDITIONS = "node.kubernetes.io/"
"""Taints with this prefix tell how a machine is (not ready, cordoned, short of memory)."""

_NUMBERED = re.compile(r"(.+)-([0-9]+)", re.DOTALL)
_COMPARED = 2000
"""Names among which a close one is looked for."""


def with_changes(
    graph: RunGraph, cluster: Cluster, changes: Iterable[Change]
) -> tuple[RunGraph, Cluster]:
    """The run and the cluster after the changes, made one after another.

    Args:
        graph: the run.
        cluster: the cluster.
        changes: what changes.

    Raises:
        ChangeError: a node, image or claim that is not there; or no node is left.
        UnknownLoopError, UnknownStepError: a loop or step that the run does not have.
    """
    for change in changes:
        graph, cluster = _changed(graph, cluster, change)
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
    nodes = tuple(node for node in cluster.nodes if node.name == name)
    if not nodes and "*" in name:
        nodes = tuple(n for n in cluster.nodes if fnmatch.fnmatchcase(n.name, name))
    nodes = nodes or tuple(node for node in cluster.nodes if group_of(node.name) == name)
    if not nodes:
        groups = [group for node in cluster.nodes if (group := group_of(node.name))]
        names = [node.name for node in cluster.nodes]
        raise ChangeError(_unknown("node", name, [*dict.fromkeys(groups), *names], names))
    return nodes


def group_of(name: str) -> str:
    """The name of the group that a node belongs to by its own: `worker` of `worker-2`, or ""."""
    match = _NUMBERED.fullmatch(name)
    return "" if match is None else match[1]


def empty_copy(node: Node, name: str) -> Node:
    """A fresh machine like the node: nothing runs there, it holds no image and is in order."""
    labels = {**node.labels, HOST_LABEL: name} if HOST_LABEL in node.labels else node.labels
    return replace(
        node,
        name=name,
        used={},
        scored_used={},
        labels=labels,
        taints=lasting_taints(node),
        unschedulable=False,
        images={},
    )


def lasting_taints(node: Node) -> tuple[Taint, ...]:
    """The taints that somebody gave the node, without those that tell how it is just now."""
    return tuple(taint for taint in node.taints if not taint.key.startswith(_CONDITIONS))


def _changed(graph: RunGraph, cluster: Cluster, change: Change) -> tuple[RunGraph, Cluster]:
    match change:
        case AddNodes():
            return graph, _with_more_nodes(cluster, change)
        case RemoveNodes():
            return graph, _with_fewer_nodes(cluster, change)
        case ResizeNodes():
            return graph, _with_sizes(cluster, change)
        case HoldImage():
            return graph, _with_image(graph, cluster, change)
        case LoopLimit():
            return _with_loop_limit(graph, change), cluster
        case StepDuration():
            return with_durations(graph, {change.step: change.seconds}), cluster
        case LatencyLimit():
            return _with_latency_limit(graph, change), cluster
        case ClaimAccess():
            return _with_access(graph, change), cluster


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
    stem, number, names = group_of(model.name) or model.name, 2, list[str]()
    while len(names) < change.count:
        name = f"{stem}-{number}"
        number += 1
        if name not in taken:
            names.append(name)
    latencies = {
        place: dict(trips)
        | (dict.fromkeys(names, trips[model.name]) if model.name in trips else {})
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
    names = {node.name for node in named_nodes(cluster, change.nodes)}

    def resized(node: Node) -> Node:
        speed = node.speed if change.speed is None else change.speed
        return replace(
            node, allocatable={**node.allocatable, **dict(change.resources)}, speed=speed
        )

    nodes = (resized(node) if node.name in names else node for node in cluster.nodes)
    return replace(cluster, nodes=tuple(nodes))


def _with_image(graph: RunGraph, cluster: Cluster, change: HoldImage) -> Cluster:
    """Nodes that hold the image, under whatever name, stay as they are."""
    image = canonical(change.image)
    used = [step.image for step in graph.steps if step.image]
    if image not in {canonical(each) for each in used}:
        images = list(dict.fromkeys(used))
        raise ChangeError(_unknown("image", change.image, images, images))
    held = held_sizes(cluster.nodes, [image])[image]
    size = next((each for each in held if each is not None), 0)
    name = normalised(next(each for each in used if canonical(each) == image))
    nodes = (
        replace(node, images={**node.images, name: size}) if here is None else node
        for node, here in zip(cluster.nodes, held, strict=True)
    )
    return replace(cluster, nodes=tuple(nodes))


def _with_loop_limit(graph: RunGraph, change: LoopLimit) -> RunGraph:
    loops = [group for group in graph.groups if group.kind is GroupKind.LOOP]
    names = StepNames(
        ((loop.name, task_of(loop.name), loop.display_name) for loop in loops), noun="loop"
    )
    meant = names.meant(change.loop)
    if not meant:
        raise UnknownLoopError(f"{graph.name:.80}: {names.problem(change.loop)}")
    groups = (
        replace(group, parallelism=change.limit or 0) if group.name in meant else group
        for group in graph.groups
    )
    return replace(graph, groups=tuple(groups))


def _with_latency_limit(graph: RunGraph, change: LatencyLimit) -> RunGraph:
    names = StepNames((step.name, step.task, step.display_name) for step in graph.steps)
    meant = set(names.meant(change.step))
    if not meant:
        raise UnknownStepError(f"{graph.name:.80}: {names.problem(change.step)}")
    if change.latency_ms is not None and not any(
        step.location for step in graph.steps if step.name in meant
    ):
        raise ChangeError(
            f"{change.text!r:.120}: the step has no location, so there is no round trip to limit"
        )
    steps = (
        replace(step, max_latency_ms=change.latency_ms) if step.name in meant else step
        for step in graph.steps
    )
    return replace(graph, steps=tuple(steps))


def _with_access(graph: RunGraph, change: ClaimAccess) -> RunGraph:
    names = [claim.name for claim in graph.claims]
    if change.claim not in names:
        raise ChangeError(_unknown("volume claim", change.claim, names, names))
    claims = (
        replace(claim, access_modes=(change.mode,)) if claim.name == change.claim else claim
        for claim in graph.claims
    )
    return replace(graph, claims=tuple(claims))


def _unknown(noun: str, wanted: str, candidates: Sequence[str], known: Sequence[str]) -> str:
    """That something is not there, and what may be meant."""
    spelled = {each.lower(): each for each in reversed(candidates[:_COMPARED])}
    close = difflib.get_close_matches(wanted.lower(), spelled, n=3)
    if close:
        advice = f"did you mean {' or '.join(f'{spelled[each]!r:.120}' for each in close)}?"
    else:
        advice = f"{noun}s: {listed(known)}" if known else f"the run has no {noun}s"
    return f"there is no {noun} {wanted!r:.120}; {advice}"
