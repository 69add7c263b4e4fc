"""The whole of kfp-placement on a test control plane: shipped manifests, our processes, stand-ins.

The API server gets what users apply; Deployments have no replicas there, since nothing runs images.
Our processes run beside it with the tokens of the shipped accounts, so that they may do what they
may do in a cluster; Argo and the kubelets are stand-ins.
"""

import contextlib
import copy
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import yaml

from kfp_placement_kube.kinds import JsonObject
from tests.controlplane import health, housekeeping, objects
from tests.controlplane.argo import crds
from tests.controlplane.argo.loop import ArgoLoop
from tests.controlplane.argo.program import ArgoProgram
from tests.controlplane.kfp_api import AUDIENCE, KfpApi, StoredRun, serving_kfp_api
from tests.controlplane.kubelet.drivers import DriverChoices
from tests.controlplane.kubelet.kubelet import Kubelets
from tests.controlplane.kubelet.loop import KubeletLoop
from tests.controlplane.kubelet.packages import Package
from tests.controlplane.kubelet.workload import Workload, WorkloadSettings
from tests.controlplane.plane import ControlPlane
from tests.controlplane.ports import LOOPBACK, free_ports
from tests.controlplane.processes import ManagedProcess
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.cluster_of_runs import ClusterOfRuns
from tests.support.kfp3_workflow_emitter import emit_kfp3_workflow
from tests.support.manifests import NAMESPACE, of_kind, shipped_variables
from tests.support.scraping import Scraped, scrape

SCHEDULER = "scheduler"
EXTEND = "extend"
PLAN = "plan-{}"
QUEUE = "queue-{}"
PLANNER, FIRST_QUEUE = PLAN.format(1), QUEUE.format(1)
ARGO = "argo"

_ACCOUNTS = {"plan": "plan", "queue": "queue", EXTEND: "scheduler", SCHEDULER: "scheduler"}
_PROGRAM = "kfp_placement_controller.main"
_SCHEDULER_OF_PLANE = "kfp-placement-scheduler"


@dataclass(frozen=True)
class InstallationOptions:
    """Options of an installation.

    Attributes:
        features: folders of `deploy/features`.
        planners: replicas of `plan`.
        queues: replicas of `queue`, where that feature is installed.
        policy: fields of the policy's `spec`.
        workload: times of pods that give no hint.
        choices: choices of KFP's drivers, the same for all or by Workflow name.
        exit_codes: pattern of a node name -> exit code of the main container.
        packages: packages that drivers of KFP 3 read, by the name of Workflow or pipeline; tests
            may add to them at any time.
        argo: Argo's own controller; None = the stand-in.
        stand_ins: whether Argo and the kubelets have stand-ins; else Workflows and pods stay as
            they are.
        python: interpreter of our processes; by default this environment's.
        start_timeout_seconds: longest time that one process may take until it is ready.
    """

    features: tuple[str, ...] = ()
    planners: int = 1
    queues: int = 1
    policy: Mapping[str, Any] = field(default_factory=dict)
    workload: WorkloadSettings = field(
        default_factory=lambda: WorkloadSettings(
            driver_seconds=0.05, step_seconds=0.1, start_seconds=0.0
        )
    )
    choices: DriverChoices | Callable[[str], DriverChoices] = field(default_factory=DriverChoices)
    exit_codes: dict[str, int] = field(default_factory=dict)
    packages: dict[str, Package] = field(default_factory=dict)
    argo: ArgoProgram | None = None
    stand_ins: bool = True
    python: str = sys.executable
    start_timeout_seconds: float = 120.0


