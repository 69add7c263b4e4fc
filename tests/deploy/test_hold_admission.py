"""Which Workflows the shipped admission policies hold, and who may let a held one begin."""

import copy
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import pytest

from kfp_placement_engine.contract.keys import API_VERSION, ENABLED_LABEL, QUEUE_INSTANCE
from kfp_placement_engine.readers.argo.keys import COMPLETED_LABEL, INSTANCE_LABEL
from tests.controlplane import housekeeping
from tests.controlplane.api import Api
from tests.controlplane.argo.crds import VERSION, custom_resource_definitions
from tests.controlplane.exceptions import ApiError
from tests.controlplane.housekeeping import temporary_namespace
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.manifests import NAMESPACE

pytestmark = pytest.mark.cluster

Json = dict[str, Any]

READY = {"ready": True}
COMPLETED = {COMPLETED_LABEL: "true"}


@pytest.fixture(scope="module")
def api(installed: Api) -> Iterator[Api]:
    """The API server with our admission, and with Argo's kinds."""
    manifests.apply(installed, custom_resource_definitions())
    yield installed
    for item in custom_resource_definitions():
        installed.delete(item)


def a_workflow(namespace: str, labels: Mapping[str, str] = {}, **parts: Any) -> Json:
    metadata = {"name": "run", "namespace": namespace, "labels": dict(labels)}
    return {"apiVersion": VERSION, "kind": "Workflow", "metadata": metadata, "spec": {}, **parts}


def a_queue(namespace: str, name: str = "default", **spec: Any) -> Json:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": API_VERSION, "kind": "RunQueue", "metadata": metadata, "spec": spec}


def make_queue(api: Api, namespace: str, status: Json, name: str = "default") -> None:
    api.create(a_queue(namespace, name))
    api.patch(a_queue(namespace, name), {"status": status}, part="status")


def is_held(workflow: Json) -> bool:
    return (workflow["metadata"].get("labels") or {}).get(INSTANCE_LABEL) == QUEUE_INSTANCE


def wait_for_holds(api: Api, namespace: str) -> None:
    """Wait until the server knows that the queue of a namespace is ready."""

    def holds() -> bool:
        try:
            return is_held(api.create(a_workflow(namespace), dryRun="All"))
        except ApiError as error:
            # Admission learns of a kind that is new to the server a moment later.
            if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
                return False
            raise

    wait_until(holds, f"new Workflows of {namespace} to be held", 60)


@pytest.fixture
def team(api: Api) -> Iterator[str]:
    """A namespace whose queue is ready, as the server knows."""
    with temporary_namespace(api, f"test-{uuid.uuid4().hex[:8]}") as name:
        make_queue(api, name, READY)
        wait_for_holds(api, name)
        yield name


@dataclass(frozen=True)
class NewWorkflow:
    """A Workflow that is created, and whether it is held.

    Attributes:
        name: of the case.
        held: it is.
        labels: of the Workflow.
        parts: of the Workflow, beside its metadata.
    """

    name: str
    held: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, Any] = field(default_factory=dict)


NEW = (
    NewWorkflow("plain", held=True),
    NewWorkflow("with-labels", held=True, labels={"pipeline/runid": "1"}),
    NewWorkflow("empty-status", held=True, parts={"status": {}}),
    NewWorkflow("suspended", held=True, parts={"spec": {"suspend": True}}),
    NewWorkflow("large", held=True, parts={"spec": {"note": "x" * 1_000_000}}),
    NewWorkflow("of-another-controller", labels={INSTANCE_LABEL: "mine"}),
    NewWorkflow("has-ended", labels=COMPLETED),
    NewWorkflow("restored-as-it-ran", parts={"status": {"startedAt": "2026-01-05T08:00:00Z"}}),
)


@pytest.mark.parametrize("case", NEW, ids=[case.name for case in NEW])
def test_new_workflows(api, team, case):
    made = api.create(a_workflow(team, case.labels, **case.parts), dryRun="All")
    assert is_held(made) is case.held
    assert case.labels.items() <= (made["metadata"].get("labels") or {}).items()


@pytest.mark.parametrize(
    ("status", "name", "labels"),
    [
        (None, "default", {}),
        ({}, "default", {}),
        ({"ready": False}, "default", {}),
        (READY, "gpu", {}),
        (READY, "default", {ENABLED_LABEL: "false"}),
    ],
    ids=["no-queue", "nothing-said", "not-ready", "another-name", "left-out"],
)
def test_namespaces_that_take_no_part(api, team, status, name, labels):
    """Beside one that does, so that what is not held is so for this one difference."""
    with temporary_namespace(api, f"test-{uuid.uuid4().hex[:8]}", labels) as other:
        if status is not None:
            make_queue(api, other, status, name)
        wait_for_holds(api, team)
        assert not is_held(api.create(a_workflow(other), dryRun="All"))


