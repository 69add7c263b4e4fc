"""Pods, nodes and plans with only what matters to a test of the extender."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from kfp_placement_controller.extender.knowledge import KnownPlan, read_plan
from kfp_placement_controller.extender.knowledge_store import KnowledgeStore, read_bare_node
from kfp_placement_controller.observed.claims import observe_claim
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.custom_resources import Location, PlacementPolicy, read_resource
from kfp_placement_kube.change import Change
from kfp_placement_kube.kinds import JsonObject
from tests.support import kubernetes

WORKFLOW = "taxi-x7k2p"
NAMESPACE = "team-a"
WORKFLOW_UID = "0d4a9f0e"


OWNER = {"kind": "Workflow", "controller": True}


def pod_object(
    step: str = "train",
    *,
    name: str = "pod",
    node: str = "",
    labels: Mapping[str, str] | None = None,
    hints: str = "",
    cpu: str = "",
    requests: Mapping[str, str] | None = None,
    claims: Sequence[str] = (),
    phase: str = "Pending",
    workflow: str = WORKFLOW,
    namespace: str = NAMESPACE,
    scheduler: str = "kfp-placement",
    refused: str = "",
    gates: Sequence[str] = (),
) -> JsonObject:
    """A step's executor pod as the API server prints it; `cpu` is one of its requests."""
    asked = {**({"cpu": cpu} if cpu else {}), **(requests or {})}
    pod = kubernetes.pod_object(
        name,
        node or None,
        phase,
        namespace=namespace,
        labels={
            "workflows.argoproj.io/workflow": workflow,
            "kfp-placement.dev/scheduler": "kfp-placement",
            **(labels or {}),
        },
        schedulerName=scheduler,
        schedulingGates=[{"name": each} for each in gates],
        volumes=[{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims],
        containers=[kubernetes.container(asked)],
    )
    annotations = {
        "workflows.argoproj.io/node-name": f"{workflow}(0).root(0).{step}(0).executor(0)"
    }
    if hints:
        annotations["kfp-placement.dev/hints"] = hints
    pod["metadata"] |= {
        "uid": f"uid-{namespace}-{name}",
        "annotations": annotations,
        "ownerReferences": [{**OWNER, "name": workflow, "uid": WORKFLOW_UID}],
    }
    if refused:
        row = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        pod["status"]["conditions"] = [{**row, "message": refused}]
    return pod


def asked(step: str = "train", **given: Any) -> ObservedPod:
    """A pod of the cluster, such as kube-scheduler asks about."""
    return DEFAULT_SOURCES.observe_pod(pod_object(step, **given))


def predict(hints: str = "", location: str = "HOME-EDGE", **given: Any) -> ObservedPod:
    """A step that follows the latency rule."""
    labels = {"typeOfComponent": "Predict", "OurLocation": location}
    return asked("predict", labels=labels, hints=hints, **given)


def plan_object(
    *rows: Sequence[Any],
    nodes: Sequence[str] = ("a", "b", "c", "d", "e"),
    uid: str = WORKFLOW_UID,
    name: str = WORKFLOW,
    namespace: str = NAMESPACE,
) -> JsonObject:
    """A PipelinePlacement with these rows."""
    return {
        "apiVersion": "kfp-placement.dev/v1alpha1",
        "kind": "PipelinePlacement",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "workflowUID": uid,
            "revision": 1,
            "submittedAt": "2026-11-20T10:00:00Z",
            "plannedAt": "2026-11-20T10:00:02Z",
            "nodes": list(nodes),
            "steps": [list(row) for row in rows],
        },
    }


def review(item: Any, **request: Any) -> bytes:
    """What the API server asks about an object of `team-a`, unless the request says more."""
    asked = {"uid": "u1", "namespace": NAMESPACE, "object": item, **request}
    return json.dumps({"kind": "AdmissionReview", "request": asked}).encode()


def anything(*texts: str, plain: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[Any]:
    """Any small JSON value, made of these texts; `plain`: other values that may be in it."""
    words = st.sampled_from(texts)
    leaf = st.none() | st.booleans() | st.integers() | words
    if plain is not None:
        leaf |= plain
    return leaf | st.lists(leaf, max_size=3) | st.dictionaries(words, leaf, max_size=3)


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
    """A store of knowledge and the changes that tests make to it.

    Attributes:
        store: what is known.
        now: the time by its clock, in seconds.
    """

    def __init__(self, *nodes: str) -> None:
        self.now = 1000.0
        self.store = KnowledgeStore(DEFAULT_SOURCES, clock=lambda: self.now)
        self._pods: dict[tuple[str, str], ObservedPod] = {}
        for name in nodes:
            self.node(name)

    @property
    def knowledge(self):
        """The state at this moment."""
        return self.store.knowledge

    def node(self, name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> None:
        """A node appears or changes."""
        new = read_bare_node(kubernetes.node_object(name, labels=labels or {}, spec=spec))
        self.store.node_changed(Change(("", name), None, new))

    def lose(self, name: str) -> None:
        """A node goes."""
        self.store.node_changed(Change(("", name), None, None))

    def pod(self, **given: Any) -> None:
        """A pod appears or changes."""
        new = asked(**given)
        key = (new.namespace, new.name)
        self.store.pod_changed(Change(key, self._pods.get(key), new))
        self._pods[key] = new

    def seen_to_bind(self, scheduler: str) -> None:
        """A scheduler places a pod of no requests, which ends."""
        for given in ({}, {"node": "a"}):
            self.pod(name=f"placed-by-{scheduler}", scheduler=scheduler, **given)
        self.remove_pod(f"placed-by-{scheduler}")
        self.now += 1000

    def remove_pod(self, name: str) -> None:
        """A pod goes."""
        key = (NAMESPACE, name)
        self.store.pod_changed(Change(key, self._pods.pop(key), None))

    def plan(self, *rows: Sequence[Any], **given: Any) -> KnownPlan:
        """A plan is written."""
        new = read_plan(plan_object(*rows, **given))
        self.store.plan_changed(Change((NAMESPACE, WORKFLOW), None, new))
        return new

    def policy(self, **spec: Any) -> None:
        """The policy is written."""
        new = read_resource(PlacementPolicy, {"metadata": {"name": "default"}, "spec": spec})
        self.store.policy_changed(Change(("", "default"), None, new))

    def location(self, named: str, **spec: Any) -> None:
        """A Location is written."""
        raw = {"metadata": {"name": named}, "spec": spec}
        self.store.location_changed(
            Change(("", named), None, read_resource(Location, raw).stated())
        )

    def claim(self, name: str, *modes: str) -> None:
        """A claim appears or changes."""
        raw = {
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"accessModes": list(modes)},
        }
        self.store.claim_changed(Change((NAMESPACE, name), None, observe_claim(raw)))


def planned_cluster() -> Cluster:
    """Two nodes; the plan wants the step `train` on the first."""
    cluster = Cluster("a", "b")
    cluster.plan(["train", 0, 0, 100, [], [[1, 10]]])
    return cluster
