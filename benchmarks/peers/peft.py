"""PEFT: predicts the earliest finish with a table of optimistic costs.

H. Arabnejad, J. G. Barbosa: "List Scheduling Algorithm for Heterogeneous Systems by an Optimistic
Cost Table", IEEE Transactions on Parallel and Distributed Systems 25(3), 2014. The optimistic cost
of a task on a node is the time of the longest path behind it, if every task on it goes to its best
node. As in our HEFT, a node holds many tasks at once, and a gap is a stretch of time in which all
requested resources are free.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.peers.room_over_time import RoomOverTime
from kfp_placement_engine import PlacementProblem
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, Integers
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.search.simulation import simulate


@dataclass(frozen=True)
class TaskGraph:
    """Tasks, nodes and what they cost. A = tasks, N = nodes, R = resources; times in seconds.

    Attributes:
        seconds: [A, N] run time, infinite where the node does not take the task; one does.
        before: tasks that each task waits for, each with the time that its data takes to
            another node.
        requests: [A, R] resources that a task takes.
        room: [N, R] room of the empty nodes.
        image: [A] the image that a task needs, -1 = none.
        pull_seconds: [images, N] time to get an image, 0 where it is.
    """

    seconds: Floats
    before: Sequence[Sequence[tuple[int, float]]]
    requests: Integers
    room: Integers
    image: Integers
    pull_seconds: Floats

    @staticmethod
    def of(problem: PlacementProblem) -> "TaskGraph":
        """Return the tasks of a problem of tasks alone."""
        arrays = problem.arrays
        moved = (arrays.download_bytes + arrays.upload_bytes)[:, None] / arrays.store_rate
        seconds = arrays.duration_seconds[:, None] / np.where(
            (arrays.scales & ~arrays.virtual)[:, None], arrays.speed, 1.0
        )
        allowed = np.where(arrays.virtual[:, None], True, arrays.allowed[arrays.gene])
        moving = arrays.transfer_bytes / problem.link_bytes_per_second * problem.direct_transfers
        edges = list(zip(arrays.predecessors.tolist(), moving.tolist(), strict=True))
        bounds = arrays.predecessors_start.tolist()
        return TaskGraph(
            seconds=np.where(allowed, seconds + moved, np.inf),
            before=[edges[bounds[at] : bounds[at + 1]] for at in range(problem.activities)],
            requests=np.where(arrays.virtual[:, None], 0, arrays.requests),
            room=arrays.free,
            image=arrays.image,
            pull_seconds=np.where(
                arrays.image_present, 0.0, arrays.image_bytes[:, None] / arrays.pull_rate
            ),
        )

    def after(self) -> list[list[tuple[int, float]]]:
        """Tasks that wait for each task, with the time of the data."""
        result: list[list[tuple[int, float]]] = [[] for _ in self.before]
        for task, edges in enumerate(self.before):
            for producer, moving in edges:
                result[producer].append((task, moving))
        return result


def optimistic_costs(graph: TaskGraph, after: Sequence[Sequence[tuple[int, float]]]) -> Floats:
    """Return [A, N], the optimistic cost table: the cost behind a task, if it runs on a node.

    Args:
        graph: the tasks.
        after: `graph.after()`.
    """
    table = np.zeros(graph.seconds.shape)
    for task in reversed(_topological(graph, after)):
        for successor, moving in after[task]:
            there = table[successor] + graph.seconds[successor]
            # On the same node no data moves; else the successor has its best node.
            np.maximum(table[task], np.minimum(there, there.min() + moving), out=table[task])
    return table


def peft_starts(graph: TaskGraph) -> tuple[Floats, Integers]:
    """PEFT's own schedule: [A] starts and [A] nodes; every task gets one."""
    after = graph.after()
    costs = optimistic_costs(graph, after)
    # Nodes that do not take a task say nothing about its rank.
    ranks = costs.mean(axis=1, where=np.isfinite(graph.seconds))
    placing = _Placing(graph, costs)
    waits_for = [len(edges) for edges in graph.before]
    ready = [(-rank, task) for task, rank in enumerate(ranks.tolist()) if not waits_for[task]]
    heapq.heapify(ready)
    while ready:
        _, task = heapq.heappop(ready)
        placing.place(task)
        for successor, _ in after[task]:
            waits_for[successor] -= 1
            if not waits_for[successor]:
                heapq.heappush(ready, (-float(ranks[successor]), successor))
    return placing.start, placing.node


def peft(problem: PlacementProblem) -> Schedule:
    """PEFT's nodes in the order of its starts, simulated as HEFT's are.

    Args:
        problem: problem of tasks alone.
    """
    start, node = peft_starts(TaskGraph.of(problem))
    return simulate(problem, Placement.of_schedule(problem, start, node))


class _Placing:
    """Puts one task after the other where earliest finish and optimistic cost add up to least."""

    def __init__(self, graph: TaskGraph, costs: Floats) -> None:
        self._graph, self._costs = graph, costs
        self._room = [RoomOverTime(room) for room in graph.room.tolist()]
        self._requests = graph.requests.tolist()
        self._pull_seconds = graph.pull_seconds.copy()
        self.start = np.full(len(graph.before), np.inf)
        self.end = np.full(len(graph.before), np.inf)
        self.node = np.full(len(graph.before), -1, np.int64)

    def place(self, task: int) -> None:
        graph, image = self._graph, self._graph.image[task]
        seconds = graph.seconds[task]
        if image >= 0:
            seconds = seconds + self._pull_seconds[image]
        starts = np.array(
            [
                room.earliest(self._requests[task], ready, lasts) if lasts < np.inf else np.inf
                for room, ready, lasts in zip(
                    self._room, self._arrivals(task).tolist(), seconds.tolist(), strict=True
                )
            ]
        )
        best = int((starts + seconds + self._costs[task]).argmin())
        self.start[task], self.node[task] = starts[best], best
        self.end[task] = starts[best] + seconds[best]
        self._room[best].take(self._requests[task], float(starts[best]), float(self.end[task]))
        if image >= 0:
            self._pull_seconds[image, best] = 0.0

    def _arrivals(self, task: int) -> Floats:
        """[N] when all data is on each node."""
        arrival = np.zeros(len(self._room))
        for producer, moving in self._graph.before[task]:
            there = np.full(arrival.shape, self.end[producer] + moving)
            there[self.node[producer]] = self.end[producer]
            np.maximum(arrival, there, out=arrival)
        return arrival


def _topological(graph: TaskGraph, after: Sequence[Sequence[tuple[int, float]]]) -> list[int]:
    """Tasks behind all that they wait for."""
    waits_for = [len(edges) for edges in graph.before]
    order = [task for task, count in enumerate(waits_for) if not count]
    for task in order:
        for successor, _ in after[task]:
            waits_for[successor] -= 1
            if not waits_for[successor]:
                order.append(successor)
    return order
