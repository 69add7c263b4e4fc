"""Which runs the webhook holds, case by case and on the wire, and what it says of anything else."""

import base64
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kfp_placement_controller.extender.answers import Answers
from kfp_placement_controller.extender.knowledge_store import KnowledgeStore
from kfp_placement_controller.observed.run_queues import observe_readiness
from kfp_placement_controller.sources import DEFAULT_SOURCES, QUEUE_SOURCES
from kfp_placement_engine.readers.argo.keys import COMPLETED_LABEL, GROUP, INSTANCE_LABEL
from kfp_placement_kube.change import Change
from tests.controller.extender.cluster import anything, patched, review
from tests.controller.hold_cases import CHANGED, COMPLETED, EXEMPT, NEW, a_workflow, is_held, kept
from tests.support.scraping import own_metric

READY = {"spec": {"exemptInstanceIDs": EXEMPT}, "status": {"ready": True}}
WORKFLOWS = {"group": GROUP, "version": "v1alpha1", "resource": "workflows"}


class Webhook:
    """Answers, and the RunQueues that they come from.

    Attributes:
        answers: of the extender.
    """

    def __init__(self) -> None:
        self.store = KnowledgeStore(DEFAULT_SOURCES)
        self.answers = Answers(
            lambda: self.store.knowledge, lambda *_: None, queue_sources=QUEUE_SOURCES
        )

    def queue(self, namespace: str, queue: dict[str, Any] | None, name: str = "default") -> None:
        """A RunQueue is written, or deleted."""
        new = None if queue is None else observe_readiness(queue)
        self.store.queue_changed(Change((namespace, name), None, new))

    def admitted(self, workflow: dict[str, Any], **request: Any) -> dict[str, Any]:
        """The Workflow as it would be stored."""
        answer = self.answers.hold(asked(workflow, **request))
        response = json.loads(answer.body)["response"]
        assert (answer.status, response["uid"], response["allowed"]) == (200, "u1", True)
        assert answer.outcome == ("changed" if "patch" in response else "unchanged")
        if "patch" not in response:
            return workflow
        assert response["patchType"] == "JSONPatch"
        return patched(workflow, json.loads(base64.b64decode(response["patch"])))


def asked(workflow: Any, **request: Any) -> bytes:
    """What the API server asks; a Workflow is created unless the request says more."""
    creation = {"operation": "CREATE", "resource": WORKFLOWS, "oldObject": None}
    return review(workflow, **creation | request)


@pytest.fixture
def webhook():
    """One that knows a ready queue in `team-a`."""
    ready_webhook = Webhook()
    ready_webhook.queue("team-a", READY)
    return ready_webhook


@pytest.mark.parametrize("case", NEW, ids=[case.name for case in NEW])
def test_new_runs(webhook, case):
    made = webhook.admitted(a_workflow("team-a", case.labels, **case.parts))
    assert is_held(made) is case.held
    assert (
        kept(case.labels, held=case.held).items() <= (made["metadata"].get("labels") or {}).items()
    )


@pytest.mark.parametrize("case", CHANGED, ids=[case.name for case in CHANGED])
def test_runs_that_are_changed(webhook, case):
    old = a_workflow("team-a", case.before, **case.parts)
    new = a_workflow("team-a", case.after, **case.parts)
    changed = webhook.admitted(new, operation="UPDATE", oldObject=old)
    assert is_held(changed) is case.held
    assert kept(case.after, held=case.held).items() <= changed["metadata"]["labels"].items()


@pytest.mark.parametrize(
    "queue", [None, {}, {"status": None}, {"status": {}}, {"status": {"ready": False}}], ids=str
)
def test_without_a_queue_that_is_ready_runs_begin(webhook, queue):
    assert is_held(webhook.admitted(a_workflow("team-a")))
    webhook.queue("team-a", queue)
    assert not is_held(webhook.admitted(a_workflow("team-a")))


