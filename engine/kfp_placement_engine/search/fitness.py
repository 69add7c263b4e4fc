"""The objective of a search: the terms of a schedule, which are compared one after another.

First come the number of steps without a node, and the sum over latency-ruled steps of the round
trip beyond the tolerance band. The `objective` decides what comes then:

- `completion`: completion time (makespan; with several runs the weighted sum of completions), busy
  time, balance of utilisation and image pulls; with a limit for the latest end of several runs
  first the seconds beyond the limit, then completion time, busy time;
- `makespan`: for several runs the latest end, completion time, busy time; for one run the same as
  `completion`;
- `packing`: number of nodes used, completion time, busy time;
- `paper`: the assignment's value by Eq. (1) of the genetic-algorithm paper, completion time, busy
  time.

Busy time is the sum of the seconds in which pods download, run and upload. Of plans that end at the
same time it prefers the one that uses quicker nodes. Balance alone would count a slow node, which
is busy for longer, as better used.

The kernel computes the terms with every simulation (`engine/kernel/fitness.h`).
"""

from kfp_placement_engine.problem.problem import Floats

OBJECTIVES = ("completion", "makespan", "packing", "paper")

RELATIVE_MARGIN = 1e-9
"""Largest relative difference of two terms that counts as none: their sums are rounded."""


def better(first: Floats, second: Floats) -> bool:
    """Return whether the first terms are better than the second."""
    for one, other in zip(first, second, strict=True):
        margin = RELATIVE_MARGIN * max(1.0, abs(float(other)))
        if one < other - margin:
            return True
        if one > other + margin:
            return False
    return False
