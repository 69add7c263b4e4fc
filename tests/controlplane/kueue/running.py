"""Kueue at work on a control plane: its kinds, account and webhooks, and its process."""

import base64
import contextlib
from functools import partial
from pathlib import Path
from typing import Any, Self

import yaml

from tests.controlplane import health, housekeeping
from tests.controlplane.exceptions import ApiError
from tests.controlplane.kueue.program import ACCOUNT, NAMESPACE, KueueProgram
from tests.controlplane.objects import an_object
from tests.controlplane.plane import ControlPlane
from tests.controlplane.ports import LOOPBACK, free_ports
from tests.controlplane.processes import ManagedProcess
from tests.controlplane.waiting import wait_until

KUEUE_VERSION = "kueue.x-k8s.io/v1beta2"
NAME = "kueue"
_START_SECONDS = 120.0
_SECRET = "kueue-webhook-server-cert"
_DEFINITION = "CustomResourceDefinition"


class Kueue:
    """Kueue under the account that is shipped with it; a context manager that stops it.

    Its manifests stay: the control plane is expected to be gone soon. The API server asks its
    webhooks about pods too, so nobody else should use the control plane.

    Attributes:
        plane: control plane on which it works.
        process: process of Kueue, once it is started.
    """

    process: ManagedProcess

    def __init__(self, plane: ControlPlane, program: KueueProgram) -> None:
        """Choose ports; nothing is started yet.

        Args:
            plane: control plane on which it is to work.
            program: program to run, and its manifests.
        """
        self.plane = plane
        self._program = program
        self._webhook_port, self._health_port = free_ports(2)

    def __enter__(self) -> Self:
        """Install it, start it, and wait until its webhooks answer."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End its process."""
        if "process" in self.__dict__:
            self.process.kill()

    def kill(self) -> None:
        """End its process at once, as if its node had died."""
        self.process.kill()

    def restart(self) -> None:
        """Start it again, and wait until its webhooks answer."""
        self.process.stop()
        self.process.start()
        self.process.wait_for(self._is_ready, "Kueue to be ready", _START_SECONDS)

    def _start(self) -> None:
        folder = self.plane.folder / NAME
        folder.mkdir()
        self._install()
        housekeeping.wait_for_account(self.plane.api, NAMESPACE, ACCOUNT)
        token = housekeeping.account_token(self.plane.api, NAMESPACE, ACCOUNT)
        kubeconfig = self.plane.kubeconfig_for(NAME, token)
        self.process = ManagedProcess(
            NAME,
            (
                str(self._program.program),
                f"--kubeconfig={kubeconfig}",
                f"--config={self._configuration(folder)}",
                # It serves its own part of the API, on a fixed port.
                "--feature-gates=VisibilityOnDemand=false",
            ),
            self.plane.folder / f"{NAME}.log",
        )
        self.process.start()
        mounted = partial(self._is_mounted, folder)
        self.process.wait_for(mounted, "Kueue's certificate", _START_SECONDS)
        self.process.wait_for(self._is_ready, "Kueue to be ready", _START_SECONDS)

    def _install(self) -> None:
        api = self.plane.api
        items = self._program.items(LOOPBACK, self._webhook_port)
        for item in items:
            api.create(item)
        for item in items:
            if item["kind"] == _DEFINITION:
                # It ends if one of its kinds is not served when it starts.
                wait_until(partial(self._is_established, item), item["metadata"]["name"])

    def _is_established(self, definition: dict[str, Any]) -> bool:
        stored = self.plane.api.get(
            definition["apiVersion"], _DEFINITION, definition["metadata"]["name"]
        )
        conditions = stored.get("status", {}).get("conditions", ())
        return any(row["type"] == "Established" and row["status"] == "True" for row in conditions)

    def _configuration(self, folder: Path) -> Path:
        document = self._program.configuration(
            {
                "namespace": NAMESPACE,
                "health": {"healthProbeBindAddress": f"{LOOPBACK}:{self._health_port}"},
                "metrics": {"bindAddress": "0"},
                "webhook": {"host": LOOPBACK, "port": self._webhook_port, "certDir": str(folder)},
                "leaderElection": {"leaderElect": False},
            }
        )
        path = folder / "configuration.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    def _is_mounted(self, folder: Path) -> bool:
        """Write Kueue's own certificate where a kubelet would; return whether there is one."""
        data = self.plane.api.get("v1", "Secret", _SECRET, NAMESPACE).get("data")
        for name, value in (data or {}).items():
            path = folder / name
            path.touch(mode=0o600)
            path.write_bytes(base64.b64decode(value))
        return data is not None

    def _is_ready(self) -> bool:
        """Return whether Kueue is started and its webhooks let objects through."""
        if not health.http_ready(self._health_port)():
            return False
        trial = an_object(KUEUE_VERSION, "ResourceFlavor", "trial", spec={})
        with contextlib.suppress(ApiError):
            self.plane.api.create(trial, dryRun="All")
            return True
        return False
