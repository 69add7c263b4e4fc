"""A Workflow simulated in memory, for tests: time is an argument, nothing sleeps."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.controlplane.argo.controller import reconcile
from tests.controlplane.argo.memory import MemoryCluster
from tests.controlplane.argo.settings import ControllerSettings
from tests.controlplane.argo.state import ANNOTATION_NODE_NAME, Json
from tests.controlplane.kubelet.drivers import DriverChoices, driver_answer
from tests.controlplane.kubelet.packages import Package, driver_arguments

START = datetime(2026, 1, 5, 8, 0, 0, tzinfo=UTC)
MOST_LOOKS = 50


class SimulatedWorkflow:
    """One Workflow, its cluster and a clock.

    Attributes:
        workflow: the Workflow as last written.
        cluster: cluster with the pods and claims of the Workflow.
        now: the time.
        choices: choices of KFP's drivers.
        packages: packages that drivers of KFP 3 read, by the name of Workflow or pipeline.
        looks: number of looks of the controller at the Workflow.
        requeue_seconds: time until the next look, as the last one requested it.
    """

    def __init__(
        self,
        workflow: Mapping[str, Any],
        *,
        settings: ControllerSettings | None = None,
        choices: DriverChoices | None = None,
        cluster: MemoryCluster | None = None,
        packages: Mapping[str, Package] | None = None,
    ) -> None:
        self.workflow: Json = dict(workflow)
        self.cluster = cluster or MemoryCluster()
        self.now = START
        self.choices = choices or DriverChoices()
        self.packages = packages or {}
        self.looks = 0
        self.requeue_seconds: float | None = None
        self._settings = settings

    def settle(self) -> None:
        """Let the controller look until it has nothing more to do."""
        for _ in range(MOST_LOOKS):
            before = list(self.cluster.pods)
            outcome = reconcile(
                self.workflow,
                self.cluster.pods.values(),
                self.cluster.results.values(),
                self.cluster,
                self.now,
                self._settings,
            )
            self.looks += 1
            self.workflow = outcome.workflow
            self.requeue_seconds = outcome.requeue_seconds
            if not outcome.changed and before == list(self.cluster.pods):
                return
        raise AssertionError("the controller does not come to rest")

    def wait(self, seconds: float) -> None:
        """Let time pass, then let the controller look."""
        self.now += timedelta(seconds=seconds)
        self.settle()

    def complete(self, *names: str) -> None:
        """End pods well, each as what it is: drivers answer; then let the controller look."""
        for name in names:
            self.cluster.succeed(name, self.answer(name))
        self.settle()

    def answer(self, name: str) -> dict[str, str]:
        """Return what a pod says at its end: drivers answer, others say nothing."""
        pod = self.cluster.pods[name]
        main = next(each for each in pod["spec"]["containers"] if each["name"] == "main")
        if main["command"][-1] != "driver":
            return {}
        node_name = pod["metadata"]["annotations"][ANNOTATION_NODE_NAME]
        arguments = driver_arguments(main["args"], node_name, self.packages)
        return driver_answer(arguments, self.workflow["metadata"]["name"], self.choices)

    def open_pods(self) -> list[str]:
        """Pods that have not ended, in order of creation."""
        pods = self.cluster.pods.items()
        return [name for name, pod in pods if pod["status"]["phase"] in ("Pending", "Running")]

    def complete_all(self, most_rounds: int = 200) -> None:
        """End all pods well, as they come, until there are none."""
        self.settle()
        for _ in range(most_rounds):
            names = self.open_pods()
            if not names:
                return
            self.complete(*names)
        raise AssertionError("the run does not end")

    # What to look at.

    @property
    def phase(self) -> str:
        """The Workflow's phase."""
        return str(self.workflow["status"].get("phase", ""))

    def nodes(self) -> dict[str, Json]:
        """Nodes by the part of their names that follows the Workflow's."""
        start = len(self.workflow["metadata"]["name"])
        nodes = self.workflow["status"]["nodes"].values()
        return {node["name"][start:]: node for node in nodes}

    def pods(self) -> dict[str, str]:
        """Node name, without the Workflow's, -> pod name, in order of creation."""
        start = len(self.workflow["metadata"]["name"])
        return {
            pod["metadata"]["annotations"][ANNOTATION_NODE_NAME][start:]: name
            for name, pod in self.cluster.pods.items()
        }
