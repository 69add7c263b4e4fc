"""What must hold of any schedule, whoever decided; checked on the objects, not on the arrays."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from kfp_placement_engine import Node, Schedule
from kfp_placement_engine.lowering import Lowered
from tests.support.reference_simulation import Reference, SimulatedPod, keys_of

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Checker:
    """Looks for what is wrong with a schedule.

    Attributes:
        reference: the run and the cluster; only what they ask for is used, nothing it simulates.
        low: what the schedule was made from, for the names of its rows.
        schedule: the schedule.
        ours: a plan's, which keeps latency limits and shared volumes; else a baseline's.
    """

    reference: Reference
    low: Lowered
    schedule: Schedule
    ours: bool

    def faults(self) -> list[str]:
        """All that is wrong, in words."""
        checks = (
            self._everything_ends(),
            self._order(),
            self._room(),
            self._nodes(),
            self._volumes(),
            self._loops(),
            self._limits(),
            self._times(),
        )
        return [fault for check_faults in checks for fault in check_faults]

    def has_unknown_round_trip(self) -> bool:
        """Whether a step whose latency counts is on a node of unknown round trip."""
        return any(
            pod.node is not None and self.reference.lacks_round_trip(pod, pod.node)
            for pod in self.pods
        )

    @cached_property
    def pods(self) -> list[SimulatedPod]:
        """The pods of the run, each with what the schedule says of it."""
        pods = self.reference.pods()
        nodes = {node.name: node for node in self.reference.cluster.nodes}
        assert len(pods) == self.low.problem.activities
        at = {key: index for index, key in enumerate(keys_of(self.low))}
        for pod in pods:
            row = at[pod.key]
            number = int(self.schedule.node[row])
            pod.node = nodes[self.low.problem.node_names[number]] if number >= 0 else None
            pod.start = float(self.schedule.start[row])
            pod.begin = float(self.schedule.begin[row])
            pod.end = float(self.schedule.end[row])
            pod.pull_seconds = float(self.schedule.pull_seconds[row])
        return pods

    def _everything_ends(self) -> Iterator[str]:
        for pod in self.pods:
            if not 0 <= pod.start <= pod.begin <= pod.end < math.inf:
                yield f"{pod.key} is bound at {pod.start}, begins at {pod.begin}, ends at {pod.end}"
        last = max(pod.end for pod in self.pods)
        if self.schedule.makespan_seconds != last:
            yield f"makespan {self.schedule.makespan_seconds}, but the last end is {last}"

    def _order(self) -> Iterator[str]:
        for pod in self.pods:
            for before in pod.after:
                if pod.start < self.pods[before].end:
                    yield f"{pod.key} starts at {pod.start}, {self.pods[before].key} ends later"

    def _room(self) -> Iterator[str]:
        for node in self.reference.cluster.nodes:
            here = [pod for pod in self.pods if pod.node is node]
            for moment in {pod.start for pod in here}:
                running = [pod for pod in here if pod.start <= moment < pod.end]
                taken = dict(node.used)
                for pod in running:
                    for name, amount in {**self.reference.requests(pod.step), "pods": 1}.items():
                        taken[name] = taken.get(name, 0) + amount
                for name, amount in taken.items():
                    if amount > max(node.allocatable.get(name, 0), node.used.get(name, 0)):
                        yield f"{amount} {name} taken on {node.name} at {moment}"

    def _nodes(self) -> Iterator[str]:
        allowed = self.reference.allowed()
        for pod in self.pods:
            cached = pod.step is not None and pod.step.assumed_cached
            needs_none = pod.is_instant or cached
            if (pod.node is None) != (needs_none or self.reference.unplaceable(pod)):
                yield f"{pod.key} is on {pod.node}"
            elif pod.node is not None and pod.node not in self.reference.usable(pod):
                yield f"{pod.key} is on {pod.node.name}, which does not take it"
            elif self.ours and not pod.key[1] and pod.key[0] in allowed:
                name = pod.node.name if pod.node else ""
                if name not in allowed[pod.key[0]]:
                    yield f"{pod.key} is on {name!r}, which the plan may not choose"
        if self.ours:
            where = {pod.key[0]: pod.node for pod in self.pods if not pod.key[1]}
            for name in self.reference.stuck():
                for other in self.reference.companions()[name]:
                    if where[other] is not where[name]:
                        yield f"{name} and {other} share a volume but no node"

    def _volumes(self) -> Iterator[str]:
        binding = self.reference.binding_claims()
        users = [
            (pod, set(pod.step.claims) & binding) for pod in self.pods if pod.step and pod.node
        ]
        exclusive = self.reference.exclusive_claims()
        for (one, claims), (other, others) in combinations(users, 2):
            shared, first_end = claims & others, min(one.end, other.end)
            is_used_twice = first_end > max(one.begin, other.begin)
            if shared and one.node is not other.node and is_used_twice:
                yield f"{one.key} and {other.key} use a volume at once on two nodes"
            if shared & exclusive and first_end > max(one.start, other.start):
                yield f"{one.key} and {other.key} have a claim at once that only one may have"

    def _loops(self) -> Iterator[str]:
        groups = {group.name: group for group in self.reference.graph.groups}

        def inside(pod: SimulatedPod, iteration: str) -> bool:
            name = pod.group
            while name and name != iteration:
                name = groups[name].parent
            return name == iteration

        for loop in groups.values():
            spans = []
            for name, group in groups.items():
                if loop.parallelism and group.parent == loop.name and group is not loop:
                    members = [pod for pod in self.pods if inside(pod, name)]
                    spans.append(
                        (min(pod.start for pod in members), max(pod.end for pod in members))
                    )
            for moment, _ in spans:
                running = sum(start <= moment < end for start, end in spans)
                if running > loop.parallelism:
                    yield f"{running} iterations of {loop.name} at {moment}"

    def _limits(self) -> Iterator[str]:
        for limit in self.reference.graph.limits:
            spans = []
            for names in limit.holders:
                members = [pod for pod in self.pods if pod.key[0] in names and not pod.entered]
                if members:
                    spans.append((min(pod.start for pod in members), max(p.end for p in members)))
            for moment, _ in spans:
                running = sum(start <= moment < end for start, end in spans)
                if running > limit.most:
                    yield f"{running} holders of {limit.name} at {moment}"

    def _times(self) -> Iterator[str]:
        direct = self.reference.graph.direct_transfers
        for pod in self.pods:
            if pod.node is None:
                continue
            least = pod.pull_seconds + self._work(pod, pod.node)
            took = pod.end - pod.begin
            margin = TOLERANCE * max(1.0, pod.end)
            if took < least - margin or (not direct and took > least + margin):
                yield f"{pod.key} takes {took} s instead of {least} s"

    def _work(self, pod: SimulatedPod, node: Node) -> float:
        step, assumptions = pod.step, self.reference.assumptions
        if step is None:
            return assumptions.driver_seconds
        seconds = step.duration_seconds
        if step.kind != "container":
            seconds = assumptions.driver_seconds if seconds is None else seconds
        else:
            seconds = (assumptions.duration_seconds if seconds is None else seconds) / node.speed
        if self.reference.graph.direct_transfers:
            return seconds
        read = [each.size_bytes for each in step.inputs]
        moved = sum(assumptions.output_bytes if size is None else size for size in read)
        moved += sum(step.output_bytes.values())
        return seconds + moved / (node.store_bytes_per_second or assumptions.store_bytes_per_second)
