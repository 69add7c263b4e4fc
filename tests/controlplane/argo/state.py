"""The state of one Workflow while Argo looks at it: nodes, pods, parameters, deadline."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from tests.controlplane.argo.names import node_id, pod_name
from tests.controlplane.argo.templates import Templates
from tests.controlplane.times import read_time, write_time

Json = dict[str, Any]

FINISHED = frozenset({"Succeeded", "Failed", "Error", "Skipped", "Omitted"})
COMPLETED = frozenset({"Succeeded", "Failed", "Error"})
UNSUCCESSFUL = frozenset({"Failed", "Error"})
ACTIVE = frozenset({"Pending", "Running"})

ANNOTATION_NODE_NAME = "workflows.argoproj.io/node-name"
ANNOTATION_NODE_ID = "workflows.argoproj.io/node-id"
LABEL_WORKFLOW = "workflows.argoproj.io/workflow"
LABEL_COMPLETED = "workflows.argoproj.io/completed"
LABEL_PHASE = "workflows.argoproj.io/phase"
LABEL_ON_EXIT = "workflows.argoproj.io/on-exit"


class Cluster(Protocol):
    """Changes that the controller makes to the cluster; every method may raise `Refusal`."""

    def create_pod(self, pod: Json) -> None:
        """Create a pod."""

    def end_pod(self, name: str) -> None:
        """End a pod's containers, or delete the pod if they have not started."""

    def create_claim(self, claim: Json) -> None:
        """Create a volume claim."""

    def delete_claim(self, name: str) -> None:
        """Delete a volume claim."""

    def find_template(self, name: str) -> Json:
        """A WorkflowTemplate."""


def is_finished(node: Mapping[str, Any] | None) -> bool:
    """Return whether nothing will change about a node any more."""
    return node is not None and node["phase"] in FINISHED


@dataclass
class Run:
    """One Workflow during one look at it.

    Attributes:
        workflow: a copy of the object, deep enough for its nodes to be changed in place.
        pods: pods by node id, as far as the controller has seen them.
        cluster: cluster in which pods and claims are created.
        now: the time.
        globals: names for substitution.
        requeue: seconds after which to look again without being asked, or None.
    """

    workflow: Json
    pods: dict[str, Json]
    cluster: Cluster
    now: datetime
    globals: dict[str, str] = field(default_factory=dict)
    requeue: float | None = None

    def __post_init__(self) -> None:
        self.name: str = self.workflow["metadata"]["name"]
        self.status: Json = self.workflow.setdefault("status", {})
        stored = self.status.get("storedWorkflowTemplateSpec")
        self.spec: Json = stored or self.workflow["spec"]
        self.nodes: dict[str, Json] = self.status.setdefault("nodes", {})
        self.templates = Templates(self.spec, self.status.get("storedTemplates") or {})

    # Nodes.

    def node(self, name: str) -> Json | None:
        """The node of that name."""
        return self.nodes.get(node_id(self.name, name))

    def start_node(
        self,
        name: str,
        kind: str,
        phase: str,
        *,
        template: str = "",
        boundary: str = "",
        flag: Mapping[str, bool] | None = None,
        inputs: Mapping[str, Any] | None = None,
        message: str = "",
    ) -> Json:
        """A new node."""
        key = node_id(self.name, name)
        node: Json = {
            "id": key,
            "name": name,
            "displayName": self._display_name(name, boundary),
            "type": kind,
            "templateName": template,
            "templateScope": f"local/{self.name}",
            "phase": phase,
            "startedAt": write_time(self.now),
            "finishedAt": write_time(self.now) if phase in FINISHED else None,
        }
        optional = {"boundaryID": boundary, "nodeFlag": dict(flag or {}), "message": message}
        node |= {field_: value for field_, value in optional.items() if value}
        if kind == "Pod":
            node |= {"taskResultSynced": True, "progress": "0/1"}
        if inputs and (inputs.get("parameters") or inputs.get("artifacts")):
            node["inputs"] = dict(inputs)
        self.nodes[key] = node
        return node

    def _display_name(self, name: str, boundary: str) -> str:
        if boundary not in self.nodes:
            return name
        return name.removeprefix(self.nodes[boundary]["name"]).removeprefix(".")

    def mark(self, name: str, phase: str, message: str | None = None) -> Json:
        """Give a node a phase, and its end where that is final."""
        node = self.nodes[node_id(self.name, name)]
        node["phase"] = phase
        if message is not None:
            node["message"] = message
            if not message:
                del node["message"]
        if phase in FINISHED and not node.get("finishedAt"):
            node["finishedAt"] = write_time(self.now)
        return node

    def add_child(self, parent: str, child: str) -> None:
        """Draw an edge between two nodes, once."""
        node, key = self.nodes[node_id(self.name, parent)], node_id(self.name, child)
        children = node.get("children", [])
        if key not in children:
            node["children"] = [*children, key]

    def children(self, node: Mapping[str, Any]) -> list[Json]:
        """The children of a node, those that exist."""
        return [self.nodes[key] for key in node.get("children", []) if key in self.nodes]

    def attempts(self, node: Mapping[str, Any]) -> list[Json]:
        """The attempts of a Retry node, in order; its hooks are children too, but none of these."""
        start = f"{node['name']}("
        return [
            child
            for child in self.children(node)
            if child.get("nodeFlag", {}).get("retried") and child["name"].startswith(start)
        ]

    def outbound(self, key: str) -> list[str]:
        """The nodes that the successors of a node hang on."""
        node = self.nodes[key]
        kind, children = node["type"], node.get("children", [])
        if kind in ("Skipped", "Suspend", "Pod"):
            return [key]
        if kind == "Retry":
            return children[-1:]
        if kind == "TaskGroup":
            return self._outbound_of(children) if children else [key]
        return self._outbound_of(node.get("outboundNodes", []))

    def _outbound_of(self, keys: Iterable[str]) -> list[str]:
        return [leaf for key in keys for leaf in self.outbound(key)]

    def active(self, boundary: str) -> list[Json]:
        """The pods and DAGs inside a boundary that have begun and not ended."""
        return [
            node
            for node in self.nodes.values()
            if node.get("boundaryID") == boundary
            and node["type"] in ("Pod", "DAG")
            and node["phase"] in ACTIVE
        ]

    def pod_name(self, node_name: str, template: str) -> str:
        """The name of a node's pod."""
        return pod_name(self.name, node_name, template)

    # Time.

    @property
    def deadline(self) -> datetime | None:
        """Time at which the Workflow must be done; None if there is no limit."""
        seconds, started = self.spec.get("activeDeadlineSeconds"), self.status.get("startedAt")
        if seconds is None or not started:
            return None
        return read_time(started) + timedelta(seconds=float(seconds))

    @property
    def is_late(self) -> bool:
        """Return whether the deadline has passed."""
        return self.deadline is not None and self.now > self.deadline

    def look_again(self, seconds: float) -> None:
        """Ask to be called again after some time."""
        if self.requeue is None or seconds < self.requeue:
            self.requeue = max(0.0, seconds)
