"""A cluster in memory with the coordinator in it: Argo, kubelets and a scheduler, on one clock.

Every object goes through JSON and the controller's own readers, every change through the
coordinator, every decision of it is carried out; nothing sleeps.
"""

import copy
import json
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from kfp_placement_controller.actuators.histories import HistoryTask, HistoryWriter
from kfp_placement_controller.histories.actions import DeleteHistory, WriteHistory
from kfp_placement_controller.kinds import PIPELINE_HISTORIES, PLACEMENT_METADATA
from kfp_placement_controller.observed.deviations import Deviation
from kfp_placement_controller.observed.histories import observe_history
from kfp_placement_controller.observed.nodes import observe_node
from kfp_placement_controller.planning.actions import Action, Announce, DeletePod, WritePlacement
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.planning.gates import OpenGate
from kfp_placement_controller.planning.rounds import (
    PlanningRound,
    RoundFailure,
    RoundResult,
    plan_round,
)
from kfp_placement_controller.runs.planner_parameters import PlanningParams
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.sources.argo.workflow_object import WORKFLOWS
from kfp_placement_controller.sources.argo.workflows import observe_workflow
from kfp_placement_engine.contract.custom_resources import (
    PipelineHistory,
    PipelinePlacement,
    PlacementPolicy,
    read_resource,
)
from kfp_placement_engine.contract.keys import PLAN_GATE, SCHEDULER_LABEL
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.change import Change
from kfp_placement_kube.exceptions import KubernetesError, WriteConflictError
from kfp_placement_kube.kinds import NODES, PODS, Kind
from tests.controller.planning.builders import SetClock, a_policy
from tests.controlplane.argo.memory import MemoryCluster
from tests.controlplane.argo.simulated_workflow import SimulatedWorkflow
from tests.controlplane.kubelet.drivers import DriverChoices
from tests.controlplane.kubelet.kubelet import Kubelets, Removal, Report, StatusChange
from tests.controlplane.kubelet.workload import Workload, WorkloadSettings
from tests.controlplane.times import write_time
from tests.support.placements import planned_nodes, step_states

if TYPE_CHECKING:
    from kfp_placement_kube.client import KubeClient

Json = dict[str, Any]

READ: Mapping[Kind, Callable[[Json], Any]] = {
    NODES: observe_node,
    PODS: DEFAULT_SOURCES.observe_pod,
    WORKFLOWS: observe_workflow,
    PIPELINE_HISTORIES: observe_history,
}
MOST_STEPS = 2000

NO_PULLS = {"defaults": {"image": "0"}}
"""Spec of a policy for kubelets that pull no image and nodes that report none."""


def a_coordinator(
    policy: Json | None = None, *, evaluation_seconds: float = 30, **options: Any
) -> Coordinator:
    """One with this policy, which pulls no images."""
    return Coordinator(
        DEFAULT_SOURCES,
        time.monotonic,
        policy=PlacementPolicy(spec=a_policy(**(NO_PULLS | (policy or {})))),
        params=PlanningParams(evaluation_seconds=evaluation_seconds),
        **options,
    )


