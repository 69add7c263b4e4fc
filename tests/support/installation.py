"""The whole of kfp-placement on a test control plane: shipped manifests, our processes, stand-ins.

The API server gets what users apply; Deployments have no replicas there, since nothing runs images.
Our processes run beside it with the tokens of the shipped accounts, so that they may do what they
may do in a cluster; Argo and the kubelets are stand-ins.
"""

import contextlib
import copy
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.contract.resources import PipelinePlacement, read_resource
from tests.controlplane import health, housekeeping
from tests.controlplane.api import Api, JsonObject
from tests.controlplane.argo import crds
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.argo.loop import ArgoLoop
from tests.controlplane.argo.program import ArgoProgram
from tests.controlplane.exceptions import WaitError
from tests.controlplane.kubelet.drivers import DriverChoices
from tests.controlplane.kubelet.kubelet import Faults, Kubelets
from tests.controlplane.kubelet.loop import KubeletLoop
from tests.controlplane.kubelet.workload import Workload, WorkloadSettings
from tests.controlplane.plane import ControlPlane
from tests.controlplane.ports import LOOPBACK, free_ports
from tests.controlplane.processes import ManagedProcess
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.manifests import NAMESPACE, of_kind
from tests.support.scraping import Scraped, scrape

SCHEDULER = "scheduler"
EXTEND = "extend"
PLAN = "plan-{}"
RELEASE = "release"
ARGO = "argo"

_ACCOUNTS = {"plan": "plan", EXTEND: "scheduler", SCHEDULER: "scheduler", RELEASE: "release"}
_SCHEDULER_OF_PLANE = "kfp-placement-scheduler"
_COMPLETED = "workflows.argoproj.io/completed"


@dataclass(frozen=True)
class InstallationOptions:
    """What may differ between installations.

    Attributes:
        features: folders of `deploy/features`.
        planners: replicas of `plan`.
        policy: fields of the policy's `spec`.
        workload: how long pods take that give no hint.
        choices: what KFP's drivers find out, the same for all or by Workflow name.
        faults: what goes wrong.
        argo: Argo's own controller; None = the stand-in.
        stand_ins: whether Argo and the kubelets are played; else Workflows and pods stay as they
            are.
        start_timeout_seconds: how long one process may take until it is ready.
    """

    features: tuple[str, ...] = ()
    planners: int = 1
    policy: Mapping[str, Any] = field(default_factory=dict)
    workload: WorkloadSettings = field(
        default_factory=lambda: WorkloadSettings(
            driver_seconds=0.05, step_seconds=0.1, start_seconds=0.0
        )
    )
    choices: DriverChoices | Callable[[str], DriverChoices] = field(default_factory=DriverChoices)
    faults: Faults = field(default_factory=Faults)
    argo: ArgoProgram | None = None
    stand_ins: bool = True
    start_timeout_seconds: float = 60.0