def test_only_the_queue_named_default_makes_a_namespace_take_part(webhook):
    webhook.queue("team-b", READY, name="gpu")
    assert not is_held(webhook.admitted(a_workflow("team-b"), namespace="team-b"))
    webhook.queue("team-a", None, name="gpu")
    assert is_held(webhook.admitted(a_workflow("team-a")))


def test_the_spec_of_a_queue_need_not_be_known():
    """One of a later version, say: the admission policy does not look at it either."""
    assert observe_readiness({**READY, "spec": {"backend": "unheard-of"}})


@pytest.mark.parametrize("namespace", ["kube-system", "kfp-placement"])
def test_system_namespaces_are_left_alone_whatever_the_registration_says(webhook, namespace):
    webhook.queue(namespace, READY)
    assert not is_held(webhook.admitted(a_workflow(namespace), namespace=namespace))


@pytest.mark.parametrize(
    "request_of",
    [
        {"operation": "DELETE"},
        {"operation": ""},
        {"resource": {**WORKFLOWS, "resource": "cronworkflows"}},
        {"resource": {**WORKFLOWS, "group": "example.com"}},
        {"resource": None},
    ],
    ids=str,
)
def test_what_is_not_a_new_or_changed_workflow_is_admitted_as_it_is(webhook, request_of):
    assert not is_held(webhook.admitted(a_workflow("team-a"), **request_of))


def test_an_update_without_the_old_object_is_not_a_retry(webhook):
    assert not is_held(webhook.admitted(a_workflow("team-a"), operation="UPDATE"))


def test_pods_and_runs_are_asked_about_apart(webhook):
    assert webhook.answers.mutate(asked(a_workflow("team-a"))).outcome == "unchanged"


MALFORMED = [
    {},
    {"metadata": None},
    {"metadata": []},
    {"metadata": {"labels": "x"}},
    {"metadata": {"name": "run", "labels": {COMPLETED_LABEL: {}}}},
]


@pytest.mark.parametrize("workflow", MALFORMED, ids=str)
def test_a_run_that_cannot_be_read_begins_and_is_counted(webhook, workflow):
    def malformed() -> float:
        return own_metric("answers_total", verb="hold", outcome="malformed")

    before = malformed()
    answer = webhook.answers.hold(asked(workflow))
    assert (answer.status, answer.outcome) == (200, "malformed")
    assert json.loads(answer.body)["response"] == {"uid": "u1", "allowed": True}
    assert malformed() == before + 1


def test_an_old_run_that_cannot_be_read_is_no_retry(webhook):
    again = a_workflow("team-a")
    answer = webhook.answers.hold(asked(again, operation="UPDATE", oldObject={"metadata": 1}))
    assert json.loads(answer.body)["response"] == {"uid": "u1", "allowed": True}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"request": {}}', b"[" * 100_000])
def test_what_is_not_a_review_is_refused_so_that_the_server_goes_on_without_us(webhook, body):
    assert webhook.answers.hold(body).status == 400


thing = anything("", "true", "mine", "metadata", "status", "startedAt", "labels")
labels = thing | st.dictionaries(
    st.sampled_from([INSTANCE_LABEL, COMPLETED_LABEL, "x"]), thing, max_size=3
)
workflows = thing | st.fixed_dictionaries(
    {},
    optional={
        "metadata": thing | st.fixed_dictionaries({}, optional={"labels": labels}),
        "status": thing | st.fixed_dictionaries({"startedAt": thing}),
    },
)


@example({"metadata": {"labels": None}}, {"metadata": {"labels": COMPLETED}}, "UPDATE")
@given(workflows, workflows, st.sampled_from(["CREATE", "UPDATE"]))
def test_whatever_is_sent_is_patched_soundly_or_admitted_as_it_is(new, old, operation):
    webhook = Webhook()
    webhook.queue("team-a", READY)
    answer = webhook.answers.hold(asked(new, operation=operation, oldObject=old))
    assert answer.outcome in ("changed", "unchanged", "malformed")
    patch = json.loads(answer.body).get("response", {}).get("patch") if answer.body else None
    if patch is not None:
        assert is_held(patched(new, json.loads(base64.b64decode(patch))))
