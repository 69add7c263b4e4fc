"""Amounts of resources: their sums, what is free on a node, and what is missing there.

All arithmetic on what pods request and nodes have is done here; where whole tables are summed at
once, numpy does it (`lowering`, `problem`). What pods really request and what kube-scheduler's
scores count for them are amounts of different kinds: they are never added to each other.

An amount that is absent is 0, except for the disk of a node (`UNSTATED`). Nothing here changes what
it is given, except for the functions whose name says so (`add_to`, `subtract_from`, `raise_to`):
they are for sums over many pods.
"""

from collections.abc import Iterable, Mapping

Resources = Mapping[str, int]
"""Resource name -> amount in canonical units ("cpu" in milli-CPU, all else in whole units)."""

Amounts = dict[str, int]
"""Resources that may be changed in place, such as a sum."""

SCORED_DEFAULTS: Resources = {"cpu": 100, "memory": 200 * 2**20}
"""Amounts that kube-scheduler's resource scores count for a container that requests nothing.

Only scores use them, never the filter (`pkg/scheduler/util/pod_resources.go`).
"""

DISK = "ephemeral-storage"
"""Resource that every node has, and that people leave out where they describe one."""

UNSTATED: Resources = {DISK: 2**47}
"""Amounts that count where a node states none: as much as any pod asks for, 128 TiB.

The sum over the nodes of the largest cluster is still within int64.
"""

HUGE_PAGES = "hugepages-"
"""Beginning of the names of huge pages; the size of a page follows."""

MAX_SUM = (2**63 - 1) // 2
"""Sums are cut here: beyond half of int64 nothing fits anyway, and the planner can still add."""


def add_to(total: Amounts, amounts: Resources) -> None:
    """Add the amounts to a sum."""
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def total_of(parts: Iterable[Resources]) -> Amounts:
    """Return the sum of amounts."""
    total: Amounts = {}
    for each in parts:
        add_to(total, each)
    return total


def subtract_from(total: Amounts, amounts: Resources) -> None:
    """Take the amounts from a sum; what becomes less than 0 stays so."""
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) - amount


def raise_to(total: Amounts, amounts: Resources) -> None:
    """Raise every amount of `total` to at least the one given."""
    for name, amount in amounts.items():
        total[name] = max(total.get(name, 0), amount)


def least(amounts: Resources, others: Resources) -> Amounts:
    """Return the smaller amount of each resource; one that either lacks is 0, and left out."""
    return {name: min(each, others[name]) for name, each in amounts.items() if name in others}


def plus(amounts: Resources, others: Resources) -> Amounts:
    """Return the sum of both."""
    total = dict(amounts)
    add_to(total, others)
    return total


def minus(amounts: Resources, others: Resources) -> Amounts:
    """Return the first without the second; negative where the second is more."""
    total = dict(amounts)
    subtract_from(total, others)
    return total


def with_pod(requests: Resources) -> Amounts:
    """Return the room of a pod on its node: its requests, and one of `pods`."""
    return {**requests, "pods": 1}


def is_extended(name: str) -> bool:
    """Return whether a resource is one that devices bring, such as `nvidia.com/gpu`.

    All resources of Kubernetes itself have no prefix, or one of `kubernetes.io`.
    """
    return "/" in name and "kubernetes.io/" not in name


def is_overcommittable(name: str) -> bool:
    """Return whether a container's limit of a resource may be above its request, or missing.

    As `IsOvercommitAllowed` (`pkg/apis/core/helper/helpers.go`): devices and huge pages may not.
    """
    return not is_extended(name) and not name.startswith(HUGE_PAGES)


def free_room(allocatable: Resources, used: Resources) -> Amounts:
    """Return the free room of a node, by resource; negative where more is taken."""
    return {name: amount - used.get(name, 0) for name, amount in allocatable.items()}


def lacking(requests: Resources, free: Resources) -> list[str]:
    """Return the names of resources with less free than requested, `pods` first.

    Disk that a node does not state is never missing.
    A resource of which nothing is requested is never missing, even where more is taken than there
    is; every pod takes one of `pods` (`noderesources/fit.go`, fitsRequest).
    """
    short = ["pods"] if free.get("pods", 0) < 1 else []
    short += [
        name
        for name, amount in requests.items()
        if name != "pods" and 0 < amount > free.get(name, UNSTATED.get(name, 0))
    ]
    return short


def fits(requests: Resources, free: Resources) -> bool:
    """Return whether a pod with these requests fits into the free room."""
    return not lacking(requests, free)


def is_less(amounts: Resources, before: Resources) -> bool:
    """Return whether there is less of any resource than before."""
    return any(amounts.get(name, 0) < amount for name, amount in before.items())


def without_zeros(amounts: Resources) -> Amounts:
    """Return the resources with an amount: zero and absent mean the same."""
    return {name: amount for name, amount in amounts.items() if amount}


def bounded(amounts: Resources, most: int = MAX_SUM) -> Amounts:
    """Return sums with which a plan can be made: at most `most` each, and none of 0 or less."""
    return {name: min(amount, most) for name, amount in amounts.items() if amount > 0}
