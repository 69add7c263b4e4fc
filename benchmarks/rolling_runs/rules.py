"""Rules of gates that were compared with the engine's; those that lost are kept here alone.

Each says which steps of a node's queue start now, as `node_queue.steps_to_start` does.
"""

import math
from collections.abc import Callable, Sequence

from kfp_placement_engine.planning.starts.node_queue import QueuedStep, RunningStep
from kfp_placement_engine.units.resources import Resources, add_to, fits, subtract_from, with_pod

GateRule = Callable[[Sequence[QueuedStep], Sequence[RunningStep], Resources, float], list[int]]
"""Queue in the plan's order, running steps, free room and time -> positions that start."""


def strict(
    queue: Sequence[QueuedStep], _running: Sequence[RunningStep], free: Resources, _now: float
) -> list[int]:
    """Start steps in strict order, up to the first that is not there or does not fit."""
    left = dict(free)
    started = []
    for position, step in enumerate(queue):
        if not step.is_allowed:
            if not (step.is_ready and fits(step.requests, left)):
                break
            started.append(position)
        subtract_from(left, with_pod(step.requests))
    return started


def kept_room(
    queue: Sequence[QueuedStep], running: Sequence[RunningStep], free: Resources, now: float
) -> list[int]:
    """Keep every step's room from later ones, unless they end before it can start.

    The controller's rule until 2026-11. One that is late counts as beginning now.
    """
    ends = sorted(running, key=lambda each: each.end_seconds)
    left, available = dict(free), dict(free)
    next_start = math.inf
    started = []
    for position, step in enumerate(queue):
        in_gap = now + step.seconds <= next_start and fits(step.requests, available)
        taken = with_pod(step.requests)
        if step.is_ready and (in_gap or fits(step.requests, left)):
            started.append(position)
            subtract_from(available, taken)
        elif step.is_allowed:
            subtract_from(available, taken)
        else:
            start = step.start_seconds
            if step.is_ready:
                start = _room_from(step.requests, available, ends, now)
            next_start = min(next_start, max(now, start))
        subtract_from(left, taken)
    return started


def _room_from(
    requests: Resources, free: Resources, ends: Sequence[RunningStep], now: float
) -> float:
    """Return when planned ends leave room; now, where it depends on steps without a planned end."""
    free = dict(free)
    for each in ends:
        add_to(free, with_pod(each.requests))
        if fits(requests, free):
            return each.end_seconds
    return now


def ready_and_fits(
    queue: Sequence[QueuedStep], _running: Sequence[RunningStep], free: Resources, _now: float
) -> list[int]:
    """Start the steps that are ready and fit, in the plan's order."""
    left = dict(free)
    for step in queue:
        if step.is_allowed:
            subtract_from(left, with_pod(step.requests))
    started = []
    for position, step in enumerate(queue):
        if step.is_ready and fits(step.requests, left):
            started.append(position)
            subtract_from(left, with_pod(step.requests))
    return started
