"""Classes of pods that look alike to a node, so that nodes are judged once for each."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kfp_placement_engine.lowering.activities import Activity
from kfp_placement_engine.lowering.apart import ApartRules
from kfp_placement_engine.lowering.lowered import LoweringOptions
from kfp_placement_engine.lowering.pods import (
    PodShape,
    driver_shape,
    resource_names,
    shape_key,
    step_shape,
)
from kfp_placement_engine.lowering.tables import amounts
from kfp_placement_engine.lowering.volumes import VolumeRules
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.node_rules.latency import latency_rule
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.problem.problem import Integers
from kfp_placement_engine.units.resources import UNSTATED


@dataclass(frozen=True)
class PodClasses:
    """The classes of a problem's pods.

    Attributes:
        shapes: [K] shape of the pods.
        of_activity: [A] class of the activity.
        resources: [R] names of all requested resources.
        requests: [K, R] requests of a pod.
        notices: notices on latency rules, one of each kind for each task.
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
    apart: ApartRules,
    options: LoweringOptions,
) -> PodClasses:
    """Find the classes of all activities."""
    ruled_types = options.latency_ruled_types
    number_of: dict[PodShape, int] = {}
    # Thousands of steps look alike; it takes far longer to make a shape than to compare keys.
    number_of_key: dict[Hashable, int] = {}
    of_activity: list[int] = []
    for activity in activities:
        step, graph, claims = activity.step, runs[activity.run].graph, volumes.mounted(activity)
        shares = () if step is None else apart.shares(activity.run, step)
        key = None if step is None else (shares, shape_key(graph, step, claims))
        number = number_of_key.get(key)
        if number is None:
            shape = driver_shape()
            if step is not None:
                rule, _ = latency_rule(step, cluster, ruled_types)
                shape = replace(step_shape(graph, step, rule, claims), shares=shares)
            number = number_of_key[key] = number_of.setdefault(shape, len(number_of))
        of_activity.append(number)
    shapes = tuple(number_of)
    resources = tuple(name for name in resource_names(shapes) if _is_counted(name, cluster))
    return PodClasses(
        shapes=shapes,
        of_activity=np.array(of_activity, np.int64),
        resources=resources,
        requests=amounts([shape.taken for shape in shapes], resources),
        notices=_latency_notices(activities, cluster, ruled_types),
    )


def _is_counted(resource: str, cluster: Cluster) -> bool:
    """Return whether plans count a resource: disk only if a node states how much it has."""
    return resource not in UNSTATED or any(resource in node.allocatable for node in cluster.nodes)


def _latency_notices(
    activities: Iterable[Activity], cluster: Cluster, ruled_types: Collection[str]
) -> tuple[Notice, ...]:
    """Return the notices on latency rules, one of each kind for each task."""
    ruled = {
        (step.task, step.type, step.location, step.max_latency_ms): step
        for step in (activity.step for activity in activities)
        if step is not None and (step.location or step.max_latency_ms is not None)
    }
    notices: dict[tuple[str, str], Notice] = {}
    for step in ruled.values():
        _, notice = latency_rule(step, cluster, ruled_types)
        if notice is not None:
            notices.setdefault((notice.code, notice.step), notice)
    return tuple(notices.values())