class StoredHistories:
    """PipelineHistories, written as an API server writes them.

    Attributes:
        stored: by namespace and name.
        asked: verbs that were used, each with the subresource.
        writes: how often a status was written.
        refuses: whether every request is refused.
        refused: how many were.
    """

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], Json] = {}
        self.asked: set[tuple[str, str]] = set()
        self.writes = 0
        self.refuses = False
        self.refused = 0

    def put(self, history: Json) -> None:
        """One is there already, in its first version."""
        metadata = {**history["metadata"], "resourceVersion": "1"}
        self.stored[metadata["namespace"], metadata["name"]] = {**history, "metadata": metadata}

    def _refuse(self) -> None:
        if self.refuses:
            self.refused += 1
            raise KubernetesError(500, "InternalError", "not now")

    def get(self, _kind: Kind, name: str, namespace: str) -> Json | None:
        """One of them."""
        self.asked.add(("", "get"))
        self._refuse()
        return self.stored.get((namespace, name))

    def create(self, _kind: Kind, body: Json) -> Json:
        """A new one, without a status."""
        self.asked.add(("", "create"))
        self.put({**body, "status": {}})
        return self.stored[body["metadata"]["namespace"], body["metadata"]["name"]]

    def patch(
        self, _kind: Kind, name: str, namespace: str, patch: Json, *, subresource: str
    ) -> Json:
        """Another status."""
        self.asked.add((subresource, "patch"))
        before = self.stored[namespace, name]
        assert subresource == "status"
        assert patch["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
        version = str(int(before["metadata"]["resourceVersion"]) + 1)
        status = {key: each for key, each in patch["status"].items() if each is not None}
        metadata = {**before["metadata"], "resourceVersion": version}
        after = json.loads(json.dumps({**before, "metadata": metadata, "status": status}))
        self.stored[namespace, name] = after
        self.writes += 1
        return after

    def delete(self, _kind: Kind, name: str, namespace: str, *, resource_version: str) -> bool:
        """Remove one as it was read."""
        self.asked.add(("", "delete"))
        self._refuse()
        before = self.stored.get((namespace, name))
        if before and before["metadata"].get("resourceVersion", "") != resource_version:
            raise WriteConflictError(409, "Conflict", "the object has been modified")
        return self.stored.pop((namespace, name), None) is not None


class SimulatedCluster(SetClock):
    """Nodes, runs and a coordinator.

    Attributes:
        coordinator: under test.
        placements: as last written, by namespace and name.
        writes: every write of a placement, in order.
        announced: every event on a Workflow.
        deviations: every event on a pod that is not on its planned node.
        deleted: pods that were deleted.
        place: chooses the node of a pod; None = it stays unscheduled.
        search: answers rounds.
        workflows: runs by name; a name is there once.
        namespaces: of runs, by name.
        postponed: runs that Argo does not begin, and the phase that it shows for them.
        offload_nodes: Argo keeps its nodes in its database.
        histories: PipelineHistories as they are stored, by namespace and name.
        events: what was delivered, in order, if that is recorded.
        read: how objects are read, by kind.
    """

    def __init__(
        self,
        *nodes: Json,
        coordinator: Coordinator | None = None,
        settings: WorkloadSettings | None = None,
        gated: bool = False,
        record: bool = False,
    ) -> None:
        self.coordinator = coordinator or Coordinator(DEFAULT_SOURCES, time.monotonic)
        self.coordinator.monotonic = self.monotonic
        self.placements: dict[tuple[str, str], PipelinePlacement] = {}
        self.writes: list[WritePlacement] = []
        self.histories = StoredHistories()
        client = cast("KubeClient", self.histories)
        self._history_writer = HistoryWriter(client, lambda: self.coordinator.epoch)
        self.announced: list[Announce] = []
        self.deviations: list[str] = []
        self.deleted: list[str] = []
        self.rounds: list[PlanningRound] = []
        self.place: Callable[[Json], str | None] = self.planned_node
        self.search: Callable[[PlanningRound], RoundResult | RoundFailure] = plan_round
        self.workflows: dict[str, SimulatedWorkflow] = {}
        self.namespaces: dict[str, str] = {}
        self.kubelets = Kubelets(
            Workload(settings or WorkloadSettings(driver_seconds=2, start_seconds=0))
        )
        self.postponed: dict[str, str] = {}
        self.offload_nodes = False
        self._gated = gated
        self._record = record
        self.events: list[tuple[Kind, tuple[str, str], Json]] = []
        self.read = dict(READ)
        self._nodes = {node["metadata"]["name"]: node for node in nodes}
        self._seen: dict[tuple[Kind, tuple[str, str]], Any] = {}
        self._texts: dict[tuple[Kind, tuple[str, str]], str] = {}
        self._uids = 0
        self.is_changed = True
        self.coordinator.lead(1, [], self.now)

    def submit(
        self,
        workflow: Json,
        *,
        settings: Any = None,
        choices: DriverChoices | None = None,
        namespace: str = "team",
    ) -> SimulatedWorkflow:
        """A run begins now."""
        others = sum(each == namespace for each in self.namespaces.values())
        metadata = {
            **workflow["metadata"],
            "uid": f"workflow-{others}" if namespace == "team" else f"{namespace}-{others}",
            "creationTimestamp": write_time(self.now),
            "namespace": namespace,
        }
        self.namespaces[metadata["name"]] = namespace
        simulated = SimulatedWorkflow(
            {**copy.deepcopy(workflow), "metadata": metadata},
            cluster=MemoryCluster(self._admit),
            choices=choices,
            settings=settings,
            packages=self.kubelets.packages,
        )
        simulated.now = self.now
        self.workflows[metadata["name"]] = simulated
        self.is_changed = True
        return simulated

    def suspend(self, run: str, *, suspended: bool = True) -> None:
        """Somebody sets a run's `spec.suspend`."""
        self.workflows[run].workflow["spec"]["suspend"] = suspended
        self.is_changed = True

    def postpone(self, run: str, phase: str) -> None:
        """Argo does not begin a run yet."""
        self.postponed[run] = phase
        self.workflows[run].workflow["status"] = {"phase": phase} if phase else {}
        self.is_changed = True

    def begin(self, run: str) -> None:
        """Argo begins a run that it had postponed."""
        del self.postponed[run]
        del self.workflows[run].workflow["status"]
        self.is_changed = True

    def set_node(self, node: Json) -> None:
        """A node is new or has changed."""
        self._nodes[node["metadata"]["name"]] = node
        self.is_changed = True

    def remove_node(self, name: str) -> None:
        """A node is gone."""
        del self._nodes[name]
        self.is_changed = True

    def lose_pod(self, *, first_failed: bool) -> None:
        """The only pod is gone with its node; the garbage collector may have failed it first."""
        (pod,) = self.pods()
        if first_failed:
            pod["status"] = {"phase": "Failed"}
            self.is_changed = True
            self._settle()
        for simulated in self.workflows.values():
            simulated.cluster.pods.pop(pod["metadata"]["name"], None)
        self.is_changed = True

    def delete_placement(self, run: str) -> None:
        """Somebody deletes the object of a run."""
        key = (self.namespaces[run], run)
        del self.placements[key]
        gone = Change(key, "some-uid", None)
        self.coordinator.handle(PLACEMENT_METADATA, gone, self.now)

    def retry(self, run: str) -> None:
        """What KFP does to try a failed run again: failed pods go, the same Workflow goes on."""
        simulated = self.workflows[run]
        undone = ("Failed", "Error", "Omitted")
        for name, pod in list(simulated.cluster.pods.items()):
            if pod["status"]["phase"] in undone:
                del simulated.cluster.pods[name]
        simulated.workflow = copy.deepcopy(simulated.workflow)
        status = simulated.workflow["status"]
        for key, node in list(status["nodes"].items()):
            if node["phase"] in undone and node["type"] in ("Pod", "Skipped"):
                del status["nodes"][key]
            elif node["phase"] in undone:
                node["phase"] = "Running"
                node.pop("finishedAt", None)
        simulated.workflow["status"] = {
            key: each for key, each in status.items() if key not in ("finishedAt", "message")
        } | {"phase": "Running"}
        metadata = simulated.workflow["metadata"]
        metadata["labels"] = {
            key: each for key, each in metadata.get("labels", {}).items() if "completed" not in key
        }
        self.is_changed = True

    def run(self, until: Callable[[], bool] | None = None) -> None:
        """Let time pass until the runs have ended and have taught, or until something holds."""
        for _ in range(MOST_STEPS):
            if self.step(until):
                return
        raise AssertionError("the runs do not end")

    def pass_time(self, seconds: float) -> None:
        """Let so much time pass, whether the runs have ended or not."""
        end = self.now + timedelta(seconds=seconds)
        self.run(lambda: self.now >= end)

    def pass_moments(self, count: int) -> None:
        """Let so many moments pass at which something may happen."""
        for _ in range(count):
            self.step(lambda: False)

    def look(self) -> None:
        """Everything that happens at this moment."""
        for _ in range(50):
            if not self._settle():
                break

    def step(self, until: Callable[[], bool] | None = None) -> bool:
        """Look, and go on to the next moment; True = it is over."""
        self.look()
        if until is not None and until():
            return True
        ended = all(
            simulated.phase in ("Succeeded", "Failed") for simulated in self.workflows.values()
        )
        if until is None and ended and not self.coordinator.learning.awaited:
            return True
        # A planner that has more to do goes on at once, which takes its time.
        next_at = max(self.coordinator.next_at(self.now), self.now + timedelta(milliseconds=10))
        moments = [self.kubelets.next_change(self.now), next_at]
        self.now = min(moment for moment in moments if moment is not None and moment > self.now)
        return False

    def hand_over(self, successor: Coordinator | None = None, epoch: int = 2) -> None:
        """Another planner sees everything and leads from now on."""
        successor = successor or a_coordinator()
        self.coordinator = successor
        successor.monotonic = self.monotonic
        for (kind, name), value in self._seen.items():
            successor.handle(kind, Change(name, None, value), self.now)
        successor.lead(epoch, list(self.placements.values()), self.now)

    def tracked(self, run: str) -> Any:
        """The `TrackedRun` of a run."""
        return self.coordinator.registry.runs[RunKey(self.namespaces[run], run)]

    def placement(self, run: str) -> Any:
        """The `PipelinePlacement` of a run."""
        return self.placements[self.namespaces[run], run]

    def history(self, namespace: str = "team") -> PipelineHistory:
        """The only history of a namespace."""
        (raw,) = (raw for key, raw in self.histories.stored.items() if key[0] == namespace)
        return read_resource(PipelineHistory, raw)

    def phase(self, run: str) -> str | None:
        """Phase of a run, as its object says."""
        status = self.placement(run).status
        return None if status is None else status.phase

    def states(self, run: str) -> Mapping[str, str]:
        """State of every step, as its object says."""
        return step_states(self.placement(run))

    def planned_node(self, pod: Json) -> str | None:
        """Where the plan has the pod if it fits there, else the first where it does.

        What extender and scheduler would say together.
        """
        planned = self._planned(pod)
        fitting = [name for name in self._nodes if self._fits(pod, name)]
        return planned if planned in fitting else next(iter(fitting), None)

    def _fits(self, pod: Json, name: str) -> bool:
        free = observe_node(self._nodes[name]).allocatable
        asked = DEFAULT_SOURCES.observe_pod(pod).requests
        taken = [DEFAULT_SOURCES.observe_pod(each) for each in self.pods()]
        there = [each.requests for each in taken if each.node_name == name and each.holds_room]
        return all(
            amount + sum(each.get(key, 0) for each in there) <= free.get(key, 0)
            for key, amount in asked.items()
        )

    def _planned(self, pod: Json) -> str | None:
        metadata = pod["metadata"]
        name = metadata["labels"]["workflows.argoproj.io/workflow"]
        key = RunKey(self.namespaces[name], name)
        placement = self.placements.get(key)
        run = self.coordinator.registry.runs.get(key)
        if placement is not None and run is not None and run.pods.index is not None:
            node_name = metadata["annotations"]["workflows.argoproj.io/node-name"]
            identity = run.pods.index.identify(node_name)
            return planned_nodes(placement).get(identity.name if identity else "")
        return None

    def _admit(self, pod: Json) -> None:
        self._uids += 1
        metadata = pod["metadata"]
        metadata.update(
            uid=f"pod-{self._uids}",
            creationTimestamp=write_time(self.now),
            namespace=self.namespaces[metadata["labels"]["workflows.argoproj.io/workflow"]],
        )
        if metadata["labels"].get(SCHEDULER_LABEL):
            if self._gated:
                pod["spec"]["schedulingGates"] = [{"name": PLAN_GATE}]
                pod["spec"]["schedulerName"] = "default-scheduler"
            else:
                pod["spec"]["schedulerName"] = metadata["labels"][SCHEDULER_LABEL]

    def _settle(self) -> bool:
        """One turn of everybody; True = something has changed."""
        changed = self.is_changed | self._kubelets()
        self.is_changed = False
        if changed:
            for run, simulated in self.workflows.items():
                simulated.now = self.now
                if run not in self.postponed:
                    simulated.settle()
            self._bind()
            self.tell()
        for action in self.coordinator.tick(self.now):
            self.carry_out(action)
            changed = True
        return changed

    def _bind(self) -> None:
        for pod in self.pods():
            spec = pod["spec"]
            if spec.get("nodeName") or spec.get("schedulingGates"):
                continue
            if pod["status"]["phase"] == "Pending" and (node := self.place(pod)):
                spec["nodeName"] = node
                self.is_changed = True

    def _kubelets(self) -> bool:
        changes = self.kubelets.look(self.pods(), self._nodes, self.now)
        for change in changes:
            for simulated in self.workflows.values():
                if isinstance(change, Report):
                    simulated.cluster.results[change.result["metadata"]["name"]] = change.result
                elif isinstance(change, StatusChange) and change.name in simulated.cluster.pods:
                    simulated.cluster.pods[change.name]["status"] = change.status
                elif isinstance(change, Removal):
                    simulated.cluster.pods.pop(change.name, None)
        return bool(changes)

    def pods(self) -> list[Json]:
        """All pods there are."""
        return [
            pod for simulated in self.workflows.values() for pod in simulated.cluster.pods.values()
        ]

    def _objects(self) -> dict[tuple[Kind, tuple[str, str]], Json]:
        objects: dict[tuple[Kind, tuple[str, str]], Json] = {
            (NODES, ("", name)): node for name, node in self._nodes.items()
        }
        for run, simulated in self.workflows.items():
            objects[WORKFLOWS, (self.namespaces[run], run)] = self._shown(simulated)
        for pod in self.pods():
            metadata = pod["metadata"]
            objects[PODS, (metadata["namespace"], metadata["name"])] = pod
        for name, history in self.histories.stored.items():
            objects[PIPELINE_HISTORIES, name] = history
        return objects

    def _shown(self, simulated: SimulatedWorkflow) -> Json:
        """The Workflow as the API server has it."""
        if not self.offload_nodes:
            return simulated.workflow
        status = {key: each for key, each in simulated.workflow["status"].items() if key != "nodes"}
        return {**simulated.workflow, "status": {**status, "offloadNodeStatusVersion": "fnv:1"}}

    def tell(self) -> None:
        """What a watch would deliver."""
        objects = self._objects()
        for key in [*objects, *(key for key in self._seen if key not in objects)]:
            kind, name = key
            raw, old = objects.get(key), self._seen.get(key)
            text = "" if raw is None else json.dumps(raw)
            if self._texts.get(key) == text:
                continue
            self._texts[key] = text
            if self._record and raw is not None:
                self.events.append((kind, name, json.loads(text)))
            try:
                new = None if raw is None else self.read[kind](json.loads(text))
            except InputError:
                continue  # as a watch does: what was known of it holds
            if new == old:
                continue
            self.coordinator.handle(kind, Change(name, old, new), self.now)
            if new is None:
                self._seen.pop(key, None)
            else:
                self._seen[key] = new

    def carry_out(self, action: Action) -> None:
        match action:
            case PlanningRound():
                self.rounds.append(action)
                outcome = self.search(action)
                self.coordinator.plans.planner.round_ended(outcome, self.now, self.monotonic())
            case WritePlacement():
                self._write(action)
            case Announce():
                self.announced.append(action)
            case OpenGate(pod):
                self._pod(pod.name)["spec"].pop("schedulingGates", None)
                self.is_changed = True
            case Deviation():
                self.deviations.append(action.message)
            case DeletePod():
                self.deleted.append(action.pod.name)
            case WriteHistory() | DeleteHistory():
                task = HistoryTask(action, self.coordinator.epoch)
                answer = self._history_writer.write(task)
                self.coordinator.history_answered(answer, self.now)
                self.is_changed = True
            case _:
                pass

    def _write(self, write: WritePlacement) -> None:
        """As the API server does: what is not written stays; what is malformed fails."""
        self.writes.append(write)
        raw = json.loads(json.dumps(write.placement.to_object()))
        before = self.placements.get(write.key)
        if not write.is_new_plan and before is not None:
            raw["spec"] = before.to_object()["spec"]
        written = read_resource(PipelinePlacement, raw)
        assert written.status is not None
        assert written.status.revision == written.spec.revision
        assert len(written.status.steps) == len(written.spec.steps)
        if before is not None:
            assert written.spec.revision >= before.spec.revision
            first = before.spec.first_makespan_seconds
            assert first is None or first == written.spec.first_makespan_seconds
        self.placements[write.key] = written
        # Whoever places pods may look at it.
        self.is_changed |= write.is_new_plan
        self.coordinator.publisher.written(write, self.monotonic())

    def _pod(self, name: str) -> Json:
        return next(pod for pod in self.pods() if pod["metadata"]["name"] == name)
