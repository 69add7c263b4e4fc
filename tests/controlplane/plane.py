"""A real control plane without machines: etcd, API server, controllers, schedulers, kwok."""

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

from tests.controlplane import components, health, stages
from tests.controlplane.api import Api
from tests.controlplane.build import Progress, binaries
from tests.controlplane.exceptions import ControlPlaneError
from tests.controlplane.folders import new_folder
from tests.controlplane.housekeeping import wait_for_account
from tests.controlplane.kubeconfig import User, write_kubeconfig
from tests.controlplane.pod_account import PodAccount, write_pod_account
from tests.controlplane.ports import free_ports
from tests.controlplane.processes import ManagedProcess
from tests.controlplane.waiting import wait_until

_API_SERVER = "kube-apiserver"

_STOP_SECONDS = 1.0
"""The API server would take a minute, and keeps nothing that a kill could lose."""


@dataclass(frozen=True)
class PlaneOptions:
    """Options of a control plane.

    Attributes:
        scheduler: KubeSchedulerConfiguration of the default scheduler, without clientConnection's
            kubeconfig; None: no default scheduler.
        simulate_pods: whether kwok makes bound pods run and deleted ones go; without, somebody else
            is the kubelet.
        users: additional users with static tokens.
        api_server_flags: additional flags of the API server.
        controller_manager_flags: additional flags of the controller manager.
        start_timeout_seconds: longest time that one component may take until it is ready.
    """

    scheduler: Mapping[str, Any] | None = field(default_factory=dict)
    simulate_pods: bool = True
    users: tuple[User, ...] = ()
    api_server_flags: tuple[str, ...] = ()
    controller_manager_flags: tuple[str, ...] = ()
    start_timeout_seconds: float = 120.0


