"""The use of resources while a run lasts, and the scarcest of them at each time."""

from itertools import groupby
from typing import NamedTuple

import numpy as np

from kfp_placement_engine.bounds.lower_bound import usable_nodes
from kfp_placement_engine.lowering.apart import is_made_up
from kfp_placement_engine.plans.limits import ResourceUse
from kfp_placement_engine.problem.problem import (
    Booleans,
    Floats,
    Integers,
    PlacementProblem,
    distinct,
    shares_of,
)
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.problem.use_over_time import Pods, largest_use

MOST_SPANS = 50
"""Largest number of spans that people look at; more are joined to this many of equal length."""


def resource_use(
    run: int, problem: PlacementProblem, schedule: Schedule, release_seconds: float
) -> tuple[ResourceUse, ...]:
    """Return spans of time, each with the resource of which the largest share is in use.

    A share is the sum of the requests of all pods, those of other runs included, over what is free
    at time zero on the nodes that the run may use. Neighbouring spans differ. They touch, from time
    zero or the run's submission, whichever is later, to its end.

    Args:
        run: index of the run.
        problem: problem that was planned.
        schedule: schedule of the problem.
        release_seconds: time at which the run is submitted.
    """
    own = (problem.arrays.run == run) & ~problem.arrays.virtual
    open_nodes = usable_nodes(problem)[own].any(axis=0)
    pods = _pods_at_work(run, problem, schedule, release_seconds, open_nodes)
    if pods is None:
        return ()
    edges, used = _use_over_time(pods, problem)
    return _spans(edges, used, problem.resource_names)


def mean_use(
    run: int, problem: PlacementProblem, schedule: Schedule, release_seconds: float
) -> dict[str, float]:
    """Return the mean use of each real resource while the run lasts, by name, if it has room.

    Room of nodes that Kubernetes' rules forbid to all pods of the run does not count.

    Args:
        run: index of the run.
        problem: problem that was planned.
        schedule: schedule of the problem.
        release_seconds: time at which the run is submitted.
    """
    arrays = problem.arrays
    classes = distinct(arrays.class_of[(arrays.run == run) & ~arrays.virtual])
    open_nodes = arrays.feasible[classes].any(axis=0)
    pods = _pods_at_work(run, problem, schedule, release_seconds, open_nodes)
    if pods is None:
        return {}
    since, until = pods.span
    if arrays.branch_choice.size:
        edges, used = _use_over_time(pods, problem)
        means = np.diff(edges) @ used / (until - since)
    else:
        means = (pods.ends - pods.starts) @ pods.shares / (until - since)
    named = zip(problem.resource_names, means.tolist(), pods.has_room.tolist(), strict=True)
    return {name: mean for name, mean, has_room in named if has_room and not is_made_up(name)}


class _PodsAtWork(NamedTuple):
    """The pods on some nodes while a run lasts.

    Attributes:
        span: time from the run's submission, or time zero, to its end.
        starts, ends: [P] times within the span.
        shares: [P, R] requests as shares of the room.
        branch: [P] innermost branch around the pod, -1 = none.
        has_room: [R] whether there is any room of the resource.
    """

    span: tuple[float, float]
    starts: Floats
    ends: Floats
    shares: Floats
    branch: Integers
    has_room: Booleans


def _pods_at_work(
    run: int,
    problem: PlacementProblem,
    schedule: Schedule,
    release_seconds: float,
    open_nodes: Booleans,
) -> _PodsAtWork | None:
    """Return the pods that take room on these nodes while the run lasts; None without any."""
    arrays = problem.arrays
    since = max(0.0, release_seconds)
    until = float(schedule.end[(arrays.run == run) & schedule.awaited].max(initial=0.0))
    taking = np.flatnonzero(schedule.finished & (schedule.node >= 0))
    taking = taking[open_nodes[schedule.node[taking]]]
    if until <= since or not taking.size:
        return None
    room = np.maximum(arrays.free[open_nodes], 0).sum(axis=0).astype(np.float64)
    requests = arrays.requests[taking].astype(np.float64)
    shares = shares_of(requests, room)
    starts = np.clip(schedule.start[taking], since, until)
    ends = np.clip(schedule.end[taking], since, until)
    return _PodsAtWork((since, until), starts, ends, shares, arrays.branch[taking], room > 0)


def _use_over_time(pods: _PodsAtWork, problem: PlacementProblem) -> tuple[Floats, Floats]:
    """Return [T + 1] edges of spans, by changes of the use or of equal length; [T, R] mean use."""
    span = pods.span
    use = largest_use(Pods(pods.starts, pods.ends, pods.shares, pods.branch), problem.arrays)
    inside = use.times[(use.times > span[0]) & (use.times < span[1])]
    edges = np.concatenate([span[:1], inside, span[1:]])
    used = use.at(edges[:-1]).astype(np.float64)
    if len(used) <= MOST_SPANS:
        return edges, used
    nothing = np.zeros((1, used.shape[1]))
    total = np.concatenate([nothing, (used * np.diff(edges)[:, None]).cumsum(axis=0)])
    even = np.linspace(*span, MOST_SPANS + 1)
    at_edges = np.stack([np.interp(even, edges, column) for column in total.T], axis=1)
    return even, np.diff(at_edges, axis=0) / np.diff(even)[:, None]


def _spans(edges: Floats, used: Floats, resources: tuple[str, ...]) -> tuple[ResourceUse, ...]:
    """Return the spans with the largest share of each row; equal neighbours are joined."""
    rows = zip(used.argmax(axis=1).tolist(), used.max(axis=1).round(6).tolist(), strict=True)
    spans, at = [], 0
    for (resource, share), same in groupby(rows):
        start, at = at, at + len(list(same))
        name = resources[resource] if share > 0 else ""
        spans.append(ResourceUse(float(edges[start]), float(edges[at]), name, max(0.0, share)))
    return tuple(spans)
