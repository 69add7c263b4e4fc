"""The critical path of a planned run: the chain of work and waits from submission to end.

From the activity that ends last the chain goes back to the one that it waited for, and so on. Where
a pod was ready and not bound, the wait is a piece of its own with its cause. The chain then goes on
with the activities that had to end before the pod was ready, and not with the pod that had the
room.
"""

from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.planning.waits import Wait, Waits
from kfp_placement_engine.plans.limits import CriticalPiece, PieceKind
from kfp_placement_engine.problem.problem import Floats, Integers
from kfp_placement_engine.problem.schedule import Schedule


def critical_path(run: int, lowered: Lowered, schedule: Schedule) -> tuple[CriticalPiece, ...]:
    """Return the critical path of one of the runs, in order of time.

    Its pieces touch: each begins where the one before it ends, the first at the run's submission,
    and the last ends with the run.

    Args:
        run: index of the run.
        lowered: problem with its origin.
        schedule: schedule of the problem.

    Returns:
        The pieces; empty where the run does not end, or has ended.
    """
    problem = lowered.problem
    own = problem.arrays.run == run
    never = problem.is_step & (problem.unplaceable | ~schedule.finished)
    if not own.any() or (own & never).any():
        return ()
    walk = _Walk(lowered, schedule, Waits(problem, schedule))
    last = int(np.where(own & schedule.awaited, schedule.end, -np.inf).argmax())
    return walk.back_from(last, lowered.runs[run].release_seconds)


