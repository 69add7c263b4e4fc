"""The shipped registration of the webhook on a real API server, with our webhook behind it."""

import base64
import contextlib
import uuid
from typing import Any

import pytest

from kfp_placement_controller.extender.answers import Answers
from kfp_placement_controller.extender.certificates import CertificateFiles
from kfp_placement_controller.extender.knowledge import Knowledge
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.custom_resources import PlacementPolicy, read_resource
from tests.controller.admission_cases import CASES, OURS, READY, STOCK, AdmissionCase
from tests.controlplane.certificates import CertificateAuthority
from tests.controlplane.housekeeping import temporary_namespace
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.manifests import NAMESPACE, of_kind
from tests.support.web_server import sending, web_server

MARKED = AdmissionCase("marked", scheduler=OURS)


class Webhook:
    """What answers, as long as `serving` lasts.

    Attributes:
        knowledge: what it answers from.
        serving: ends it.
    """

    def __init__(self, serving: contextlib.ExitStack) -> None:
        self.knowledge = Knowledge(DEFAULT_SOURCES)
        self.serving = serving
        self._answers = Answers(lambda: self.knowledge, lambda *_: None)

    def answer(self, request: Any) -> None:
        """Answer one question of the API server."""
        all_pipelines = request.path.partition("?")[0] == "/mutate-pipelines"
        answer = self._answers.mutate(request.posted, all_pipelines=all_pipelines)
        sending(answer.body, status=answer.status)(request)

    def follow(self, case: AdmissionCase) -> None:
        """Know the policy of a case."""
        policy = None
        if case.policy is not None:
            raw = {"spec": dict(case.policy), "status": dict(case.status)}
            policy = read_resource(PlacementPolicy, raw)
        self.knowledge = Knowledge(DEFAULT_SOURCES, policy=policy)


@pytest.fixture(scope="module")
def webhook(control_plane, tmp_path_factory):
    """Registered as shipped, but called by an address instead of a Service, and waited for."""
    authority = CertificateAuthority(tmp_path_factory.mktemp("webhook"))
    pair = authority.server("webhook")
    context = CertificateFiles(pair.certificate, pair.key).context
    with contextlib.ExitStack() as serving:
        served = Webhook(serving)
        answers = dict.fromkeys(("/mutate", "/mutate-pipelines"), served.answer)
        address = serving.enter_context(web_server(answers, context=context))
        (registration,) = of_kind(manifests.rendered("webhook"), "MutatingWebhookConfiguration")
        for hook in registration["webhooks"]:
            hook["clientConfig"] = {
                "url": f"{address}{hook['clientConfig']['service']['path']}",
                "caBundle": base64.b64encode(authority.certificate.read_bytes()).decode(),
            }
            hook["timeoutSeconds"] = 30
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
    webhook.serving.close()
    assert admitted(MARKED, namespace)["schedulerName"] == STOCK
