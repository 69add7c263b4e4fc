"""Pods, nodes and plans with only what matters to a test of the extender."""

from collections.abc import Mapping, Sequence
from typing import Any

from kfp_placement_controller.extender import admission, answers, decisions
from kfp_placement_controller.extender.knowledge import KnownPlan, read_plan
from kfp_placement_controller.extender.memory import Memory, read_bare_node
from kfp_placement_controller.observed.claims import observe_claim
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.resources import Location, PlacementPolicy, read_resource
from kfp_placement_kube.change import Change
from tests.support import recording

JsonObject = dict[str, Any]

WORKFLOW = "taxi-x7k2p"
NAMESPACE = "team-a"
WORKFLOW_UID = "0d4a9f0e"


def pod_object(
    step: str = "train",
    *,
    name: str = "pod",
    node: str = "",
    labels: Mapping[str, str] | None = None,
    hints: str = "",
    requests: Mapping[str, str] | None = None,
    claims: Sequence[str] = (),
    phase: str = "Pending",
    workflow: str = WORKFLOW,
    namespace: str = NAMESPACE,
    scheduler: str = "kfp-placement",
    refused: str = "",
    gates: Sequence[str] = (),
) -> JsonObject:
    """A step's executor pod as the API server prints it."""
    annotations = {
        "workflows.argoproj.io/node-name": f"{workflow}(0).root(0).{step}(0).executor(0)"
    }
    if hints:
        annotations["kfp-placement.dev/hints"] = hints
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "labels": {
                "workflows.argoproj.io/workflow": workflow,
                "kfp-placement.dev/scheduler": "kfp-placement",
                **(labels or {}),
            },
            "annotations": annotations,
            "ownerReferences": [{"kind": "Workflow", "name": workflow, "uid": WORKFLOW_UID}],
        },
        "spec": {
            "schedulerName": scheduler,
            "schedulingGates": [{"name": each} for each in gates],
            "volumes": volumes,
            "containers": [{"name": "main", "resources": {"requests": dict(requests or {})}}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": phase, "conditions": _conditions(refused)},
    }


def _conditions(refused: str) -> list[JsonObject]:
    if not refused:
        return []
    row = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return [{**row, "message": refused}]


def asked(step: str = "train", **given: Any) -> ObservedPod:
    """A pod of the cluster, such as kube-scheduler asks about."""
    return DEFAULT_SOURCES.observe_pod(pod_object(step, **given))


def predict(hints: str = "", location: str = "HOME-EDGE", **given: Any) -> ObservedPod:
    """A step that follows the latency rule."""
    labels = {"typeOfComponent": "Predict", "OurLocation": location}
    return asked("predict", labels=labels, hints=hints, **given)


def plan_object(
    *rows: Sequence[Any], nodes: Sequence[str] = ("a", "b", "c", "d", "e"), uid: str = WORKFLOW_UID
) -> JsonObject:
    """A PipelinePlacement with these rows."""
    return {
        "apiVersion": "kfp-placement.dev/v1alpha1",
        "kind": "PipelinePlacement",
        "metadata": {"name": WORKFLOW, "namespace": NAMESPACE},
        "spec": {
            "workflowUID": uid,
            "revision": 1,
            "submittedAt": "2026-11-20T10:00:00Z",
            "plannedAt": "2026-11-20T10:00:02Z",
            "nodes": list(nodes),
            "steps": [list(row) for row in rows],
        },
    }


def node_object(name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> JsonObject:
    """A node of 8 CPU and 16 GiB."""
    room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": spec,
        "status": {"allocatable": room},
    }


class Answers(answers.Answers):
    """As in the product; what is asked and answered is kept."""

    def filter(self, body: bytes, paused_seconds: float = 0.0) -> answers.Answer:
        """Which nodes remain, or a pause."""
        found = super().filter(body, paused_seconds)
        recording.keep("filter", body=body, paused=paused_seconds, answer=list(found))
        return found

    def prioritize(self, body: bytes) -> answers.Answer:
        """How many points each node has."""
        found = super().prioritize(body)
        recording.keep("prioritize", body=body, answer=list(found))
        return found

    def mutate(self, body: bytes, *, all_pipelines: bool = False) -> answers.Answer:
        """What a new pod is given."""
        found = super().mutate(body, all_pipelines=all_pipelines)
        recording.keep("mutate", body=body, answer=list(found))
        return found


def filter_nodes(known: Any, pod: ObservedPod, names: Sequence[str]) -> decisions.Decision:
    """As in the product; what is asked and answered is kept."""
    found = decisions.filter_nodes(known, pod, names)
    answer = [found.nodes, found.reason, found.planned, dict(found.reasons)]
    recording.keep("decision", pod=pod.name, names=names, answer=answer)
    return found


def prioritize_nodes(known: Any, pod: ObservedPod, names: Sequence[str]) -> dict[str, int]:
    """As in the product; what is asked and answered is kept."""
    found = decisions.prioritize_nodes(known, pod, names)
    points = [[name, score] for name, score in found.items()]
    recording.keep("points", pod=pod.name, names=names, answer=points)
    return found


def mutations(pod: Any, namespace: str, *others: Any) -> list[Any]:
    """As in the product; what is asked and answered is kept."""
    found = admission.mutations(pod, namespace, *others)
    recording.keep("admission", pod=pod, namespace=namespace, answer=found)
    return found


def patched(item: JsonObject, operations: Sequence[Mapping[str, Any]]) -> JsonObject:
    """An object after a JSON patch; an operation that would fail, fails here too."""
    for operation in operations:
        assert operation["op"] in ("add", "replace")
        parts = operation["path"].removeprefix("/").split("/")
        *path, last = [part.replace("~1", "/").replace("~0", "~") for part in parts]
        target: Any = item
        for part in path:
            target = target[part]
        if last == "-":
            target.append(operation["value"])
        else:
            # `replace` does not add, but `add` replaces, as where somebody wrote null (RFC 6902).
            assert last in target or operation["op"] == "add"
            assert operation["op"] == "replace" or target.get(last) is None
            target[last] = operation["value"]
    return item


class Cluster:
    """A memory and the changes that tests make to it.

    Attributes:
        memory: what is known.
        now: the time by its clock, in seconds.
    """

    def __init__(self, *nodes: str) -> None:
        self.now = 1000.0
        self.memory = Memory(DEFAULT_SOURCES, clock=lambda: self.now)
        self._pods: dict[tuple[str, str], ObservedPod] = {}
        for name in nodes:
            self.node(name)

    @property
    def known(self):
        """The state at this moment."""
        return self.memory.known

    def node(self, name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> None:
        """A node appears or changes."""
        new = read_bare_node(node_object(name, labels, **spec))
        self.memory.node_changed(Change(("", name), None, new))

    def lose(self, name: str) -> None:
        """A node goes."""
        self.memory.node_changed(Change(("", name), None, None))

    def pod(self, **given: Any) -> None:
        """A pod appears or changes."""
        new = asked(**given)
        key = (new.namespace, new.name)
        self.memory.pod_changed(Change(key, self._pods.get(key), new))
        self._pods[key] = new

    def seen_to_bind(self, scheduler: str) -> None:
        """A scheduler places a pod of no requests, which ends."""
        for given in ({}, {"node": "a"}):
            self.pod(name=f"placed-by-{scheduler}", scheduler=scheduler, **given)
        self.remove_pod(f"placed-by-{scheduler}")
        self.now += 1000

    def remove_pod(self, name: str = "pod", namespace: str = NAMESPACE) -> None:
        """A pod goes."""
        old = self._pods.pop((namespace, name))
        self.memory.pod_changed(Change((namespace, name), old, None))

    def plan(self, *rows: Sequence[Any], **given: Any) -> KnownPlan:
        """A plan is written."""
        new = read_plan(plan_object(*rows, **given))
        self.memory.plan_changed(Change((NAMESPACE, WORKFLOW), None, new))
        return new

    def policy(self, **spec: Any) -> None:
        """The policy is written."""
        new = read_resource(PlacementPolicy, {"metadata": {"name": "default"}, "spec": spec})
        self.memory.policy_changed(Change(("", "default"), None, new))

    def location(self, named: str, **spec: Any) -> None:
        """A Location is written."""
        found = {"metadata": {"name": named}, "spec": spec}
        self.memory.location_changed(
            Change(("", named), None, read_resource(Location, found).stated())
        )

    def claim(self, name: str, *modes: str) -> None:
        """A claim appears or changes."""
        found = {
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"accessModes": list(modes)},
        }
        self.memory.claim_changed(Change((NAMESPACE, name), None, observe_claim(found)))
