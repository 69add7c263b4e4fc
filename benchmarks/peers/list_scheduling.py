"""List scheduling, simulated event by event: whoever is ready and fits starts, in some order.

What the kernel's policies cannot say is in two plug-ins: an order that changes while steps end, and
a choice of nodes that remembers the last one. Only decisions are made here. The schedule, and every
figure, is that of the kernel, which simulates the same nodes and starts again: see `schedule_of`.
"""

import heapq
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from benchmarks.command import BenchmarkError
from kfp_placement_engine import PlacementProblem
from kfp_placement_engine.problem.problem import Booleans, Floats, Integers
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.search.simulation import simulate_planned

_ENDS, _BECOMES_READY = 0, 1
"""Kinds of events, in their order within one activity and instant."""

Key = tuple[float, ...]


class Order(Protocol):
    """Order in which waiting steps are offered nodes."""

    def key(self, activity: int) -> Key:
        """Return a key: the smallest is next, equal ones in the order of submission."""
        ...

    def ended(self, activity: int) -> None:
        """Take note that a step has ended; called for each one."""
        ...


@dataclass(frozen=True)
class Room:
    """The cluster at one moment.

    Attributes:
        problem: problem to schedule.
        free: [N, R] room that is left.
        node: [A] node of each activity, -1 = none yet.
    """

    problem: PlacementProblem
    free: Integers
    node: Integers

    def fitting(self, activity: int) -> Booleans:
        """[N] nodes that may take the activity and have room for it now."""
        arrays = self.problem.arrays
        asked = arrays.requests[activity]
        has_room = ((self.free >= asked) | (asked == 0)).all(axis=1)
        return np.asarray(has_room & arrays.allowed[arrays.gene[activity]])

    def share_left(self, activity: int) -> Floats:
        """[N] share of each node's CPU that is left if it takes the activity."""
        arrays = self.problem.arrays
        left = self.free[:, 0] - arrays.requests[activity, 0]
        return np.asarray(left / np.maximum(1, arrays.allocatable[:, 0]))


class NodeChoice(Protocol):
    """Choice of a node for a step among those with room."""

    def __call__(self, activity: int, fitting: Booleans, room: Room) -> int:
        """Return the node, one of `fitting` [N], of which at least one is true."""
        ...


@dataclass(frozen=True)
class Decisions:
    """Result of list scheduling: [A] starts in seconds, and [A] nodes, -1 = none."""

    start: Floats
    node: Integers


def has_tasks_alone(problem: PlacementProblem) -> bool:
    """Return whether peers are defined for it: no driver pods, volumes or limited loops."""
    arrays = problem.arrays
    has_genes = bool(((arrays.gene >= 0) | arrays.virtual).all())
    return problem.genes > 0 and has_genes and not arrays.claims.size and not arrays.limit_most.size


def schedule_of(problem: PlacementProblem, order: Order, choose: NodeChoice) -> Schedule:
    """Return the schedule of list scheduling, simulated by the engine.

    Args:
        problem: problem of tasks alone, see `has_tasks_alone`.
        order: order of the waiting steps.
        choose: choice of their nodes.

    Raises:
        BenchmarkError: the simulation does not start every step at the moment decided here.
    """
    decided = ListScheduling(problem, order, choose).decisions()
    first_members = np.array([members[0] for members in problem.gene_activities], np.int64)
    simulated = simulate_planned(problem, np.maximum(decided.node[first_members], 0), decided.start)
    if not np.array_equal(simulated.start, decided.start):
        apart = int(np.flatnonzero(simulated.start != decided.start)[0])
        raise BenchmarkError(
            f"step {problem.activity_names[apart]} starts at {decided.start[apart]:g} s in a peer's"
            f" schedule, and at {simulated.start[apart]:g} s when it is simulated"
        )
    return simulated


