"""The lower bound of a run: a makespan that no schedule can beat, and the kind of its proof.

It is the largest of these bounds, each by name:

- `critical-path`: the longest chain of activities, each at its quickest on a node where it fits,
  with the driver, transfer and pull time that cannot be avoided, and limits at their most; it
  includes the first pull of an image that several use (`critical_paths`);
- `area`: requested resources x time against the room of all nodes, the time for which pods hold a
  claim that only one may have, and the time for which the holders of a limit are under way, between
  what must come before and what must follow;
- `windows`: the area of windows of time, in which steps that would end too late otherwise must run
  in part; where all nodes are equally fast (`kinds_bound`);
- `kinds-lp`: where nodes differ, a linear program over the kinds of nodes that each step may go to,
  with the rows of these windows and of the chains; where the extra `bounds` is installed;
- `pattern-lp`: the linear program over all sets of pods that fit on a node together, weighted by
  the node's speed; where the extra `bounds` is installed and the sets are few enough;
- each of them with `-rounded` behind its name: rounded up to the common divisor of all times, where
  there is one (`time_grid`).

Where branches exclude each other, a schedule ends with its latest outcome, so that a bound of any
outcome counts: the critical path is that of the outcome with most work or of the one with the
longest chain, and the other bounds are those of the outcome with most work. What runs only after a
failure is left out.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from kfp_placement_engine.bounds.critical_paths import LeastSeconds, Paths, paths_of
from kfp_placement_engine.bounds.effort import THOROUGH, BoundEffort
from kfp_placement_engine.bounds.nested_holders import together_seconds
from kfp_placement_engine.bounds.time_grid import common_divisor, rounded_up
from kfp_placement_engine.plans.comparison import Bound, Bounds
from kfp_placement_engine.problem.outcomes import longest_outcome, one_outcome, without
from kfp_placement_engine.problem.problem import (
    Booleans,
    Floats,
    Integers,
    PlacementProblem,
    distinct,
    occupied_seconds,
    owners,
    shares_of,
)

RELATIVE_MARGIN = 1e-9
"""Largest relative difference that counts as none: the same numbers, added in another order."""

RELATIVE_ERROR = 1e-12
"""Share by which bounds are lowered, since simulated times are sums in another order."""

ROUNDED = "-rounded"
"""Ending of the name of a bound that was rounded up."""

MAX_HEADS = 64
"""Largest number of starting times from which on the area is looked at, to bound the work."""

BLOCK_CELLS = 1_000_000
"""Activities x nodes looked at together: 10,000 steps on 1,000 nodes would fill memory."""


def lower_bound(
    problem: PlacementProblem, reached_seconds: float = math.inf, effort: BoundEffort = THOROUGH
) -> Bound:
    """Return the largest bound, on a tie the one that the module's docstring names first.

    Args:
        problem: problem whose makespan is bounded.
        reached_seconds: makespan of some schedule that places all steps. No bound is larger, so the
            linear programs, which take longest, are left out where another bound is as large.
        effort: limits of the computation.
    """
    return max(lower_bounds(problem, reached_seconds, effort), key=lambda bound: bound.seconds)


def lower_bounds(
    problem: PlacementProblem, reached_seconds: float = math.inf, effort: BoundEffort = THOROUGH
) -> Bounds:
    """Return all bounds that `lower_bound` compares, in the order of the module's docstring.

    A bound that rounding up does not change is there only once.
    """
    usable = usable_nodes(problem)
    divisor = common_divisor(problem, usable)
    problem, *others = _outcomes(problem, usable)
    paths = _paths(problem, usable)
    chains = [paths.critical_seconds, *(_paths(each, usable).critical_seconds for each in others)]
    bounds = [
        Bound(max(chains), "critical-path"),
        Bound(area_seconds(problem, usable, paths), "area"),
    ]
    for more in (_kinds_bounds, _pattern_bounds):
        largest = max(bound.seconds for bound in [*bounds, *_rounded(bounds, divisor)])
        if reached_seconds > largest * (1 + RELATIVE_MARGIN):
            bounds += more(problem, usable, paths, (largest, reached_seconds), effort)
    # The bounds are compared with simulated times, which add up the same numbers in another order.
    return tuple(
        Bound(bound.seconds * (1 - RELATIVE_ERROR), bound.kind)
        for bound in [*bounds, *_rounded(bounds, divisor)]
    )


def _rounded(bounds: Sequence[Bound], divisor: float | None) -> list[Bound]:
    """Return the bounds that are not multiples of the divisor, rounded up to one."""
    if divisor is None:
        return []
    rounded = [(bound, rounded_up(bound.seconds, divisor)) for bound in bounds]
    return [
        Bound(seconds, bound.kind + ROUNDED)
        for bound, seconds in rounded
        if seconds > bound.seconds * (1 + RELATIVE_MARGIN)
    ]


def _kinds_bounds(
    problem: PlacementProblem,
    usable: Booleans,
    paths: Paths,
    interval: tuple[float, float],
    effort: BoundEffort,
) -> list[Bound]:
    """Return the bound by windows and kinds of nodes, if it is larger than the others."""
    from kfp_placement_engine.bounds.kinds_bound import kinds_bound

    bound = kinds_bound(problem, usable, paths, interval, effort)
    return [bound] if bound else []


def _pattern_bounds(
    problem: PlacementProblem,
    usable: Booleans,
    paths: Paths,
    _interval: tuple[float, float],
    effort: BoundEffort,
) -> list[Bound]:
    """Return the bound of the pattern program, if the solver is there and the program is small."""
    # Imported here, since the other bounds are often enough.
    from kfp_placement_engine.bounds.pattern_bound import pattern_bound_seconds

    pattern = pattern_bound_seconds(problem, usable, effort.pattern_cells)
    if pattern is None:
        return []
    steps = problem.arrays.gene >= 0
    around = float(paths.head[steps].min()) + float(paths.tail[steps].min())
    return [Bound(pattern + around, "pattern-lp")]


def _paths(problem: PlacementProblem, usable: Booleans) -> Paths:
    return paths_of(problem, least_seconds(problem, usable))


def _outcomes(problem: PlacementProblem, usable: Booleans) -> list[PlacementProblem]:
    """Return the outcome with most work, and the one with the longest chain if it is another."""
    arrays = problem.arrays
    if not arrays.branch_choice.size:
        return [without(problem, arrays.after_failure)]
    paths = _paths(without(problem, arrays.after_failure), usable)
    outcomes = [
        one_outcome(arrays, arrays.requests * paths.shortest[:, None]),
        longest_outcome(arrays, paths.end + paths.tail),
    ]
    if (outcomes[0] == outcomes[1]).all():
        outcomes.pop()
    return [without(problem, ~taken) for taken in outcomes]


def critical_path_bounds(problem: PlacementProblem, runs: int) -> Bounds:
    """Return the critical path of each run, a cheap bound that does not see the other runs.

    Args:
        problem: problem of several runs.
        runs: number of runs, from the first on, whose bounds are returned.
    """
    usable = usable_nodes(problem)
    longest = np.zeros(problem.arrays.run_weight.size)
    for outcome in _outcomes(problem, usable):
        paths = _paths(outcome, usable)
        np.maximum.at(longest, problem.arrays.run, paths.end + paths.tail)
    return tuple(
        Bound(float(seconds) * (1 - RELATIVE_ERROR), "critical-path") for seconds in longest[:runs]
    )


def usable_nodes(problem: PlacementProblem) -> Booleans:
    """Return [A, N] the nodes to which Kubernetes' rules let each activity go and where it fits."""
    arrays = problem.arrays
    # Few rows are different, so this is quick even for 10,000 steps on 1,000 nodes.
    shapes, shape_of = np.unique(
        np.column_stack([arrays.class_of, arrays.requests]), axis=0, return_inverse=True
    )
    room = np.ones((len(shapes), problem.nodes), np.bool_)
    for resource in range(arrays.requests.shape[1]):
        request = shapes[:, 1 + resource][:, None]
        room &= (request == 0) | (request <= arrays.free[:, resource][None, :])
    return np.asarray((arrays.feasible[shapes[:, 0]] & room)[shape_of.ravel()])


