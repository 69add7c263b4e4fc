"""A demand as what Kueue reserves quota for: podSets whose pods are units of the peak.

A Workload has podSets: numbers of pods, each with the same requests. A podSet for each shape of pod
would reserve far more than the run ever takes, since its pods do not all run at once. So each is
one resource, and each of its pods a unit of that resource's peak, which can be given back unit by
unit. Nodes with accelerators have CPU and memory of their own, and quota of their own in Kueue: the
podSet of an accelerator requests its share of both.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kfp_placement_engine.contract.keys import RUNS_RESOURCE
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.units.resources import Amounts, Resources, is_extended, without_zeros

MAX_OWN_POD_SETS = 8
"""Limit of podSets in a Workload that we write; there are versions of Kueue that refuse more."""

MAX_UNITS = 250
"""The most units of a peak: then a unit is less than 1% of it, unless it is the least one."""

_LEAST_UNIT = {"cpu": 10, "memory": 2**20, "ephemeral-storage": 2**20}
"""Size of a unit in canonical units; 1 for all other resources."""

_SHARED = ("cpu", "memory")
"""Requests of an accelerator's podSet beside the accelerator."""

_OTHERS = "others"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_NAME_LENGTH = 60
"""Cut here, a name with a number behind it still is one of Kubernetes."""


@dataclass(frozen=True, slots=True)
class QuotaUnits:
    """A podSet.

    Attributes:
        name: name that is unique in its Workload.
        count: number of units.
        requests: requests of each unit, in canonical units.
    """

    name: str
    count: int
    requests: Resources


def quota_units(demand: Demand) -> tuple[QuotaUnits, ...]:
    """Return the podSets of a run, at most eight.

    The first is one pod that requests the run itself, then come those of accelerators, CPU, memory
    and all else. Together they request at least the peak of each resource, and less than a unit
    more. A unit is the least one times a power of two of bytes, and times 1, 2 or 5 and a power of
    ten of all else, such that `MAX_UNITS` are enough. `pods` is left out: Kueue would count the
    pods of podSets, which are units.

    The last of eight holds all that would be in more, as one pod.
    """
    units = [QuotaUnits("run", 1, {RUNS_RESOURCE: 1})]
    left = {name: amount for name, amount in demand.peak.items() if name != "pods"}
    for name, share in _disjoint_shares(demand).items():
        units.append(_accelerator_units(name, share))
        left = _without(left, units[-1])
    cpu_first = sorted(left, key=lambda name: (name not in _SHARED, name))
    units += [_units(name, left[name]) for name in cpu_first if left[name]]
    if len(units) > MAX_OWN_POD_SETS:
        units[MAX_OWN_POD_SETS - 1 :] = [_as_one(units[MAX_OWN_POD_SETS - 1 :])]
    return tuple(_with_own_names(units))


def units_needed(units: Sequence[QuotaUnits], demand: Demand) -> Amounts:
    """Return the units of each podSet that a run still needs, by name; never more than there are.

    Accelerators that nobody needs any longer are given back with their part of CPU and memory, even
    if later steps without accelerators need as much: no run keeps an idle accelerator. A podSet
    that requests nothing is kept as it is: it takes no quota.

    Args:
        units: the podSets as they were made for the run.
        demand: present demand of the run.
    """
    shares, left = _disjoint_shares(demand), dict(demand.peak)
    needed: Amounts = {}
    for each in units:
        # Others may have written zeros.
        requests = without_zeros(each.requests)
        requested = _requested_of(each.name, requests, shares, left)
        enough = [-(-requested.get(name, 0) // amount) for name, amount in requests.items()]
        needed[each.name] = min(each.count, max(enough, default=each.count))
        left = _without(left, replace(each, count=needed[each.name]))
    return needed


def _requested_of(
    name: str, requests: Resources, shares: Mapping[str, Resources], left: Resources
) -> Resources:
    """Return the part of a run's remaining demand that is for one podSet."""
    first = next(iter(requests), "")
    if first == RUNS_RESOURCE:
        return requests
    if is_extended(first) and name != _OTHERS:
        return shares.get(first, {first: left.get(first, 0)})
    return left


def _disjoint_shares(demand: Demand) -> dict[str, Amounts]:
    """Return the parts of a demand: each accelerator's peak, with its shares of CPU and memory.

    Shares are peaks at different times, or of pods with two accelerators: where they are more than
    the peak in sum, each is cut in proportion.
    """
    shares = {
        name: share for name, share in sorted(demand.accelerator_shares.items()) if share.get(name)
    }
    sums = {name: sum(share.get(name, 0) for share in shares.values()) for name in _SHARED}
    return {
        accelerator: {accelerator: share[accelerator]}
        | {
            name: share.get(name, 0) * min(demand.peak.get(name, 0), sums[name]) // sums[name]
            for name in _SHARED
            if sums[name]
        }
        for accelerator, share in shares.items()
    }


def _accelerator_units(name: str, share: Resources) -> QuotaUnits:
    """Return the units of an accelerator with their part of its share.

    Parts are rounded down; what is missing then is in the podSets of CPU and memory.
    """
    units = _units(name, share[name])
    parts = {
        other: share.get(other, 0) // units.count // _LEAST_UNIT[other] * _LEAST_UNIT[other]
        for other in _SHARED
    }
    return replace(units, requests={**units.requests, **without_zeros(parts)})


def _units(name: str, amount: int) -> QuotaUnits:
    unit = least = _LEAST_UNIT.get(name, 1)
    power = 0
    while amount > MAX_UNITS * unit:
        power += 1
        in_tens = (1, 2, 5)[power % 3] * 10 ** (power // 3)
        unit = least * (2**power if least >= 2**20 else in_tens)
    return QuotaUnits(
        _NOT_IN_NAMES.sub("-", name.lower()).strip("-"), -(-amount // unit), {name: unit}
    )


def _without(left: Resources, taken: QuotaUnits) -> Amounts:
    return {
        name: max(0, amount - taken.count * taken.requests.get(name, 0))
        for name, amount in left.items()
    }


def _as_one(units: Sequence[QuotaUnits]) -> QuotaUnits:
    total: Counter[str] = Counter()
    for each in units:
        total.update({name: each.count * amount for name, amount in each.requests.items()})
    return QuotaUnits(_OTHERS, 1, dict(total))


def _with_own_names(units: Sequence[QuotaUnits]) -> list[QuotaUnits]:
    """Return the same podSets with names that are short enough and differ."""
    named: dict[str, QuotaUnits] = {}
    for each in units:
        plain = name = each.name[:_NAME_LENGTH].strip("-")
        while name in named:
            name = f"{plain}-{len(named)}"
        named[name] = replace(each, name=name)
    return list(named.values())
