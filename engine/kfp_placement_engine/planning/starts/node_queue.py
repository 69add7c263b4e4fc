"""The queue of a node: the steps planned there, and the rule by which they start.

On a node, steps start in the plan's order. A ready step that fits may overtake earlier steps if it
ends in time for them: a step on time is not delayed at all, a late one by at most its slack, so
that its run ends no later than expected. The controller takes gates off by this rule, and
`benchmarks.rolling` simulates it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from kfp_placement_engine.lowering.branches import AFTER_FAILURE, Path
from kfp_placement_engine.model.concurrency import exclude_each_other
from kfp_placement_engine.planning.starts.room_over_time import RoomOverTime
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.units.resources import (
    Resources,
    add_to,
    fits,
    plus,
    subtract_from,
    with_pod,
)

MOST_KEPT = 200
"""Largest number of waiting steps whose room is kept for their planned time only.

The room of further ones is kept from now on. Without the limit a decision would take minutes with
ten thousand steps on one node.
"""

_ASSUMED = Assumptions()
_TOLERANCE = 1e-6


class QueuedStep(NamedTuple):
    """A step that is planned on the node and has not started; times in seconds on one clock.

    It is a tuple, since a gate decision makes one for every waiting step of large runs.

    Attributes:
        requests: planned requests of its pod, without `pods`; this much is kept for it.
        start_seconds: planned start.
        seconds: planned duration; infinite = unknown.
        expected_start_seconds: expected start, without regard to room on its node.
        latest_start_seconds: latest start with which its run ends no later than expected.
        is_ready: whether its pod is there and waits for this decision.
        is_allowed: whether it was allowed to start before; its room is taken, though its pod may
            not run yet.
        path: branches around it, in names that no other run has.
        pod_requests: requests of its pod, which may be more than planned; None = as planned.
    """

    requests: Resources
    start_seconds: float
    seconds: float = math.inf
    expected_start_seconds: float = -math.inf
    latest_start_seconds: float = -math.inf
    is_ready: bool = False
    is_allowed: bool = False
    path: Path = ()
    pod_requests: Resources | None = None

    @property
    def needed(self) -> Resources:
        """Requests with which its pod must fit on the node."""
        return self.requests if self.pod_requests is None else self.pod_requests

    def earliest_start(self, now_seconds: float) -> float:
        """Return when it may start if there is room: not before it is planned or expected."""
        return max(now_seconds, self.start_seconds, self.expected_start_seconds)


class RunningStep(NamedTuple):
    """A step that takes room on the node.

    Attributes:
        requests: requests of its pod, without `pods`.
        start_seconds: time at which it took its room.
        end_seconds: planned end.
    """

    requests: Resources
    start_seconds: float
    end_seconds: float


def expected_end(start_seconds: float, end_seconds: float, now_seconds: float) -> float:
    """Return the expected end of a running step: as planned, or an estimate if that is past."""
    seconds = max(0.0, end_seconds - start_seconds)
    return now_seconds + _ASSUMED.remaining_seconds(seconds, now_seconds - start_seconds)


def steps_to_start(
    queue: Sequence[QueuedStep], running: Sequence[RunningStep], free: Resources, now_seconds: float
) -> list[int]:
    """Return the positions in a node's queue of the steps that start now.

    Args:
        queue: steps that are planned on the node, in the plan's order.
        running: running steps whose ends are expected; all else there keeps its room forever.
        free: present room of the node.
        now_seconds: present time.
    """
    free, ends = _room_left(queue, running, free, now_seconds)
    candidates = [
        position for position, step in enumerate(queue) if step.is_ready and fits(step.needed, free)
    ]
    if not candidates:
        return []
    room = RoomOverTime(free, now_seconds, ends)
    horizon = max(now_seconds + queue[position].seconds for position in candidates)
    decided = [step.path for step in queue if step.is_ready or step.is_allowed]
    started: list[int] = []
    kept, others = 0, dict[str, int]()
    for position, step in enumerate(queue[: candidates[-1] + 1]):
        if step.is_allowed:
            continue
        end = now_seconds + step.seconds
        if step.is_ready and room.fits(plus(with_pod(step.needed), others), now_seconds, end):
            room.take(step.needed, now_seconds, end)
            started.append(position)
        elif step.earliest_start(now_seconds) < horizon and _may_come(step, decided):
            kept += 1
            if kept <= MOST_KEPT:
                _keep(room, step, now_seconds)
            else:
                add_to(others, with_pod(step.requests))
    return started


def _may_come(step: QueuedStep, decided: Sequence[Path]) -> bool:
    """Return whether a step needs room later, if nothing fails.

    A step whose pod is made has decided that the branches beside its own are not taken.
    """
    if not step.path:
        return True
    return AFTER_FAILURE not in step.path and not any(
        exclude_each_other(step.path, each) for each in decided
    )


def _room_left(
    queue: Sequence[QueuedStep], running: Sequence[RunningStep], free: Resources, now_seconds: float
) -> tuple[Resources, list[tuple[float, Resources]]]:
    """Return the present room without that of allowed steps, and when which room becomes free."""
    free = dict(free)
    ends = [
        (expected_end(step.start_seconds, step.end_seconds, now_seconds), step.requests)
        for step in running
    ]
    for step in queue:
        if step.is_allowed:
            subtract_from(free, with_pod(step.requests))
            ends.append((now_seconds + step.seconds, step.requests))
    return free, ends


def _keep(room: RoomOverTime, step: QueuedStep, now_seconds: float) -> None:
    """Keep room for a step, so that steps behind it cannot take it."""
    after = step.earliest_start(now_seconds)
    start = room.earliest(step.requests, after, step.seconds)
    if start is None:
        # It needs the room of pods whose end is unknown: they may end at any time.
        room.take(step.requests, now_seconds, math.inf)
        return
    # A late step may wait until its latest start: steps behind it may use that time.
    if start > step.start_seconds + _TOLERANCE:
        start = max(start, step.latest_start_seconds)
    room.take(step.requests, start, start + step.seconds)
