"""Worlds of simulated queues, one for each backend: the same runs, another who admits them.

With Kueue the runs are simulated too, but their RunRequests and Workloads are real objects of a
control plane on which Kueue itself works.
"""

import contextlib
import itertools
import time
from collections.abc import Callable, Mapping
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

_NAMES = {"gpu": GPU, "runs": RUNS_RESOURCE}

_numbers = itertools.count(1)


class BuiltinWorld(SimulatedScene):
    """The built-in queue, on a cluster that has room for everything.

    Attributes:
        timeout_seconds: how long to wait for what must happen; here it has happened at once.
    """

    timeout_seconds = 0.0

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
        self.set_queue(a_queue(str(next(self.versions)), quota=a_quota(**quota)))

    def pass_second(self) -> None:
        """A run that waits from now on is younger than those that wait already."""
        self.pass_time(1)

    def act_until(self, condition: Callable[[], object], what: str, *expected: str) -> None:
        """Carry out what is decided until these outcomes have happened and a condition holds.

        Args:
            condition: what must be true in the end.
            what: what is waited for, for the error's message.
            expected: what happens to runs, in this order, and nothing else; without reasons, which
                backends word in their own way.

        Raises:
            AssertionError: another outcome has happened.
            WaitError: the time is over.
        """
        left = [*expected]

        def holds() -> object:
            for each in self.settle():
                outcome = each.split(": ")[0].split(" for ")[0]
                assert outcome in left[:1], f"{outcome}, but the test waits for {what}"
                left.pop(0)
            return not left and condition()

        wait_until(holds, what, self.timeout_seconds, lambda: self.written)

    def wait_for(self, *expected: str) -> None:
        """Act until exactly these outcomes have happened, in this order."""
        self.act_until(lambda: True, f"{', '.join(expected) or 'nothing more'}", *expected)

    def wait_for_message(self, name: str, part: str) -> None:
        """Act until the RunRequest of a run that waits gives this reason, and no run begins."""
        self.act_until(lambda: part in self.message(name), f"{name} to say: {part}")

    def wait_until_refused(self, *names: str) -> None:
        """Act until the backend has tried these runs, which wait for CPUs of the quota."""
        for name in names:
            self.wait_for_message(name, "cpu")

    def wait_until_counted(self, name: str) -> None:
        """Act until a run that somebody has let begin takes quota."""
        self.wait_for()

    def clean(self) -> None:
        """Nothing has happened that no test expects."""
        self.wait_for()


