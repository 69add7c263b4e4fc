"""Nodes on which steps take longer than their declared speeds say.

A module of its own because it learns from past runs, as all of this room does; its importer is a
rule of the command line.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median

from kfp_placement_engine.history.step_times import SHORT_SECONDS
from kfp_placement_engine.model.history import PastRun

_LEAST_STEPS = 20
"""Steps that must have run on a node before anything is said of it."""

_LEAST_FACTOR = 1.2
"""Slowdown from which somebody should declare a speed."""


def undeclared_speeds(runs: Iterable[PastRun]) -> Mapping[str, float]:
    """Return the slowdown of steps on nodes whose declared speed is too high, against other nodes.

    Each run time is held against the median of the same step and iteration on all other nodes.

    Args:
        runs: past runs, whose times are those on the reference node if the speeds are right.

    Returns:
        The factor by node, of those where it is clear.
    """
    times: dict[object, list[tuple[str, float]]] = defaultdict(list)
    for run in runs:
        for step in run.steps:
            seconds = step.seconds or 0.0
            if step.node and seconds >= SHORT_SECONDS:
                times[step.identity.key, step.identity.iteration].append((step.node, seconds))
    factors: dict[str, list[float]] = defaultdict(list)
    for alike in times.values():
        for node in {where for where, _ in alike}:
            elsewhere = [seconds for where, seconds in alike if where != node]
            if elsewhere:
                usual = median(elsewhere)
                factors[node] += [seconds / usual for where, seconds in alike if where == node]
    slowdowns = {node: median(each) for node, each in factors.items() if len(each) >= _LEAST_STEPS}
    return {node: factor for node, factor in slowdowns.items() if factor >= _LEAST_FACTOR}