class Installation:
    """An installation at work; a context manager that stops its processes.

    The control plane must leave pods alone (`PlaneOptions(play_pods=False)`) and is expected to be
    gone soon: what is applied stays.

    Attributes:
        api: the API server as the administrator sees it.
        kubelets: the stand-in, to make pods fail, if it is there.
    """

    kubelets: KubeletLoop

    def __init__(self, plane: ControlPlane, options: InstallationOptions | None = None) -> None:
        """Start nothing yet."""
        self.api: Api = plane.api
        self._plane = plane
        self._options = options or InstallationOptions()
        self._processes: dict[str, ManagedProcess] = {}
        self._ports: dict[str, int] = {}
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Apply everything, start everything, and wait until admission may mark pods."""
        try:
            self._start()
        except BaseException as error:
            for name, text in self.logs().items():
                error.add_note(f"end of {name}'s log:\n{text}")
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End processes and stand-ins."""
        self._cleanup.close()
        for process in reversed(self._processes.values()):
            process.stop(grace_seconds=2.0)

    @property
    def processes(self) -> Mapping[str, ManagedProcess]:
        """`plan-1` and so on, `extend`, `scheduler`."""
        return self._processes

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig file."""
        return self._plane.kubeconfig

    def kill(self, name: str) -> None:
        """End a process at once, as if its node had died."""
        self._processes[name].kill()

    @contextlib.contextmanager
    def dead(self, *names: str) -> Iterator[None]:
        """Processes that are killed for a while."""
        for name in names:
            self.kill(name)
        try:
            yield
        finally:
            for name in names:
                self.restart(name)

    @contextlib.contextmanager
    def paused(self, name: str) -> Iterator[None]:
        """A process that hangs for a while, its sockets open."""
        self._processes[name].pause()
        try:
            yield
        finally:
            self._processes[name].resume()

    def restart_api_server(self) -> None:
        """Stop the API server, start it again, and wait until it is ready."""
        self._plane.restart("kube-apiserver")

    @contextlib.contextmanager
    def another_planner(self) -> Iterator[str]:
        """One more replica of `plan` for a while, which waits for the Lease; its name."""
        number = 1 + sum(name.startswith("plan-") for name in self._processes)
        name = self._start_planner(number)
        try:
            self.wait_ready(name)
            yield name
        finally:
            del self._ports[name]
            self._processes.pop(name).stop(grace_seconds=2.0)

    def is_ready(self, name: str) -> bool:
        """Whether one of our processes answers a kubelet's question for readiness."""
        return health.http_ready(self._ports[name])()

    def metric(self, name: str, sample: str, **labels: str) -> float:
        """A metric of one of our processes; see `Scraped.total`."""
        return self.metrics(name).total(sample, **labels)

    def metrics(self, name: str) -> Scraped:
        """All metrics of one of our processes."""
        return scrape(self._ports[name])

    def restart(self, name: str) -> None:
        """Start a process again, if need be after its end, and wait until it is ready."""
        self._processes[name].stop()
        self._processes[name].start()
        self.wait_ready(name)

    def wait_ready(self, name: str) -> None:
        """Wait until a process says that it is ready.

        Raises:
            ProcessEndedError: it ended instead.
            WaitError: it took too long; the message ends with its log.
        """
        if name == SCHEDULER:
            self._plane.wait_ready(_SCHEDULER_OF_PLANE)
            return
        process = self._processes[name]

        def ready() -> bool:
            process.check()
            return self.is_ready(name)

        try:
            wait_until(ready, f"{name} to be ready", self._options.start_timeout_seconds)
        except WaitError as error:
            raise WaitError(f"{error}\n{process.last_lines()}") from None

    def wait_at_work(self) -> None:
        """Wait until it is as it was at the start: all ready, a planner leads, pods are marked.

        Raises:
            WaitError: something is missing, and stays so.
        """
        for name in (*self._ports, SCHEDULER):
            self.wait_ready(name)
        wait_until(self._is_led, "a planner to lead", 60)
        gates = "gates" in self._options.features
        self.wait_for_flag("gatesReady" if gates else "schedulerReady", True)

    def _is_led(self) -> bool:
        return any(self.metric(name, "leading") for name in self._ports if name != EXTEND)

    def release(self) -> tuple[str, ...]:
        """Arguments of the shipped job that takes overdue gates off, with its account."""
        (job,) = of_kind(self._items, "CronJob")
        pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        kubeconfig = self._kubeconfig(RELEASE)
        return (*pod["containers"][0]["args"], "--kubeconfig", str(kubeconfig))

    def logs(self, lines: int = 40) -> dict[str, str]:
        """The end of every process' log."""
        return {name: process.last_lines(lines) for name, process in self._processes.items()}

    @contextlib.contextmanager
    def namespace(self, labels: Mapping[str, str] | None = None) -> Iterator[str]:
        """A namespace for runs, with the account that KFP's pods have."""
        wanted = f"team-{uuid.uuid4().hex[:8]}"
        with housekeeping.temporary_namespace(self.api, wanted, labels) as name:
            metadata = {"name": "pipeline-runner", "namespace": name}
            self.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
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

    def wait_for_end(self, name: str, namespace: str, timeout_seconds: float = 60.0) -> JsonObject:
        """Wait until Argo is done with a Workflow; returns it."""

        def ended() -> JsonObject | None:
            found = self.workflow(name, namespace)
            labels = found["metadata"].get("labels") or {}
            return found if labels.get(_COMPLETED) == "true" else None

        def state() -> object:
            return {
                pod["metadata"]["name"]: (
                    pod["spec"]["schedulerName"],
                    pod["spec"].get("nodeName"),
                    pod["status"].get("phase"),
                )
                for pod in self.pods(namespace)
            }

        found = wait_until(ended, f"the end of {name}", timeout_seconds, state)
        assert found is not None
        return found

    def pods(self, namespace: str) -> list[JsonObject]:
        """All pods of a namespace."""
        return self.api.list("v1", "Pod", namespace)

    def placement(self, name: str, namespace: str) -> PipelinePlacement | None:
        """The plan of a run, if there is one."""
        found = self.api.find(API_VERSION, "PipelinePlacement", name, namespace)
        return None if found is None else read_resource(PipelinePlacement, found)

    def policy(self) -> JsonObject:
        """The policy as it is now."""
        return self.api.get(API_VERSION, "PlacementPolicy", "default")

    def set_policy(self, **spec: Any) -> None:
        """Change fields of the policy's `spec`; None removes one."""
        self.api.patch(self.policy(), {"spec": spec})

    def wait_for_flag(self, flag: str, value: bool, timeout_seconds: float = 60.0) -> None:
        """Wait until a flag of the policy's status has a value."""
        wait_until(
            lambda: self.policy().get("status", {}).get(flag) is value,
            f"{flag} to be {value}",
            timeout_seconds,
            self.policy,
        )

    def scheduler_configuration(self) -> JsonObject:
        """The shipped KubeSchedulerConfiguration, with the port that our extender has here."""
        (shipped,) = of_kind(self._items, "ConfigMap")
        configuration: JsonObject = yaml.safe_load(shipped["data"]["scheduler-config.yaml"])
        for extender in configuration["extenders"]:
            before, _, after = extender["urlPrefix"].partition(":8888")
            extender["urlPrefix"] = f"{before}:{self._extender_port}{after}"
        return configuration

    def _start(self) -> None:
        self._items = manifests.rendered(*self._options.features)
        argo = self._options.argo
        manifests.apply(self.api, (argo or crds).custom_resource_definitions())
        manifests.apply(self.api, map(_at_rest, self._items))
        if self._options.policy:
            self.set_policy(**self._options.policy)
        self._kubeconfigs = {process: self._kubeconfig(process) for process in ("plan", EXTEND)}
        self._extender_port, probe_port = free_ports(2)
        ports = ("--extender-port", str(self._extender_port), "--probe-port", str(probe_port))
        self._start_process(EXTEND, probe_port, EXTEND, ports)
        self._start_scheduler()
        for number in range(1, self._options.planners + 1):
            self._start_planner(number)
        if self._options.stand_ins:
            self._start_runs(argo)
        self.wait_at_work()

    def _start_runs(self, argo: ArgoProgram | None) -> None:
        """Argo and the kubelets."""
        if argo is None:
            self._cleanup.enter_context(ArgoLoop(self.api))
        else:
            log = self._plane.folder / f"{ARGO}.log"
            self._processes[ARGO] = argo.process(self.api, self._plane.kubeconfig, log)
            self._processes[ARGO].start()
        options = self._options
        kubelets = Kubelets(Workload(options.workload), options.choices, options.faults)
        self.kubelets = self._cleanup.enter_context(KubeletLoop(self.api, kubelets))

    def _kubeconfig(self, process: str) -> Path:
        token = housekeeping.account_token(self.api, NAMESPACE, _ACCOUNTS[process])
        return self._plane.kubeconfig_for(f"kfp-placement-{process}", token)

    def _start_planner(self, number: int) -> str:
        (port,) = free_ports(1)
        name = PLAN.format(number)
        self._start_process(name, port, "plan", ("--port", str(port), "--address", LOOPBACK))
        return name

    def _start_process(
        self, name: str, probe_port: int, command: str, options: tuple[str, ...]
    ) -> None:
        kubeconfig = str(self._kubeconfigs[command])
        environment = os.environ | _shipped_variables(self._items, command)
        line = (
            *(sys.executable, "-m", "kfp_placement_controller.main", command),
            *("--kubeconfig", kubeconfig, "--identity", name),
            *options,
        )
        process = ManagedProcess(name, line, self._plane.folder / f"{name}.log", environment)
        self._processes[name] = process
        self._ports[name] = probe_port
        process.start()

    def _start_scheduler(self) -> None:
        token = housekeeping.account_token(self.api, NAMESPACE, _ACCOUNTS[SCHEDULER])
        configuration = self.scheduler_configuration()
        process = self._plane.add_scheduler(_SCHEDULER_OF_PLANE, configuration, token)
        self._processes[SCHEDULER] = process
        self._cleanup.callback(self._plane.remove, _SCHEDULER_OF_PLANE)


def _shipped_variables(items: list[JsonObject], container: str) -> dict[str, str]:
    """What the Deployments set for a container, but for what only a pod has."""
    return {
        variable["name"]: variable["value"]
        for deployment in of_kind(items, "Deployment")
        for each in deployment["spec"]["template"]["spec"]["containers"]
        if each["name"] == container
        for variable in each["env"]
        if "value" in variable
    }


def _at_rest(item: JsonObject) -> JsonObject:
    """The object as shipped, but running nothing."""
    item = copy.deepcopy(item)
    if item["kind"] == "Deployment":
        item["spec"]["replicas"] = 0
    if item["kind"] == "CronJob":
        item["spec"]["suspend"] = True
    return item