class KueueWorld(BuiltinWorld):
    """Kueue, with a ClusterQueue, a LocalQueue and a flavor of its own."""

    # The garbage collector takes up to 30 s to notice a kind that is new, like the RunRequest.
    timeout_seconds = 60.0

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
            backend="kueue", localQueue=self.name, agingPerHour=0, nodes=[_large_node()]
        )

    def install(self, quota: Mapping[str, str | None]) -> None:
        """What an administrator sets up."""
        labels = {"pool": "large"}
        for each in (
            an_object(KUEUE_VERSION, "ResourceFlavor", self.name, spec={"nodeLabels": labels}),
            self.cluster_queue(quota),
            an_object(
                KUEUE_VERSION, "LocalQueue", self.name, TEAM, spec={"clusterQueue": self.name}
            ),
        ):
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
        generation = self.api.patch(queue, {"spec": queue["spec"]})["metadata"]["generation"]

        def is_seen() -> object:
            status = self.api.get(KUEUE_VERSION, "ClusterQueue", self.name)["status"]
            return status["conditions"][0]["observedGeneration"] == generation

        wait_until(is_seen, "Kueue to see the quota")

    def pass_second(self) -> None:
        # The time at which a Workload was made, by which Kueue orders, is in whole seconds.
        trial = an_object("v1", "ConfigMap", "trial", TEAM)

        def now() -> str:
            return str(self.api.create(trial, dryRun="All")["metadata"]["creationTimestamp"])

        before = now()
        wait_until(lambda: now() > before, "a second to be over")

    def submit_run(self, name: str, *, priority: int = 0, **amounts: str) -> None:
        spec = {"workflowUID": f"uid-{name}", "submittedAt": time_text(self.now)}
        request = an_object(RUN_REQUESTS.api_version, RUN_REQUESTS.kind, name, TEAM, spec=spec)
        self.uids[name] = self.api.create(request)["metadata"]["uid"]
        super().submit_run(name, priority=priority, **amounts)

    def delete_run(self, name: str) -> None:
        self.api.delete(an_object(RUN_REQUESTS.api_version, RUN_REQUESTS.kind, name, TEAM))
        super().delete_run(name)

    def request(self, run: QueuedRun, status: Any = None, version: str = "1", **spec: Any) -> None:
        request = a_request(run, status, version, **spec)
        self.observe_request(run.key, replace(request, uid=self.uids[run.key.name]))

    def actions(self) -> list[Any]:
        # The pause after the last decision is over.
        self.ahead += timedelta(seconds=0.1)
        self.now = datetime.now(UTC) + self.ahead
        self.renew()
        # As lists and watches bring it.
        self.kueue.objects.listed(self.writer.read())
        self.coordinator.decide_soon()
        return self.coordinator.tick(self.now) or []

    def carry_out(self, action: Any) -> list[str]:
        if isinstance(action, KueueAction):
            # Kueue has written in between: what is there now is read next.
            with contextlib.suppress(WriteConflictError, NotFoundError):
                self.writer.run(action)
            return []
        outcomes = super().carry_out(action)
        if isinstance(action, WriteRequestStatus) and "assignedNodes" in action.fields:
            # The planner plans the run for these nodes.
            nodes = action.fields["assignedNodes"]
            refused = self.refused if nodes else ""
            self.say(action.key.name, plannedNodes=nodes, unschedulable=refused)
        return outcomes

    def workload(self, run: str) -> dict[str, Any] | None:
        """The Workload of a run as it is now."""
        owned = (
            each
            for each in self.api.list(KUEUE_VERSION, "Workload", TEAM)
            if each["metadata"]["ownerReferences"][0]["name"] == run
        )
        return next(owned, None)

    def wait_for_condition(self, run: str, kind: str, status: str = "True") -> None:
        """Act until the Workload of a run has a condition."""
        self.act_until(
            lambda: conditions(self.workload(run)).get(kind) == status,
            f"condition {kind}={status} of the Workload of {run}",
        )

    def wait_until_counted(self, name: str) -> None:
        self.wait_for_condition(name, "Admitted")

    def clean(self) -> None:
        """Nothing has happened that no test expects, and nothing is left."""
        try:
            super().clean()
        finally:
            for each in self.api.list(RUN_REQUESTS.api_version, RUN_REQUESTS.kind, TEAM):
                self.api.delete(each)
            gone = "Workloads to be gone with the RunRequests that own them"
            wait_until(lambda: not any(map(self.workload, self.uids)), gone, 60)
            for kind in ("LocalQueue", "ClusterQueue", "ResourceFlavor"):
                self.api.delete(an_object(KUEUE_VERSION, kind, self.name, TEAM))


def conditions(item: dict[str, Any] | None) -> dict[str, str]:
    """The statuses of an object's conditions, by type."""
    return {
        each["type"]: each["status"]
        for each in (item or {}).get("status", {}).get("conditions", [])
    }


def _large_node() -> Node:
    node = a_node(cpu=1000, gpu=100, labels={"pool": "large"})
    return replace(node, allocatable={**node.allocatable, "memory": 2**40})


def _demand(**amounts: str) -> dict[str, Any]:
    """A demand in which a GPU has nothing beside it."""
    gpus = amounts_listed({name: each for name, each in amounts.items() if name == "gpu"})
    shares = [{"name": GPU, "amounts": gpus}] if gpus else []
    return {**demand(None, **amounts), "acceleratorShares": shares}
