"""A coordinator of the queue that leads, told of runs, RunRequests, nodes and pods."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from kfp_placement_controller.kinds import RUN_QUEUES, RUN_REQUESTS
from kfp_placement_controller.observed.liveness import HeldLease
from kfp_placement_controller.observed.namespaces import ObservedNamespace
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.observed.run_queues import ObservedQueue, observe_queue
from kfp_placement_controller.observed.run_requests import ObservedRequest, observe_request
from kfp_placement_controller.queueing.actions import (
    ReleaseHeld,
    ResumeRun,
    ShowHeld,
    SuspendRun,
    WriteQueueStatus,
    WriteRequestStatus,
)
from kfp_placement_controller.queueing.builtin.backend import BuiltinBackend
from kfp_placement_controller.queueing.coordinator import QueueCoordinator
from kfp_placement_controller.queueing.kueue.backend import KueueBackend
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.sources.argo.workflow_object import WORKFLOWS
from kfp_placement_controller.sources.queue_source import QueuedRun
from kfp_placement_controller.sources.source import RunEnd, RunOwner
from kfp_placement_engine.contract.run_queue import RunQueueStatus
from kfp_placement_engine.model.cluster import Node
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.times import time_text
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import NAMESPACES, NODES, PODS
from tests.controller.planning.builders import SetClock, a_pod
from tests.controller.queueing.builders import GPU, START

TEAM = "team"


def a_queue(
    version: str = "1",
    status: dict[str, Any] | None = None,
    *,
    runs: int | None = None,
    **spec: Any,
) -> ObservedQueue:
    """The RunQueue `default` with this spec; `runs` is short for a quota of so many runs."""
    if runs is not None:
        spec["quota"] = {"runs": runs}
    return observe_queue(
        {
            "metadata": {
                "name": "default",
                "namespace": TEAM,
                "resourceVersion": version,
                "generation": 1,
            },
            "spec": spec,
            "status": status or {},
        }
    )


def a_run(name: str, hours: float = 0.0, namespace: str = TEAM, **fields: Any) -> QueuedRun:
    submitted = START + timedelta(hours=hours)
    owner = RunOwner(WORKFLOWS, name, f"uid-{name}")
    run = QueuedRun(RunKey(namespace, name), owner, "1", submitted, is_held=True)
    return replace(run, **fields)


def a_request(run: QueuedRun, status: Any, version: str, **spec: Any) -> ObservedRequest:
    owner = {"apiVersion": "v1", "kind": "W", "name": run.key.name, "uid": run.owner.uid}
    metadata = {
        "name": run.key.name,
        "namespace": run.key.namespace,
        "uid": f"request-{run.key.name}",
        "resourceVersion": version,
        "ownerReferences": [owner],
        "annotations": spec.pop("annotations", {}),
    }
    times = {"workflowUID": run.owner.uid, "submittedAt": run.submitted_at.isoformat()}
    whole = {"metadata": metadata, "spec": {"demand": {}, **times, **spec}, "status": status}
    request = observe_request(whole)
    assert request.spec is not None
    return request


def tell_queue(coordinator: QueueCoordinator, key: QueueKey, queue: ObservedQueue | None) -> None:
    """A RunQueue is new, has changed or is gone."""
    coordinator.handle(RUN_QUEUES, Change(key, None, queue))


class Scene(SetClock):
    """A coordinator that leads, beside a planner that renews its Lease every second."""

    def __init__(self, *queues: ObservedQueue, **queue: Any) -> None:
        """Of these queues, or of one as `a_queue` makes it."""
        self.now = START + timedelta(hours=1)
        self.kueue = KueueBackend()
        self.coordinator = self.new_coordinator()
        self.coordinator.follow_election(1)
        for each in queues or [a_queue(**queue)]:
            self.set_queue(each)
        self.renew()
        self.pass_time(1)

    def new_coordinator(self) -> QueueCoordinator:
        """One that has seen nothing, with the clocks of this scene."""
        return QueueCoordinator(DEFAULT_SOURCES, (BuiltinBackend(), self.kueue), self.monotonic)

    def renew(self) -> None:
        self.coordinator.planner_lease(HeldLease("plan-1", self.now))

    def pass_time(self, seconds: float, *, planner: bool = True) -> None:
        self.now += timedelta(seconds=seconds)
        if planner:
            self.renew()

    def tell(self, *runs: QueuedRun, **spec: Any) -> None:
        """Runs, each with a RunRequest as the planner writes it; they need nothing unless said."""
        for run in runs:
            self.coordinator.handle(WORKFLOWS, Change((run.key.namespace, run.key.name), None, run))
            self.request(run, **spec)

    def request(self, run: QueuedRun, status: Any = None, version: str = "1", **spec: Any) -> None:
        request = a_request(run, status, version, **spec)
        self.observe_request(run.key, request)

    def observe_request(self, key: RunKey, request: ObservedRequest | None) -> None:
        """A RunRequest is new, has changed or is gone."""
        self.coordinator.handle(RUN_REQUESTS, Change(key, None, request))

    def set_queue(self, queue: ObservedQueue) -> None:
        """A RunQueue is new or has changed."""
        tell_queue(self.coordinator, queue.key, queue)

    def queue(self) -> ObservedQueue:
        """The only RunQueue, as it is known."""
        (queue,) = self.coordinator.queues
        return queue

    def drop_queue(self, name: str = "default") -> None:
        """Somebody has deleted a RunQueue."""
        tell_queue(self.coordinator, QueueKey(TEAM, name), None)

    def label_namespace(self, enabled: str) -> None:
        """The namespace says whether it takes part; "" = it says nothing."""
        change = Change(("", TEAM), None, ObservedNamespace(enabled))
        self.coordinator.handle(NAMESPACES, change)

    def place(self, *nodes: Node) -> None:
        for node in nodes:
            change = Change(("", node.name), None, node)
            self.coordinator.handle(NODES, change)

    def actions(self) -> list[Any]:
        """What is decided a moment after the last change."""
        self.pass_time(0.2, planner=False)
        return self.coordinator.tick(self.now) or []

    def runs(self) -> list[tuple[str, str]]:
        """What becomes of runs: their names, and why they begin or what they say."""
        causes = []
        for action in self.actions():
            match action:
                case ReleaseHeld():
                    causes.append((action.run.key.name, str(action.cause)))
                case ShowHeld():
                    causes.append((action.run.key.name, action.message))
                case _:
                    pass
        return sorted(causes)

    def statuses(self) -> list[dict[str, Any]]:
        return [dict(each.fields) for each in self.actions() if isinstance(each, WriteQueueStatus)]


class SimulatedScene(Scene):
    """A scene whose objects change as the coordinator decides, like those of an API server."""

    def __init__(
        self, *queues: ObservedQueue, nodes: Iterable[Node] | None = None, **queue: Any
    ) -> None:
        super().__init__(*queues, **queue)
        self.nodes = [a_node()] if nodes is None else [*nodes]
        self.place(*self.nodes)
        self.by_name: dict[str, QueuedRun] = {}
        self.specs: dict[str, dict[str, Any] | None] = {}
        self.written: dict[str, dict[str, Any]] = {}
        self.versions = itertools.count(2)

    def submit(self, name: str, hours: float = 0.0, namespace: str = TEAM, **spec: Any) -> None:
        """A run is there, and the planner has said what it needs: nothing unless said.

        Args:
            name: of the run.
            hours: after `START`.
            namespace: of the run; its name is one of all namespaces.
            spec: of the RunRequest; `cpu`, `gpu`, `memory` and `pods` are amounts of its demand.
        """
        self.specs[name] = _with_demand(spec)
        self.by_name[name] = a_run(name, hours, namespace)
        self.change(name)

    def submit_unknown(self, name: str, hours: float = 0.0) -> None:
        """A run is there of which the planner has said nothing."""
        self.specs[name] = None
        self.by_name[name] = run = a_run(name, hours)
        self.coordinator.handle(WORKFLOWS, Change((TEAM, name), None, run))

    def submit_and_settle(self, name: str, hours: float = 0.0, **spec: Any) -> None:
        """A run is there, and what follows from that has happened."""
        self.submit(name, hours, **spec)
        self.settle()

    def change(self, name: str, **fields: Any) -> None:
        """A run has changed."""
        fields["version"] = str(next(self.versions))
        run = self.by_name[name] = replace(self.by_name[name], **fields)
        self.coordinator.handle(WORKFLOWS, Change((run.key.namespace, name), None, run))
        self.show(name)

    def end(self, name: str) -> None:
        """A run has ended well."""
        self.change(name, end=RunEnd.SUCCEEDED)

    def say(self, name: str, **spec: Any) -> None:
        """The planner, or somebody, has changed a RunRequest; amounts as for `submit`."""
        self.specs[name] = (self.specs[name] or {}) | _with_demand(spec)
        self.show(name)

    def show(self, name: str) -> None:
        status, spec = self.written.get(name), self.specs[name]
        if spec is not None:
            self.request(self.by_name[name], status, str(next(self.versions)), **spec)

    def forget(self, name: str) -> None:
        """Somebody has deleted a run; its RunRequest goes with it."""
        run = self.by_name.pop(name)
        self.coordinator.handle(WORKFLOWS, Change((TEAM, name), run, None))
        self.observe_request(run.key, None)

    def ask(self, name: str, annotation: str, seconds_ago: float = 0.0) -> None:
        """Somebody asks by an annotation."""
        at = self.now - timedelta(seconds=seconds_ago)
        self.say(name, annotations={annotation: time_text(at)})

    def lead_again(self) -> None:
        """Another process leads, which has read everything again."""
        before = self.coordinator
        self.kueue = KueueBackend()
        self.coordinator = self.new_coordinator()
        self.place(*self.nodes)
        for run in self.by_name.values():
            key = (run.key.namespace, run.key.name)
            self.coordinator.handle(WORKFLOWS, Change(key, None, run))
        for queue in before.queues:
            self.set_queue(queue)
        for request in before.runs.requests():
            self.observe_request(request.key, request)
        self.coordinator.follow_election(2)
        self.renew()

    def pod(
        self, run: str, node_name: str = "node", phase: str = "Running", **amounts: int
    ) -> ObservedPod:
        """A pod of a run; it is on a node unless it waits for one."""
        pod = a_pod(
            f"pod-of-{run}",
            workflow=run,
            workflow_uid=f"uid-{run}",
            namespace=self.by_name[run].key.namespace if run else TEAM,
            phase=phase,
            node_name=node_name,
            requests=amounts,
        )
        self.coordinator.handle(PODS, Change((pod.namespace, pod.name), None, pod))
        return pod

    def end_pod(self, pod: ObservedPod) -> None:
        self.coordinator.handle(PODS, Change((pod.namespace, pod.name), pod, None))

    def settle(self) -> list[str]:
        """Carry out what is decided until nothing is; returns what happened to runs, in words."""
        outcomes: list[str] = []
        while actions := self.actions():
            for action in actions:
                outcomes += self.carry_out(action)
        return outcomes

    def settle_after(self, seconds: float) -> list[str]:
        """Let time pass, and then settle."""
        self.pass_time(seconds)
        return self.settle()

    def carry_out(self, action: Any) -> list[str]:
        match action:
            case ReleaseHeld(run, cause):
                self.change(run.key.name, is_held=False, has_begun=True)
                return [f"{run.key.name} begins: {cause}"]
            case SuspendRun(run, preempted_for, _):
                self.change(run.key.name, is_suspended=True, preempted_for=preempted_for)
                return [f"{run.key.name} stops for {preempted_for}"]
            case ResumeRun(run, cause):
                self.change(run.key.name, is_suspended=False, preempted_for="")
                return [f"{run.key.name} goes on: {cause}"]
            case ShowHeld(run, message):
                self.change(run.key.name, held_message=message)
            case WriteRequestStatus(key, _, fields):
                status = {**self.written.get(key.name, {}), **fields}
                kept = {name: value for name, value in status.items() if value is not None}
                self.written[key.name] = kept
                self.show(key.name)
            case WriteQueueStatus(key, version, fields):
                queue = self.coordinator.queues.get(key)
                assert queue is not None
                merged = queue.status.model_dump(mode="json", by_alias=True) | dict(fields)
                written = RunQueueStatus.model_validate(merged)
                version = str(next(self.versions))
                self.set_queue(replace(queue, version=version, status=written))
            case _:
                raise AssertionError(action)
        return []

    def phase(self, name: str) -> str:
        return str(self.written[name]["phase"])

    def message(self, name: str) -> str:
        return str(self.written[name].get("message"))

    def condition(self, name: str, kind: str = "Admitted") -> tuple[str, str]:
        conditions = {each["type"]: each for each in self.written[name]["conditions"]}
        return conditions[kind]["status"], conditions[kind]["reason"]


def demand(gang: tuple[int, dict[str, str]] | None = None, **peak: str) -> dict[str, Any]:
    """What a RunRequest says of a demand; `gpu` is short for the resource."""
    gangs = [] if gang is None else [{"count": gang[0], "requests": amounts_listed(gang[1])}]
    return {"peak": amounts_listed(peak), "gangs": gangs}


def _with_demand(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec of a RunRequest, with the amounts that it names as a demand."""
    amounts = {name: spec.pop(name) for name in ("cpu", "gpu", "memory", "pods") if name in spec}
    return {**spec, "demand": demand(**amounts)} if amounts else spec


def a_quota(**amounts: str) -> dict[str, Any]:
    """What a RunQueue says of a quota of resources."""
    return {"resources": amounts_listed(amounts)}


def amounts_listed(amounts: Mapping[str, str]) -> list[dict[str, str]]:
    return [
        {"name": GPU if name == "gpu" else name, "amount": each} for name, each in amounts.items()
    ]


def a_node(name: str = "node", cpu: int = 8, gpu: int = 0, **fields: Any) -> Node:
    room = {"cpu": 1000 * cpu, GPU: gpu, "pods": 110}
    return Node(name, {each: amount for each, amount in room.items() if amount}, **fields)
