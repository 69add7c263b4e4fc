"""A run and its cluster after changes."""

import fnmatch
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, TypeVar

from kfp_placement_engine.contract.keys import HOST_LABEL
from kfp_placement_engine.exceptions import ChangeError, UnknownLoopError, UnknownStepError
from kfp_placement_engine.model.cluster import Cluster, Node
from kfp_placement_engine.model.node_rules.images import canonical, held_sizes, normalised
from kfp_placement_engine.model.pod_constraints import node_term
from kfp_placement_engine.model.run_graph import (
    DurationSource,
    Group,
    GroupKind,
    RunClaim,
    RunGraph,
    Step,
    StepKind,
)
from kfp_placement_engine.model.step_names import StepNames, task_of
from kfp_placement_engine.plans.what_if_changes import (
    AddNodes,
    Change,
    HoldImage,
    Kind,
    RemoveNodes,
    SetProperties,
)
from kfp_placement_engine.readers.change_text import read_values
from kfp_placement_engine.units.resources import Resources, without_zeros

ThingT = TypeVar("ThingT", Node, Step, Group, RunClaim)

_CONDITIONS = "node.kubernetes.io/"
"""Prefix of taints for the present condition of a machine (not ready, cordoned, out of memory)."""

_NUMBERED = re.compile(r"(.+)-([0-9]+)", re.DOTALL)

_Names = Sequence[tuple[str, str, str]]
"""Name, shared name and display name, or "", of each thing.

The shared name is that of all iterations, or of all numbered nodes.
"""

_ERRORS = {"step": UnknownStepError, "loop": UnknownLoopError}


def with_changes(
    graph: RunGraph, cluster: Cluster, changes: Iterable[Change]
) -> tuple[RunGraph, Cluster]:
    """Return the run and the cluster after the changes, made one after another.

    Args:
        graph: run before the changes.
        cluster: cluster before the changes.
        changes: changes to make.

    Raises:
        ChangeError: a node, image or volume claim does not exist; a step does not have the
            property; or too few nodes would remain.
        UnknownLoopError, UnknownStepError: a loop or step that the run does not have.
    """
    for change in changes:
        match change:
            case AddNodes():
                cluster = _with_more_nodes(cluster, change)
            case RemoveNodes():
                cluster = _with_fewer_nodes(cluster, change)
            case HoldImage():
                cluster = _with_image(graph, cluster, change)
            case SetProperties():
                graph, cluster = _with_properties(graph, cluster, change)
    return graph, cluster


def named_nodes(cluster: Cluster, name: str) -> tuple[Node, ...]:
    """Return the nodes that a name means, in the cluster's order.

    Args:
        cluster: cluster with the nodes.
        name: name of a node; `worker` for all of `worker-1`, `worker-2` and so on, if no node has
            exactly this name; or a pattern with `*`.

    Raises:
        ChangeError: no node has this name; the message suggests similar names.
    """
    _, meant = _resolved(name, {"node": _node_names(cluster)}, {})
    return tuple(node for node in cluster.nodes if node.name in meant)


def stem_of(name: str) -> str:
    """Return the group that a node belongs to by its name: `worker` of `worker-2`, or ""."""
    match = _NUMBERED.fullmatch(name)
    return "" if match is None else match[1]


def empty_copy(node: Node, name: str) -> Node:
    """Return a fresh machine like the node: empty, without images, and in order."""
    return replace(
        node,
        name=name,
        used={},
        scored_used={},
        labels={**node.labels, HOST_LABEL: name} if HOST_LABEL in node.labels else node.labels,
        # Keep taints that people set; drop those that Kubernetes sets for a machine's condition.
        taints=tuple(taint for taint in node.taints if not taint.key.startswith(_CONDITIONS)),
        unschedulable=False,
        images={},
    )


def _names_of_kind(graph: RunGraph, cluster: Cluster, kind: Kind) -> _Names:
    match kind:
        case "node":
            return _node_names(cluster)
        case "step":
            return [(step.name, step.task, step.display_name) for step in graph.steps]
        case "loop":
            return [
                (group.name, task_of(group.name), group.display_name)
                for group in graph.groups
                if group.kind is GroupKind.LOOP
            ]
        case "volume":
            return _unshared(claim.name for claim in graph.claims)


def _node_names(cluster: Cluster) -> _Names:
    return [(node.name, stem_of(node.name) or node.name, "") for node in cluster.nodes]


def _unshared(names: Iterable[str]) -> _Names:
    return [(name, name, "") for name in names]