@pytest.mark.parametrize("namespace", ["kube-system", NAMESPACE])
def test_our_namespace_and_the_system_s_never_take_part(api, team, namespace):
    make_queue(api, namespace, READY)
    try:
        wait_for_holds(api, team)
        assert not is_held(api.create(a_workflow(namespace), dryRun="All"))
    finally:
        api.delete(a_queue(namespace))


def unheld(api: Api, namespace: str, **metadata: Any) -> Json:
    """A Workflow that is there and not held."""
    workflow = a_workflow(namespace, {INSTANCE_LABEL: "mine"})
    made = api.create(workflow)
    labels = {INSTANCE_LABEL: None, **metadata.get("labels", {})}
    return api.patch(made, {"metadata": {"labels": labels}})


def test_a_run_that_goes_on_is_not_held_and_one_that_is_tried_again_is(api, team):
    running = unheld(api, team)
    touched = api.patch(running, {"metadata": {"labels": {"x": "y"}}})
    assert not is_held(touched)
    ended = api.patch(running, {"metadata": {"labels": COMPLETED}})
    assert not is_held(ended)
    again = api.patch(running, {"metadata": {"labels": {COMPLETED_LABEL: None}}})
    assert is_held(again)


@pytest.fixture
def author(api: Api, team: str) -> Api:
    """The server as somebody who may do everything with Workflows of the namespace."""
    return acting(api, team, "author", {"apiGroups": ["argoproj.io"], "resources": ["workflows"]})


def acting(api: Api, namespace: str, name: str, *rules: Json) -> Api:
    rbac = "rbac.authorization.k8s.io"
    metadata = {"name": name, "namespace": namespace}
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    given = [{"verbs": ["*"], **rule} for rule in rules]
    role = {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": given}
    api.create(role)
    api.create(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }
    )
    return api.acting_as(housekeeping.account_token(api, namespace, name))


@pytest.mark.parametrize("value", [None, "", "mine"], ids=["removed", "emptied", "another"])
def test_who_may_not_release_runs_may_not_take_the_label_off(api, team, author, value):
    held = api.create(a_workflow(team))
    assert is_held(held)
    patch = {"metadata": {"labels": {INSTANCE_LABEL: value}}}
    with pytest.raises(ApiError, match="this run waits in a queue: only who may update") as refused:
        author.patch(held, patch)
    assert refused.value.status == 422
    whole = copy.deepcopy(held)
    del whole["metadata"]["labels"][INSTANCE_LABEL]
    with pytest.raises(ApiError, match="this run waits in a queue"):
        author.replace(whole)


def test_who_may_not_release_runs_may_change_terminate_and_delete_them(api, team, author):
    held = api.create(a_workflow(team))
    assert is_held(author.patch(held, {"metadata": {"labels": {"x": "y"}}}))
    assert is_held(author.patch(held, {"spec": {"activeDeadlineSeconds": 0}}))
    author.delete(held)
    assert api.find(VERSION, "Workflow", "run", team) is None


def test_who_may_release_runs_takes_the_label_off(api, team):
    releasing = {"apiGroups": ["kfp-placement.dev"], "resources": ["runrequests/release"]}
    workflows = {"apiGroups": ["argoproj.io"], "resources": ["workflows"]}
    operator = acting(api, team, "operator", workflows, releasing)
    held = api.create(a_workflow(team))
    assert not is_held(operator.patch(held, {"metadata": {"labels": {INSTANCE_LABEL: None}}}))


REFUSED = {
    "kueue-without-a-queue": ({"backend": "kueue"}, "backend kueue needs localQueue"),
    "no-such-backend": ({"backend": "slurm"}, 'Unsupported value: "slurm"'),
    "priorities": ({"priorities": {"min": 2, "max": 1}}, "min is greater than max"),
    "overcommit": ({"overcommit": 0.5}, "should be greater than or equal to 1"),
    "deadline": ({"holdDeadline": "2h"}, "the deadline is from 1s to 1h"),
    "quantity": (
        {"quota": {"resources": [{"name": "cpu", "amount": "four"}]}},
        "spec.quota.resources[0].amount",
    ),
    "named-twice": (
        {"quota": {"resources": [{"name": "cpu", "amount": 4}] * 2}},
        "Duplicate value",
    ),
    "negative-runs": ({"quota": {"runs": -1}}, "should be greater than or equal to 0"),
}


@pytest.mark.parametrize(("spec", "message"), REFUSED.values(), ids=REFUSED)
def test_queues_that_make_no_sense_are_refused(api, team, spec, message):
    with pytest.raises(ApiError) as refused:
        api.create(a_queue(team, "other", **spec))
    assert refused.value.status == 422
    assert message in str(refused.value)
