"""Classes of pods that look alike to a node, so that nodes are judged once for each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.lowering.activities import Activity
from kfp_placement_engine.lowering.lowered import LoweringOptions
from kfp_placement_engine.lowering.pods import PodShape, driver_shape, resource_names, step_shape
from kfp_placement_engine.lowering.tables import amounts
from kfp_placement_engine.lowering.volumes import VolumeRules
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.latency import latency_rule
from kfp_placement_engine.model.resources import with_pod
from kfp_placement_engine.model.run_graph import Notice
from kfp_placement_engine.problem.problem import Integers


@dataclass(frozen=True)
class PodClasses:
    """The classes of a problem's pods.

    Attributes:
        shapes: [K] what each looks like.
        of_activity: [A] the class of each activity.
        resources: [R] names of all that is requested.
        requests: [K, R] what a pod requests.
        notices: on latency rules, one for each task.
    """

    shapes: tuple[PodShape, ...]
    of_activity: Integers
    resources: tuple[str, ...]
    requests: Integers
    notices: tuple[Notice, ...]


def pod_classes(
    runs: Sequence[ActiveRun],
    cluster: Cluster,
    activities: Sequence[Activity],
    volumes: VolumeRules,
    options: LoweringOptions,
) -> PodClasses:
    """Find the classes of all activities."""
    index_of: dict[PodShape, int] = {}
    of_activity = np.zeros(len(activities), np.int64)
    notices: dict[tuple[str, str], Notice] = {}
    driver = driver_shape()
    for number, activity in enumerate(activities):
        shape = driver
        if activity.step is not None:
            rule, notice = latency_rule(activity.step, cluster, options.latency_ruled_types)
            if notice is not None:
                notices.setdefault((notice.code, notice.step), notice)
            keys = volumes.keys[activity.run]
            claims = tuple(keys[use.claim] for use in activity.step.claims)
            shape = step_shape(runs[activity.run].graph, activity.step, rule, claims)
        of_activity[number] = index_of.setdefault(shape, len(index_of))
    shapes = tuple(index_of)
    resources = resource_names(shapes)
    requests = amounts([with_pod(dict(shape.requests)) for shape in shapes], resources)
    return PodClasses(shapes, of_activity, resources, requests, tuple(notices.values()))
