"""Which resource is scarcest, from the submission of a run to its end."""

from itertools import groupby

import numpy as np

from kfp_placement_engine.bounds.lower_bound import usable_nodes
from kfp_placement_engine.model.limits import ResourceUse
from kfp_placement_engine.problem.problem import Floats, PlacementProblem
from kfp_placement_engine.search.simulation import Schedule

MOST_SPANS = 50
"""More spans than this are joined to this many of equal length, for people to look at."""


def resource_use(
    run: int, problem: PlacementProblem, schedule: Schedule, release_seconds: float = 0.0
) -> tuple[ResourceUse, ...]:
    """Spans of time, each with the resource of which most is in use; neighbours differ.

    A share is what all pods of the problem, those of other runs included, request of what is free
    at time zero on the nodes that the run may use. The spans touch, from time zero or the run's
    submission, whichever is later, to its end.

    Args:
        run: the run's index.
        problem: the problem.
        schedule: of that problem.
        release_seconds: when the run is submitted.
    """
    arrays = problem.arrays
    own = arrays.run == run
    since = max(0.0, release_seconds)
    until = float(schedule.end[own & schedule.finished].max(initial=0.0))
    open_nodes = usable_nodes(problem)[own & ~arrays.virtual].any(axis=0)
    taking = np.flatnonzero(schedule.finished & (schedule.node >= 0))
    taking = taking[open_nodes[schedule.node[taking]]]
    if until <= since or not taking.size:
        return ()
    room = np.maximum(arrays.free[open_nodes], 0).sum(axis=0).astype(np.float64)
    requests = arrays.requests[taking].astype(np.float64)
    shares = np.divide(requests, room, out=np.zeros_like(requests), where=room > 0)
    starts = np.clip(schedule.start[taking], since, until)
    ends = np.clip(schedule.end[taking], since, until)
    edges, used = _use_over_time(starts, ends, shares, (since, until))
    return _spans(edges, used, problem.resource_names)


def _use_over_time(
    starts: Floats, ends: Floats, shares: Floats, span: tuple[float, float]
) -> tuple[Floats, Floats]:
    """[T + 1] edges of the spans in which nothing changes, or of equal ones; [T, R] mean use."""
    times = np.concatenate([starts, ends, span])
    nothing = np.zeros((len(span), shares.shape[1]))
    order = np.argsort(times, kind="stable")
    times = times[order]
    used = np.concatenate([shares, -shares, nothing])[order].cumsum(axis=0)[:-1]
    lasting = np.diff(times) > 0
    edges, used = np.append(times[:-1][lasting], times[-1]), used[lasting]
    if len(used) <= MOST_SPANS:
        return edges, used
    total = np.concatenate([nothing[:1], (used * np.diff(edges)[:, None]).cumsum(axis=0)])
    even = np.linspace(*span, MOST_SPANS + 1)
    at_edges = np.stack([np.interp(even, edges, column) for column in total.T], axis=1)
    return even, np.diff(at_edges, axis=0) / np.diff(even)[:, None]


def _spans(edges: Floats, used: Floats, resources: tuple[str, ...]) -> tuple[ResourceUse, ...]:
    """The largest of each row, neighbours that say the same made one."""
    rows = zip(used.argmax(axis=1).tolist(), used.max(axis=1).round(6).tolist(), strict=True)
    spans, at = [], 0
    for (resource, share), same in groupby(rows):
        start, at = at, at + len(list(same))
        name = resources[resource] if share > 0 else ""
        spans.append(ResourceUse(float(edges[start]), float(edges[at]), name, max(0.0, share)))
    return tuple(spans)
