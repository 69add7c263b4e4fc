"""Guard over our scheduler, the planner and overdue gates, in case one of the first two is dead.

It writes what it finds to the policy's status, which admission reads, and takes overdue gates off,
whatever the planner does. A hard latency limit applies anyway.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from kfp_placement_controller.actuators.gates import open_gate
from kfp_placement_controller.actuators.policies import write_findings
from kfp_placement_controller.exceptions import ControllerError
from kfp_placement_controller.extender.knowledge import Knowledge
from kfp_placement_controller.metrics import GATES_OVERDUE
from kfp_placement_controller.observed.gate_deadlines import is_overdue
from kfp_placement_controller.observed.latency_limits import hard_limit
from kfp_placement_controller.observed.liveness import (
    HeldLease,
    LeaseWatch,
    gates_finding,
    scheduler_finding,
    unpublished,
)
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_engine.contract.gates import Pin
from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_engine.contract.policy_status import PolicyFinding
from kfp_placement_engine.exceptions import EngineError
from kfp_placement_kube.change import Change, Key
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import KubeError

_LOG = logging.getLogger(__name__)


@dataclass
class Guard:
    """Guard in `extend`, which decides and writes; its `tick` is called about once a second.

    Attributes:
        client: the API server.
        knowledge: function that returns what is known of the cluster at this moment.
        scheduler_lease: name of our scheduler's Lease.
        planner_lease: name of the planner's Lease.
        clock: time of day.
        monotonic: count of seconds that nobody sets.
    """

    client: KubeClient
    knowledge: Callable[[], Knowledge]
    scheduler_lease: str
    planner_lease: str
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _scheduler: LeaseWatch = field(default_factory=LeaseWatch)
    _planner: LeaseWatch = field(default_factory=LeaseWatch)
    _gated: dict[Key, ObservedPod] = field(default_factory=dict)

    def lease_changed(self, change: Change[HeldLease]) -> None:
        """Observe a change of a Lease of our namespace."""
        watches = {self.scheduler_lease: self._scheduler, self.planner_lease: self._planner}
        watch = watches.get(change.key[1])
        if watch is not None:
            with self._lock:
                watch.observe(change.new, self.monotonic())

    def pod_changed(self, change: Change[ObservedPod]) -> None:
        """Observe a change of a pod, which may have our gate."""
        with self._lock:
            new = change.new
            if new is not None and PLAN_GATE in new.gates and not new.deleting:
                self._gated[change.key] = new
            else:
                self._gated.pop(change.key, None)

    def tick(self) -> None:
        """Write what has to be written now; what does not work is tried again with the next."""
        now = self.clock()
        findings = self.findings()
        if findings:
            self._tried("the policy's status", partial(write_findings, self.client, findings, now))
        for pod in self.overdue(now):
            self._tried(f"the gate of pod {pod.namespace}/{pod.name}", partial(self._open, pod))

    def findings(self) -> list[PolicyFinding]:
        """Return the findings that the policy's status does not contain yet.

        Only the planner itself reports that it is alive.
        """
        knowledge, monotonic_seconds = self.knowledge(), self.monotonic()
        with self._lock:
            alive = scheduler_finding(self._scheduler, knowledge.rules, monotonic_seconds)
            planner_age_seconds = self._planner.age_seconds(monotonic_seconds)
        findings = [] if alive is None else [alive]
        stale_seconds = knowledge.rules.scheduler_stale_after_seconds
        if self._planner.lease is None or planner_age_seconds > stale_seconds:
            findings.append(gates_finding(leads=False))
        return unpublished(findings, None if knowledge.policy is None else knowledge.policy.status)

    def overdue(self, now: datetime) -> list[ObservedPod]:
        """Return the pods whose gate should have come off by now."""
        deadline_seconds = self.knowledge().rules.gate_deadline_seconds
        with self._lock:
            gated = list(self._gated.values())
        return [pod for pod in gated if is_overdue(pod, now, deadline_seconds)]

    def _open(self, pod: ObservedPod) -> None:
        pin = _pin(self.knowledge(), pod)
        if open_gate(self.client, pod.namespace, pod.name, pod.uid, pin):
            GATES_OVERDUE.inc()
            _LOG.warning("took the gate off pod %s/%s: past its deadline", pod.namespace, pod.name)

    def _tried(self, what: str, write: Callable[[], object]) -> None:
        try:
            write()
        except (ControllerError, KubeError, EngineError) as error:
            _LOG.warning("%s: %s", what, error)


def _pin(knowledge: Knowledge, pod: ObservedPod) -> Pin | None:
    """Return a pin to the nodes within the pod's hard limit, or None if it has no limit."""
    place = pod.location.lower()
    trips = {
        name: each.latencies_ms[place]
        for name, each in knowledge.nodes.items()
        if place in each.latencies_ms
    }
    labels = {name: each.node.labels for name, each in knowledge.nodes.items()}
    limit = hard_limit(pod, knowledge.rules, trips, labels)
    return None if limit is None else Pin(hosts=limit.required)
