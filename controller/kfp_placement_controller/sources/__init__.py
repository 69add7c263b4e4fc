"""Sources of runs: the objects of a workflow engine, read as runs."""

from kfp_placement_controller.sources.argo.source import ArgoSource
from kfp_placement_controller.sources.queue_source import QueueSource
from kfp_placement_controller.sources.source import RunSources

DEFAULT_SOURCES = RunSources(ArgoSource())
"""Sources of a process that does not choose its own."""

QUEUE_SOURCES: tuple[QueueSource, ...] = (ArgoSource(),)
"""Sources whose runs can wait in a queue."""
