"""An API server in memory, with as much of one as a run needs: defaults, admission, quota."""

import copy
from collections.abc import Callable, Mapping

from tests.controlplane.argo.exceptions import Refusal
from tests.controlplane.argo.state import ANNOTATION_NODE_ID, ANNOTATION_NODE_NAME, Json


class MemoryCluster:
    """Pods, claims and task results of one namespace.

    Attributes:
        pods: pods by name, in order of creation.
        claims: claims by name.
        results: WorkflowTaskResults by name.
        admit: function that changes a pod at creation, as a webhook would, or refuses it.
        ended: names of pods that the controller has ended.
    """

    def __init__(self, admit: Callable[[Json], None] | None = None) -> None:
        self.pods: dict[str, Json] = {}
        self.claims: dict[str, Json] = {}
        self.results: dict[str, Json] = {}
        self.ended: list[str] = []
        self.admit = admit

    def create_pod(self, pod: Json) -> None:
        """Create a pod."""
        name = pod["metadata"]["name"]
        if name in self.pods:
            raise Refusal(409, "AlreadyExists", f'pods "{name}" already exists')
        created = copy.deepcopy(pod)
        if self.admit is not None:
            self.admit(created)
        set_defaults(created)
        created["status"] = {"phase": "Pending"}
        self.pods[name] = created

    def end_pod(self, name: str) -> None:
        """End a pod: here it is simply gone."""
        self.ended.append(name)
        del self.pods[name]

    def create_claim(self, claim: Json) -> None:
        """Create a volume claim."""
        name = claim["metadata"]["name"]
        if name in self.claims:
            message = f'persistentvolumeclaims "{name}" already exists'
            raise Refusal(409, "AlreadyExists", message)
        self.claims[name] = copy.deepcopy(claim)

    def delete_claim(self, name: str) -> None:
        """Delete a volume claim."""
        del self.claims[name]

    def find_template(self, name: str) -> Json:
        """There are no WorkflowTemplates."""
        raise Refusal(404, "NotFound", f'workflowtemplates "{name}" not found')

    # What a kubelet does.

    def run(self, name: str, node: str = "node") -> None:
        """A pod runs."""
        self.pods[name]["spec"]["nodeName"] = node
        self.pods[name]["status"] = {"phase": "Running"}

    def succeed(self, name: str, outputs: Mapping[str, str] | None = None) -> None:
        """A pod's executor reports its outputs, then the pod succeeds."""
        if outputs:
            self.report(name, outputs)
        self.pods[name]["status"] = {"phase": "Succeeded"}

    def fail(self, name: str, message: str = "") -> None:
        """A pod fails: with a message of the kubelet's, or because its main container did."""
        status: Json = {"phase": "Failed"}
        if message:
            status["message"] = message
        else:
            ended = {"exitCode": 1, "reason": "Error"}
            status["containerStatuses"] = [{"name": "main", "state": {"terminated": ended}}]
        self.pods[name]["status"] = status

    def report(self, name: str, outputs: Mapping[str, str]) -> None:
        """Make the WorkflowTaskResult of a pod."""
        metadata = self.pods[name]["metadata"]
        key = metadata["annotations"][ANNOTATION_NODE_ID]
        labels = {"workflows.argoproj.io/report-outputs-completed": "true"}
        parameters = [{"name": entry, "value": value} for entry, value in outputs.items()]
        self.results[key] = {
            "metadata": {"name": key, "labels": labels},
            "outputs": {"parameters": parameters},
        }

    def by_node_name(self) -> dict[str, Json]:
        """The pods by the names of their nodes."""
        return {
            pod["metadata"]["annotations"][ANNOTATION_NODE_NAME]: pod for pod in self.pods.values()
        }


def set_defaults(pod: Json) -> None:
    """Fill in an API server's default values, as far as the recordings show them."""
    spec = pod["spec"]
    spec.setdefault("schedulerName", "default-scheduler")
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        resources = copy.deepcopy(container.get("resources") or {})
        limits = resources.get("limits") or {}
        if limits:
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
        for amounts in resources.values():
            amounts.update({key: _canonical(str(text)) for key, text in amounts.items()})
        container["resources"] = resources


def _canonical(quantity: str) -> str:
    """A quantity as an API server prints it: whole units instead of thousands of milli-units."""
    return quantity[:-4] if quantity.endswith("000m") else quantity
