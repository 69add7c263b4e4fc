"""Genes, the placement decisions: steps that must share a node share a gene."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.lowering.activities import Activity, Indexes
from kfp_placement_engine.lowering.edges import edge_arrays
from kfp_placement_engine.lowering.tables import ClassTables
from kfp_placement_engine.lowering.volumes import VolumeRules, co_location_groups
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.problem.problem import Booleans, Integers, distinct, owners

_MAX_NAMED_STEPS = 4
"""Number of steps that a notice names."""


@dataclass(frozen=True)
class Genes:
    """The genes of a problem; arrays as in `problem.ProblemArrays`.

    Attributes:
        members: activities of each gene.
        claims: indexes of the binding claims that each activity mounts.
        exclusive: [V] whether one pod at a time may have the claim.
        unplaceable: [A] whether no node can ever take the pod.
    """

    gene: Integers
    allowed: Booleans
    sticky: Booleans
    members: tuple[Indexes, ...]
    claims: list[Indexes]
    exclusive: Booleans
    unplaceable: Booleans
    notices: tuple[Notice, ...]


def assign_genes(
    activities: Sequence[Activity],
    class_of: Integers,
    tables: ClassTables,
    volumes: VolumeRules,
    planned: Booleans,
    waiting: Booleans,
    held: Mapping[int, int],
) -> Genes:
    """Assign a gene to every planned activity.

    Users of a binding volume share a gene, if some node fits all of them. Otherwise each has its
    own, and there is a notice. Activities that no node can take do not have a gene.

    Args:
        activities: activities of all runs.
        class_of: [A] class of the activity.
        tables: tables of classes by nodes.
        volumes: volume rules.
        planned: [A] whether the plan decides the node.
        waiting: [A] whether the pod does not have a node yet.
        held: activity -> index of the node that it keeps.
    """
    number = {key: index for index, key in enumerate(volumes.binding)}
    claims = [
        tuple(sorted({number[key] for key in volumes.mounted(activity) if key in number}))
        for activity in activities
    ]
    usable, allowed_of = tables.usable, tables.usable & tables.within_limit
    may_go, fits = (np.asarray(each.any(axis=1))[class_of] for each in (allowed_of, usable))
    unplaceable = waiting & ~np.where(planned, may_go, fits)
    members: list[Indexes] = []
    notices: list[Notice] = []
    deciders = np.flatnonzero(planned & ~unplaceable)
    for group in co_location_groups(deciders.tolist(), claims):
        if len(group) == 1 or _common_nodes(allowed_of, class_of, group).any():
            members.append(group)
        else:
            members += [(index,) for index in group]
            notices.append(_split_notice(activities, group, claims, volumes))
    gene = _gene_of_activity(members, len(activities))
    return Genes(
        gene=gene,
        allowed=_allowed_nodes(members, gene, allowed_of, class_of, held),
        sticky=np.array([len(group) > 1 for group in members], np.bool_),
        members=tuple(members),
        claims=claims,
        exclusive=np.array([key in volumes.exclusive for key in volumes.binding], np.bool_),
        unplaceable=unplaceable,
        notices=tuple(notices),
    )


def _gene_of_activity(members: Sequence[Indexes], count: int) -> Integers:
    """Return [A] the gene of each activity, -1 = none."""
    gene = np.full(count, -1, np.int64)
    starts, activities = edge_arrays(members)
    gene[activities] = owners(starts)
    return gene


def _allowed_nodes(
    members: Sequence[Indexes],
    gene: Integers,
    allowed_of: Booleans,
    class_of: Integers,
    held: Mapping[int, int],
) -> Booleans:
    """Return [G, N] the nodes that all members of a gene may take, or the one that one keeps."""
    first = [group[0] for group in members]
    allowed: Booleans = allowed_of[class_of[first]]
    for number, group in enumerate(members):
        if len(group) > 1:
            allowed[number] = _common_nodes(allowed_of, class_of, group)
    for index, node in held.items():
        if gene[index] >= 0 and allowed[gene[index], node]:
            allowed[gene[index]] = False
            allowed[gene[index], node] = True
    return allowed


def _common_nodes(allowed_of: Booleans, class_of: Integers, group: Sequence[int]) -> Booleans:
    """Return [N] the nodes that all activities of the group may take."""
    classes = distinct(class_of[list(group)])
    return np.asarray(allowed_of[classes].all(axis=0))


def _split_notice(
    activities: Sequence[Activity],
    group: Sequence[int],
    claims: list[Indexes],
    volumes: VolumeRules,
) -> Notice:
    """Return the notice on a group whose claims no node can have together."""
    shared = sorted(
        {volumes.names[volumes.binding[claim]] for index in group for claim in claims[index]}
    )
    steps = ", ".join(activities[index].name for index in group[:_MAX_NAMED_STEPS])
    return Notice(
        "volume-split",
        f"no node can take all users of volume claim {', '.join(shared)} ({steps}"
        f"{', ...' if len(group) > _MAX_NAMED_STEPS else ''}); they run on different nodes, "
        "one after another, as the volume moves",
    )
