"""Pods that run already: the node they are on, and how long they still need."""

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
    """[A] arrays as in `problem.ProblemArrays`.

    Attributes:
        running: the pod runs already.
        fixed_node: the node of a running pod, -1 = not running, or on a node we do not know.
    """

    running: Booleans
    fixed_node: Integers

    @property
    def on_unknown_node(self) -> Booleans:
        """[A] runs on a node that the cluster does not have: takes time but no room."""
        return np.asarray(self.running & (self.fixed_node < 0))


def running_pods(activities: Sequence[Activity], node_index: Mapping[str, int]) -> Running:
    """Where the running pods are."""
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
    """Work and images with running pods cut down to what they still need.

    That is what the planner expects on the node for pull, transfers and run time, less the time
    since the bind; of a pod that takes longer `overrun_share` of it.
    Its image counts as present on its node.
    """
    indexes = [index for index, activity in enumerate(activities) if activity.running is not None]
    if not indexes:
        return work, images
    duration, scales = work.duration_seconds.copy(), work.scales.copy()
    pulls, present = work.pulls.copy(), images.present.copy()
    download, upload = work.download_bytes.copy(), work.upload_bytes.copy()
    for index in indexes:
        progress, node = activities[index].running, int(running.fixed_node[index])
        assert progress is not None  # only running ones are looked at
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
    """From bind to end on the node, had it the node to itself; without a node the run time."""
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