class ListScheduling:
    """One run, from submission to the end of its last step."""

    def __init__(self, problem: PlacementProblem, order: Order, choose: NodeChoice) -> None:
        arrays = problem.arrays
        self._problem, self._order, self._choose = problem, order, choose
        self._node = np.full(problem.activities, -1, np.int64)
        self._start = np.full(problem.activities, np.inf)
        self._room = Room(problem, arrays.free.copy(), self._node)
        self._end = np.full(problem.activities, np.inf)
        self._image_there = np.where(arrays.image_present, 0.0, np.inf)
        self._waits_for = np.diff(arrays.predecessors_start)
        self._shapes = _shapes(problem)
        self._events: list[tuple[float, int]] = []
        self._waiting: list[int] = []
        # Shapes that no node has room for; room only shrinks until a step ends.
        self._hopeless: set[int] = set()
        self.now = 0.0

    def decisions(self) -> Decisions:
        """Return the node and the start of each step."""
        for activity in np.flatnonzero(self._waits_for == 0).tolist():
            self._at(self._ready_seconds(activity), activity, _BECOMES_READY)
        while self._events:
            self.now = self._events[0][0]
            while self._events and self._events[0][0] == self.now:
                activity, kind = divmod(heapq.heappop(self._events)[1], 2)
                if kind == _ENDS:
                    self._finish(activity)
                else:
                    self._become_ready(activity)
            self._dispatch()
        return Decisions(self._start, self._node)

    def _at(self, seconds: float, activity: int, kind: int) -> None:
        """Events of one instant in the order of the activities, as in the kernel."""
        heapq.heappush(self._events, (seconds, 2 * activity + kind))

    def _ready_seconds(self, activity: int) -> float:
        return max(self.now, float(self._problem.arrays.release_seconds[activity]))

    def _become_ready(self, activity: int) -> None:
        arrays = self._problem.arrays
        if not arrays.virtual[activity]:
            self._waiting.append(activity)
            return
        # It takes time and no room.
        self._start[activity] = self.now
        self._end[activity] = self.now + float(arrays.duration_seconds[activity])
        self._at(float(self._end[activity]), activity, _ENDS)

    def _finish(self, activity: int) -> None:
        arrays, node = self._problem.arrays, self._node[activity]
        if node >= 0:
            self._room.free[node] += arrays.requests[activity]
            self._hopeless.clear()
        self._order.ended(activity)
        first, last = arrays.successors_start[activity : activity + 2]
        for successor in arrays.successors[first:last].tolist():
            self._waits_for[successor] -= 1
            if self._waits_for[successor] == 0:
                self._at(self._ready_seconds(successor), successor, _BECOMES_READY)

    def _dispatch(self) -> None:
        """Offer nodes to all steps that wait; one that fits nowhere is skipped."""
        for activity in sorted(self._waiting, key=self._order.key):
            if self._shapes[activity] in self._hopeless:
                continue
            fitting = self._room.fitting(activity)
            if fitting.any():
                self._bind(activity, self._choose(activity, fitting, self._room))
            else:
                self._hopeless.add(self._shapes[activity])
        self._waiting = [each for each in self._waiting if self._node[each] < 0]

    def _bind(self, activity: int, node: int) -> None:
        """Room is taken from here on, also while image and inputs arrive."""
        arrays, image = self._problem.arrays, self._problem.arrays.image[activity]
        self._node[activity], self._start[activity] = node, self.now
        self._room.free[node] -= arrays.requests[activity]
        runs_from = self.now
        if image >= 0:
            if np.isinf(self._image_there[image, node]):
                pull = arrays.image_bytes[image] / arrays.pull_rate[node]
                self._image_there[image, node] = self.now + pull
            runs_from = max(runs_from, float(self._image_there[image, node]))
        if self._problem.direct_transfers:
            runs_from = max(runs_from, self.arrival(activity, node))
        self._end[activity] = runs_from + occupied_seconds(self._problem, activity, node)
        self._at(float(self._end[activity]), activity, _ENDS)

    def arrival(self, activity: int, node: int) -> float:
        """Return the time at which the last input is on the node."""
        arrays = self._problem.arrays
        first, last = arrays.predecessors_start[activity : activity + 2]
        before = arrays.predecessors[first:last]
        moving = arrays.transfer_bytes[first:last] / self._problem.link_bytes_per_second
        ends = self._end[before] + np.where(self._node[before] == node, 0.0, moving)
        return float(ends.max(initial=0.0))


def occupied_seconds(problem: PlacementProblem, activity: int, node: int) -> float:
    """Run time and transfers through the object store on a node, without its image's pull."""
    arrays = problem.arrays
    seconds = arrays.duration_seconds[activity]
    if arrays.scales[activity]:
        seconds = seconds / arrays.speed[node]
    moved = arrays.download_bytes[activity] + arrays.upload_bytes[activity]
    return float(seconds + moved / arrays.store_rate[node])


def _shapes(problem: PlacementProblem) -> list[int]:
    """Return [A] numbers of the requests and allowed nodes that activities share."""
    arrays, numbers = problem.arrays, dict[bytes, int]()
    return [
        numbers.setdefault(
            arrays.requests[activity].tobytes() + arrays.allowed[gene].tobytes(), len(numbers)
        )
        if gene >= 0
        else -1
        for activity, gene in enumerate(arrays.gene.tolist())
    ]
