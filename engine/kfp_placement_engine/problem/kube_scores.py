"""kube-scheduler's scores for one node, number by number.

The functions are the kernel's own (`engine/kernel/scores.h`): the planner's default-scheduler
baseline and the object-level scheduler model run the same code, and a check of the one against
recordings covers the other. int64 arithmetic that truncates as Go's. Source: kube-scheduler
v1.36.3, `pkg/scheduler/framework/plugins`.
"""

import ctypes
from collections.abc import Callable

from kfp_placement_engine.problem.native import KERNEL

TAINT_TOLERATION_WEIGHT = 3
NODE_AFFINITY_WEIGHT = 2
TOPOLOGY_SPREAD_WEIGHT = 2
INTER_POD_AFFINITY_WEIGHT = 2
RESOURCES_FIT_WEIGHT = 1
BALANCED_ALLOCATION_WEIGHT = 1
IMAGE_LOCALITY_WEIGHT = 1


def _kernel_function(name: str, arguments: int) -> Callable[..., int]:
    function = getattr(KERNEL, name)
    function.restype = ctypes.c_int64
    function.argtypes = [ctypes.c_int64] * arguments

    def call(*values: int) -> int:
        return int(function(*values))

    return call


_least_allocated = _kernel_function("least_allocated", 4)
_most_allocated = _kernel_function("most_allocated", 4)
_balanced_allocation = _kernel_function("balanced_allocation", 7)
_normalise = _kernel_function("normalise", 2)
_normalise_reversed = _kernel_function("normalise_reversed", 2)
_image_locality = _kernel_function("image_locality", 2)


def least_allocated(
    requested_cpu: int, requested_memory: int, allocatable_cpu: int, allocatable_memory: int
) -> int:
    """NodeResourcesFit's default strategy LeastAllocated (`noderesources/least_allocated.go`).

    `requested` is what the node's pods and the new pod request together, with the defaults of
    `model.resources` for containers that request nothing. A resource the node has nothing of is
    left out.
    """
    return _least_allocated(requested_cpu, requested_memory, allocatable_cpu, allocatable_memory)


def most_allocated(
    requested_cpu: int, requested_memory: int, allocatable_cpu: int, allocatable_memory: int
) -> int:
    """NodeResourcesFit's strategy MostAllocated (`noderesources/most_allocated.go`)."""
    return _most_allocated(requested_cpu, requested_memory, allocatable_cpu, allocatable_memory)


def balanced_allocation(
    used_cpu: int,
    used_memory: int,
    pod_cpu: int,
    pod_memory: int,
    allocatable_cpu: int,
    allocatable_memory: int,
    since_136: bool,
) -> int:
    """NodeResourcesBalancedAllocation (`noderesources/balanced_allocation.go`), 50 to 100.

    Takes real requests, without defaults. The plugin is skipped (no node gets anything) for a pod
    that requests neither CPU nor memory: that is the caller's to know. Until 1.35 the score is the
    balance with the pod; since 1.36 it is how much the pod improves it, 75 being neutral.
    """
    return _balanced_allocation(
        used_cpu, used_memory, pod_cpu, pod_memory, allocatable_cpu, allocatable_memory, since_136
    )


def normalise(count: int, maximum: int) -> int:
    """More is better: `count` against the largest count of all feasible nodes (NodeAffinity)."""
    return _normalise(count, maximum)


def normalise_reversed(count: int, maximum: int) -> int:
    """Less is better: `count` against the largest count of all feasible nodes (TaintToleration)."""
    return _normalise_reversed(count, maximum)


def image_locality(sum_scores: int, containers: int) -> int:
    """ImageLocality (`imagelocality/image_locality.go`).

    Args:
        sum_scores: sum of the scaled sizes of the pod's images that the node holds.
        containers: number of the pod's containers, init containers included; at least 1.
    """
    return _image_locality(sum_scores, containers)
