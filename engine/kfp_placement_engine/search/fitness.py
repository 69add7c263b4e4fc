"""What a schedule is worth: the terms of the objective, compared one after another.

Order: steps unplaced; sum over latency-ruled steps of the round trip beyond the tolerance band;
then by `objective`:

- `completion`: completion time (makespan; with several runs the weighted sum of completions), busy
  time, balance of utilisation and image pulls; with a limit for the latest end of several runs
  first what is beyond it, then completion time, busy time;
- `makespan`: of several runs the latest end, completion time, busy time; of one as `completion`;
- `packing`: number of nodes used, completion time, busy time;
- `paper`: the assignment's value by Eq. (1) of the genetic-algorithm paper, completion time, busy
  time.

Busy time is what all pods together take to download, run and upload: among plans that end together
the one whose work is done on quicker nodes. Balance alone would count a slow node, which is busy
for longer, as better used.

The kernel computes the terms with every simulation (`engine/kernel/fitness.h`).
"""

from kfp_placement_engine.problem.problem import Floats

OBJECTIVES = ("completion", "makespan", "packing", "paper")

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
