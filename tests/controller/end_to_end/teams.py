"""Teams that share an installation: each has a namespace, and sees its runs there alone."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from kfp_placement_engine.contract.custom_resources import PipelinePlacement
from kfp_placement_kube.kinds import JsonObject
from tests.controlplane import housekeeping, objects
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.argo.state import ANNOTATION_NODE_NAME, LABEL_WORKFLOW
from tests.controlplane.kubelet.packages import Package
from tests.controlplane.kubelet.workload import HINTS, is_driver
from tests.controlplane.waiting import wait_until
from tests.support.cluster_of_runs import RUN_TIMEOUT_SECONDS
from tests.support.installation import Installation

LASTING_SECONDS = 600.0
"""Time of a step that a test ends; see `Team.end_step`."""


class Team:
    """A namespace of an installation, and what is done with runs there.

    Attributes:
        installation: what places and holds its runs.
        name: of the namespace.
        api: the API server as the administrator sees it.
    """

    def __init__(self, installation: Installation, name: str) -> None:
        self.installation = installation
        self.name = name
        self.api = installation.api

    def submit(self, workflow: Mapping[str, Any]) -> str:
        """Create a Workflow as KFP's API server does; returns its name."""
        return self.installation.submit(workflow, self.name)

    def submit_package(self, package: Package, *, seconds_until_stored: float = 0.0) -> str:
        """Create the Workflow that KFP 3 makes of a package; see `Installation`."""
        return self.installation.submit_package(
            package, self.name, seconds_until_stored=seconds_until_stored
        )

    def workflow(self, run: str) -> JsonObject:
        """A Workflow as it is now."""
        return self.installation.workflow(run, self.name)

    def wait_for_end(self, run: str, timeout_seconds: float = RUN_TIMEOUT_SECONDS) -> JsonObject:
        """Wait until Argo is done with a Workflow; returns it."""
        return self.installation.wait_for_end(run, self.name, timeout_seconds)

    def wait_for_success(
        self, run: str, timeout_seconds: float = RUN_TIMEOUT_SECONDS
    ) -> JsonObject:
        """Wait for a Workflow's end, which must be a good one; returns it."""
        return self.installation.wait_for_success(run, self.name, timeout_seconds)

    def pods(self) -> list[JsonObject]:
        """All its pods."""
        return self.installation.pods(self.name)

    def end_step(self, run: str, step: str = "") -> None:
        """Wait until a step of a run runs, and let it end well, however long it would still take.

        What has to happen while it runs can then take as long as it takes on a busy machine.

        Args:
            run: name of the run.
            step: name of the step; "" = whatever runs.
        """
        for name in self.wait_for_step(run, step):
            self.installation.kubelets.fail(name, exit_code=0)

    def wait_for_step(self, run: str, step: str = "") -> list[str]:
        """Wait until a step of a run runs, and return the names of its pods.

        Args:
            run: name of the run.
            step: name of the step; "" = whatever runs.
        """

        def is_it(pod: JsonObject) -> bool:
            metadata = pod["metadata"]
            name = metadata.get("annotations", {}).get(ANNOTATION_NODE_NAME, "")
            is_of_run = metadata.get("labels", {}).get(LABEL_WORKFLOW) == run
            return is_of_run and (not step or f".{step}(" in name) and not is_driver(pod)

        def running() -> list[str]:
            return [
                pod["metadata"]["name"]
                for pod in self.pods()
                if is_it(pod) and pod["status"].get("phase") == "Running"
            ]

        return wait_until(running, f"a step of {run} to run")

    def placement(self, run: str) -> PipelinePlacement | None:
        """The plan of a run, if there is one."""
        return self.installation.placement(run, self.name)

    def add_pod(
        self, name: str, requests: Mapping[str, str], duration: str, **spec: Any
    ) -> JsonObject:
        """Create a pod of no run, which takes so long once it runs."""
        pod = objects.pod(name, self.name, requests, **spec)
        pod["metadata"]["annotations"] = {HINTS: f'{{"duration": "{duration}"}}'}
        return self.api.create(pod)

    def label(self, key: str, value: str | None) -> None:
        """Give its namespace a label; None takes it off."""
        namespace = objects.an_object("v1", "Namespace", self.name)
        self.api.patch(namespace, {"metadata": {"labels": {key: value}}})

    def tidy(self) -> None:
        """Delete its runs and pods; runs first, since Argo makes pods of those that go on again."""
        for workflow in self.api.list(ARGO_VERSION, "Workflow", self.name):
            self.api.delete(workflow)
        housekeeping.delete_pods(self.api, self.name)


@contextlib.contextmanager
def team_of(installation: Installation, labels: Mapping[str, str] | None = None) -> Iterator[Team]:
    """A team with a namespace of its own, which has these labels."""
    with installation.namespace(labels) as name:
        yield Team(installation, name)


def tidy_team(installation: Installation) -> Iterator[Team]:
    """A team of an installation at work, for a fixture; tidied up after its test."""
    # Whatever the test before has killed, or failed to tidy up.
    installation.wait_at_work()
    with team_of(installation) as team:
        yield team
        team.tidy()
