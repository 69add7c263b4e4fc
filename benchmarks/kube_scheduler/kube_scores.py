"""kube-scheduler's scores for one node, number by number.

The functions are the kernel's own (`engine/kernel/scores.h`): the planner's default-scheduler
baseline and the object-level scheduler model run the same code, and a check of the one against
recordings covers the other. int64 arithmetic that truncates as Go's. Source: kube-scheduler
v1.36.3, `pkg/scheduler/framework/plugins`.
"""

import ctypes
from collections.abc import Callable

from kfp_placement_engine.problem.kernel import KERNEL

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


least_allocated = _kernel_function("least_allocated", 4)
"""NodeResourcesFit's default strategy LeastAllocated (`noderesources/least_allocated.go`).

Of requested CPU and memory, then allocatable CPU and memory. Requested is what the node's pods and
the new pod request together, with the defaults of `model.resources` for containers that request
nothing. A resource the node has nothing of is left out.
"""

most_allocated = _kernel_function("most_allocated", 4)
"""NodeResourcesFit's strategy MostAllocated (`noderesources/most_allocated.go`), likewise."""

balanced_allocation = _kernel_function("balanced_allocation", 7)
"""NodeResourcesBalancedAllocation (`noderesources/balanced_allocation.go`), 50 to 100.

Of used CPU and memory, those of the pod, allocatable CPU and memory, and whether the scheduler is
1.36 or later. Takes real requests, without defaults. The plugin is skipped (no node gets anything)
for a pod that requests neither CPU nor memory: that is the caller's to know. Until 1.35 the score
is the balance with the pod; since 1.36 it is how much the pod improves it, 75 being neutral.
"""

normalise = _kernel_function("normalise", 2)
"""Scores by the largest count of all feasible nodes, where more is better (NodeAffinity)."""

normalise_reversed = _kernel_function("normalise_reversed", 2)
"""Scores by the largest count of all feasible nodes, where less is better (TaintToleration)."""

image_locality = _kernel_function("image_locality", 2)
"""ImageLocality (`imagelocality/image_locality.go`).

Of the sum of the scaled sizes of the pod's images that the node holds, and the number of the pod's
containers, init containers included; at least 1.
"""
