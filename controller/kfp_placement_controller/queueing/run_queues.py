"""The RunQueues of the cluster; of one that cannot be read the last valid rules hold.

A process that has only just started knows of no valid rules: then the queue admits nobody.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.queueing.runs import QueueRules
from kfp_placement_engine.contract.run_queue import (
    DEFAULT_QUEUE,
    PriorityRange,
    QueueBackend,
    RunQueueSpec,
    resources_of,
)
from kfp_placement_engine.model.keys import QueueKey


@dataclass
class RunQueues:
    """All of them, by key."""

    _queues: dict[QueueKey, ObservedQueue] = field(default_factory=dict)
    _unread: set[QueueKey] = field(default_factory=set)

    def __iter__(self) -> Iterator[ObservedQueue]:
        return iter(self._queues.values())

    def observe(self, key: QueueKey, queue: ObservedQueue | None) -> None:
        """A queue is new, has changed or is gone."""
        known = self._queues.pop(key, None)
        has_rules = known is not None and key not in self._unread
        self._unread.discard(key)
        if queue is None:
            return
        if queue.problem and known is not None and has_rules:
            queue = replace(queue, spec=known.spec)
        elif queue.problem:
            # The defaults would open the quota: its runs wait until somebody corrects it.
            self._unread.add(key)
        self._queues[key] = queue

    def has_rules(self, key: QueueKey) -> bool:
        """Whether a queue could be read once: of one that never could, nobody knows the rules."""
        return key not in self._unread

    def of_namespace(self, namespace: str) -> ObservedQueue | None:
        """The queue by which a namespace takes part; None = it does not."""
        return self._queues.get(QueueKey(namespace, DEFAULT_QUEUE))

    def of_run(self, namespace: str, name: str) -> QueueKey:
        """The queue of a run that names one: that, or `default` where there is none of that name.

        Args:
            namespace: of the run.
            name: as its steps say.
        """
        key = QueueKey(namespace, name)
        return key if key in self._queues else QueueKey(namespace, DEFAULT_QUEUE)

    def namespaces(self) -> Iterator[str]:
        """Namespaces that have a queue by which they take part."""
        return (key.namespace for key in self._queues if key.name == DEFAULT_QUEUE)

    def allowed_priority(self, key: QueueKey, priority: int) -> int:
        """The priority, or the nearest one that a queue allows."""
        queue = self._queues.get(key)
        allowed = PriorityRange() if queue is None else queue.spec.priorities
        return max(allowed.min, min(priority, allowed.max))

    def get(self, key: QueueKey) -> ObservedQueue | None:
        """A queue; None = there is none of that name."""
        return self._queues.get(key)

    def backend_of(self, key: QueueKey) -> QueueBackend:
        """Who decides about the runs of a queue; the built-in one for a queue that is not there."""
        queue = self._queues.get(key)
        return QueueBackend.BUILTIN if queue is None else QueueBackend(queue.spec.backend)

    @property
    def ask_for_kueue(self) -> bool:
        """Whether any queue names Kueue as its backend."""
        return any(each.spec.backend == QueueBackend.KUEUE for each in self._queues.values())

    def rules(self) -> Mapping[QueueKey, QueueRules]:
        """What all of them allow."""
        return {key: rules_of(queue.spec) for key, queue in self._queues.items()}


def rules_of(spec: RunQueueSpec) -> QueueRules:
    """What a queue allows, as the decision takes it."""
    return QueueRules(
        quota=resources_of(spec.quota.resources),
        max_runs=spec.quota.runs,
        overcommit=spec.overcommit,
        capacity=resources_of(spec.capacity) or None,
        aging_per_hour=spec.aging_per_hour,
        reserve_after_seconds=spec.reserve_after_seconds,
    )
