"""Where runs come from: the objects of a workflow engine, read as runs."""

from kfp_placement_controller.sources.argo.source import ArgoSource
from kfp_placement_controller.sources.queue_source import QueueSource
from kfp_placement_controller.sources.source import RunSources

DEFAULT_SOURCES = RunSources(ArgoSource())
"""What a process uses that does not say which sources it has."""

QUEUE_SOURCES: tuple[QueueSource, ...] = (ArgoSource(),)
"""Those whose runs can wait in a queue."""
