"""Kueue's objects as they are now, and what follows from them for RunQueues and runs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from kfp_placement_controller.kinds import (
    ADMISSION_CHECKS,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    WORKLOADS,
)
from kfp_placement_controller.observed.kueue_quotas import (
    KueueListing,
    ObservedCheck,
    ObservedLocalQueue,
)
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.observed.workloads import ObservedWorkload
from kfp_placement_engine.contract.run_request import NodeGroups
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import Kind

_Key = tuple[str, str]
"""Namespace and name of one of Kueue's objects."""

KUEUE_KINDS = (WORKLOADS, LOCAL_QUEUES, RESOURCE_FLAVORS, ADMISSION_CHECKS)
"""Kinds of Kueue's objects that decisions depend on."""

NOT_READ = "Kueue's objects have not been read yet"


@dataclass
class KueueObjects:
    """Kueue's objects that decisions depend on.

    Attributes:
        problem: reason why the objects cannot be read, or "".
        checks: AdmissionChecks that the planner answers, by name.
    """

    problem: str = NOT_READ
    checks: dict[str, ObservedCheck] = field(default_factory=dict)
    _workloads: dict[_Key, ObservedWorkload] = field(default_factory=dict)
    _local_queues: dict[_Key, ObservedLocalQueue] = field(default_factory=dict)
    _flavors: dict[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def _stores(self) -> Mapping[Kind, dict[Any, Any]]:
        return {
            WORKLOADS: self._workloads,
            LOCAL_QUEUES: self._local_queues,
            RESOURCE_FLAVORS: self._flavors,
            ADMISSION_CHECKS: self.checks,
        }

    # What comes in.

    def listed(self, now: KueueListing) -> None:
        """Replace all objects by a new list: kopf may have missed that one was deleted."""
        self.problem = ""
        self._workloads = {(each.namespace, each.name): each for each in now.workloads}
        self._local_queues = {(each.namespace, each.name): each for each in now.local_queues}
        self._flavors = dict(now.flavors)
        self.checks = {each.name: each for each in now.checks}

    def changed(self, kind: Kind, change: Change[Any]) -> None:
        """Take in that an object is new, has changed or is gone, or does not matter any more."""
        key: Any = change.key if kind.namespaced else change.key[1]
        change.apply_to(self._stores[kind], key)

    # What follows.

    def workloads(self) -> Collection[ObservedWorkload]:
        """Return the Workloads that RunRequests own."""
        return self._workloads.values()

    def workload(self, namespace: str, name: str, owner_uid: str) -> ObservedWorkload | None:
        """Return a Workload, or None if there is none of that name and owner.

        Args:
            namespace: namespace of the Workload.
            name: name of the Workload.
            owner_uid: uid of the RunRequest that owns it.
        """
        workload = self._workloads.get((namespace, name))
        return workload if workload is not None and workload.owner_uid == owner_uid else None

    def local_queue(self, queue: ObservedQueue) -> ObservedLocalQueue | None:
        """Return the LocalQueue that a RunQueue names, or None if there is none of that name."""
        return self._local_queues.get((queue.key.namespace, queue.spec.local_queue or ""))

    def misfit(self, queue: ObservedQueue) -> str:
        """Return why runs of a RunQueue get no Workload, or ""."""
        if self.problem:
            return self.problem
        local = self.local_queue(queue)
        if local is None:
            name, namespace = queue.spec.local_queue, queue.key.namespace
            return f"there is no LocalQueue {name} in namespace {namespace}"
        if not local.resources:
            return f"LocalQueue {local.name} covers no resource yet"
        if "pods" in local.resources:
            return (
                f"the ClusterQueue of LocalQueue {local.name} has quota for pods: Kueue would count"
                " units of what a run needs as pods. Take pods out of it"
            )
        return ""

    def queue_problem(self, queue: ObservedQueue) -> str:
        """Return why a RunQueue cannot admit anybody, or "" if nothing is wrong with it."""
        local = self.local_queue(queue)
        if not self.problem and local is not None and local.problem:
            return f"LocalQueue {local.name}: {local.problem}"
        return self.misfit(queue)

    def was_refused(self, workload: ObservedWorkload) -> bool:
        """Return whether a Workload is inactive since the planner rejected one of its checks."""
        is_given_up = not workload.is_active and not workload.has_reservation
        return is_given_up and not workload.rejected_checks.isdisjoint(self.checks)

    def offers(self, queue: ObservedQueue, nodes: NodeGroups) -> bool:
        """Return whether flavors of a RunQueue's LocalQueue still stand for these nodes.

        Args:
            queue: the RunQueue.
            nodes: groups of nodes, from the flavors at the time of the assignment.
        """
        local = self.local_queue(queue)
        names = () if local is None else local.flavors
        labels = [self._flavors[name] for name in names if name in self._flavors]
        return not labels or all(each.node_selector in labels for each in nodes)

    def node_selectors(self, workload: ObservedWorkload) -> list[Mapping[str, str]]:
        """Return the labels of the nodes of the assigned flavors; [] means any node.

        A flavor without labels stands for any node.
        """
        labels = [self._flavors.get(name, {}) for name in workload.flavors]
        distinct = {tuple(sorted(each.items())): each for each in labels}
        return [*distinct.values()] if all(labels) else []
