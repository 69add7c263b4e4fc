"""Runs on a test control plane as those see them who submit and watch them."""

import contextlib
import copy
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from kfp_placement_engine.contract.custom_resources import PipelinePlacement, read_resource
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_kube.kinds import JsonObject
from tests.controlplane import housekeeping
from tests.controlplane.api import Api
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.objects import an_object
from tests.controlplane.waiting import wait_until

RUN_TIMEOUT_SECONDS = 120.0
"""Longest time until a short run has ended: on two cores that are busy it can take 40 s."""

_COMPLETED = "workflows.argoproj.io/completed"


class ClusterOfRuns:
    """Operations on runs, by way of the API server alone.

    Attributes:
        api: the API server as the administrator sees it.
    """

    def __init__(self, api: Api) -> None:
        self.api = api

    @contextlib.contextmanager
    def namespace(self, labels: Mapping[str, str] | None = None) -> Iterator[str]:
        """A namespace for runs, with the account that KFP's pods have."""
        wanted = f"team-{uuid.uuid4().hex[:8]}"
        with housekeeping.temporary_namespace(self.api, wanted, labels) as name:
            self.api.create(an_object("v1", "ServiceAccount", "pipeline-runner", name))
            yield name

    def submit(self, workflow: Mapping[str, Any], namespace: str) -> str:
        """Create a Workflow as KFP's API server does; returns its name."""
        item = copy.deepcopy(dict(workflow))
        run_id = str(uuid.uuid4())
        given = item["metadata"]
        name = given.get("name") or f"{given['generateName']}{uuid.uuid4().hex[:8]}"
        item["metadata"] = {
            "name": name,
            "namespace": namespace,
            "labels": {**given.get("labels", {}), "pipeline/runid": run_id},
            "annotations": given.get("annotations", {}),
        }
        labels = item["spec"].setdefault("podMetadata", {}).setdefault("labels", {})
        labels["pipeline/runid"] = run_id
        item.pop("status", None)
        self.api.create({**item, "apiVersion": ARGO_VERSION, "kind": "Workflow"})
        return name

    def workflow(self, name: str, namespace: str) -> JsonObject:
        """A Workflow as it is now."""
        return self.api.get(ARGO_VERSION, "Workflow", name, namespace)

    def wait_for_end(
        self, name: str, namespace: str, timeout_seconds: float = RUN_TIMEOUT_SECONDS
    ) -> JsonObject:
        """Wait until Argo is done with a Workflow; returns it."""

        def ended() -> JsonObject | None:
            run = self.workflow(name, namespace)
            labels = run["metadata"].get("labels") or {}
            return run if labels.get(_COMPLETED) == "true" else None

        def state() -> object:
            return {
                pod["metadata"]["name"]: (
                    pod["spec"]["schedulerName"],
                    pod["spec"].get("nodeName"),
                    pod["status"].get("phase"),
                )
                for pod in self.pods(namespace)
            }

        run = wait_until(ended, f"the end of {name}", timeout_seconds, state)
        assert run is not None
        return run

    def wait_for_success(
        self, name: str, namespace: str, timeout_seconds: float = RUN_TIMEOUT_SECONDS
    ) -> JsonObject:
        """Wait for a Workflow's end, which must be a good one; returns it."""
        ended = self.wait_for_end(name, namespace, timeout_seconds)
        status = ended["status"]
        if status["phase"] != "Succeeded":
            node_states = {
                node["displayName"]: (node["phase"], node.get("message"))
                for node in status.get("nodes", {}).values()
                if node["phase"] in ("Failed", "Error")
            }
            pods = {pod["metadata"]["name"]: pod["status"] for pod in self.pods(namespace)}
            raise AssertionError(
                f"{name}: {status['phase']}: {status.get('message')}; {node_states}; pods: {pods}"
            )
        return ended

    def pods(self, namespace: str) -> list[JsonObject]:
        """Return all pods of a namespace."""
        return self.api.list("v1", "Pod", namespace)

    def placement(self, name: str, namespace: str) -> PipelinePlacement | None:
        """The plan of a run, if there is one."""
        raw = self.api.find(API_VERSION, "PipelinePlacement", name, namespace)
        return None if raw is None else read_resource(PipelinePlacement, raw)

    def policy(self) -> JsonObject:
        """The policy as it is now."""
        return self.api.get(API_VERSION, "PlacementPolicy", "default")

    def set_policy(self, **spec: Any) -> None:
        """Change fields of the policy's `spec`; None removes one."""
        self.api.patch(self.policy(), {"spec": spec})

    def wait_for_flag(self, flag: str, value: bool) -> None:
        """Wait until a flag of the policy's status has a value."""
        wait_until(
            lambda: self.policy().get("status", {}).get(flag) is value,
            f"{flag} to be {value}",
            state=self.policy,
        )
