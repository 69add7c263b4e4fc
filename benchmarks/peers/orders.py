"""Orders of the Common Workflow Scheduler: in which the steps that wait are offered nodes.

Read in the source of KubernetesScheduler (f8d862e). A *process* is what a workflow's text names
once, however many steps come of it; the rank of one is the number of edges on the longest path of
processes behind it. No order knows run times.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from benchmarks.cases import Instance
from benchmarks.peers.list_scheduling import Key, Order
from kfp_placement_engine import RunGraph, Step

ORDERS = ("fifo", "rank", "rank_min", "rank_max", "min", "max", "lff_min", "lff_max")
"""`rank`: largest first. `min`, `max`: smallest or largest input first; behind `rank_`, where ranks
are equal. `lff_`: the process of which the fewest steps have ended first, then `rank_`. Else, and
in `fifo`, in the order of submission."""

_NUMBER = re.compile(r"_(?:ID)?[0-9]+$", re.ASCII)
"""Suffix that recordings append to the name of a process, to name its steps."""


class StaticOrder:
    """An order that stays as it is.

    Args:
        keys: [A] keys of the activities.
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = keys

    def key(self, activity: int) -> Key:
        """Return the key of an activity."""
        return self._keys[activity]

    def ended(self, activity: int) -> None:
        """Ignore the end of a step."""


class LeastFinishedFirst:
    """First the steps of the process of which the fewest have ended.

    Args:
        processes: [A] name of each activity's process.
        keys: [A] keys that decide among processes with equally many ended steps.
    """

    def __init__(self, processes: Sequence[str], keys: Sequence[Key]) -> None:
        self._processes, self._keys = processes, keys
        self._ended: Counter[str] = Counter()

    def key(self, activity: int) -> Key:
        """Return the number of the process's ended steps, then the rest of the key."""
        return (self._ended[self._processes[activity]], *self._keys[activity])

    def ended(self, activity: int) -> None:
        """One more."""
        self._ended[self._processes[activity]] += 1


def order_of(name: str, instance: Instance) -> Order:
    """Return an order, made for one schedule of an instance.

    Args:
        name: one of `ORDERS`.
        instance: a run of steps alone, without driver pods.
    """
    steps = sorted(instance.run.steps, key=lambda step: instance.activities[step.name])
    ranks = process_ranks(instance.run)
    parts = name.split("_")
    keys: list[Key] = []
    for step in steps:
        size, rank = float(input_bytes(step)), float(ranks[process_of(step)])
        by_size = {"min": (size,), "max": (-size,)}.get(parts[-1], ())
        keys.append((-rank, *by_size) if parts[0] in ("rank", "lff") else by_size)
    if parts[0] == "lff":
        return LeastFinishedFirst([process_of(step) for step in steps], keys)
    return StaticOrder(keys)


def input_bytes(step: Step) -> int:
    """Bytes of all files that the step reads, as far as they are known."""
    return sum(each.size_bytes or 0 for each in step.inputs)


def process_of(step: Step) -> str:
    """Return the process of a step."""
    return _NUMBER.sub("", step.display_name or step.task)


def process_ranks(run: RunGraph) -> dict[str, int]:
    """Return, by process, the number of edges on the longest path to one that nothing waits for.

    Processes that wait for each other, which no workflow's text has but a recording may, count as
    one.
    """
    process = {step.name: process_of(step) for step in run.steps}
    successors: dict[str, set[str]] = {name: set() for name in process.values()}
    for step in run.steps:
        for before in step.depends_on:
            successors[process[before]].add(process[step.name])
    merged, order = _without_cycles(successors)
    after: dict[str, set[str]] = {name: set() for name in order}
    for name, others in successors.items():
        after[merged[name]] |= {merged[each] for each in others} - {merged[name]}
    ranks: dict[str, int] = {}
    for name in order:
        ranks[name] = max((1 + ranks[each] for each in after[name]), default=0)
    return {name: ranks[merged[name]] for name in successors}


def _without_cycles(successors: Mapping[str, set[str]]) -> tuple[dict[str, str], list[str]]:
    """Return the process that stands for each, and these processes, the last of a run first."""
    merged = {name: name for name in successors}
    while True:
        graph: dict[str, set[str]] = {name: set() for name in merged.values()}
        for name, others in successors.items():
            graph[merged[name]] |= {merged[each] for each in others} - {merged[name]}
        try:
            return merged, list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            cycle = set(error.args[1])
            first = min(cycle)
            merged = {name: first if at in cycle else at for name, at in merged.items()}
