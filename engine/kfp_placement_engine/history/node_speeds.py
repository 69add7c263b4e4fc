"""Nodes on which steps take longer than their declared speeds say."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median

from kfp_placement_engine.history.step_times import SHORT_SECONDS
from kfp_placement_engine.model.history import PastRun, PastStep

_LEAST_STEPS = 20
"""Steps that must have run on a node before anything is said of it."""

_LEAST_FACTOR = 1.2
"""How many times as long steps must take for somebody to declare a speed."""


def undeclared_speeds(runs: Iterable[PastRun]) -> Mapping[str, float]:
    """How many times as long as elsewhere steps take on nodes whose declared speed is too high.

    Each run time is held against the median of the same step and iteration on all other nodes.

    Args:
        runs: past runs, whose times are those on the reference node if the speeds are right.

    Returns:
        The factor by node, of those where it is clear.
    """
    times: dict[object, list[PastStep]] = defaultdict(list)
    for run in runs:
        for step in run.steps:
            if step.node and step.is_usable and (step.seconds or 0.0) >= SHORT_SECONDS:
                times[step.identity.key, step.identity.iteration].append(step)
    ratios: dict[str, list[float]] = defaultdict(list)
    for alike in times.values():
        for node in {each.node for each in alike}:
            here = [_log_seconds(each) for each in alike if each.node == node]
            elsewhere = [_log_seconds(each) for each in alike if each.node != node]
            if elsewhere:
                ratios[node].extend(each - median(elsewhere) for each in here)
    found = {node: median(each) for node, each in ratios.items() if len(each) >= _LEAST_STEPS}
    is_clear = math.log(_LEAST_FACTOR)
    return {node: math.exp(each) for node, each in found.items() if each >= is_clear}


def _log_seconds(each: PastStep) -> float:
    return math.log(each.seconds or SHORT_SECONDS)