class ControlPlane:
    """A running control plane; a context manager that stops it for sure.

    Attributes:
        options: options as given.
        folder: temporary folder with data, certificates and logs.
        api: the API server as the administrator sees it.
        kubeconfig: the administrator's kubeconfig file.
        processes: processes of its components by name, in the order of their start.
    """

    folder: Path
    api: Api
    kubeconfig: Path

    def __init__(self, options: PlaneOptions | None = None, progress: Progress = print) -> None:
        """Start nothing yet.

        Args:
            options: options that differ from the usual.
            progress: receiver of lines of news, should programs have to be built.
        """
        self.options = options or PlaneOptions()
        self.processes: dict[str, ManagedProcess] = {}
        self._progress = progress
        self._cleanup = contextlib.ExitStack()
        self._administrator = User("admin", ("system:masters",))
        # Both have rights of their own in a real cluster; theirs are not what is tested here.
        self._controllers = User("system:kube-controller-manager", ("system:masters",))
        self._kwok = User("kwok", ("system:masters",))
        self._scheduler = User("system:kube-scheduler")

    def __enter__(self) -> Self:
        """Build what is missing, start everything and wait until it is ready."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Kill every component and remove the folder; nothing of it is of use to anyone."""
        for process in reversed(self.processes.values()):
            process.kill()
        self._cleanup.close()

    def logs(self, lines: int = 40) -> dict[str, str]:
        """The end of every component's log."""
        return {name: process.last_lines(lines) for name, process in self.processes.items()}

    def kubeconfig_for(self, name: str, token: str) -> Path:
        """Write a kubeconfig for a user or service account.

        Args:
            name: name of the file.
            token: the user's or the account's.
        """
        path = self.folder / f"{name}.kubeconfig"
        return write_kubeconfig(path, self._server.address, self._server.authority, token)

    def pod_account_for(self, name: str, token: str) -> PodAccount:
        """Write what a pod with a service account finds.

        Args:
            name: name of the folder.
            token: the account's.
        """
        folder = self.folder / f"{name}.serviceaccount"
        return write_pod_account(folder, self._server.address, self._server.authority, token)

    def add_scheduler(
        self,
        name: str,
        configuration: Mapping[str, Any],
        token: str | None = None,
        flags: Sequence[str] = (),
    ) -> ManagedProcess:
        """Start another kube-scheduler and wait until it is ready.

        Args:
            name: name of the process.
            configuration: KubeSchedulerConfiguration; the kubeconfig is filled in.
            token: token of its account; by default that of every cluster's own scheduler.
            flags: additional flags.

        Raises:
            ProcessEndedError: it does not like its configuration; the message ends with its log.
        """
        kubeconfig = self.kubeconfig_for(name, token or self._scheduler.token)
        file = self.folder / f"{name}.yaml"
        document = components.scheduler_configuration(dict(configuration), kubeconfig)
        file.write_text(yaml.safe_dump(document, sort_keys=False))
        (port,) = free_ports(1)
        command = components.scheduler_command(
            self._binaries.kube_scheduler, kubeconfig, port, file, flags
        )
        process = self._started(name, command)
        self._probes[name] = health.https_ready(port)
        try:
            self.wait_ready(name)
        except ControlPlaneError:
            self.remove(name)
            raise
        return process

    def restart(self, name: str) -> None:
        """Stop a component, start it again with the same command, and wait until it is ready.

        Args:
            name: the component. The API server also lists all kinds again, and controllers, kwok
                and schedulers start again with it: their clients would wait up to two minutes
                before they ask a server that was gone.
        """
        if name != _API_SERVER:
            self._restart_one(name)
            return
        lists = health.lists_ready(self.api)
        clients = [each for each in self.processes if each not in ("etcd", _API_SERVER)]
        for client in clients:
            self.processes[client].stop(_STOP_SECONDS)
        self._restart_one(_API_SERVER)
        wait_until(lists, "all kinds to be listed", self.options.start_timeout_seconds)
        # Another kwok would wait for 40 s, until the Leases of the one before have run out.
        for lease in self.api.list("coordination.k8s.io/v1", "Lease", "kube-node-lease"):
            self.api.delete(lease)
        for client in clients:
            self.processes[client].start()
        for client in clients:
            self.wait_ready(client)

    def remove(self, name: str) -> None:
        """Stop a component for good; its log goes with the control plane."""
        self.processes.pop(name).stop()
        del self._probes[name]

    def wait_ready(self, name: str) -> None:
        """Wait until a component says that it is ready.

        Raises:
            ProcessEndedError: it ended instead.
            WaitError: it took too long; the message ends with its log.
        """
        self.processes[name].wait_for(
            self._probes[name], f"{name} to be ready", self.options.start_timeout_seconds
        )

    def _restart_one(self, name: str) -> None:
        self.processes[name].stop(_STOP_SECONDS)
        self.processes[name].start()
        self.wait_ready(name)

    def _start(self) -> None:
        self._binaries = binaries(self._progress)
        self.folder, unlock = new_folder()
        self._cleanup.callback(unlock)
        self._cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._probes: dict[str, health.Probe] = {}
        self._start_api_server()
        names = [self._start_controllers(), self._start_kwok()]
        if self.options.scheduler is not None:
            self.add_scheduler("kube-scheduler", self.options.scheduler)
        for name in names:
            self.wait_ready(name)
        wait_for_account(self.api, "default")

    def _start_api_server(self) -> None:
        etcd_port, peer_port, port = free_ports(3)
        etcd = components.Etcd(self._binaries.etcd, self.folder, etcd_port, peer_port)
        self._probes["etcd"] = health.http_ready(etcd_port)
        self._started("etcd", etcd.command)
        users = (
            self._administrator,
            self._controllers,
            self._kwok,
            self._scheduler,
            *self.options.users,
        )
        self._server = components.api_server(
            self._binaries, self.folder, etcd, port, users, self.options.api_server_flags
        )
        self.wait_ready("etcd")
        self.api = Api(self._server.address, self._server.authority, self._administrator.token)
        self._probes[_API_SERVER] = health.api_ready(self.api)
        self._started(_API_SERVER, self._server.command)
        self.kubeconfig = self.kubeconfig_for("admin", self._administrator.token)
        self.wait_ready(_API_SERVER)

    def _start_controllers(self) -> str:
        name = "kube-controller-manager"
        (port,) = free_ports(1)
        kubeconfig = self.kubeconfig_for(name, self._controllers.token)
        self._probes[name] = health.https_ready(port, "/healthz")
        command = components.controller_manager_command(
            self._binaries.kube_controller_manager,
            kubeconfig,
            port,
            self._server,
            self.options.controller_manager_flags,
        )
        self._started(name, command)
        return name

    def _start_kwok(self) -> str:
        (port,) = free_ports(1)
        names = ("nodes", "volumes", "pods") if self.options.simulate_pods else ("nodes", "volumes")
        for item in stages.storage_classes():
            self.api.create(item)
        self._probes["kwok"] = health.http_ready(port)
        command = components.kwok_command(
            self._binaries.kwok,
            self.kubeconfig_for("kwok", self._kwok.token),
            port,
            stages.write(self.folder / "kwok.yaml", names),
        )
        self._started("kwok", command)
        return "kwok"

    def _started(self, name: str, command: Sequence[str]) -> ManagedProcess:
        process = ManagedProcess(name, command, self.folder / f"{name}.log")
        self.processes[name] = process
        process.start()
        return process
