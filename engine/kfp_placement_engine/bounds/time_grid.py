"""The common divisor of all times, to a multiple of which bounds may be rounded up.

Let every run time on every node that may be used, every pull, transfer and release be a multiple of
d. Then the optimal makespan is one too, whatever holds steps back. For take any schedule and move
every start s, begin and end e down to the next multiple of d. Nothing that the model forbids comes
about:

- An end is a maximum of starts and ends, each plus a constant: the start plus the run time; the
  start of who pulled an image first plus the pull; the producer's end plus a transfer; the end of
  who had a volume. The constants are multiples of d, so all of this still holds after moving.
- "Not before", for predecessors, releases and iterations of a limited loop, holds likewise: from
  e <= s follows floor(e / d) <= floor(s / d).
- If activities overlap at time t after moving, with k d <= t < (k + 1) d, each started before
  (k + 1) d and ended at (k + 1) d or later, so all of them ran just before (k + 1) d. No node,
  claim or loop holds more at a time than it held then.

The moved schedule ends at a multiple of d, no later than the other. A bound that follows from these
rules alone holds for it too, so both end at the bound rounded up or later. (That optimal schedules
are left-justified says less: it asks for an optimal schedule that is, Sprecher, Kolisch and Drexl
1995, and plans may hold starts.)

Times are floats, and sums of them are rounded; d is that of the exact numbers they stand for. If
each time differs from its exact number by a factor of 1 + e at most, the schedule stretched by that
factor is one for the exact numbers. So the bound holds up to this factor, which is far below what
bounds are lowered by anyway.
"""

import math

import numpy as np

from kfp_placement_engine.problem.problem import (
    Booleans,
    Floats,
    Integers,
    PlacementProblem,
    distinct,
)

UNITS_PER_SECOND = 63_000
"""Times are counted in units of 1/63,000 s: thousandths, and their thirds, sevenths and ninths."""

EXACT = 1e-13
"""Largest difference from a multiple of the unit, as a share of the time, that counts as none."""

MIN_UNITS = UNITS_PER_SECOND // 1000
"""Smallest useful divisor, 1 ms: times such as 16.667 s and 25 s have a smaller one by chance."""

MOST_UNITS = 2**43
"""Largest time: beyond, floats are too coarse, and any time would seem to be a multiple."""

MOST_PAIRS = 1_000_000
"""Largest number of pairs of run time and speed: 10,000 lengths of steps on 100 kinds of nodes."""

ROUNDING = 1e-9
"""Relative distance above a multiple that may be a rounding error; such bounds stay there."""


def common_divisor(problem: PlacementProblem, usable: Booleans) -> float | None:
    """Return the largest time of which all times are multiples, in seconds; None without one.

    Args:
        problem: problem whose makespan is bounded.
        usable: [A, N] nodes that each activity may go to.
    """
    divisor = 0
    for times in _times(problem, usable):
        exact = times * UNITS_PER_SECOND
        if exact.max() > MOST_UNITS:
            return None
        units = np.rint(exact)
        if (np.abs(units - exact) > EXACT * units).any():
            return None
        divisor = math.gcd(divisor, int(np.gcd.reduce(units.astype(np.int64))))
        if 0 < divisor < MIN_UNITS:
            return None
    return divisor / UNITS_PER_SECOND if divisor else None


def rounded_up(seconds: float, divisor: float) -> float:
    """Return the least multiple of the divisor that is not below, apart from rounding errors."""
    return max(seconds, math.ceil(seconds * (1 - ROUNDING) / divisor) * divisor)


def _times(problem: PlacementProblem, usable: Booleans) -> list[Floats]:
    """Return the times of which a schedule's times are sums, each group without repetitions."""
    arrays = problem.arrays
    fixed = arrays.fixed_node[arrays.fixed_node >= 0]
    open_nodes = np.asarray(usable.any(axis=0))
    open_nodes[fixed] = True
    scaled = distinct(arrays.duration_seconds[arrays.scales])
    moved = distinct((arrays.download_bytes + arrays.upload_bytes)[~arrays.virtual])
    groups = [
        distinct(arrays.release_seconds),
        distinct(arrays.duration_seconds[~arrays.scales | arrays.virtual]),
        _quotients(scaled, arrays.speed[open_nodes]),
        _quotients(moved, arrays.store_rate[open_nodes]),
        *_pulls(problem, open_nodes),
    ]
    if problem.direct_transfers:
        groups.append(distinct(arrays.transfer_bytes) / problem.link_bytes_per_second)
    return [each for each in groups if each.size]


def _pulls(problem: PlacementProblem, open_nodes: Booleans) -> list[Floats]:
    """Return the pull times of the images that activities need, on nodes that lack them."""
    arrays = problem.arrays
    used: Integers = distinct(arrays.image[(arrays.image >= 0) & ~arrays.virtual])
    return [
        _quotients(arrays.image_bytes[[image]], arrays.pull_rate[lacking])
        for image in used.tolist()
        if (lacking := open_nodes & ~arrays.image_present[image]).any()
    ]


def _quotients(amounts: Floats, rates: Floats) -> Floats:
    """Return every amount over every rate; if they are too many, a time without a divisor."""
    rates = distinct(rates)
    if amounts.size * rates.size > MOST_PAIRS:
        return np.array([math.pi])
    return np.asarray(amounts[:, None] / rates[None, :]).ravel()
