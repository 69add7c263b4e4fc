"""What kube-scheduler's resource scores count for a container that requests nothing.

Only scores use them, never the filter (`pkg/scheduler/util/pod_resources.go`).
"""

DEFAULT_CPU_REQUEST_MILLI = 100
DEFAULT_MEMORY_REQUEST_BYTES = 200 * 1024 * 1024
