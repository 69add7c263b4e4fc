"""RunQueues, slimmed; one that cannot be read says why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kfp_placement_engine.contract.resources import RunQueue, read_resource
from kfp_placement_engine.contract.run_queue import ControllerDown, RunQueueSpec, RunQueueStatus
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_engine.readers.fields import Fields
from kfp_placement_engine.readers.place import Place


@dataclass(frozen=True)
class ObservedQueue:
    """A RunQueue.

    Attributes:
        key: namespace and name.
        version: of the object; a write names it.
        generation: of the spec.
        spec: what admins decided; the defaults where it cannot be read.
        status: what it says.
        problem: why it cannot be read; "" = it can.
    """

    key: QueueKey
    version: str
    generation: int | None
    spec: RunQueueSpec = field(default_factory=RunQueueSpec)
    status: RunQueueStatus = field(default_factory=RunQueueStatus)
    problem: str = ""

    @property
    def holds_without_controller(self) -> bool:
        """Whether its runs wait while nobody can admit them."""
        return self.spec.on_controller_down == ControllerDown.HOLD


def observe_queue(raw: Mapping[str, Any]) -> ObservedQueue:
    """A RunQueue as the API server prints it, whatever its spec says.

    Raises:
        InputError: not even its metadata can be read.
    """
    metadata = Fields(raw, Place("RunQueue")).flat("metadata")
    key = QueueKey(metadata.text("namespace"), metadata.text("name"))
    version = metadata.text("resourceVersion")
    generation = metadata.count("generation", maximum=2**53) or None
    try:
        queue = read_resource(RunQueue, raw)
    except InputError as error:
        return ObservedQueue(key, version, generation, problem=str(error))
    return ObservedQueue(key, version, generation, queue.spec, queue.status or RunQueueStatus())


def observe_readiness(raw: Mapping[str, Any]) -> bool:
    """Whether a RunQueue says that new runs may be held, whatever its spec says.

    Raises:
        InputError: its status is malformed.
    """
    return Fields(raw, Place("RunQueue")).fields("status").get("ready") is True
