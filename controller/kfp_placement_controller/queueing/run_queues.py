"""The RunQueues of the cluster; of one that cannot be read the last valid rules hold."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kfp_placement_controller.queueing.runs import QueueKey, QueueRules
from kfp_placement_engine.contract.resources import RunQueue, read_resource
from kfp_placement_engine.contract.run_queue import (
    DEFAULT_QUEUE,
    ControllerDown,
    RunQueueSpec,
    RunQueueStatus,
    resources_of,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.fields import Fields
from kfp_placement_engine.readers.place import Place


@dataclass(frozen=True)
class KnownQueue:
    """A RunQueue.

    Attributes:
        key: namespace and name.
        version: of the object; a write names it.
        generation: of the spec.
        spec: what admins decided, as last valid.
        status: what it says.
        problem: why its present spec cannot be read; "" = it can.
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

    @property
    def rules(self) -> QueueRules:
        """What it allows, as the decision takes it."""
        spec = self.spec
        return QueueRules(
            quota=resources_of(spec.quota.resources),
            max_runs=spec.quota.runs,
            overcommit=spec.overcommit,
            capacity=resources_of(spec.capacity) or None,
            least_priority=spec.priorities.min,
            most_priority=spec.priorities.max,
            aging_per_hour=spec.aging_per_hour,
        )


def read_queue(raw: Mapping[str, Any]) -> KnownQueue:
    """A RunQueue as the API server prints it, whatever it says: it names its problem.

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
        return KnownQueue(key, version, generation, problem=str(error))
    return KnownQueue(key, version, generation, queue.spec, queue.status or RunQueueStatus())


@dataclass
class RunQueues:
    """All of them, by key."""

    _queues: dict[QueueKey, KnownQueue] = field(default_factory=dict)

    def __iter__(self) -> Iterator[KnownQueue]:
        return iter(self._queues.values())

    def observe(self, key: QueueKey, queue: KnownQueue | None) -> None:
        """A queue is new, has changed or is gone."""
        if queue is None:
            self._queues.pop(key, None)
        elif queue.problem and key in self._queues:
            self._queues[key] = replace(queue, spec=self._queues[key].spec)
        else:
            self._queues[key] = queue

    def replace_all(self, queues: Iterable[KnownQueue]) -> None:
        """These are all there are now."""
        known = self._queues
        self._queues = {}
        for queue in queues:
            if queue.problem and queue.key in known:
                queue = replace(queue, spec=known[queue.key].spec)
            self._queues[queue.key] = queue

    def of_namespace(self, namespace: str) -> KnownQueue | None:
        """The queue by which a namespace takes part; None = it does not."""
        return self._queues.get(QueueKey(namespace, DEFAULT_QUEUE))

    def rules(self) -> Mapping[QueueKey, QueueRules]:
        """What all of them allow."""
        return {key: queue.rules for key, queue in self._queues.items()}
