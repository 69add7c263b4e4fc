"""A scene whose queue is of Kueue; what Kueue says is what a test says."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kfp_placement_controller.observed.kueue_quotas import (
    KueueListing,
    observe_check,
    observe_flavor,
    observe_local_queue,
)
from kfp_placement_controller.observed.workloads import observe_workload
from kfp_placement_controller.queueing.kueue.actions import ApplyStatus, CreateWorkload, KueueAction
from kfp_placement_engine.exceptions import InputError
from tests.controller.queueing.scene import TEAM, SimulatedScene

RESERVED = {"QuotaReserved": "quota is reserved"}
ADMITTED = {**RESERVED, "Admitted": "the workload is admitted"}
ADMISSION = {"podSetAssignments": [{"name": "cpu", "flavors": {"cpu": "large"}}]}

ObservedT = TypeVar("ObservedT")


class KueueScene(SimulatedScene):
    """Simulated runs of a queue of Kueue; its Workloads say what a test says."""

    def __init__(
        self, resources: Iterable[str] = ("cpu", "kfp-placement.dev/runs"), **spec: Any
    ) -> None:
        self.asked: list[Any] = []
        self.workloads: dict[str, dict[str, Any]] = {}
        flavors = [{"name": "large", "resources": [{"name": each} for each in resources]}]
        self.local: dict[str, Any] = {
            "metadata": {"name": "team", "namespace": TEAM},
            "status": {"flavorsReservation": flavors},
        }
        message = "the planner plans the runs of this check"
        active = {"type": "Active", "status": "True", "message": message}
        self.check: dict[str, Any] = {
            "metadata": {"name": "ours"},
            "spec": {"controllerName": "kfp-placement.dev/planner"},
            "status": {"conditions": [active]},
        }
        self.labels: Any = {"pool": "large"}
        super().__init__(backend="kueue", localQueue="team", **spec)
        self.tell_kueue()

    def tell_kueue(self) -> None:
        """All of Kueue's objects are read again; what cannot be read is left out."""
        flavor = {"metadata": {"name": "large"}, "spec": {"nodeLabels": self.labels}}
        listing = KueueListing(
            _read(observe_workload, self.workloads.values()),
            _read(observe_local_queue, [self.local]),
            dict(zip(("large",), _read(observe_flavor, [flavor]), strict=False)),
            _read(observe_check, [self.check]),
        )
        self.kueue.objects.listed(listing)
        self.coordinator.decide_soon()

    def carry_out(self, action: Any) -> list[str]:
        if not isinstance(action, KueueAction):
            return super().carry_out(action)
        self.asked.append(action)
        if isinstance(action, CreateWorkload):
            body = dict(action.body)
            body["metadata"] = {**body["metadata"], "uid": "w-1", "resourceVersion": "1"}
            self.workloads[action.run.name] = body
            self.tell_kueue()
        return []

    def status(self, run: str, conditions: dict[str, str], **fields: Any) -> list[str]:
        """Kueue says this of a Workload; returns what happens to runs."""
        listed = [
            {"type": name, "status": "True", "reason": name, "message": message}
            for name, message in conditions.items()
        ]
        self.workloads[run]["status"] = {"conditions": listed, **fields}
        self.asked.clear()
        self.tell_kueue()
        return self.settle()

    def admit(self, run: str) -> list[str]:
        """Kueue admits a Workload; returns what happens to runs."""
        return self.status(run, ADMITTED, admission=ADMISSION)

    def kinds_asked(self) -> list[type]:
        return [type(each) for each in self.asked]

    def statuses_asked(self) -> list[dict[str, Any]]:
        return [
            dict(each.body["status"])
            for each in self.asked
            if isinstance(each, ApplyStatus) and each.kind.plural == "workloads"
        ]


def _read(
    observe: Callable[[dict[str, Any]], ObservedT | None], raws: Iterable[dict[str, Any]]
) -> list[ObservedT]:
    readable = []
    for raw in raws:
        try:
            observed = observe(raw)
        except InputError:
            continue
        if observed is not None:
            readable.append(observed)
    return readable
