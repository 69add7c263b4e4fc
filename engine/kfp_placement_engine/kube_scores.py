"""kube-scheduler's scores for one node, number by number.

Plain int64 functions, so that numba can compile them: the planner's default-scheduler baseline and
the object-level scheduler model call the same code, and a check of the one covers the other. Every
division truncates as in Go. Source: kube-scheduler v1.36.3, `pkg/scheduler/framework/plugins`.
"""

from kfp_placement_engine.compiled import compiled
from kfp_placement_engine.request_defaults import (
    DEFAULT_CPU_REQUEST_MILLI as DEFAULT_CPU_REQUEST_MILLI,
)
from kfp_placement_engine.request_defaults import (
    DEFAULT_MEMORY_REQUEST_BYTES as DEFAULT_MEMORY_REQUEST_BYTES,
)

MAX_SCORE = 100
"""What the best node gets from a plugin before the plugin's weight (MaxNodeScore)."""

TAINT_TOLERATION_WEIGHT = 3
NODE_AFFINITY_WEIGHT = 2
TOPOLOGY_SPREAD_WEIGHT = 2
INTER_POD_AFFINITY_WEIGHT = 2
RESOURCES_FIT_WEIGHT = 1
BALANCED_ALLOCATION_WEIGHT = 1
IMAGE_LOCALITY_WEIGHT = 1

_INT64_MAX = 9223372036854775807
_MEBIBYTE = 1024 * 1024
_MIN_IMAGE_BYTES = 23 * _MEBIBYTE
_MAX_IMAGE_BYTES_PER_CONTAINER = 1000 * _MEBIBYTE


@compiled
def _quotient(dividend: int, divisor: int) -> int:
    """Go's division: towards zero."""
    if dividend < 0:
        return -(-dividend // divisor)
    return dividend // divisor


@compiled
def _percent(part: int, whole: int) -> int:
    """`part * 100 / whole` as Go computes it, which wraps from 80 PiB on."""
    product = part * 100
    # Only plain Python gets here; compiled code has wrapped in the multiplication.
    while product > _INT64_MAX:
        product = product - _INT64_MAX - _INT64_MAX - 2
    return _quotient(product, whole)


@compiled
def _least_requested(requested: int, allocatable: int) -> int:
    if requested > allocatable:
        return 0
    return _percent(allocatable - requested, allocatable)


@compiled
def least_allocated(
    requested_cpu: int, requested_memory: int, allocatable_cpu: int, allocatable_memory: int
) -> int:
    """NodeResourcesFit's default strategy LeastAllocated (`noderesources/least_allocated.go`).

    `requested` is what the node's pods and the new pod request together, with `request_defaults`
    for containers that request nothing. A resource the node has nothing of is left out.
    """
    total = 0
    weights = 0
    if allocatable_cpu != 0:
        total += _least_requested(requested_cpu, allocatable_cpu)
        weights += 1
    if allocatable_memory != 0:
        total += _least_requested(requested_memory, allocatable_memory)
        weights += 1
    if weights == 0:
        return 0
    return _quotient(total, weights)


@compiled
def _most_requested(requested: int, allocatable: int) -> int:
    return _percent(min(requested, allocatable), allocatable)


@compiled
def most_allocated(
    requested_cpu: int, requested_memory: int, allocatable_cpu: int, allocatable_memory: int
) -> int:
    """NodeResourcesFit's strategy MostAllocated (`noderesources/most_allocated.go`)."""
    total = 0
    weights = 0
    if allocatable_cpu != 0:
        total += _most_requested(requested_cpu, allocatable_cpu)
        weights += 1
    if allocatable_memory != 0:
        total += _most_requested(requested_memory, allocatable_memory)
        weights += 1
    if weights == 0:
        return 0
    return _quotient(total, weights)


@compiled
def _balance(
    requested_cpu: int, requested_memory: int, allocatable_cpu: int, allocatable_memory: int
) -> int:
    """How alike the two fractions are, 50 to 100 (`balancedResourceScore`)."""
    if allocatable_cpu == 0 or allocatable_memory == 0:
        return 100
    cpu_fraction = min(1.0, float(requested_cpu) / float(allocatable_cpu))
    memory_fraction = min(1.0, float(requested_memory) / float(allocatable_memory))
    deviation = abs((cpu_fraction - memory_fraction) / 2.0)
    return int((1.0 - deviation) * 100.0)


@compiled
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
    with_pod = _balance(
        used_cpu + pod_cpu, used_memory + pod_memory, allocatable_cpu, allocatable_memory
    )
    if not since_136:
        return with_pod
    without_pod = _balance(used_cpu, used_memory, allocatable_cpu, allocatable_memory)
    return 50 + (50 + with_pod - without_pod) // 2


@compiled
def normalise(count: int, maximum: int) -> int:
    """More is better: `count` against the largest count of all feasible nodes (NodeAffinity)."""
    if maximum == 0:
        return 0
    return 100 * count // maximum


@compiled
def normalise_reversed(count: int, maximum: int) -> int:
    """Less is better: `count` against the largest count of all feasible nodes (TaintToleration)."""
    if maximum == 0:
        return 100
    return 100 - 100 * count // maximum


@compiled
def image_locality(sum_scores: int, containers: int) -> int:
    """ImageLocality (`imagelocality/image_locality.go`).

    Args:
        sum_scores: sum of the scaled sizes of the pod's images that the node holds.
        containers: number of the pod's containers, init containers included; at least 1.
    """
    largest = _MAX_IMAGE_BYTES_PER_CONTAINER * containers
    clamped = min(max(sum_scores, _MIN_IMAGE_BYTES), largest)
    return 100 * (clamped - _MIN_IMAGE_BYTES) // (largest - _MIN_IMAGE_BYTES)
