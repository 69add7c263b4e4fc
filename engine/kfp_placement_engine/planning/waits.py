"""Why a pod that is ready is not bound yet: its loop, its volume, its node, or the plan."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from kfp_placement_engine.plans.limits import PieceKind
from kfp_placement_engine.problem.problem import Floats, Integers, PlacementProblem, owners
from kfp_placement_engine.search.simulation import Schedule


class Wait(NamedTuple):
    """A stretch of waiting, and what for.

    Attributes:
        kind: why.
        start_seconds, finish_seconds: when.
        cause: what the kind asks for: the activity whose end makes room (`NODE_FULL`) or that gets
            the room (`HELD_BACK`), the claim's (`VOLUME`) or loop's (`LOOP_LIMIT`) index; -1 =
            unknown.
    """

    kind: PieceKind
    start_seconds: float
    finish_seconds: float
    cause: int


@dataclass(frozen=True)
class Waits:
    """Tells from a schedule what each activity of it waited for.

    Attributes:
        problem: what was played.
        schedule: what came of it.
    """

    problem: PlacementProblem
    schedule: Schedule
    _timelines: dict[int, "_Timeline"] = field(default_factory=dict, init=False, repr=False)

    def before_bind(self, activity: int, since: float) -> list[Wait]:
        """The waits from `since`, when it was ready, until it was bound, without a gap.

        Args:
            activity: one that has a node.
            since: when what it depends on had ended, and its data were there.
        """
        bound, waits = float(self.schedule.start[activity]), []
        slot = min(bound, self._slots.get(activity, since))
        if slot > since:
            entered = int(self.problem.arrays.entry_iteration[activity])
            loop = int(self.problem.arrays.iteration_loop[entered])
            waits.append(Wait(PieceKind.LOOP_LIMIT, since, slot, loop))
        spans = self._spans(activity, max(since, slot), bound)
        for (kind, claim), same in groupby(spans, key=lambda span: span[:2]):
            stretch = list(same)
            start, finish = stretch[0][2], stretch[-1][3]
            waits.append(Wait(kind, start, finish, self._cause(activity, kind, claim, finish)))
        return waits

    def claim_awaited(self, activity: int) -> int:
        """The claim that a bound pod waited for, which was attached to another node; -1 = none."""
        began = self.schedule.begin[activity]
        for claim in self._claims(activity).tolist():
            users = self._users(claim, activity)
            away = users[self.schedule.node[users] != self.schedule.node[activity]]
            if (self.schedule.end[away] == began).any():
                return int(claim)
        return -1

    def _spans(
        self, activity: int, since: float, bound: float
    ) -> Iterator[tuple[PieceKind, int, float, float]]:
        """Kind, claim, start and end of the spans in which nothing changes for the activity."""
        if bound <= since:
            return
        arrays, node = self.problem.arrays, int(self.schedule.node[activity])
        timeline, request = self._timeline(node), arrays.requests[activity]
        holders = self._exclusive_holders(activity, since, bound)
        changes = {since, bound, *timeline.changes(since, bound)}
        changes |= {time for _, *span in holders for time in span if since < time < bound}
        for start, finish in pairwise(sorted(changes)):
            held = [claim for claim, begin, end in holders if begin <= start < end]
            room = arrays.free[node] - timeline.used(start)
            if held:
                yield PieceKind.VOLUME, held[0], start, finish
            elif ((request > 0) & (request > room)).any():
                yield PieceKind.NODE_FULL, -1, start, finish
            else:
                yield PieceKind.HELD_BACK, -1, start, finish

    def _cause(self, activity: int, kind: PieceKind, claim: int, finish: float) -> int:
        """What a stretch of one kind waits for."""
        if kind is PieceKind.VOLUME:
            return claim
        schedule = self.schedule
        others = schedule.node == schedule.node[activity]
        others[activity] = False
        if kind is PieceKind.NODE_FULL:
            enders = np.flatnonzero(others & (schedule.end == finish))
            known = int(schedule.cause[activity])
            return known if known in enders else int(enders[0]) if enders.size else -1
        starters = np.flatnonzero(others & (schedule.start == finish))
        return int(starters[0]) if starters.size else -1

    def _claims(self, activity: int) -> Integers:
        arrays = self.problem.arrays
        first, last = arrays.claims_start[activity : activity + 2]
        return arrays.claims[first:last]

    def _users(self, claim: int, activity: int) -> Integers:
        """Other activities that mount the claim."""
        arrays = self.problem.arrays
        mounting = owners(arrays.claims_start)
        users = mounting[arrays.claims == claim]
        return np.asarray(users[users != activity])

    def _exclusive_holders(
        self, activity: int, since: float, bound: float
    ) -> list[tuple[int, float, float]]:
        """Claim, start and end of pods that have a claim which only one may have."""
        starts, ends = self.schedule.start, self.schedule.end
        return [
            (claim, float(starts[user]), float(ends[user]))
            for claim in self._claims(activity).tolist()
            if self.problem.arrays.exclusive[claim]
            for user in self._users(claim, activity).tolist()
            if starts[user] < bound and ends[user] > since
        ]

    def _timeline(self, node: int) -> "_Timeline":
        if node not in self._timelines:
            there = np.flatnonzero((self.schedule.node == node) & self.schedule.finished)
            starts, ends = self.schedule.start[there], self.schedule.end[there]
            requests = self.problem.arrays.requests[there]
            self._timelines[node] = _Timeline.of(starts, ends, requests)
        return self._timelines[node]

    @cached_property
    def _slots(self) -> dict[int, float]:
        """First activity of each limited iteration -> when its loop let the iteration begin."""
        return _loop_slots(self.problem, self.schedule)


class _Timeline(NamedTuple):
    """What is requested on one node over time; row i holds from time i on."""

    times: Floats
    requested: Integers

    @classmethod
    def of(cls, starts: Floats, ends: Floats, requests: Integers) -> "_Timeline":
        times = np.concatenate([starts, ends])
        order = np.argsort(times, kind="stable")
        return cls(times[order], np.concatenate([requests, -requests])[order].cumsum(axis=0))

    def changes(self, since: float, until: float) -> list[float]:
        """When something starts or ends, between the two and not at them."""
        first = np.searchsorted(self.times, since, side="right")
        last = np.searchsorted(self.times, until, side="left")
        changes: list[float] = self.times[first:last].tolist()
        return changes

    def used(self, time: float) -> Integers:
        """[R] what is requested from that time on."""
        row = np.searchsorted(self.times, time, side="right") - 1
        return self.requested[row] if row >= 0 else np.zeros_like(self.requested[0])


def _loop_slots(problem: PlacementProblem, schedule: Schedule) -> dict[int, float]:
    """Play the limits of the loops again, with the ends of the schedule (`kernel/loop.h`).

    Of iterations that are held back the first goes first; of events of one moment that of the
    smaller code, which is twice the activity's index, and one more where it becomes ready.
    """
    arrays = problem.arrays
    entries = np.flatnonzero(arrays.entry_iteration >= 0)
    entry_of = dict(zip(arrays.entry_iteration[entries].tolist(), entries.tolist(), strict=True))
    events = [
        (_ready(problem, schedule, entry), 2 * entry + 1, own) for own, entry in entry_of.items()
    ]
    leaving = _leaving(problem, schedule)
    running = np.zeros(arrays.loop_parallelism.size, np.int64)
    for iteration in np.flatnonzero(arrays.iteration_started).tolist():
        running[arrays.iteration_loop[iteration]] += 1
        events.append((*leaving[iteration], iteration))
    heapify(events)
    blocked: dict[int, list[int]] = {loop: [] for loop in range(running.size)}
    slots: dict[int, float] = {}
    while events:
        time, code, iteration = heappop(events)
        loop = int(arrays.iteration_loop[iteration])
        if code % 2 == 0:
            running[loop] -= 1
            if blocked[loop]:
                next_one = heappop(blocked[loop])
                heappush(events, (time, 2 * entry_of[next_one] + 1, next_one))
        elif running[loop] >= arrays.loop_parallelism[loop]:
            heappush(blocked[loop], iteration)
        else:
            running[loop] += 1
            slots[entry_of[iteration]] = time
            heappush(events, (*leaving[iteration], iteration))
    return slots


def _ready(problem: PlacementProblem, schedule: Schedule, activity: int) -> float:
    """When what it depends on has ended."""
    before = schedule.end[problem.arrays.before(activity)]
    return float(before.max(initial=problem.arrays.release_seconds[activity]))


def _leaving(problem: PlacementProblem, schedule: Schedule) -> list[tuple[float, int]]:
    """For each limited iteration when its last activity ends, and the code of that event."""
    arrays = problem.arrays
    last = [(0.0, 0)] * arrays.iteration_size.size
    for activity in np.flatnonzero(arrays.iteration >= 0).tolist():
        iteration = int(arrays.iteration[activity])
        while iteration >= 0:
            last[iteration] = max(last[iteration], (float(schedule.end[activity]), 2 * activity))
            iteration = int(arrays.iteration_parent[iteration])
    return last
