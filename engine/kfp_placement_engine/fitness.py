"""What a schedule is worth: the terms of the objective, compared one after the other.

Order: steps unplaced; sum over latency-ruled steps of the round trip beyond the tolerance band;
then by `objective`:

- `completion`: completion time (makespan; with several runs the weighted sum of completions), then
  balance of utilisation and image pulls;
- `packing`: number of nodes used, then completion time;
- `paper`: the assignment's value by Eq. (1) of the genetic-algorithm paper, then completion time.

The kernel computes the terms with every simulation (`engine/kernel/fitness.h`).
"""

from kfp_placement_engine.problem import Floats

OBJECTIVES = ("completion", "packing", "paper")

RELATIVE_MARGIN = 1e-9
"""Smaller differences do not count."""


def better(first: Floats, second: Floats) -> bool:
    """Whether the first terms come before the second."""
    for one, other in zip(first, second, strict=True):
        margin = RELATIVE_MARGIN * max(1.0, abs(float(other)))
        if one < other - margin:
            return True
        if one > other + margin:
            return False
    return False