class Installation(ClusterOfRuns):
    """An installation at work; a context manager that stops its processes.

    The control plane must leave pods alone (`PlaneOptions(simulate_pods=False)`) and is expected to
    be gone soon: what is applied stays.

    Attributes:
        api: the API server as the administrator sees it.
        kubelets: the stand-in, to make pods fail, if it is there.
        kfp_api: the stand-in of KFP's API, where the feature that asks it is installed.
    """

    kubelets: KubeletLoop
    kfp_api: KfpApi | None = None

    def __init__(self, plane: ControlPlane, options: InstallationOptions | None = None) -> None:
        """Take the options; nothing is started yet."""
        super().__init__(plane.api)
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

    def __exit__(self, *_: object) -> None:
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
    def options(self) -> InstallationOptions:
        """Options of this installation."""
        return self._options

    @property
    def items(self) -> Sequence[JsonObject]:
        """Objects that were applied, in order."""
        return self._items

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig file."""
        return self._plane.kubeconfig

    def kill(self, name: str) -> None:
        """End a process at once, as if its node had died."""
        self._processes[name].kill()

    def stop_deployment(self, name: str) -> None:
        """End the processes that are containers of a Deployment, as when it is deleted."""
        for each in [*self._processes]:
            if _ACCOUNTS.get(each.partition("-")[0]) == name:
                self._processes[each].stop()

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
        name = PLAN.format(1 + sum(each.startswith("plan-") for each in self._processes))
        self._start_replica("plan", name)
        try:
            self.wait_ready(name)
            yield name
        finally:
            del self._ports[name]
            self._processes.pop(name).stop(grace_seconds=2.0)

    def is_ready(self, name: str) -> bool:
        """Return whether one of our processes answers a kubelet's question for readiness."""
        return health.http_ready(self._ports[name])()

    def metric(self, name: str, sample: str, **labels: str) -> float:
        """A metric of one of our processes; see `Scraped.total`."""
        return self.metrics(name).total(sample, **labels)

    def metrics(self, name: str) -> Scraped:
        """Return all metrics of one of our processes."""
        return scrape(self._ports[name])

    def restart(self, name: str) -> None:
        """Start a process again, if need be after its end, and wait until it is ready.

        kube-scheduler waits for its Lease too. Until that of the one before has run out, its age
        may still become too old, and the flag of a living scheduler come off again.
        """
        process = self._processes[name]
        process.stop()
        before = self._scheduler_lease() if name == SCHEDULER else None
        process.start()
        self.wait_ready(name)
        if before is not None:
            process.wait_for(lambda: self._scheduler_lease() != before, "the scheduler to lead")

    def _scheduler_lease(self) -> JsonObject | None:
        """The Lease that kube-scheduler renews; None = it has never led."""
        name = _SCHEDULER_OF_PLANE
        lease = self.api.find("coordination.k8s.io/v1", "Lease", name, NAMESPACE)
        return None if lease is None else lease["spec"]

    def wait_ready(self, name: str) -> None:
        """Wait until a process says that it is ready.

        Raises:
            ProcessEndedError: it ended instead.
            WaitError: it took too long; the message ends with its log.
        """
        if name == SCHEDULER:
            self._plane.wait_ready(_SCHEDULER_OF_PLANE)
            return
        self._processes[name].wait_for(
            partial(self.is_ready, name), f"{name} to be ready", self._options.start_timeout_seconds
        )

    def wait_at_work(self) -> None:
        """Wait until it is as it was at the start: all ready, a planner leads, pods are marked.

        kube-scheduler ends when it loses its Lease, such as while the API server is away; it is
        started again, as a Deployment does. Ours must not end.

        Raises:
            WaitError: something is missing, and stays so.
        """
        if not self._processes[SCHEDULER].running:
            self.restart(SCHEDULER)
        for name in (*self._ports, SCHEDULER):
            self.wait_ready(name)
        wait_until(partial(self._is_led, "plan"), "a planner to lead")
        if self._has_queues:
            wait_until(partial(self._is_led, "queue"), "a queue to lead")
        gates = "gates" in self._options.features
        self.wait_for_flag("gatesReady" if gates else "schedulerReady", True)

    @property
    def _has_queues(self) -> bool:
        return "queue" in self._options.features

    def _is_led(self, process: str) -> bool:
        replicas = (name for name in self._ports if name.startswith(f"{process}-"))
        return any(self.metric(name, "leading") for name in replicas)

    def release(self) -> str:
        """Run the shipped job that frees overdue runs, with its account; return what it says."""
        (job,) = of_kind(self._items, "CronJob")
        pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        line = (self._options.python, "-m", _PROGRAM, *pod["containers"][0]["args"])
        environment = os.environ | self._account_variables(pod["serviceAccountName"])
        done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    def logs(self, lines: int = 40) -> dict[str, str]:
        """The end of every process' log."""
        return {name: process.last_lines(lines) for name, process in self._processes.items()}

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
        if "kfp-api-network" in self._options.features:
            # KFP is there already, and the shipped NetworkPolicy is in its namespace.
            manifests.apply(self.api, [objects.an_object("v1", "Namespace", "kubeflow")])
        manifests.apply(self.api, map(_at_rest, self._items))
        if self._options.policy:
            self.set_policy(**self._options.policy)
        accounts = ["plan", EXTEND, *(["queue"] if self._has_queues else [])]
        self._accounts = {each: self._account_variables(_ACCOUNTS[each]) for each in accounts}
        if "kfp-api" in self._options.features:
            self._accounts["plan"] |= self._start_kfp_api()
        self._extender_port, probe_port = free_ports(2)
        ports = ("--extender-port", str(self._extender_port), "--probe-port", str(probe_port))
        self._start_process(EXTEND, probe_port, EXTEND, ports)
        self._start_scheduler()
        for number in range(1, self._options.planners + 1):
            self._start_replica("plan", PLAN.format(number))
        for number in range(1, self._options.queues + 1 if self._has_queues else 1):
            self._start_replica("queue", QUEUE.format(number))
        if self._options.stand_ins:
            self._start_runs(argo)
        self.wait_at_work()

    def _start_kfp_api(self) -> dict[str, str]:
        """KFP's API; returns the variables by which the planner finds it."""
        self.kfp_api = self._cleanup.enter_context(serving_kfp_api(self.api))
        token = self._plane.folder / "kfp-api-token"
        token.write_text(housekeeping.account_token(self.api, NAMESPACE, "plan", AUDIENCE))
        return {
            "KFP_PLACEMENT_KFP_API_ADDRESS": self.kfp_api.address,
            "KFP_PLACEMENT_KFP_API_TOKEN": str(token),
        }

    def submit_package(
        self, package: Package, namespace: str, *, seconds_until_stored: float = 0.0
    ) -> str:
        """Create the Workflow that KFP 3 makes of a package; returns its name.

        Args:
            package: documents of the package; drivers and KFP's API have it then.
            namespace: namespace of the Workflow.
            seconds_until_stored: time from now on in which KFP's API has no such run.
        """
        workflow = emit_kfp3_workflow(*package)
        name = f"{workflow['metadata'].pop('generateName')}{uuid.uuid4().hex[:8]}"
        workflow["metadata"]["name"] = name
        self._options.packages[name] = package
        self.submit(workflow, namespace)
        if self.kfp_api is not None:
            run_id = self.workflow(name, namespace)["metadata"]["labels"]["pipeline/runid"]
            stored_from = time.monotonic() + seconds_until_stored
            self.kfp_api.store(StoredRun(run_id, namespace, name, package, stored_from))
        return name

    def _start_runs(self, argo: ArgoProgram | None) -> None:
        """Argo and the kubelets."""
        if argo is None:
            self._cleanup.enter_context(ArgoLoop(self.api))
        else:
            log = self._plane.folder / f"{ARGO}.log"
            self._processes[ARGO] = argo.process(self.api, self._plane.kubeconfig, log)
            self._processes[ARGO].start()
        options = self._options
        workload = Workload(options.workload)
        kubelets = Kubelets(workload, options.choices, options.exit_codes, options.packages)
        self.kubelets = self._cleanup.enter_context(KubeletLoop(self.api, kubelets))

    def _account_variables(self, account: str) -> dict[str, str]:
        """Variables by which our processes find a shipped account, as in a pod."""
        token = housekeeping.account_token(self.api, NAMESPACE, account)
        pod_account = self._plane.pod_account_for(f"kfp-placement-{account}", token)
        return {**pod_account.variables, "KFP_PLACEMENT_SERVICE_ACCOUNT": str(pod_account.folder)}

    def _start_replica(self, process: str, name: str) -> None:
        """Start one more replica of `plan` or `queue`."""
        (port,) = free_ports(1)
        self._start_process(name, port, process, ("--port", str(port), "--address", LOOPBACK))

    def _start_process(
        self, name: str, probe_port: int, command: str, options: tuple[str, ...]
    ) -> None:
        shipped = shipped_variables(self._items, command)
        environment = os.environ | shipped | self._accounts[command]
        line = (self._options.python, "-m", _PROGRAM, command, "--identity", name, *options)
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


def _at_rest(item: JsonObject) -> JsonObject:
    """The object as shipped, but running nothing."""
    item = copy.deepcopy(item)
    if item["kind"] == "Deployment":
        item["spec"]["replicas"] = 0
    if item["kind"] == "CronJob":
        item["spec"]["suspend"] = True
    return item