@dataclass
class _Walk:
    """A walk back in time from the end of a run; `pieces` are in the order of the walk."""

    lowered: Lowered
    schedule: Schedule
    waits: Waits
    pieces: list[CriticalPiece] = field(default_factory=list)
    time: float = 0.0

    def back_from(self, last: int, release: float) -> tuple[CriticalPiece, ...]:
        """Return the pieces from the run's release to the end of its last activity, in order."""
        self.time = float(self.schedule.end[last])
        activity, first = last, last
        while activity >= 0:
            first, activity = activity, self._pass(activity)
        running = self.lowered.activities[first].running
        if running is not None:
            self._back_to(max(release, -running.seconds_since_start), first, self._work_kind(first))
        self._back_to(min(release, self.time), -1, PieceKind.PAST)
        return _joined(self.pieces)

    def _pass(self, activity: int) -> int:
        """Go back to where the activity was ready, and return the activity that it waited for.

        -1 stands for none.
        """
        arrays, schedule = self.lowered.problem.arrays, self.schedule
        before, arrived = arrays.before(activity), self._arrivals(activity)
        if schedule.node[activity] < 0:
            self._back_to(float(schedule.start[activity]), activity, self._work_kind(activity))
            # A limit holds back the beginning of an iteration, driver or not.
            ready = schedule.end[before].max(initial=arrays.release_seconds[activity])
            self._waits(activity, float(ready))
            return _latest(before, schedule.end[before])
        pulled = float(schedule.begin[activity] + schedule.pull_seconds[activity])
        data = float(arrived.max(initial=-np.inf))
        self._work(activity, max(pulled, data))
        if data > pulled:
            return self._transfer(activity, before, arrived)
        self._back_to(float(schedule.begin[activity]), activity, PieceKind.IMAGE)
        self._back_to(float(schedule.start[activity]), activity, PieceKind.VOLUME)
        if arrived.size and self._takes_its_place_with_data(activity):
            self._waits(activity, data)
            return self._transfer(activity, before, arrived)
        ready = schedule.end[before].max(initial=arrays.release_seconds[activity])
        self._waits(activity, float(ready))
        return _latest(before, schedule.end[before])

    def _work(self, activity: int, pulled: float) -> None:
        """Go back over upload, run and download to where image and data were there."""
        arrays, node = self.lowered.problem.arrays, self.schedule.node[activity]
        speed = arrays.speed[node] if arrays.scales[activity] else 1.0
        downloaded = pulled + float(arrays.download_bytes[activity] / arrays.store_rate[node])
        if arrays.upload_bytes[activity] > 0:
            done = downloaded + float(arrays.duration_seconds[activity] / speed)
            self._back_to(done, activity, PieceKind.DATA)
        self._back_to(downloaded, activity, self._work_kind(activity))
        self._back_to(pulled, activity, PieceKind.DATA)

    def _transfer(self, activity: int, before: Integers, arrived: Floats) -> int:
        """Go back to the end of the activity whose data came last, from node to node."""
        producer = _latest(before, arrived)
        if producer >= 0:
            self._back_to(float(self.schedule.end[producer]), activity, PieceKind.DATA)
        return producer

    def _waits(self, activity: int, ready: float) -> None:
        """Go back from the bind to where the pod was ready."""
        for wait in reversed(self.waits.before_bind(activity, ready)):
            kind = wait.kind
            if kind is PieceKind.LIMIT and self.lowered.limits[wait.cause].is_loop:
                kind = PieceKind.LOOP_LIMIT
            self._back_to(wait.start_seconds, activity, kind, self._cause(activity, wait))

    def _arrivals(self, activity: int) -> Floats:
        """Return when each predecessor's data are on the node; empty unless they move directly."""
        problem, node = self.lowered.problem, self.schedule.node
        first, last = problem.arrays.predecessors_start[activity : activity + 2]
        if not problem.direct_transfers:
            return np.empty(0)
        before = problem.arrays.predecessors[first:last]
        moving = problem.arrays.transfer_bytes[first:last] / problem.link_bytes_per_second
        apart = node[before] != node[activity]
        return np.asarray(self.schedule.end[before] + np.where(apart, moving, 0.0))

    def _takes_its_place_with_data(self, activity: int) -> bool:
        """Return whether the activity is bound when its data are there, and not before."""
        problem = self.lowered.problem
        planned = problem.dispatch == "ordered" and problem.arrays.gene[activity] >= 0
        return problem.direct_transfers and bool(planned)

    def _work_kind(self, activity: int) -> PieceKind:
        is_driver = self.lowered.problem.is_driver[activity]
        return PieceKind.DRIVER if is_driver else PieceKind.RUNNING

    def _back_to(
        self, time: float, activity: int, kind: PieceKind, cause: str | None = None
    ) -> None:
        """Add the piece from `time` to where the walk is, if any time passes."""
        if time >= self.time:
            return
        names = self.lowered.problem
        node = self.schedule.node[activity] if activity >= 0 else -1
        self.pieces.append(
            CriticalPiece(
                step=names.activity_names[activity] if activity >= 0 else "",
                kind=kind,
                start_seconds=time,
                finish_seconds=self.time,
                node=names.node_names[node] if node >= 0 else None,
                cause=self._work_cause(activity, kind) if cause is None else cause,
            )
        )
        self.time = time

    def _work_cause(self, activity: int, kind: PieceKind) -> str:
        """Return the image or claim that a bound pod waits for, or ""."""
        if kind is PieceKind.VOLUME:
            return self._claim_name(self.waits.claim_awaited(activity))
        step = self.lowered.activities[activity].step
        return step.image if kind is PieceKind.IMAGE and step is not None else ""

    def _cause(self, activity: int, wait: Wait) -> str:
        """Return the name of the claim, limit or pod that a ready pod waits for."""
        if wait.kind is PieceKind.VOLUME:
            return self._claim_name(wait.cause)
        if wait.kind is PieceKind.LIMIT:
            return self.lowered.limits[wait.cause].name
        return self._activity_name(wait.cause, self.lowered.problem.arrays.run[activity])

    def _claim_name(self, claim: int) -> str:
        volumes = self.lowered.volumes
        return volumes.names[volumes.binding[claim]] if claim >= 0 else ""

    def _activity_name(self, activity: int, run: int) -> str:
        """Return the name of an activity, after the key of its run if that is another one."""
        if activity < 0:
            return ""
        name = self.lowered.problem.activity_names[activity]
        if activity >= len(self.lowered.activities):
            return name
        other = self.lowered.activities[activity].run
        return name if other == run else f"{self.lowered.runs[other].key}/{name}"


def _latest(activities: Integers, times: Floats) -> int:
    """Return the activity whose time is the latest, -1 = there is none."""
    return int(activities[times.argmax()]) if activities.size else -1


def _joined(pieces: list[CriticalPiece]) -> tuple[CriticalPiece, ...]:
    """Return the pieces in order of time, with equal neighbours joined."""
    same = groupby(reversed(pieces), lambda each: (each.step, each.kind, each.node, each.cause))
    joined = []
    for (step, kind, node, cause), group in same:
        row = list(group)
        start, finish = row[0].start_seconds, row[-1].finish_seconds
        joined.append(CriticalPiece(step, kind, start, finish, node, cause))
    return tuple(joined)
