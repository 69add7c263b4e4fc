"""The RunQueues of the cluster, and their rules.

While a RunQueue cannot be read, its last valid rules apply. A process that has only just started
has not seen these: until somebody corrects the RunQueue, it admits nobody.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.queueing.requested_run import RequestedRun
from kfp_placement_controller.queueing.runs import QueueRules, Rules
from kfp_placement_engine.contract.run_queue import (
    DEFAULT_QUEUE,
    PriorityRange,
    QueueBackend,
    RunQueueSpec,
    resources_of,
)
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_engine.units.resources import Resources, plus


@dataclass
class RunQueues:
    """RunQueues by key; a run that names none is in the queue `default` of its namespace."""

    _queues: dict[QueueKey, ObservedQueue] = field(default_factory=dict)
    _unread: set[QueueKey] = field(default_factory=set)

    def __iter__(self) -> Iterator[ObservedQueue]:
        return iter(self._queues.values())

    def observe(self, key: QueueKey, queue: ObservedQueue | None) -> None:
        """Take in that a queue is new, has changed or is gone."""
        before = self._queues.pop(key, None)
        last_valid = None if key in self._unread else before
        self._unread.discard(key)
        if queue is None:
            return
        if queue.problem and last_valid is not None:
            queue = replace(queue, spec=last_valid.spec)
        elif queue.problem:
            # The defaults would open the quota: its runs wait until somebody corrects it.
            self._unread.add(key)
        self._queues[key] = queue

    def has_rules(self, key: QueueKey) -> bool:
        """Return whether a queue could ever be read: if not, its rules are unknown."""
        return key not in self._unread

    def of_namespace(self, namespace: str) -> ObservedQueue | None:
        """Return the queue `default` of a namespace, or None if the namespace has no queues."""
        return self._queues.get(QueueKey(namespace, DEFAULT_QUEUE))

    def of_run(self, namespace: str, name: str) -> QueueKey:
        """Return the queue that a run names, or `default` if there is no queue of that name.

        Args:
            namespace: namespace of the run.
            name: name that its steps give.
        """
        key = QueueKey(namespace, name)
        return key if key in self._queues else QueueKey(namespace, DEFAULT_QUEUE)

    def with_stated_demand(self, run: RequestedRun) -> RequestedRun:
        """Return a run with the demand that it counts with, also if not all of it can be read.

        Such a run has no demand while it waits, unless its queue states one.
        """
        if not run.problem:
            return run
        queue = self._queues.get(self.of_run(run.key.namespace, run.queue_name))
        stated = {} if queue is None else _stated_demand(queue.spec)
        if stated is None:
            return replace(run, demand=None) if run.is_waiting else run
        part = run.demand or Demand()
        peak, most = plus(part.peak, stated), plus(part.of_quota, stated)
        return replace(run, demand=replace(part, peak=peak, most=most))

    def stated_text(self, key: QueueKey) -> str:
        """Return what a run counts with of which not all can be read."""
        queue = self._queues.get(key)
        if queue is None or queue.spec.unreadable is None:
            return f"what cannot be read of it takes nothing, since {key.name} states no unreadable"
        return f"it counts with what {key.name} states for runs like it"

    def namespaces(self) -> Iterator[str]:
        """Yield the namespaces that have a queue `default`, by which they take part."""
        return (key.namespace for key in self._queues if key.name == DEFAULT_QUEUE)

    def allowed_priority(self, key: QueueKey, priority: int) -> int:
        """Return the priority, or the nearest one that a queue allows."""
        queue = self._queues.get(key)
        allowed = PriorityRange() if queue is None else queue.spec.priorities
        return max(allowed.min, min(priority, allowed.max))

    def across_priority(self, key: QueueKey, priority: int) -> int:
        """Return a priority as it counts against runs of other namespaces."""
        queue = self._queues.get(key)
        allowed = PriorityRange() if queue is None else queue.spec.priorities
        return max(0, min(self.allowed_priority(key, priority), allowed.max_across))

    def idle_after_seconds(self, namespace: str, name: str) -> float:
        """Return how long a run may have no pod until other queues may have its room.

        Args:
            namespace: namespace of the run.
            name: queue that its steps name.
        """
        queue = self._queues.get(self.of_run(namespace, name))
        return (RunQueueSpec() if queue is None else queue.spec).idle_after_seconds

    def get(self, key: QueueKey) -> ObservedQueue | None:
        """Return a queue, or None if there is none of that name."""
        return self._queues.get(key)

    def backend_of(self, key: QueueKey) -> QueueBackend:
        """Return the backend of a queue; a queue that does not exist has the built-in one."""
        queue = self._queues.get(key)
        return QueueBackend.BUILTIN if queue is None else QueueBackend(queue.spec.backend)

    @property
    def ask_for_kueue(self) -> bool:
        """Return whether a queue names Kueue as its backend."""
        return any(each.spec.backend == QueueBackend.KUEUE for each in self._queues.values())

    def rules(self) -> Rules:
        """Return the rules of all queues."""
        return {key: rules_of(queue.spec) for key, queue in self._queues.items()}


def _stated_demand(spec: RunQueueSpec) -> Resources | None:
    """Return the demand of runs that cannot be read; None = an admin must state it first."""
    if spec.unreadable is not None:
        return resources_of(spec.unreadable.resources)
    return None if spec.quota.resources or spec.backend == QueueBackend.KUEUE else {}


def rules_of(spec: RunQueueSpec) -> QueueRules:
    """Return the rules of a queue in the form that decisions take."""
    return QueueRules(
        quota=resources_of(spec.quota.resources),
        max_runs=spec.quota.runs,
        overcommit=spec.overcommit,
        capacity=resources_of(spec.capacity) or None,
        aging_per_hour=spec.aging_per_hour,
        reserve_after_seconds=spec.reserve_after_seconds,
        weight=spec.weight if spec.backend == QueueBackend.BUILTIN else 0.0,
    )
