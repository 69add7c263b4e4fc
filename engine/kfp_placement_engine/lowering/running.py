"""Pods that run already: their nodes, and the time that they still need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kfp_placement_engine.lowering.activities import Activity
from kfp_placement_engine.lowering.images import Images
from kfp_placement_engine.lowering.tables import NodeTables
from kfp_placement_engine.lowering.work import Work
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.problem.problem import Booleans, Floats, Integers


@dataclass(frozen=True)
class Running:
    """The pods that run already.

    Attributes:
        running: [A] whether the pod runs already.
        fixed_node: [A] node of the running pod; -1 = not running, or on an unknown node.
    """

    running: Booleans
    fixed_node: Integers

    @property
    def on_unknown_node(self) -> Booleans:
        """[A] Whether it runs on a node that the cluster does not have, and takes only time."""
        return np.asarray(self.running & (self.fixed_node < 0))


def running_pods(activities: Sequence[Activity], node_index: Mapping[str, int]) -> Running:
    """Find the running pods and their nodes."""
    fixed = np.full(len(activities), -1, np.int64)
    for index, activity in enumerate(activities):
        if activity.running is not None:
            fixed[index] = node_index.get(activity.running.node or "", -1)
    running = [activity.running is not None for activity in activities]
    return Running(np.array(running, np.bool_), fixed)


def with_remaining_work(
    work: Work,
    images: Images,
    class_of: Integers,
    activities: Sequence[Activity],
    running: Running,
    nodes: NodeTables,
    assumptions: Assumptions,
) -> tuple[Work, Images]:
    """Return work and images in which running pods have only the rest of their time.

    This is the expected time on the node for pull, transfers and run, less the time since the bind.
    For a pod that takes longer it is a share of that time (`Assumptions.overrun_share`). Its image
    counts as present on its node.
    """
    indexes = [index for index, activity in enumerate(activities) if activity.running is not None]
    if not indexes:
        return work, images
    duration, scales = work.duration_seconds.copy(), work.scales.copy()
    pulls, present = work.pulls.copy(), images.present.copy()
    download, upload = work.download_bytes.copy(), work.upload_bytes.copy()
    for index in indexes:
        progress, node = activities[index].running, int(running.fixed_node[index])
        assert progress is not None  # `indexes` are running activities
        image = int(images.of_class[class_of[index]]) if pulls[index] else -1
        expected = _expected_seconds(work, images, index, image, node, nodes)
        duration[index] = assumptions.remaining_seconds(expected, progress.seconds_since_start)
        scales[index] = pulls[index] = False
        download[index] = upload[index] = 0
        if image >= 0 and node >= 0:
            present[image, node] = True
    return Work(duration, scales, pulls, download, upload), replace(images, present=present)


def _expected_seconds(
    work: Work, images: Images, index: int, image: int, node: int, nodes: NodeTables
) -> float:
    """Return the time from bind to end on an otherwise empty node; the run time without a node."""
    seconds = float(work.duration_seconds[index])
    if node < 0:
        return seconds
    if work.scales[index]:
        seconds /= float(nodes.speed[node])
    moved: Floats = work.download_bytes[index] + work.upload_bytes[index]
    seconds += float(moved / nodes.store_rate[node])
    if image >= 0 and not images.present[image, node]:
        seconds += float(images.size_bytes[image] / nodes.pull_rate[node])
    return seconds
