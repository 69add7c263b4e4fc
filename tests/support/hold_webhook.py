"""The webhook that holds runs, on a control plane where the admission policy held them so far."""

import base64
import sys
import tempfile
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

from tests.controller.hold_cases import a_workflow, is_held
from tests.controlplane import health, housekeeping
from tests.controlplane.api import Api
from tests.controlplane.certificates import CertificateAuthority
from tests.controlplane.exceptions import ApiError
from tests.controlplane.plane import ControlPlane
from tests.controlplane.ports import LOOPBACK, free_ports
from tests.controlplane.processes import ManagedProcess
from tests.support import manifests
from tests.support.manifests import NAMESPACE
from tests.support.scraping import scrape

WITH_POLICY = ("gates", "queue")
WITH_WEBHOOK = ("gates", "queue", "queue-webhook", "webhook")
_HOLD = "kfp-placement-hold"
_POLICIES = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
_RIGHTS = "kfp-placement-extend-queues"


def would_hold(api: Api, namespace: str) -> bool:
    """Return whether a new run would be held."""
    try:
        return is_held(api.create(a_workflow(namespace), dryRun="All"))
    except ApiError as error:
        # Admission learns of a kind that is new to the server a moment later.
        if error.status != HTTPStatus.SERVICE_UNAVAILABLE:
            raise
        return False


class HoldWebhook:
    """The process `admit` with the shipped account, rights and registration, as a context.

    It is as shipped, except that the API server calls it by its address, since there are no
    Services here, and may have to wait longer for it.

    Attributes:
        process: the process `admit`.
    """

    def __init__(self, plane: ControlPlane, api: Api, timeout_seconds: int | None = None) -> None:
        """Choose ports; nothing has changed yet.

        Args:
            plane: control plane on which `WITH_POLICY` is installed.
            api: API server as the administrator sees it.
            timeout_seconds: longest time for an answer, after which a run is not held; None = as
                shipped.
        """
        self._timeout = {} if timeout_seconds is None else {"timeoutSeconds": timeout_seconds}
        self._api = api
        self._folder = tempfile.TemporaryDirectory()
        self._authority = CertificateAuthority(Path(self._folder.name))
        self._hook_port, self._probe_port = free_ports(2)
        pair = self._authority.server("webhook")
        token = housekeeping.account_token(api, NAMESPACE, "scheduler")
        command = (
            *(sys.executable, "-m", "kfp_placement_controller.main", "admit", "--queues"),
            *("--kubeconfig", str(plane.kubeconfig_for("admit", token))),
            *("--webhook-port", str(self._hook_port), "--probe-port", str(self._probe_port)),
            *("--webhook-certificate", str(pair.certificate), "--webhook-key", str(pair.key)),
        )
        self.process = ManagedProcess("admit", command, plane.folder / "admit.log")
        shipped = [
            item
            for item in manifests.rendered(*WITH_WEBHOOK)
            if item["metadata"]["name"] in (_HOLD, _RIGHTS)
            and item["kind"] != "ValidatingAdmissionPolicy"
            and item["kind"] != "ValidatingAdmissionPolicyBinding"
        ]
        self._added = [self._called_by_address(item) for item in shipped]
        self._removed = [
            item
            for item in manifests.rendered(*WITH_POLICY)
            if item["kind"] in _POLICIES and item["metadata"]["name"] == _HOLD
        ]

    def __enter__(self) -> Self:
        for item in self._removed:
            self._api.delete(item)
        manifests.apply(self._api, self._added)
        self.process.start()
        self.process.wait_for(health.http_ready(self._probe_port), "admit to be ready")
        return self

    def __exit__(self, *_: object) -> None:
        for item in reversed(self._added):
            self._api.delete(item)
        manifests.apply(self._api, self._removed)
        self.process.stop(grace_seconds=5)
        self._folder.cleanup()

    def answers(self, outcome: str) -> float:
        """Return how often the webhook has answered so when asked about a run."""
        return scrape(self._probe_port).total("answers_total", verb="hold", outcome=outcome)

    def _called_by_address(self, item: dict[str, Any]) -> dict[str, Any]:
        for hook in item.get("webhooks", ()):
            path = hook["clientConfig"]["service"]["path"]
            bundle = base64.b64encode(self._authority.certificate.read_bytes()).decode()
            url = f"https://{LOOPBACK}:{self._hook_port}{path}"
            hook |= {"clientConfig": {"url": url, "caBundle": bundle}, **self._timeout}
        return item
