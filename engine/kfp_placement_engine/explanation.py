"""Why a step goes where it goes, in one sentence a person understands."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.alternatives import compared, moved
from kfp_placement_engine.cluster import Cluster
from kfp_placement_engine.constraints import lacking, why_not
from kfp_placement_engine.contract.quantities import format_duration, format_resource
from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.lowering.latency import round_trips
from kfp_placement_engine.placement import Placement
from kfp_placement_engine.problem import Booleans, Floats, PlacementProblem
from kfp_placement_engine.run_graph import Step, StepKind
from kfp_placement_engine.simulation import Schedule

WHAT_IF_WORK = 50_000_000
"""Work spent on trying other nodes, about half a second; see `_work`."""

LONG_QUEUE = 50
"""Beyond so many activities simulating one takes longer, since many pods wait at a time."""

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

    def reasons(self) -> dict[int, str]:
        """The reason of every step, by index of its activity."""
        problem = self.lowered.problem
        what_ifs = WHAT_IF_WORK // _work(problem)
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
        for told in (self._volume(index), self._latency(index), self._only_node(index)):
            if told:
                return told, 0
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
        members = problem.gene_activities[problem.arrays.gene[index]]
        own = set(self.lowered.shapes[problem.arrays.class_of[index]].claims)
        pinned = sorted(own & set(self.lowered.volumes.pinned))
        if pinned and self._allowed(index).sum() == 1:
            return f"volume claim {pinned[0]} is available on this node only"
        if len(members) < 2:
            return ""
        others = [other for other in members if other != index]
        claims, names = set(own), []
        for other in others:
            shared = own & set(self.lowered.shapes[problem.arrays.class_of[other]].claims)
            if shared & self.lowered.volumes.binding:
                claims &= shared
                names.append(problem.activity_names[other])
        claim = sorted(claims & self.lowered.volumes.binding) or sorted(
            own & self.lowered.volumes.binding
        )
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        first = names[0] if names else problem.activity_names[others[0]]
        return f"shares volume {claim[0]} with {first}{more}"

    def _latency(self, index: int) -> str:
        """Prediction steps go to the node of least round trip."""
        problem = self.lowered.problem
        kind = problem.arrays.class_of[index]
        if not problem.ruled[kind]:
            return ""
        location = self._step(index).location
        trips, room = problem.latency_ms[kind], self.lowered.tables.usable[kind]
        known = [
            int(node) for node in np.argsort(trips) if room[node] and not np.isnan(trips[node])
        ]
        node = int(self.schedule.node[index])
        if not known:
            return f"no node with room states a latency to {location}"
        best, own = known[0], float(trips[node])
        if problem.arrays.latency_excess_ms[kind, node] > 0:
            here = "unknown latency" if np.isnan(own) else f"{_ms(own)}"
            return (
                f"{here} to {location}: {self._name(best)} ({_ms(trips[best])}) "
                "had no room when the step was ready"
            )
        others = [float(trips[other]) for other in known if other != node]
        following = f", next {_ms(min(others))}" if others else ""
        rank = (
            "lowest round trip"
            if own <= trips[best]
            else "round trip within the tolerance of the lowest"
        )
        nodes = _count(int(room.sum()), "node")
        return f"{rank} to {location} of {nodes} with room: {_ms(own)}{following}"

    def _only_node(self, index: int) -> str:
        if self._allowed(index).sum() != 1:
            return ""
        objections = self._objections(index, skip=int(self.schedule.node[index]))
        return "the only node that can take it" + (f" ({objections})" if objections else "")

    def _objections(self, index: int, skip: int = -1) -> str:
        """Why the nodes do not take the step, counted as kube-scheduler counts them."""
        step, counts = self._step(index), Counter[str]()
        short_nodes: dict[str, list[int]] = {}
        shape = self.lowered.shapes[self.lowered.problem.arrays.class_of[index]]
        requests = dict(shape.requests)
        trips = round_trips(self.cluster, shape.location) if shape.location else None
        for number, node in enumerate(self.cluster.nodes):
            if number == skip:
                continue
            free = {
                name: amount - node.used.get(name, 0) for name, amount in node.allocatable.items()
            }
            static = why_not(dict(shape.node_selector), shape.affinity, shape.tolerations, node)
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
            elif trips is not None and not trips[number] <= (shape.max_latency_ms or np.inf):
                counts[
                    f"round trip to {step.location} beyond {_ms(shape.max_latency_ms or 0.0)}"
                ] += 1
        for name, amounts in short_nodes.items():
            counts[_shortage(name, requests.get(name, 1), max(amounts))] += len(amounts)
        return ", ".join(
            f"{_count(number, 'node')}: {text}" for text, number in counts.most_common()
        )

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
        return compared(problem, self.schedule, index, played), len(played)


def _ms(latency: float) -> str:
    return f"{float(latency):.3g} ms"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _shortage(name: str, asked: int, most: int) -> str:
    """What is asked and what the roomiest of the nodes that lack it has."""
    free = format_resource(name, max(0, most))
    return f"not enough {name} (asks {format_resource(name, asked)}, at most {free} free)"


def _work(problem: PlacementProblem) -> int:
    """What one simulation costs, by the problem's size: reasons do not depend on clocks."""
    return problem.activities * (10 + problem.nodes + problem.activities // LONG_QUEUE)