def _resolved(
    wanted: str, names_of: Mapping[Kind, _Names], left_out: Mapping[str, str]
) -> tuple[Kind, Set[str]]:
    """Return the first kind with things of a name, and the names of these things.

    Raises:
        EngineError: there is no such thing; the message suggests similar names.
    """
    for kind, names in names_of.items():
        meant = StepNames(names).resolve(wanted)
        if not meant and "*" in wanted:
            # Escape `[`: `[0]` is part of an iteration's name, not a character class.
            meant = tuple(fnmatch.filter([name for name, *_ in names], wanted.replace("[", "[[]")))
        if meant:
            return kind, set(meant)
    noun = " or ".join(names_of)
    every = itertools.chain.from_iterable(names_of.values())
    raise _ERRORS.get(noun, ChangeError)(StepNames(every, noun, left_out).why_unresolved(wanted))


def _with_more_nodes(cluster: Cluster, change: AddNodes) -> Cluster:
    """Return the cluster with new nodes appended; each has the round trips of the one it copies."""
    model = named_nodes(cluster, change.like)[0]
    taken = {node.name for node in cluster.nodes}
    stem = stem_of(model.name) or model.name
    free = (name for at in itertools.count(2) if (name := f"{stem}-{at}") not in taken)
    names = list(itertools.islice(free, change.count))
    latencies = {
        place: {**trips, **{name: trips[model.name] for name in names if model.name in trips}}
        for place, trips in cluster.latencies.items()
    }
    nodes = (*cluster.nodes, *(empty_copy(model, name) for name in names))
    return replace(cluster, nodes=nodes, latencies=latencies)


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


def _with_image(graph: RunGraph, cluster: Cluster, change: HoldImage) -> Cluster:
    """Return the cluster with the image on all nodes; nodes that hold it stay as they are."""
    used = {canonical(step.image): step.image for step in reversed(graph.steps) if step.image}
    image = canonical(change.image)
    if image not in used:
        why = StepNames(_unshared(used.values()), "image").why_unresolved(change.image)
        raise ChangeError(
            f"{why}; give --package (package= in Python)" if graph.is_outline and not used else why
        )
    held = held_sizes(cluster.nodes, [image])[image]
    added = {normalised(used[image]): next((size for size in held if size is not None), 0)}
    nodes = (
        replace(node, images={**node.images, **added}) if size is None else node
        for node, size in zip(cluster.nodes, held, strict=True)
    )
    return replace(cluster, nodes=tuple(nodes))


def _with_properties(
    graph: RunGraph, cluster: Cluster, change: SetProperties
) -> tuple[RunGraph, Cluster]:
    names_of = {kind: _names_of_kind(graph, cluster, kind) for kind in change.kinds}
    kind, meant = _resolved(change.name, names_of, graph.left_out)
    amounts, fields = read_values(change.values)

    def changed(things: Iterable[ThingT], edit: Callable[[ThingT], ThingT]) -> tuple[ThingT, ...]:
        return tuple(edit(each) if each.name in meant else each for each in things)

    match kind:
        case "node":
            nodes = changed(
                cluster.nodes,
                lambda node: replace(node, allocatable={**node.allocatable, **amounts}, **fields),
            )
            cluster = replace(cluster, nodes=nodes)
        case "step":
            if "node" in fields:
                fields["node"] = named_nodes(cluster, fields["node"])
            steps = changed(graph.steps, lambda step: _with_requirements(step, amounts, **fields))
            graph = replace(graph, steps=steps)
        case "loop":
            groups = changed(graph.groups, lambda group: replace(group, **fields))
            graph = replace(graph, groups=groups)
        case "volume":
            claims = changed(graph.claims, lambda claim: replace(claim, **fields))
            graph = replace(graph, claims=claims)
    return graph, cluster


def _with_requirements(
    step: Step, amounts: Resources, node: Sequence[Node] = (), **fields: Any
) -> Step:
    """Return the step with other requests, nodes and other fields.

    Raises:
        ChangeError: the step does not have such a field.
    """
    if fields.get("max_latency_ms") is not None and not step.location:
        raise ChangeError(
            f"step {step.name!r:.120} has no location, so there is no round trip to limit"
        )
    if step.kind is not StepKind.CONTAINER and (amounts or node):
        raise ChangeError(
            f"step {step.name!r:.120} is of kind {step.kind.value}, whose requests and nodes cannot"
            " be changed; name a step that runs a container"
        )
    if node:
        # A `matchFields` requirement takes one value, so each node gets a term; one matching term
        # is enough.
        required = tuple(node_term(each.name) for each in node)
        step = replace(step, node_selector={}, affinity=replace(step.affinity, required=required))
    if "duration_seconds" in fields:
        step = replace(step, duration_source=DurationSource.GIVEN, duration_basis=None)
    return replace(
        step,
        requests=without_zeros({**step.requests, **amounts}),
        unknown_resources=tuple(name for name in step.unknown_resources if name not in amounts),
        refusal="" if amounts else step.refusal,
        **fields,
    )
