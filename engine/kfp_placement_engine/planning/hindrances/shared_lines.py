"""A notice about nodes on which transfers overlap, though each is planned at the full rate.

How a network divides its rate among transfers is not known. So plans do not count it, and where it
would matter, they say so. Each direction of a line counts alone.
"""

from collections.abc import Iterator

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.problem.problem import Floats
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.units.durations import format_duration

_LEAST_SHARE = 0.1
"""Share of the run that overlapping transfers must lose to be named."""

_NAMED = 5


def shared_lines(
    lowered: Lowered, schedule: Schedule, run: int, makespan_seconds: float
) -> Iterator[Notice]:
    """Yield a notice on the node whose transfers lose most if they share its line, if that matters.

    Args:
        lowered: problem with its origin.
        schedule: schedule of all runs.
        run: index of the run that the notice is for.
        makespan_seconds: time that the run takes.
    """
    arrays = lowered.problem.arrays
    own = np.flatnonzero((arrays.run == run) & (schedule.node >= 0) & schedule.finished)
    nodes, ends = schedule.node[own], schedule.end[own]
    begins = schedule.begin[own] + schedule.pull_seconds[own]
    downloads = arrays.download_bytes[own] / arrays.store_rate[nodes]
    uploads = arrays.upload_bytes[own] / arrays.store_rate[nodes]
    most, worst, members = 0.0, -1, own
    for first, last in ((begins, begins + downloads), (ends - uploads, ends)):
        moves = last > first
        for node in sorted(set(nodes[moves].tolist())):
            here = moves & (nodes == node)
            lost = _overlap(first[here], last[here])
            if lost > most:
                most, worst, members = lost, node, own[here]
    if most > _LEAST_SHARE * makespan_seconds:
        steps = (lowered.activities[index].step for index in members.tolist())
        tasks = listed(list(dict.fromkeys(step.task for step in steps if step)), _NAMED)
        yield Notice(
            "shared-line",
            f"transfers of {tasks} overlap on {lowered.problem.node_names[worst]}, and each is"
            f" planned at the full rate of that node; one after another they take"
            f" {format_duration(most)} more, {most / makespan_seconds:.0%} of the run. If they"
            " share a line, the run may end that much later; state a lower storeBandwidth of the"
            " node",
        )


def _overlap(first: Floats, last: Floats) -> float:
    """Return by how much the sum of intervals is longer than the time that they cover."""
    order = np.argsort(first)
    first, last = first[order], last[order]
    before = np.maximum.accumulate(np.concatenate(([-np.inf], last[:-1])))
    covered = np.maximum(0.0, last - np.maximum(first, before))
    return float((last - first).sum() - covered.sum())
