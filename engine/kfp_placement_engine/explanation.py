"""Why a step goes where it goes, in one sentence a person understands."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest

import numpy as np

from kfp_placement_engine.alternatives import compared, moved
from kfp_placement_engine.cluster import Cluster
from kfp_placement_engine.constraints import lacking, why_not
from kfp_placement_engine.contract.quantities import format_duration, format_resource
from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.lowering.latency import round_trips
from kfp_placement_engine.lowering.pods import PodShape
from kfp_placement_engine.placement import Placement
from kfp_placement_engine.problem import Booleans, Floats
from kfp_placement_engine.run_graph import Step, StepKind
from kfp_placement_engine.simulation import Schedule

WHAT_IF_WORK = 50_000_000
"""Work spent on trying other nodes, about half a second."""

ALTERNATIVES = 3
"""Other nodes tried for a step."""


@dataclass(frozen=True)
class Explainer:
    """Explains the steps of one plan.

    Attributes:
        lowered: the problem and what it was made from.
        cluster: the cluster.
        placement, schedule: the plan and what it leads to.
    """

    lowered: Lowered
    cluster: Cluster
    placement: Placement
    schedule: Schedule
    # Large runs have many steps of few kinds: what is alike is worked out once.
    _known: dict[object, str] = field(default_factory=dict, init=False, repr=False)
    _filters: dict[object, list[str | None]] = field(default_factory=dict, init=False, repr=False)
    _users: dict[int, dict[frozenset[str], list[int]]] = field(
        default_factory=dict, init=False, repr=False
    )
    _sharers: dict[tuple[int, frozenset[str]], tuple[str, list[int], int]] = field(
        default_factory=dict, init=False, repr=False
    )

    def reasons(self) -> dict[int, str]:
        """The reason of every step, by index of its activity."""
        problem = self.lowered.problem
        what_ifs = WHAT_IF_WORK // problem.simulation_work
        result: dict[int, str] = {}
        for index in np.flatnonzero(problem.is_step):
            affordable = what_ifs >= ALTERNATIVES
            text, tried = self._reason(int(index), affordable)
            what_ifs -= tried
            result[int(index)] = text
        return result

    def _reason(self, index: int, affordable: bool) -> tuple[str, int]:
        step = self._step(index)
        if self.lowered.problem.unplaceable[index]:
            return self._unschedulable(index), 0
        if step.assumed_cached:
            return "taken to come from the cache: only its driver pod runs", 0
        if self.lowered.problem.arrays.gene[index] < 0:
            return self._default_scheduler(step), 0
        shared = self._volume(index)
        if shared:
            return shared, 0
        if self.lowered.problem.ruled[self.lowered.problem.arrays.class_of[index]]:
            return self._latency(index, affordable)
        alone = self._only_node(index)
        if alone:
            return alone, 0
        return self._comparison(index) if affordable else (self._quickest(index), 0)

    def _step(self, index: int) -> Step:
        step = self.lowered.activities[index].step
        assert step is not None  # asked for steps only
        return step

    def _allowed(self, index: int) -> Booleans:
        arrays = self.lowered.problem.arrays
        return np.asarray(arrays.allowed[arrays.gene[index]])

    def _name(self, node: int) -> str:
        return self.lowered.problem.node_names[node]

    def _default_scheduler(self, step: Step) -> str:
        if step.kind is not StepKind.CONTAINER:
            return (
                f"{step.kind.value} pods carry no labels; where the default scheduler would put it"
            )
        return "carries no scheduler mark; where the default scheduler would put it"

    def _volume(self, index: int) -> str:
        """Sharers of a ReadWriteOnce volume stay together."""
        problem = self.lowered.problem
        gene = int(problem.arrays.gene[index])
        own = self._claims(index)
        pinned = sorted(own & set(self.lowered.volumes.pinned))
        if pinned and self._allowed(index).sum() == 1:
            return f"volume claim {pinned[0]} is available on this node only"
        if len(problem.gene_activities[gene]) < 2:
            return ""
        claim, first, count = self._sharing(gene, own)
        other = next(member for member in first if member != index)
        more = f" and {count - 2} more" if count > 2 else ""
        return f"shares volume {claim} with {problem.activity_names[other]}{more}"

    def _claims(self, index: int) -> frozenset[str]:
        return frozenset(self.lowered.shapes[self.lowered.problem.arrays.class_of[index]].claims)

    def _sharing(self, gene: int, own: frozenset[str]) -> tuple[str, list[int], int]:
        """A claim, the first two of the steps that share a binding claim with these, their number.

        A step that mounts the claims is one of them.
        """
        if gene not in self._users:
            self._users[gene] = {}
            for member in self.lowered.problem.gene_activities[gene]:
                self._users[gene].setdefault(self._claims(member), []).append(member)
        if (gene, own) not in self._sharers:
            binding = own & self.lowered.volumes.binding
            sharing = {c: users for c, users in self._users[gene].items() if c & binding}
            common = binding.intersection(*sharing)
            first = nsmallest(2, (member for users in sharing.values() for member in users[:2]))
            count = sum(len(users) for users in sharing.values())
            self._sharers[gene, own] = (min(common or binding), first, count)
        return self._sharers[gene, own]

    def _latency(self, index: int, affordable: bool) -> tuple[str, int]:
        """Prediction steps go to the node of least round trip."""
        problem = self.lowered.problem
        kind = problem.arrays.class_of[index]
        location = self._step(index).location
        trips, room = problem.latency_ms[kind], self.lowered.tables.usable[kind]
        known = [
            int(node) for node in np.argsort(trips) if room[node] and not np.isnan(trips[node])
        ]
        node = int(self.schedule.node[index])
        if not known:
            return f"no node with room states a latency to {location}", 0
        best, own = known[0], float(trips[node])
        if problem.arrays.latency_excess_ms[kind, node] > 0:
            here = "unknown latency" if np.isnan(own) else f"{_ms(own)}"
            nearest = f"{self._name(best)} ({_ms(trips[best])})"
            if affordable and not self._has_room(index, best):
                return f"{here} to {location}: {nearest} had no room when the step was ready", 1
            why = f"the search found no better plan with it on {nearest}"
            return f"{here} to {location}: {why}", int(affordable)
        others = [float(trips[other]) for other in known if other != node]
        following = f", next {_ms(min(others))}" if others else ""
        rank = (
            "lowest round trip"
            if own <= trips[best]
            else "round trip within the tolerance of the lowest"
        )
        nodes = _count(int(room.sum()), "node")
        return f"{rank} to {location} of {nodes} with room: {_ms(own)}{following}", 0

    def _has_room(self, index: int, node: int) -> bool:
        """Whether the step gets onto the node if the plan says so."""
        tried = moved(self.lowered.problem, self.placement, index, node)
        return bool(tried.schedule.node[index] == node)

    def _only_node(self, index: int) -> str:
        if self._allowed(index).sum() != 1:
            return ""
        objections = self._objections(index, skip=int(self.schedule.node[index]))
        return "the only node that can take it" + (f" ({objections})" if objections else "")

    def _objections(self, index: int, skip: int = -1) -> str:
        """Why the nodes do not take the step; the same for all steps of its class."""
        known = (int(self.lowered.problem.arrays.class_of[index]), skip)
        if known not in self._known:
            self._known[known] = self._counted_objections(index, skip)
        return self._known[known]

    def _counted_objections(self, index: int, skip: int) -> str:
        """Counted as kube-scheduler counts them."""
        step, counts = self._step(index), Counter[str]()
        short_nodes: dict[str, list[int]] = {}
        shape = self.lowered.shapes[self.lowered.problem.arrays.class_of[index]]
        requests = dict(shape.requests)
        trips = round_trips(self.cluster, shape.location) if shape.location else None
        limit = shape.max_latency_ms
        filtered = self._filtered(shape)
        for number, (node, free, static) in enumerate(
            zip(self.cluster.nodes, self._free, filtered, strict=True)
        ):
            if number == skip:
                continue
            short = lacking(requests, free)
            if static:
                counts[static] += 1
            elif short:
                short_nodes.setdefault(short[0], []).append(free.get(short[0], 0))
            elif any(
                node.name not in self.lowered.volumes.pinned.get(claim, {node.name})
                for claim in shape.claims
            ):
                counts["its volume is elsewhere"] += 1
            elif trips is not None and limit is not None and not trips[number] <= limit:
                counts[f"round trip to {step.location} beyond {_ms(limit)}"] += 1
        for name, amounts in short_nodes.items():
            counts[_shortage(name, requests.get(name, 1), max(amounts))] += len(amounts)
        return ", ".join(
            f"{_count(number, 'node')}: {text}" for text, number in counts.most_common()
        )

    @cached_property
    def _free(self) -> list[dict[str, int]]:
        """[N] what each node has left beside what runs there."""
        return [
            {name: amount - node.used.get(name, 0) for name, amount in node.allocatable.items()}
            for node in self.cluster.nodes
        ]

    def _filtered(self, shape: PodShape) -> list[str | None]:
        """[N] why the static filters keep the shape off each node, None where they do not."""
        rules = (shape.node_selector, shape.affinity, shape.tolerations)
        if rules not in self._filters:
            self._filters[rules] = [
                why_not(dict(shape.node_selector), shape.affinity, shape.tolerations, node)
                for node in self.cluster.nodes
            ]
        return self._filters[rules]

    def _unschedulable(self, index: int) -> str:
        total = len(self.cluster.nodes)
        return f"none of {_count(total, 'node')} can take it ({self._objections(index)})"

    def _occupied(self, index: int) -> Floats:
        """[N] download, run and upload time on each node."""
        arrays = self.lowered.problem.arrays
        run = arrays.duration_seconds[index] / (arrays.speed if arrays.scales[index] else 1.0)
        return np.asarray(
            run + (arrays.download_bytes[index] + arrays.upload_bytes[index]) / arrays.store_rate
        )

    def _quickest(self, index: int) -> str:
        seconds, node = self._occupied(index), int(self.schedule.node[index])
        others = np.where(self._allowed(index), seconds, np.inf)
        others[node] = np.inf
        if seconds[node] < others.min() - 1e-9:
            rest = f"{format_duration(float(others.min()))} on {self._name(int(others.argmin()))}"
            return f"takes {format_duration(float(seconds[node]))} here, {rest}"
        nodes = _count(int(self._allowed(index).sum()), "node")
        return f"one of {nodes} that take it; the search chose it for the whole run"

    def _comparison(self, index: int) -> tuple[str, int]:
        """Try the step on other nodes and say what that would cost."""
        node = int(self.schedule.node[index])
        occupied = np.where(self._allowed(index), self._occupied(index), np.inf)
        order = [int(other) for other in np.argsort(occupied, kind="stable")]
        others = [other for other in order if self._allowed(index)[other] and other != node]
        problem, tried = self.lowered.problem, others[:ALTERNATIVES]
        played = [moved(problem, self.placement, index, other) for other in tried]
        # Under `ready` dispatch a step goes on to the next best where there is no room.
        there = [
            each
            for each, other in zip(played, tried, strict=True)
            if each.schedule.node[index] == other
        ]
        if not there:
            names = " or ".join(self._name(other) for other in tried[:2])
            return f"no room on {names} when the step was ready", len(played)
        return compared(problem, self.schedule, index, there), len(played)


def _ms(latency: float) -> str:
    return f"{float(latency):.3g} ms"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _shortage(name: str, asked: int, most: int) -> str:
    """What is asked and what the roomiest of the nodes that lack it has."""
    free = format_resource(name, max(0, most))
    return f"not enough {name} (asks {format_resource(name, asked)}, at most {free} free)"
