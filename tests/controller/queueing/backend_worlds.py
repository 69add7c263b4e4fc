"""Worlds of simulated queues, one for each backend: the same runs, another who admits them.

With Kueue the runs are simulated too, but their RunRequests and Workloads are real objects of a
control plane on which Kueue itself works.
"""

import contextlib
import itertools
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kfp_placement_controller.actuators.kueue_workloads import KueueWriter
from kfp_placement_controller.kinds import RUN_REQUESTS
from kfp_placement_controller.queueing.actions import WriteRequestStatus
from kfp_placement_controller.queueing.kueue.actions import KueueAction
from kfp_placement_controller.sources.queue_source import QueuedRun
from kfp_placement_engine.contract.keys import RUNS_RESOURCE
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.units.times import time_text
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import NotFoundError, WriteConflictError
from tests.controller.queueing.builders import GPU
from tests.controller.queueing.scene import (
    TEAM,
    SimulatedScene,
    a_node,
    a_queue,
    a_quota,
    a_request,
    amounts_listed,
    demand,
)
from tests.controlplane.api import Api
from tests.controlplane.kueue.running import KUEUE_VERSION
from tests.controlplane.objects import an_object
from tests.controlplane.waiting import wait_until

CHECK = "kfp-placement"
_QUIET_SECONDS = 1.5
"""Nothing happens for so long: Kueue has decided."""

_NAMES = {"gpu": GPU, "runs": RUNS_RESOURCE}

_numbers = itertools.count(1)


class BuiltinWorld(SimulatedScene):
    """The built-in queue, on a cluster that has room for everything."""

    def __init__(self, **quota: str) -> None:
        super().__init__(quota=a_quota(**quota), nodes=[_large_node()])

    def submit_run(self, name: str, *, priority: int = 0, **amounts: str) -> None:
        """A run is there, held; the planner has said what it needs."""
        self.submit(name, next(_numbers) / 1e4, demand=_demand(**amounts), priority=priority)

    def need(self, name: str, **amounts: str) -> None:
        """The run needs something else by now."""
        self.say(name, demand=_demand(**amounts))

    def end_run(self, name: str) -> None:
        """The run has ended."""
        self.end(name)
        self.say(name, end="Succeeded", demand={})

    def delete_run(self, name: str) -> None:
        """Somebody has deleted the run."""
        self.forget(name)

    def cut_quota(self, **quota: str) -> None:
        """The queue has this quota from now on."""
        queue = a_queue(str(next(self.versions)), quota=a_quota(**quota))
        self.set_queue(queue)

    def restart(self) -> None:
        """Another process leads, which has read everything again."""
        self.lead_again()

    def outcomes(self) -> list[str]:
        """Settle; what happened to runs, without reasons, which backends word in their own way."""
        return [each.split(": ")[0].split(" for ")[0] for each in self.settle()]


