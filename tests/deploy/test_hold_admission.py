"""Which Workflows the shipped admission holds, and who may let a held one begin.

The same by the admission policy and by the webhook, on a real API server.
"""

import copy
import uuid

import pytest

from kfp_placement_engine.contract.keys import ENABLED_LABEL
from kfp_placement_engine.readers.argo.keys import INSTANCE_LABEL
from kfp_placement_kube.kinds import JsonObject
from tests.controller.hold_cases import (
    CHANGED,
    EXEMPT,
    NEW,
    ChangedWorkflow,
    a_workflow,
    is_held,
    kept,
)
from tests.controlplane.api import Api
from tests.controlplane.argo.crds import VERSION
from tests.controlplane.exceptions import ApiError
from tests.controlplane.housekeeping import RBAC, new_account, temporary_namespace
from tests.controlplane.objects import an_object
from tests.controlplane.waiting import wait_until
from tests.support.hold_webhook import HoldWebhook, would_hold
from tests.support.manifests import NAMESPACE, a_queue

READY = {"ready": True}


@pytest.fixture(scope="module", params=["policy", "webhook"])
def api(request, control_plane, argo):
    """The same, where runs are held in one way."""
    if request.param == "policy":
        yield argo
        return
    with HoldWebhook(control_plane, argo):
        yield argo


def make_queue(api: Api, namespace: str, status: JsonObject, name: str = "default") -> None:
    api.create(a_queue(namespace, name, exemptInstanceIDs=EXEMPT))
    api.patch(a_queue(namespace, name), {"status": status}, part="status")


def wait_for_holds(api: Api, namespace: str) -> None:
    """Wait until the server knows that the queue of a namespace is ready."""
    wait_until(lambda: would_hold(api, namespace), f"new Workflows of {namespace} to be held", 60)


@pytest.fixture
def team(api):
    """A namespace whose queue is ready, as the server knows."""
    with temporary_namespace(api, f"test-{uuid.uuid4().hex[:8]}") as name:
        make_queue(api, name, READY)
        wait_for_holds(api, name)
        yield name


@pytest.mark.parametrize("case", NEW, ids=[case.name for case in NEW])
def test_new_workflows(api, team, case):
    made = api.create(a_workflow(team, case.labels, **case.parts), dryRun="All")
    assert is_held(made) is case.held
    assert (
        kept(case.labels, held=case.held).items() <= (made["metadata"].get("labels") or {}).items()
    )


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


def unheld(api: Api, namespace: str, case: ChangedWorkflow) -> JsonObject:
    """A case's Workflow, which is there and not held."""
    made = api.create(a_workflow(namespace, case.before, **case.parts))
    released = {"metadata": {"labels": {INSTANCE_LABEL: None}}}
    return api.patch(made, released) if is_held(made) else made


@pytest.mark.parametrize("case", CHANGED, ids=[case.name for case in CHANGED])
def test_workflows_that_are_changed(api, team, case):
    workflow = unheld(api, team, case)
    assert (workflow["metadata"].get("labels") or {}) == case.before
    removed = dict.fromkeys(case.before.keys() - case.after.keys())
    changed = api.patch(workflow, {"metadata": {"labels": {**removed, **case.after}}})
    assert is_held(changed) is case.held
    assert (
        kept(case.after, held=case.held).items()
        <= (changed["metadata"].get("labels") or {}).items()
    )


@pytest.fixture
def author(api, team):
    """The server as somebody who may do everything with Workflows of the namespace."""
    return acting(api, team, "author", {"apiGroups": ["argoproj.io"], "resources": ["workflows"]})


def acting(api: Api, namespace: str, name: str, *rules: JsonObject) -> Api:
    given = [{"verbs": ["*"], **rule} for rule in rules]
    api.create(an_object(f"{RBAC}/v1", "Role", name, namespace, rules=given))
    return new_account(api, namespace, name, role=name, role_kind="Role")


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
    "priorities": ({"priorities": {"min": 2, "max": 1}}, "min is greater than max"),
    "deadline": ({"holdDeadline": "2h"}, "the deadline is from 1s to 1h"),
    "quantity": (
        {"quota": {"resources": [{"name": "cpu", "amount": "four"}]}},
        "spec.quota.resources[0].amount",
    ),
    "named-twice": (
        {"quota": {"resources": [{"name": "cpu", "amount": 4}] * 2}},
        "Duplicate value",
    ),
}


@pytest.mark.parametrize(("spec", "message"), REFUSED.values(), ids=REFUSED)
def test_queues_that_make_no_sense_are_refused(api, team, spec, message):
    with pytest.raises(ApiError) as refused:
        api.create(a_queue(team, "other", **spec))
    assert refused.value.status == 422
    assert message in str(refused.value)
