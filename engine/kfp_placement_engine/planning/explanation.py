"""The reasons for the nodes of a plan's steps; `model.reasons` makes sentences of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.lowering.pods import PodShape
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.node_rules.constraints import objections
from kfp_placement_engine.model.node_rules.latency import is_within
from kfp_placement_engine.model.node_rules.round_trips import latencies_to
from kfp_placement_engine.model.reasons import Argument, Reason, count_argument, reason
from kfp_placement_engine.model.run_graph import Step, StepKind
from kfp_placement_engine.planning.alternatives import move_step, reason_against, seconds_on_nodes
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Booleans
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.units.resources import free_room, lacking

ALTERNATIVES = 3
"""Number of other nodes that are tried for a step."""


@dataclass(frozen=True)
class Explainer:
    """The explanation of one plan.

    Attributes:
        lowered: problem with its origin.
        cluster: cluster that was planned on.
        placement: placement of the plan.
        schedule: schedule of the plan.
        alternatives_work: work to spend on trying other nodes.
    """

    lowered: Lowered
    cluster: Cluster
    placement: Placement
    schedule: Schedule
    alternatives_work: int
    # Large runs have many steps of few kinds, which share these results.
    _objections_of: dict[object, tuple[Argument, ...]] = field(
        default_factory=dict, init=False, repr=False
    )
    _filters: dict[object, list[Reason | None]] = field(
        default_factory=dict, init=False, repr=False
    )
    _users: dict[int, dict[frozenset[str], list[int]]] = field(
        default_factory=dict, init=False, repr=False
    )
    _sharers: dict[tuple[int, frozenset[str]], tuple[str, list[int], int]] = field(
        default_factory=dict, init=False, repr=False
    )

    def reasons(self) -> dict[int, Reason]:
        """Return the reason of every step, by index of its activity."""
        problem = self.lowered.problem
        trials = self.alternatives_work // problem.simulation_work
        result: dict[int, Reason] = {}
        for index in np.flatnonzero(problem.is_step):
            affordable = trials >= ALTERNATIVES
            result[int(index)], tried = self._reason(int(index), affordable)
            trials -= tried
        return result

    def _reason(self, index: int, affordable: bool) -> tuple[Reason, int]:
        decided = self._decided_before(index) or self._volume(index)
        if decided is not None:
            return decided, 0
        if self.lowered.problem.ruled[self.lowered.problem.arrays.class_of[index]]:
            return self._latency(index, affordable)
        alone = self._only_node(index)
        if alone is not None:
            return alone, 0
        return self._comparison(index) if affordable else (self._quickest(index), 0)

    def _decided_before(self, index: int) -> Reason | None:
        """Return the reason of a step about which the search decides nothing, or None."""
        step, activity = self._step(index), self.lowered.activities[index]
        if activity.running is not None:
            return reason("started")
        if step.refusal:
            return reason("refused", problem=step.refusal)
        if self.lowered.problem.unplaceable[index]:
            return reason(
                "unschedulable",
                node_count=len(self.cluster.nodes),
                objections=self._objections(index),
                volumes=self.lowered.volumes.apart(self._claims(index)) or None,
            )
        if step.assumed_cached:
            return reason("cached")
        if not step.kind.has_pod:
            return reason("no-pod", kind=step.kind.value)
        if self.lowered.problem.arrays.gene[index] < 0:
            if step.kind is not StepKind.CONTAINER:
                return reason("unlabelled", kind=step.kind.value)
            return reason("unmarked")
        held = self.lowered.runs[activity.run].held.get(step.name)
        if held == self._name(int(self.schedule.node[index])) and self._allowed(index).sum() == 1:
            return reason("kept")
        return None

    def _step(self, index: int) -> Step:
        step = self.lowered.activities[index].step
        assert step is not None  # only steps are explained
        return step

    def _allowed(self, index: int) -> Booleans:
        arrays = self.lowered.problem.arrays
        return np.asarray(arrays.allowed[arrays.gene[index]])

    def _name(self, node: int) -> str:
        return self.lowered.problem.node_names[node] if node >= 0 else ""

    def _volume(self, index: int) -> Reason | None:
        """Return the reason of a step whose volume decides its node, or None."""
        problem, names = self.lowered.problem, self.lowered.volumes.names
        gene = int(problem.arrays.gene[index])
        own = self._claims(index)
        pinned = sorted(own & set(self.lowered.volumes.pinned))
        if pinned and self._allowed(index).sum() == 1:
            return reason("volume-pinned", claim=names[pinned[0]])
        if len(problem.gene_activities[gene]) < 2:
            return None
        claim, first, count = self._sharing(gene, own)
        other = next(member for member in first if member != index)
        return reason(
            "volume-shared",
            claim=names[claim],
            step=problem.activity_names[other],
            more=count - 2 if count > 2 else None,
        )

    def _claims(self, index: int) -> frozenset[str]:
        return frozenset(self._shape(index).claims)

    def _shape(self, index: int) -> PodShape:
        shape: PodShape = self.lowered.shapes[self.lowered.problem.arrays.class_of[index]]
        return shape

    def _sharing(self, gene: int, own: frozenset[str]) -> tuple[str, list[int], int]:
        """Return a binding claim, the first two steps that share it, and their number.

        Args:
            gene: gene of the steps.
            own: claims of the step that is explained, which is one of the sharers.
        """
        if gene not in self._users:
            self._users[gene] = {}
            for member in self.lowered.problem.gene_activities[gene]:
                self._users[gene].setdefault(self._claims(member), []).append(member)
        if (gene, own) not in self._sharers:
            binding = own.intersection(self.lowered.volumes.binding)
            sharing = {c: users for c, users in self._users[gene].items() if c & binding}
            common = binding.intersection(*sharing)
            first = nsmallest(2, (member for users in sharing.values() for member in users[:2]))
            count = sum(len(users) for users in sharing.values())
            self._sharers[gene, own] = (min(common or binding), first, count)
        return self._sharers[gene, own]

    def _latency(self, index: int, affordable: bool) -> tuple[Reason, int]:
        """Return the reason of a step under a latency rule, and the number of nodes tried."""
        problem = self.lowered.problem
        kind = problem.arrays.class_of[index]
        location = self._step(index).location
        trips, room = problem.latency_ms[kind], self.lowered.tables.usable[kind]
        nearest = [
            int(node) for node in np.argsort(trips) if room[node] and not np.isnan(trips[node])
        ]
        node = int(self.schedule.node[index])
        if not nearest:
            return reason("latency-unknown", location=location), 0
        best, own = nearest[0], float(trips[node])
        if problem.arrays.latency_excess_ms[kind, node] > 0:
            missed = affordable and not self._has_room(index, best)
            code = "latency-missed" if missed else "latency-searched"
            own_ms, best_ms = None if np.isnan(own) else own, float(trips[best])
            far = reason(code, own_ms=own_ms, location=location, node=best, node_ms=best_ms)
            return far, int(affordable)
        others = [float(trips[other]) for other in nearest if other != node]
        code = "latency-best" if own <= trips[best] else "latency-near"
        count, next_ms = int(room.sum()), min(others, default=None)
        near = reason(code, location=location, node_count=count, latency_ms=own, next_ms=next_ms)
        return near, 0

    def _has_room(self, index: int, node: int) -> bool:
        """Return whether the step gets onto the node if it is planned there."""
        other = move_step(self.lowered.problem, self.placement, index, node)
        return bool(other.schedule.node[index] == node)

    def _only_node(self, index: int) -> Reason | None:
        if self._allowed(index).sum() != 1:
            return None
        of_others = self._objections(index, skip=int(self.schedule.node[index]))
        return reason("only-node", others=of_others or None)

    def _objections(self, index: int, skip: int = -1) -> tuple[Argument, ...]:
        """Return why nodes do not take the step, the same for all steps of its class."""
        key = (int(self.lowered.problem.arrays.class_of[index]), skip)
        if key not in self._objections_of:
            self._objections_of[key] = self._counted_objections(index, skip)
        return self._objections_of[key]

    def _counted_objections(self, index: int, skip: int) -> tuple[Argument, ...]:
        """Return the objections of all nodes but one, counted as kube-scheduler counts them."""
        shape, counts = self._shape(index), Counter[Reason]()
        short_nodes: dict[str, list[int]] = {}
        requests = dict(shape.requests)
        trips = latencies_to(shape.location, self.cluster.latencies) if shape.location else {}
        filtered = self._filtered(shape)
        for number, (node, free, static) in enumerate(
            zip(self.cluster.nodes, self._free, filtered, strict=True)
        ):
            if number == skip:
                continue
            short = lacking(requests, free)
            if short and not static:
                short_nodes.setdefault(short[0], []).append(free.get(short[0], 0))
            elif against := static or self._objection_with_room(index, node.name, trips):
                counts[against] += 1
        for name, free_amounts in short_nodes.items():
            # The request, and the most that one of the nodes without enough has.
            short_of = reason(
                "short", resource=name, requested=requests.get(name, 1), free=max(0, *free_amounts)
            )
            counts[short_of] += len(free_amounts)
        return tuple(count_argument(number, each) for each, number in counts.most_common())

    def _objection_with_room(
        self, index: int, node: str, trips: Mapping[str, float]
    ) -> Reason | None:
        """Return why a node with room does not take the step: a volume, or the latency; or None.

        Args:
            index: index of the step's activity.
            node: name of the node.
            trips: node name -> round trip to the step's location.
        """
        shape, location = self._shape(index), self._step(index).location
        volumes, limit = self.lowered.volumes, shape.max_latency_ms
        for claim in shape.claims:
            if claim in volumes.problems:
                return reason("claim", problem=volumes.problems[claim])
            if node not in volumes.pinned.get(claim, {node}):
                return reason("volume", claim=volumes.place(claim))
        if not trips or limit is None:
            return None
        if node not in trips:
            return reason("no-latency", location=location)
        is_near = is_within(trips[node], limit)
        return None if is_near else reason("latency", location=location, limit_ms=limit)

    @cached_property
    def _free(self) -> list[dict[str, int]]:
        """[N] Free room of each node beside the pods that run there."""
        return [free_room(node.allocatable, node.used) for node in self.cluster.nodes]

    def _filtered(self, shape: PodShape) -> list[Reason | None]:
        """Return [N] why the static filters keep the shape off a node, None where they do not."""
        rules = (shape.node_selector, shape.affinity, shape.tolerations, shape.linux_only)
        if rules not in self._filters:
            self._filters[rules] = objections(
                dict(shape.node_selector),
                shape.affinity,
                shape.tolerations,
                self.cluster.nodes,
                linux_only=shape.linux_only,
            )
        return self._filters[rules]

    def _quickest(self, index: int) -> Reason:
        seconds = seconds_on_nodes(self.lowered.problem, index)
        node = int(self.schedule.node[index])
        others = np.where(self._allowed(index), seconds, np.inf)
        others[node] = np.inf
        if seconds[node] < others.min() - 1e-9:
            return reason(
                "quickest",
                seconds=float(seconds[node]),
                node_seconds=float(others.min()),
                node=int(others.argmin()),
            )
        return reason("chosen", node_count=int(self._allowed(index).sum()))

    def _comparison(self, index: int) -> tuple[Reason, int]:
        """Try the step on other nodes, and return the reason and the number of nodes tried."""
        node, problem = int(self.schedule.node[index]), self.lowered.problem
        occupied = np.where(self._allowed(index), seconds_on_nodes(problem, index), np.inf)
        order = [int(other) for other in np.argsort(occupied, kind="stable")]
        others = [other for other in order if self._allowed(index)[other] and other != node]
        tried = others[:ALTERNATIVES]
        moves = [move_step(problem, self.placement, index, other) for other in tried]
        # Under `ready` dispatch a step goes on to the next best where there is no room.
        there = [each for each in moves if each.schedule.node[index] == each.node]
        if not there:
            second = tried[1] if len(tried) > 1 else None
            return reason("no-room", node=tried[0], other=second), len(moves)
        return reason_against(problem, self.schedule, index, there), len(moves)