class KueueWorld(BuiltinWorld):
    """Kueue, with a ClusterQueue, a LocalQueue and a flavor of its own."""

    def __init__(self, api: Api, client: KubeClient, **quota: str | None) -> None:
        """Nothing is there yet; a quota of None is one that its ClusterQueue does not have."""
        self.name = f"team-{next(_numbers)}-{int(time.time())}"
        self.api = api
        self.writer = KueueWriter(client, lambda: self.now)
        self.uids: dict[str, str] = {}
        self.refused = ""
        self.ahead = timedelta()
        self.install(quota)
        super(BuiltinWorld, self).__init__(
            backend="kueue", localQueue=self.name, nodes=[_large_node()]
        )

    def install(self, quota: Mapping[str, str | None]) -> None:
        """What an administrator sets up."""
        labels = {"pool": "large"}
        flavor = an_object(KUEUE_VERSION, "ResourceFlavor", self.name, spec={"nodeLabels": labels})
        spec = {"clusterQueue": self.name}
        local = an_object(KUEUE_VERSION, "LocalQueue", self.name, TEAM, spec=spec)
        for each in (flavor, self.cluster_queue(quota), local):
            self.api.create(each)

    def cluster_queue(self, quota: Mapping[str, str | None]) -> dict[str, Any]:
        given = {"runs": "100", "memory": "1Ti", "gpu": "0", **quota}
        amounts = {_NAMES.get(name, name): each for name, each in given.items() if each}
        resources = [{"name": name, "nominalQuota": each} for name, each in amounts.items()]
        spec = {
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "admissionChecksStrategy": {"admissionChecks": [{"name": CHECK}]},
            "resourceGroups": [
                {
                    "coveredResources": [*amounts],
                    "flavors": [{"name": self.name, "resources": resources}],
                }
            ],
        }
        return an_object(KUEUE_VERSION, "ClusterQueue", self.name, spec=spec)

    def cut_quota(self, **quota: str) -> None:
        queue = self.cluster_queue(quota)
        self.api.patch(queue, {"spec": queue["spec"]})

    def restart(self) -> None:
        super().restart()
        self.read()

    def submit_run(self, name: str, *, priority: int = 0, **amounts: str) -> None:
        spec = {"workflowUID": f"uid-{name}", "submittedAt": time_text(self.now)}
        request = an_object(RUN_REQUESTS.api_version, RUN_REQUESTS.kind, name, TEAM, spec=spec)
        self.uids[name] = self.api.create(request)["metadata"]["uid"]
        super().submit_run(name, priority=priority, **amounts)

    def delete_run(self, name: str) -> None:
        self.api.delete(self.request_object(name))
        super().delete_run(name)

    def request_object(self, name: str) -> dict[str, Any]:
        return self.api.get(RUN_REQUESTS.api_version, RUN_REQUESTS.kind, name, TEAM)

    def request(self, run: QueuedRun, status: Any = None, version: str = "1", **spec: Any) -> None:
        request = a_request(run, status, version, **spec)
        request = replace(request, uid=self.uids[run.key.name])
        self.observe_request(run.key, request)

    def read(self) -> None:
        """As lists and watches bring it."""
        listing = self.writer.read()
        self.kueue.objects.listed(listing)
        self.coordinator.decide_soon()

    def actions(self) -> list[Any]:
        time.sleep(0.1)
        self.now = datetime.now(UTC) + self.ahead
        self.renew()
        self.read()
        return self.coordinator.tick(self.now) or []

    def settle(self) -> list[str]:
        said: list[str] = []
        last = time.monotonic()
        while time.monotonic() - last < _QUIET_SECONDS:
            for action in self.actions():
                last = time.monotonic()
                said += self.carry_out(action)
        return said

    def carry_out(self, action: Any) -> list[str]:
        if isinstance(action, KueueAction):
            # Kueue has written in between: what is there now is read next.
            with contextlib.suppress(WriteConflictError, NotFoundError):
                self.writer.run(action)
            return []
        said = super().carry_out(action)
        if isinstance(action, WriteRequestStatus) and "assignedNodes" in action.fields:
            # The planner plans the run for these nodes.
            name = action.key.name
            refused = self.refused if action.fields["assignedNodes"] else ""
            nodes = action.fields["assignedNodes"]
            self.say(name, plannedNodes=nodes, unschedulable=refused)
        return said

    def workload(self, run: str) -> dict[str, Any] | None:
        """The Workload of a run as it is now."""
        owned = [
            each
            for each in self.api.list(KUEUE_VERSION, "Workload", TEAM)
            if each["metadata"]["ownerReferences"][0]["uid"] == self.uids[run]
        ]
        return owned[0] if owned else None

    def clean(self) -> None:
        """Nothing is left."""
        for name, uid in self.uids.items():
            for each in self.api.list(RUN_REQUESTS.api_version, RUN_REQUESTS.kind, TEAM):
                if (each["metadata"]["name"], each["metadata"]["uid"]) == (name, uid):
                    self.api.delete(each)
        gone = "Workloads to be gone with the RunRequests that own them"
        wait_until(lambda: not any(map(self.workload, self.uids)), gone, 30)
        for kind, namespace in (("LocalQueue", TEAM), ("ClusterQueue", ""), ("ResourceFlavor", "")):
            self.api.delete(self.api.get(KUEUE_VERSION, kind, self.name, namespace))


def _large_node() -> Node:
    node = a_node(cpu=1000, gpu=100, labels={"pool": "large"})
    return replace(node, allocatable={**node.allocatable, "memory": 2**40})


def _demand(**amounts: str) -> dict[str, Any]:
    """A demand in which a GPU has nothing beside it."""
    gpus = amounts_listed({name: each for name, each in amounts.items() if name == "gpu"})
    shares = [{"name": GPU, "amounts": gpus}] if gpus else []
    return {**demand(None, **amounts), "acceleratorShares": shares}
