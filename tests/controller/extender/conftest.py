"""The process `extend` and a kube-scheduler as shipped, on the control plane that tests share."""

import json
import sys
import urllib.request
from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from kfp_placement_engine.contract.keys import API_VERSION, SCHEDULER_LABEL
from kfp_placement_kube.kinds import JsonObject
from tests.controller.extender.cluster import (
    WORKFLOW,
    WORKFLOW_UID,
    Cluster,
    plan_object,
    planned_cluster,
)
from tests.controlplane import health, objects
from tests.controlplane.api import Api
from tests.controlplane.argo.pods import owner_reference
from tests.controlplane.housekeeping import account_token, wait_until_seen
from tests.controlplane.ports import LOOPBACK, free_ports
from tests.controlplane.processes import ManagedProcess
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.manifests import NAMESPACE, of_kind

SCHEDULER = "kfp-placement"
_NOT_HERE = ("Deployment", "PodDisruptionBudget", "MutatingAdmissionPolicyBinding")
"""Kinds that are left out: no image runs here, and pods state which scheduler places them."""


class Extender:
    """The process, its scheduler, and what a test does with them.

    Attributes:
        process: the process `extend`.
        port: port of the scheduler's questions.
        probe_port: port of its metrics.
        api: the API server as the administrator sees it.
    """

    def __init__(self, api: Api, process: ManagedProcess, port: int, probe_port: int) -> None:
        self.api = api
        self.process = process
        self.port = port
        self.probe_port = probe_port
        self._ready = health.http_ready(probe_port)

    def start(self) -> None:
        """Start the process and wait until it knows everything."""
        self.process.start()

        def ready() -> bool:
            self.process.check()
            return self._ready()

        wait_until(ready, "extend to be ready", state=self.process.last_lines)

    def pod(
        self,
        name: str,
        namespace: str,
        step: str,
        requests: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        **spec: Any,
    ) -> JsonObject:
        """A step's executor pod, placed by our scheduler."""
        marks = {"workflows.argoproj.io/workflow": WORKFLOW, SCHEDULER_LABEL: SCHEDULER}
        pod = objects.pod(
            name,
            namespace,
            requests,
            {**marks, **(labels or {})},
            **{"schedulerName": SCHEDULER, **spec},
        )
        node_name = f"{WORKFLOW}(0).root(0).{step}(0).executor(0)"
        pod["metadata"]["annotations"] = {"workflows.argoproj.io/node-name": node_name}
        workflow = {"metadata": {"name": WORKFLOW, "uid": WORKFLOW_UID}}
        pod["metadata"]["ownerReferences"] = [owner_reference(workflow)]
        return pod

    def ask(self, pod: JsonObject, nodes: Sequence[str]) -> list[str]:
        """Ask as the scheduler does, which nodes remain."""
        body = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": list(nodes)}).encode()
        url = f"http://{LOOPBACK}:{self.port}/scheduler/filter"
        with urllib.request.urlopen(url, body, timeout=10) as response:
            names: list[str] = json.loads(response.read())["NodeNames"]
        return names

    def wait_answered(self, pod: JsonObject, nodes: Sequence[str], expected: Sequence[str]) -> None:
        """Wait until the process has seen what a test has just written."""
        wait_until(
            lambda: self.ask(pod, nodes) == list(expected),
            f"extend to answer {expected}",
            state=lambda: self.ask(pod, nodes),
        )

    def plan(
        self, namespace: str, rows: Sequence[Sequence[Any]], nodes: Sequence[str]
    ) -> JsonObject:
        """Write a plan."""
        return self.api.create(plan_object(*rows, nodes=nodes, namespace=namespace))

    def set_policy(self, **spec: Any) -> None:
        """Change the policy."""
        policy = objects.an_object(API_VERSION, "PlacementPolicy", "default")
        self.api.patch(policy, {"spec": spec})


@pytest.fixture(scope="module")
def extender(control_plane):
    """The process and a scheduler with the shipped configuration, accounts and rights."""
    api = control_plane.api
    items = manifests.rendered("gates")
    applied = [item for item in items if item["kind"] not in (*_NOT_HERE, "CronJob")]
    manifests.apply(api, applied)
    token = account_token(api, NAMESPACE, "scheduler")
    port, probe_port = free_ports(2)
    command = (
        *(sys.executable, "-m", "kfp_placement_controller.main", "extend"),
        *("--kubeconfig", str(control_plane.kubeconfig_for("extend", token))),
        *("--extender-port", str(port), "--probe-port", str(probe_port)),
    )
    process = ManagedProcess("extend", command, control_plane.folder / "extend.log")
    started = Extender(api, process, port, probe_port)
    try:
        started.start()
        (shipped,) = of_kind(items, "ConfigMap")
        configuration = yaml.safe_load(shipped["data"]["scheduler-config.yaml"])
        (asked,) = configuration["extenders"]
        asked["urlPrefix"] = asked["urlPrefix"].replace(":8888", f":{port}")
        control_plane.add_scheduler(SCHEDULER, configuration, token)
        yield started
    finally:
        if SCHEDULER in control_plane.processes:
            control_plane.remove(SCHEDULER)
        process.stop(grace_seconds=5)
        manifests.remove(api, applied)


@pytest.fixture
def nodes(extender, namespace, add_nodes):
    """Three nodes of 8 CPU that the scheduler knows."""
    names = [f"{namespace}-{letter}" for letter in "abc"]
    add_nodes(*map(objects.node, names))
    wait_until_seen(extender.api, namespace, SCHEDULER)
    return names


@pytest.fixture
def cluster() -> Cluster:
    return planned_cluster()
