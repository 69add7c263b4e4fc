"""Genes: the placement decisions. Steps that must share a node share one; others have their own."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.lowering.activities import Activity, needs_pod
from kfp_placement_engine.lowering.tables import ClassTables
from kfp_placement_engine.lowering.volumes import VolumeRules, co_location_groups, common_nodes
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.problem.problem import Booleans, Integers


@dataclass(frozen=True)
class Genes:
    """Which gene decides for which activity; arrays as in `problem.ProblemArrays`.

    Attributes:
        members: for each gene its activities.
        claims: for each activity the indexes of the binding claims it mounts.
        exclusive: [V] one pod at a time may have the claim.
        unplaceable: [A] no node can ever take the pod.
    """

    gene: Integers
    allowed: Booleans
    sticky: Booleans
    members: tuple[tuple[int, ...], ...]
    claims: list[tuple[int, ...]]
    exclusive: Booleans
    unplaceable: Booleans
    notices: tuple[Notice, ...]


def assign_genes(
    activities: list[Activity],
    class_of: Integers,
    tables: ClassTables,
    volumes: VolumeRules,
    planned: Booleans,
    held: Mapping[int, int],
) -> Genes:
    """Give every planned activity its gene.

    Sharers of a binding volume get one gene together, if any node fits all of them; else each its
    own and a notice. What no node can take gets none.

    Args:
        activities: the pods.
        class_of: [A] their classes.
        tables: the class tables.
        volumes: the volume rules.
        planned: [A] the plan decides.
        held: activity -> index of the node that it keeps.
    """
    names = sorted(volumes.binding)
    number = {name: index for index, name in enumerate(names)}
    claims = [_binding_claims(activity, volumes, number) for activity in activities]
    allowed_of = tables.usable & tables.within_limit
    unplaceable = np.where(
        planned, ~allowed_of[class_of].any(axis=1), ~tables.usable[class_of].any(axis=1)
    )
    unplaceable &= np.array(
        [needs_pod(activity) and not activity.running for activity in activities], np.bool_
    )
    deciders = [int(index) for index in np.flatnonzero(planned & ~unplaceable)]
    claim_names = [tuple(names[claim] for claim in claims[index]) for index in deciders]
    gene = np.full(len(activities), -1, np.int64)
    allowed: list[Booleans] = []
    members: list[tuple[int, ...]] = []
    notices: list[Notice] = []
    for group in co_location_groups(claim_names, volumes.binding):
        together = [deciders[member] for member in group]
        common = common_nodes([allowed_of[class_of[index]] for index in together])
        parts = [together] if common.any() else [[index] for index in together]
        if len(parts) > 1:
            notices.append(_split_notice(activities, together, claims, volumes))
        for part in parts:
            gene[part] = len(members)
            members.append(tuple(part))
            open_nodes = common_nodes([allowed_of[class_of[index]] for index in part])
            allowed.append(_kept(open_nodes, [held[index] for index in part if index in held]))
    node_count = tables.usable.shape[1]
    return Genes(
        gene=gene,
        allowed=np.array(allowed, np.bool_).reshape(len(allowed), node_count),
        sticky=np.array([len(group) > 1 for group in members], np.bool_),
        members=tuple(members),
        claims=claims,
        exclusive=np.array([name in volumes.exclusive for name in names], np.bool_),
        unplaceable=unplaceable,
        notices=tuple(notices),
    )


def _kept(allowed: Booleans, held: list[int]) -> Booleans:
    """The first of the held nodes alone, if it is allowed at all."""
    for node in held:
        if allowed[node]:
            alone = np.zeros_like(allowed)
            alone[node] = True
            return alone
    return allowed


def _binding_claims(
    activity: Activity, volumes: VolumeRules, number: Mapping[str, int]
) -> tuple[int, ...]:
    if activity.step is None:
        return ()
    keys = volumes.keys[activity.run]
    mounted = {keys[use.claim] for use in activity.step.claims}
    return tuple(sorted({number[key] for key in mounted if key in number}))


def _split_notice(
    activities: list[Activity],
    together: list[int],
    claims: list[tuple[int, ...]],
    volumes: VolumeRules,
) -> Notice:
    names = sorted(volumes.binding)
    shared = sorted({volumes.names[names[claim]] for index in together for claim in claims[index]})
    steps = ", ".join(activities[index].name for index in together[:4])
    return Notice(
        "volume-split",
        f"no node can take all users of volume claim {', '.join(shared)} ({steps}"
        f"{', ...' if len(together) > 4 else ''}); they run on different nodes, "
        "one after another, as the volume moves",
    )
