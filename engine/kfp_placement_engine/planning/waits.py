"""The waits of pods that are ready and not bound: for a limit, a volume, a node, or by the plan."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from kfp_placement_engine.plans.limits import PieceKind
from kfp_placement_engine.problem.outcomes import PlacesTaken, branch_paths, branches_of_holders
from kfp_placement_engine.problem.problem import Floats, Integers, PlacementProblem, owners
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.problem.use_over_time import Pods, beside, largest_use


class Wait(NamedTuple):
    """A stretch of waiting, with its cause.

    Attributes:
        kind: kind of the cause.
        start_seconds, finish_seconds: start and end of the wait.
        cause: index, by kind, of the activity whose end makes room (`NODE_FULL`) or that gets the
            room (`HELD_BACK`), of the claim (`VOLUME`), or of the limit (`LIMIT`); -1 = unknown.
    """

    kind: PieceKind
    start_seconds: float
    finish_seconds: float
    cause: int


@dataclass(frozen=True)
class Waits:
    """The waits of all activities in a schedule.

    Attributes:
        problem: problem that was simulated.
        schedule: schedule of the problem.
    """

    problem: PlacementProblem
    schedule: Schedule
    _timelines: dict[tuple[int, int], "_Timeline"] = field(
        default_factory=dict, init=False, repr=False
    )

    def before_bind(self, activity: int, since: float) -> list[Wait]:
        """Return the waits from `since`, when a pod was ready, to its bind, without a gap.

        Args:
            activity: activity that has a node.
            since: time at which its predecessors had ended, and its data were there.
        """
        bound, waits = float(self.schedule.start[activity]), []
        for limit, until in self._let_in.get(activity, ()):
            if since < min(until, bound):
                waits.append(Wait(PieceKind.LIMIT, since, min(until, bound), limit))
                since = min(until, bound)
        spans = self._spans(activity, since, bound)
        for (kind, claim), same in groupby(spans, key=lambda span: span[:2]):
            stretch = list(same)
            start, finish = stretch[0][2], stretch[-1][3]
            waits.append(Wait(kind, start, finish, self._cause(activity, kind, claim, finish)))
        return waits

    def claim_awaited(self, activity: int) -> int:
        """Return the claim on another node that a bound pod waited for; -1 = none."""
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
        """Yield kind, claim, start and end of the spans in which nothing changes for a pod."""
        if bound <= since:
            return
        arrays, node = self.problem.arrays, int(self.schedule.node[activity])
        timeline, request = self._timeline(node, activity), arrays.requests[activity]
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
        """Return the cause of a stretch of one kind."""
        if kind is PieceKind.VOLUME:
            return claim
        schedule = self.schedule
        arrays = self.problem.arrays
        may_run = beside(int(arrays.branch[activity]), arrays)[arrays.branch]
        others = (schedule.node == schedule.node[activity]) & may_run
        others[activity] = False
        if kind is PieceKind.NODE_FULL:
            enders = np.flatnonzero(others & (schedule.end == finish))
            cause = int(schedule.cause[activity])
            return cause if cause in enders else int(enders[0]) if enders.size else -1
        starters = np.flatnonzero(others & (schedule.start == finish))
        return int(starters[0]) if starters.size else -1

    def _claims(self, activity: int) -> Integers:
        arrays = self.problem.arrays
        first, last = arrays.claims_start[activity : activity + 2]
        return arrays.claims[first:last]

    def _users(self, claim: int, activity: int) -> Integers:
        """Return the other activities that mount the claim."""
        arrays = self.problem.arrays
        mounting = owners(arrays.claims_start)
        users = mounting[arrays.claims == claim]
        return np.asarray(users[users != activity])

    def _exclusive_holders(
        self, activity: int, since: float, bound: float
    ) -> list[tuple[int, float, float]]:
        """Return claim, start and end of other pods with a claim that only one pod may have."""
        starts, ends = self.schedule.start, self.schedule.end
        return [
            (claim, float(starts[user]), float(ends[user]))
            for claim in self._claims(activity).tolist()
            if self.problem.arrays.exclusive[claim]
            for user in self._users(claim, activity).tolist()
            if starts[user] < bound and ends[user] > since
        ]

    def _timeline(self, node: int, activity: int) -> "_Timeline":
        """Return the use of a node by the pods that may run beside an activity."""
        arrays, schedule = self.problem.arrays, self.schedule
        branch = int(arrays.branch[activity])
        if (node, branch) not in self._timelines:
            there = (
                (schedule.node == node) & schedule.finished & beside(branch, arrays)[arrays.branch]
            )
            pods = Pods(schedule.start, schedule.end, arrays.requests, arrays.branch)
            self._timelines[node, branch] = _Timeline(*largest_use(pods.rows(there), arrays))
        return self._timelines[node, branch]

    @cached_property
    def _let_in(self) -> dict[int, list[tuple[int, float]]]:
        """Activity -> the limits that it waited for one after another, and when each let it in."""
        return _Admissions(self.problem, self.schedule).waits()


class _Timeline(NamedTuple):
    """The requested room of one node over time; row i holds from time i on, the first forever."""

    times: Floats
    requested: Integers

    def changes(self, since: float, until: float) -> list[float]:
        """Return the times at which something starts or ends, strictly between two times."""
        first = np.searchsorted(self.times, since, side="right")
        last = np.searchsorted(self.times, until, side="left")
        changes: list[float] = self.times[first:last].tolist()
        return changes

    def used(self, time: float) -> Integers:
        """Return [R] the requested amounts from that time on."""
        row = int(np.searchsorted(self.times, time, side="right")) - 1
        return np.asarray(self.requested[row])


class _Admissions:
    """The limits of a problem, simulated again with the ends of a schedule (`kernel/limits.h`).

    Of holders that wait for a place the first goes first. Of events of one moment the one of the
    smaller code goes first: twice the activity's index for its end, and one more where it becomes
    ready. Holders in branches that exclude each other share places.
    """

    def __init__(self, problem: PlacementProblem, schedule: Schedule) -> None:
        self._arrays = arrays = problem.arrays
        inside = np.flatnonzero(np.diff(arrays.holders_start))
        self._end: dict[int, float] = dict(
            zip(inside.tolist(), schedule.end[inside].tolist(), strict=True)
        )
        self._left: list[int] = arrays.holder_size.tolist()
        self._active: list[bool] = arrays.holder_started.tolist()
        self._branch: list[int] = branches_of_holders(arrays).tolist()
        self._most: list[int] = arrays.limit_most.tolist()
        paths = branch_paths(arrays)
        self._taken = [PlacesTaken(paths, arrays.choice_aside) for _ in self._most]
        for holder in np.flatnonzero(arrays.holder_started).tolist():
            self._change(holder, 1)
        # By limit and branch: holder and activity.
        self._waiting: dict[int, dict[int, list[tuple[int, int]]]] = defaultdict(dict)
        self._waits: dict[int, list[tuple[int, float]]] = defaultdict(list)
        self._events = [
            (_ready(problem, schedule, activity), 2 * activity + 1) for activity in self._end
        ]

    def waits(self) -> dict[int, list[tuple[int, float]]]:
        """Return for each activity the limits that it waited for, and when each let it in."""
        heapify(self._events)
        while self._events:
            now, code = heappop(self._events)
            activity, is_ready = divmod(code, 2)
            if not is_ready:
                for holder in reversed(self._holders(activity)):
                    self._left[holder] -= 1
                    if self._left[holder] == 0:
                        self._give_back(holder, now)
            elif self._take(activity, now):
                heappush(self._events, (self._end[activity], 2 * activity))
        return self._waits

    def _holders(self, activity: int) -> list[int]:
        first, last = self._arrays.holders_start[activity : activity + 2]
        holders: list[int] = self._arrays.holders[first:last].tolist()
        return holders

    def _take(self, activity: int, now: float) -> bool:
        """Take the places that an activity needs; return whether it has all of them."""
        first = int(self._arrays.holders_start[activity])
        taken: list[int] = []
        for at, holder in enumerate(self._holders(activity), first):
            limit = int(self._arrays.holder_limit[holder])
            if not self._arrays.held_together[at]:
                taken = []
            if self._active[holder]:
                continue
            branch = self._branch[holder]
            if self._is_full(limit, branch):
                heappush(self._waiting[limit].setdefault(branch, []), (holder, activity))
                # Another may have come first; what excludes that one finds a place beside it.
                self._call_waiting(limit, now)
                for other in taken:
                    self._give_back(other, now)
                return False
            self._change(holder, 1)
            self._active[holder] = True
            taken.append(holder)
        return True

    def _give_back(self, holder: int, now: float) -> None:
        limit = int(self._arrays.holder_limit[holder])
        self._active[holder] = False
        self._change(holder, -1)
        self._call_waiting(limit, now)

    def _call_waiting(self, limit: int, now: float) -> None:
        """Let the first holder that finds a place try again, and others that exclude it."""
        called: list[int] = []
        while waiting := self._first_waiting(limit):
            first, _ = waiting[0]
            while waiting and waiting[0][0] == first:
                _, activity = heappop(waiting)
                self._waits[activity].append((limit, now))
                heappush(self._events, (now, 2 * activity + 1))
            self._change(first, 1)
            called.append(first)
        for each in called:
            self._change(each, -1)

    def _first_waiting(self, limit: int) -> list[tuple[int, int]] | None:
        """Return what waits in the branch of the first holder that finds a place."""
        waiting = self._waiting[limit].items()
        return min(
            (row for at, row in waiting if row and not self._is_full(limit, at)), default=None
        )

    def _is_full(self, limit: int, branch: int) -> bool:
        return self._taken[limit].beside(branch) >= self._most[limit]

    def _change(self, holder: int, times: int) -> None:
        """Let a holder have a place (times 1), or no longer (times -1)."""
        self._taken[self._arrays.holder_limit[holder]].change(self._branch[holder], times)


def _ready(problem: PlacementProblem, schedule: Schedule, activity: int) -> float:
    """Return the time at which the predecessors of an activity have ended."""
    before = schedule.end[problem.arrays.before(activity)]
    return float(before.max(initial=problem.arrays.release_seconds[activity]))
