"""The shipped registration of the webhook on a real API server, with our webhook behind it."""

import base64
import http.server
import threading
import uuid
from typing import Any

import pytest

from kfp_placement_controller.extender.answers import Answers
from kfp_placement_controller.extender.app import CertificateFiles
from kfp_placement_controller.extender.knowledge import Knowledge
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.resources import PlacementPolicy, read_resource
from tests.controller.admission_cases import CASES, OURS, READY, STOCK, AdmissionCase
from tests.controlplane.certificates import CertificateAuthority
from tests.controlplane.housekeeping import temporary_namespace
from tests.controlplane.ports import LOOPBACK
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.manifests import NAMESPACE, of_kind

pytestmark = pytest.mark.cluster

MARKED = AdmissionCase("marked", scheduler=OURS)


class Webhook:
    """Answers over HTTPS as long as the context lasts.

    Attributes:
        known: what it answers from.
        port: where it listens.
    """

    def __init__(self, files: CertificateFiles) -> None:
        self.knowledge = Knowledge(DEFAULT_SOURCES)
        answers = Answers(lambda: self.knowledge, lambda *_: None)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                path = self.path.partition("?")[0]
                assert path in ("/mutate", "/mutate-pipelines")
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = answers.mutate(body, all_pipelines=path == "/mutate-pipelines")
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self._server.socket = files.context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}
        )

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self) -> None:
        """Answer no longer."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def follow(self, case: AdmissionCase) -> None:
        """Know the policy of a case."""
        policy = None
        if case.policy is not None:
            found = {"spec": dict(case.policy), "status": dict(case.status)}
            policy = read_resource(PlacementPolicy, found)
        self.knowledge = Knowledge(DEFAULT_SOURCES, policy=policy)


@pytest.fixture(scope="module")
def webhook(control_plane, tmp_path_factory):
    """Registered as shipped, but called by an address instead of a Service."""
    authority = CertificateAuthority(tmp_path_factory.mktemp("webhook"))
    pair = authority.server("webhook")
    with Webhook(CertificateFiles(pair.certificate, pair.key)) as served:
        (registration,) = of_kind(manifests.rendered("webhook"), "MutatingWebhookConfiguration")
        for hook in registration["webhooks"]:
            hook["clientConfig"] = {
                "url": f"https://{LOOPBACK}:{served.port}{hook['clientConfig']['service']['path']}",
                "caBundle": base64.b64encode(authority.certificate.read_bytes()).decode(),
            }
        manifests.apply(control_plane.api, [registration])
        yield served
        control_plane.api.delete(registration)


@pytest.fixture
def admitted(webhook, api):
    """Gives a case's pod as it would be stored."""

    def create(case, namespace):
        return api.create(case.pod(namespace), dryRun="All")["spec"]

    webhook.follow(AdmissionCase("ready", status=READY))

    def at_work():
        return create(MARKED, "default")["schedulerName"] == OURS

    wait_until(at_work, "the registration to count")
    return create


@pytest.fixture(scope="module")
def own_namespace(control_plane):
    """The namespace of the controller."""
    api = control_plane.api
    with temporary_namespace(api, NAMESPACE):
        yield
    # Other tests install everything there.
    wait_until(lambda: api.find("v1", "Namespace", NAMESPACE) is None, "the namespace to be gone")


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_matrix(api, webhook, admitted, own_namespace, case):
    webhook.follow(case)
    name = f"test-{uuid.uuid4().hex[:8]}"
    with temporary_namespace(api, name, case.namespace_labels):
        spec = admitted(case, case.namespace or name)
    assert spec["schedulerName"] == case.scheduler
    gates = [gate["name"] for gate in spec.get("schedulingGates", ())]
    assert sorted(gates) == sorted(case.gates)


def test_without_the_webhook_pods_are_admitted_as_they_are(webhook, admitted, namespace):
    """The last here: it ends the webhook."""
    assert admitted(MARKED, namespace)["schedulerName"] == OURS
    webhook.stop()
    assert admitted(MARKED, namespace)["schedulerName"] == STOCK