def least_seconds(problem: PlacementProblem, usable: Booleans) -> LeastSeconds:
    """Return the least times from bind to end; without a node, an activity's reference run time."""
    arrays = problem.arrays
    present, missing, pulling = (np.full(problem.activities, np.inf) for _ in range(3))
    step = max(1, BLOCK_CELLS // max(1, problem.nodes))
    for first in range(0, problem.activities, step):
        block = slice(first, first + step)
        seconds = occupied_seconds(arrays, block, slice(None))
        seconds[~usable[block]] = np.inf
        users = np.flatnonzero(arrays.image[block] >= 0)
        image = arrays.image[block][users]
        held = np.ones(seconds.shape, np.bool_)
        held[users] = arrays.image_present[image]
        present[block] = np.where(held, seconds, np.inf).min(axis=1)
        without = np.where(held[users], np.inf, seconds[users])
        missing[first + users] = without.min(axis=1)
        pull = arrays.image_bytes[image][:, None] / arrays.pull_rate[None, :]
        pulling[first + users] = (without + pull).min(axis=1)
    nowhere = arrays.virtual | np.isinf(np.minimum(present, missing))
    present = np.where(nowhere, arrays.duration_seconds, present)
    missing[nowhere] = pulling[nowhere] = np.inf
    shortest = np.minimum(present, missing)
    pullers = _first_pullers(problem)
    shortest[pullers] = np.minimum(present, pulling)[pullers]
    return LeastSeconds(shortest, present, missing, pulling)


def _first_pullers(problem: PlacementProblem) -> Integers:
    """Return the activities that need an image before all others that need it.

    Such an activity does not follow a user of its image, while every other user of the image
    follows one. So every chain of users begins with this activity, whatever the plan.
    """
    arrays = problem.arrays
    images: list[int] = arrays.image.tolist()
    starts, predecessors = arrays.predecessors_start.tolist(), arrays.predecessors.tolist()
    # By activity, as bits: the images that it or what precedes it needs.
    needed = [0] * problem.activities
    leading: dict[int, list[int]] = {}
    for activity in problem.topological.tolist():
        before = 0
        for earlier in predecessors[starts[activity] : starts[activity + 1]]:
            before |= needed[earlier]
        image = images[activity]
        if image >= 0 and not before >> image & 1:
            leading.setdefault(image, []).append(activity)
        needed[activity] = before | 1 << image if image >= 0 else before
    return np.array([users[0] for users in leading.values() if len(users) == 1], np.int64)


def area_seconds(problem: PlacementProblem, usable: Booleans, paths: Paths) -> float:
    """Return the bound by area: requested amount x time, over the room of the nodes.

    Activities that all start late and are all followed by much have only the time between for their
    work: every choice of "head at least this, tail at least that" gives a bound.
    """
    arrays = problem.arrays
    # Running pods are not counted, and neither is the room that they hold.
    placed = np.flatnonzero(~arrays.virtual & (arrays.fixed_node < 0) & usable.any(axis=1))
    if not placed.size:
        return 0.0
    open_nodes = usable[placed].any(axis=0)
    room = np.maximum(arrays.free[open_nodes], 0).astype(np.float64)
    requests = arrays.requests[placed].astype(np.float64)
    run = np.where(arrays.scales, arrays.duration_seconds, 0.0)[placed]
    shares = np.concatenate(
        [
            shares_of(requests * paths.shortest[placed, None], room.sum(axis=0)),
            shares_of(requests * run[:, None], arrays.speed[open_nodes] @ room),
        ],
        axis=1,
    )
    area = _windowed(shares, paths.head[placed], paths.tail[placed])
    return max(area, _claims_seconds(problem, paths, placed), _limits_seconds(problem, paths))


def _claims_seconds(problem: PlacementProblem, paths: Paths, placed: Integers) -> float:
    """Return the bound by claims that only one pod at a time may have: their users take turns."""
    arrays = problem.arrays
    mounting = owners(arrays.claims_start)
    counts = np.isin(mounting, placed) & arrays.exclusive[arrays.claims]
    by_claim = np.argsort(arrays.claims[counts], kind="stable")
    users, claims = mounting[counts][by_claim], arrays.claims[counts][by_claim]
    best = 0.0
    for group in np.split(users, np.flatnonzero(np.diff(claims)) + 1):
        if group.size:
            held = paths.shortest[group, None]
            best = max(best, _windowed(held, paths.head[group], paths.tail[group]))
    return best


def _limits_seconds(problem: PlacementProblem, paths: Paths) -> float:
    """Return the bound by limits: the holders of each share its places."""
    arrays = problem.arrays
    inside, head, tail = owners(arrays.holders_start), *np.full((2, paths.held.size), np.inf)
    np.minimum.at(head, arrays.holders, paths.head[inside])
    np.minimum.at(tail, arrays.holders, paths.tail[inside])
    best = 0.0
    for most, (first, last) in zip(arrays.limit_most, pairwise(arrays.limit_start), strict=True):
        of_limit = first + np.flatnonzero(arrays.holder_size[first:last])
        # More may have been started than the limit allows; none is stopped.
        places = max(int(most), int(arrays.holder_started[of_limit].sum()))
        if of_limit.size <= places:
            continue
        held = paths.held[of_limit]
        around = float(head[of_limit].min() + tail[of_limit].min())
        shares = held[:, None] / places
        windowed = _windowed(shares, head[of_limit], tail[of_limit])
        best = max(best, around + together_seconds(places, held.tolist()), windowed)
    return best


def _windowed(shares: Floats, head: Floats, tail: Floats) -> float:
    """Return the largest sum of head, work and tail of a set of activities with at least these."""
    by_tail = np.argsort(-tail, kind="stable")
    shares, head, tail = shares[by_tail], head[by_tail], tail[by_tail]
    heads = distinct(head)
    if heads.size > MAX_HEADS:
        heads = heads[np.linspace(0, heads.size - 1, MAX_HEADS).astype(np.int64)]
    best = 0.0
    for least in heads:
        inside = head >= least
        work = np.cumsum(shares[inside], axis=0).max(axis=1)
        best = max(best, float(least) + float((work + tail[inside]).max()))
    return best
