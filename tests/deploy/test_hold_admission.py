"""Which Workflows the shipped admission holds, and who may let a held one begin.

The same by the admission policy and by the webhook, on a real API server.
"""

import copy
import uuid
from typing import Any

import pytest

from kfp_placement_engine.contract.keys import (
    ENABLED_LABEL,
    PREEMPTED_ANNOTATION,
    PREEMPTED_LABEL,
    QUEUE_INSTANCE,
)
from kfp_placement_engine.readers.argo.keys import (
    ARTIFACT_FINALIZER,
    COMPLETED_LABEL,
    INSTANCE_LABEL,
)
from kfp_placement_kube.kinds import JsonObject
from tests.controller.hold_cases import (
    CHANGED,
    COMPLETED,
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
ADMISSION = "admissionregistration.k8s.io/v1"


@pytest.fixture(scope="module", params=["policy", "webhook"])
def api(request, control_plane, argo):
    """The same, where runs are held in one way."""
    if request.param == "policy":
        yield argo
        return
    # What is held does not depend on how busy this machine is.
    with HoldWebhook(control_plane, argo, timeout_seconds=30):
        yield argo


def make_queue(api: Api, namespace: str, status: JsonObject, name: str = "default") -> None:
    api.create(a_queue(namespace, name, exemptInstanceIDs=EXEMPT))
    api.patch(a_queue(namespace, name), {"status": status}, part="status")


def wait_for_holds(api: Api, namespace: str) -> None:
    """Wait until the server knows that the queue of a namespace is ready."""
    wait_until(lambda: would_hold(api, namespace), f"new Workflows of {namespace} to be held")


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
    released = {"metadata": {"labels": {INSTANCE_LABEL: case.before.get(INSTANCE_LABEL)}}}
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
    with pytest.raises(ApiError, match="this run waits in a queue, which lets it begin") as refused:
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


def going_on(api: Api, namespace: str, spec: JsonObject, status: JsonObject) -> JsonObject:
    """A run that its queue has let begin, as it is then."""
    parts = {"spec": copy.deepcopy(spec), "status": copy.deepcopy(status)}
    made = api.create(a_workflow(namespace, **parts))
    return api.patch(made, {"metadata": {"labels": {INSTANCE_LABEL: None}}})


SPEC: JsonObject = {
    "entrypoint": "main",
    "activeDeadlineSeconds": 3600,
    "templates": [{"name": "main", "container": {"image": "alpine"}}],
}
STATUS: JsonObject = {
    "phase": "Running",
    "storedTemplates": {"namespaced/t/main": {"name": "main"}},
    "nodes": {
        "pause": {"type": "Suspend", "phase": "Running"},
        "step": {"type": "Pod", "phase": "Running"},
    },
}
SPEC_IS_KEPT = "a queue counts with what this run says that it needs"
STATUS_IS_KEPT = "a queue counts with how far this run is"
MARKS_ARE_KEPT = "only its queue marks a run as preempted"
KEPT: dict[str, tuple[JsonObject, str]] = {
    "requests": ({"spec": {"templates": []}}, SPEC_IS_KEPT),
    "another-key": ({"spec": {"onExit": "main"}}, SPEC_IS_KEPT),
    "a-key-that-argo-may-read": (
        {"spec": {"\N{LATIN SMALL LETTER LONG S}hutdown": ""}},
        SPEC_IS_KEPT,
    ),
    "a-key-less": ({"spec": {"entrypoint": None}}, SPEC_IS_KEPT),
    "later": ({"spec": {"shutdown": "later"}}, SPEC_IS_KEPT),
    "more-time": ({"spec": {"activeDeadlineSeconds": 7200}}, SPEC_IS_KEPT),
    "no-deadline": ({"spec": {"activeDeadlineSeconds": None}}, SPEC_IS_KEPT),
    "a-template-of-others": ({"status": {"storedTemplates": None}}, STATUS_IS_KEPT),
    "phase": ({"status": {"phase": "Failed"}}, STATUS_IS_KEPT),
    "a-step": ({"status": {"nodes": {"step": {"phase": "Succeeded"}}}}, STATUS_IS_KEPT),
    "a-step-less": ({"status": {"nodes": {"step": None}}}, STATUS_IS_KEPT),
    "a-step-more": ({"status": {"nodes": {"more": {"type": "Suspend"}}}}, STATUS_IS_KEPT),
    "another-step": ({"status": {"nodes": {"pause": {"name": "run.big"}}}}, STATUS_IS_KEPT),
    "what-follows": ({"status": {"nodes": {"pause": {"children": ["x"]}}}}, STATUS_IS_KEPT),
    "artifacts": ({"status": {"nodes": {"pause": {"outputs": {"artifacts": []}}}}}, STATUS_IS_KEPT),
    "suspend-by-text": ({"spec": {"suspend": "x"}}, SPEC_IS_KEPT),
    "preempted": ({"metadata": {"labels": {PREEMPTED_LABEL: "true"}}}, MARKS_ARE_KEPT),
    "preempted-for": ({"metadata": {"annotations": {PREEMPTED_ANNOTATION: "x"}}}, MARKS_ARE_KEPT),
}


@pytest.mark.parametrize(("patch", "message"), KEPT.values(), ids=KEPT)
def test_what_people_may_not_change_of_a_run(api, team, author, patch, message):
    run = going_on(api, team, SPEC, STATUS)
    with pytest.raises(ApiError, match=message) as refused:
        author.patch(run, patch)
    assert refused.value.status == 422
    assert api.patch(run, patch)


FREE: dict[str, JsonObject] = {
    "suspend": {"spec": {"suspend": True}},
    "stop": {"spec": {"shutdown": "Stop"}},
    "terminate": {"spec": {"shutdown": "Terminate"}},
    "as-kfp-terminates": {"spec": {"activeDeadlineSeconds": 0}},
    "resume": {"status": {"nodes": {"pause": {"phase": "Succeeded", "message": "resumed"}}}},
    "supply": {"status": {"nodes": {"pause": {"outputs": {"parameters": [{"name": "x"}]}}}}},
    "labels": {"metadata": {"labels": {"x": "y"}}},
    "no-longer-argo-s": {"metadata": {"labels": {COMPLETED_LABEL: "true"}}},
}


@pytest.mark.parametrize("patch", FREE.values(), ids=FREE)
def test_what_people_may_always_change_of_a_run(api, team, author, patch):
    assert author.patch(going_on(api, team, SPEC, STATUS), patch)


def test_a_termination_stays(api, team, author):
    run = going_on(api, team, SPEC, STATUS)
    for ended in ({"shutdown": "Stop", "activeDeadlineSeconds": 0}, {"shutdown": "Terminate"}):
        run = author.patch(run, {"spec": ended})
    for back in ({"shutdown": None}, {"shutdown": "Stop"}, {"activeDeadlineSeconds": 3600}):
        with pytest.raises(ApiError, match=SPEC_IS_KEPT):
            author.patch(run, {"spec": back})


def test_people_resume_what_people_have_suspended_and_not_what_a_queue_has(api, team, author):
    run = going_on(api, team, {**SPEC, "suspend": True}, STATUS)
    run = author.patch(run, {"spec": {"suspend": None}})
    by_queue = {PREEMPTED_ANNOTATION: "uid"}
    marks = {"labels": {PREEMPTED_LABEL: "true"}, "annotations": by_queue}
    run = api.patch(run, {"metadata": marks, "spec": {"suspend": True}})
    for suspend in (None, False):
        with pytest.raises(ApiError, match="its queue has stopped this run"):
            author.patch(run, {"spec": {"suspend": suspend}})
    unmarked = {"labels": {PREEMPTED_LABEL: None}, "annotations": {PREEMPTED_ANNOTATION: None}}
    with pytest.raises(ApiError, match=MARKS_ARE_KEPT):
        author.patch(run, {"metadata": unmarked, "spec": {"suspend": None}})
    assert author.patch(run, {"spec": {"shutdown": "Terminate"}})


def test_nobody_creates_a_run_that_says_its_queue_has_stopped_it(team, author):
    run = a_workflow(team)
    run["metadata"]["annotations"] = {PREEMPTED_ANNOTATION: "uid-of-the-run-to-be-helped"}
    with pytest.raises(ApiError, match=MARKS_ARE_KEPT):
        author.create(run)


def test_what_has_ended_can_be_retried_and_waits_again(api, team, author):
    run = api.patch(going_on(api, team, SPEC, STATUS), {"metadata": {"labels": COMPLETED}})
    retry = {"metadata": {"labels": {COMPLETED_LABEL: None}}, "status": {"nodes": {"step": None}}}
    assert is_held(author.patch(run, retry))


def test_where_nobody_admits_runs_people_change_them(api, team, author):
    run = going_on(api, team, SPEC, STATUS)
    api.patch(a_queue(team), {"status": {"ready": False}}, part="status")
    change = {"spec": {"templates": []}, "status": {"phase": "Failed"}}
    wait_until(lambda: may_patch(author, run, change), "the API server to know the queue")


def test_engines_write_whole_runs(api, team):
    """By name, or because they may update those of all namespaces."""
    workflows = {"apiGroups": ["argoproj.io"], "resources": ["workflows"]}
    engine = acting(api, team, "engine", workflows)
    run = going_on(api, team, SPEC, STATUS)
    change = {"spec": {"templates": []}, "status": {"phase": "Failed"}}
    with pytest.raises(ApiError, match=SPEC_IS_KEPT):
        engine.patch(run, change)
    accounts = [f"system:serviceaccount:{team}:engine"]
    api.patch(a_queue(team), {"spec": {"engineAccounts": accounts}})
    wait_until(lambda: may_patch(engine, run, change), "the API server to know the account")
    everywhere = f"engine-of-{team}"
    rules = [{**workflows, "verbs": ["*"]}]
    role = api.create(an_object(f"{RBAC}/v1", "ClusterRole", everywhere, rules=rules))
    other = new_account(api, team, everywhere, role=everywhere, role_kind="ClusterRole")
    with pytest.raises(ApiError, match=SPEC_IS_KEPT):
        other.patch(run, {"spec": {"entrypoint": "other"}})
    account = {"kind": "ServiceAccount", "name": everywhere, "namespace": team}
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": everywhere}
    parts: JsonObject = {"roleRef": reference, "subjects": [account]}
    binding = api.create(an_object(f"{RBAC}/v1", "ClusterRoleBinding", everywhere, **parts))
    change = {"spec": {"entrypoint": "other"}}
    wait_until(lambda: may_patch(other, run, change), "the API server to know the right")
    for each in (binding, role):
        api.delete(each)


ARGO_IN_ONE_NAMESPACE: list[JsonObject] = [
    {"apiGroups": ["argoproj.io"], "resources": ["workflows", "workflows/finalizers"]},
    {
        "apiGroups": [""],
        "resources": ["persistentvolumeclaims", "persistentvolumeclaims/finalizers"],
    },
]
"""Of the Role that Argo's manifests give a controller of one namespace."""
ALL_OF_ARGO: JsonObject = {"apiGroups": ["argoproj.io"], "resources": ["*"]}


def test_argo_in_one_namespace_goes_on_writing_after_an_upgrade(api, team):
    """No admin has named its account, since the version before did not ask for that."""
    binding = api.get(ADMISSION, "ValidatingAdmissionPolicyBinding", "kfp-placement-hold")
    engine = acting(api, team, "controller", *ARGO_IN_ONE_NAMESPACE)
    run = going_on(api, team, SPEC, STATUS)
    api.delete(binding)
    assert engine.patch(run, {"status": {"phase": "Pending"}})
    binding["metadata"] = {key: binding["metadata"][key] for key in ("name", "labels")}
    api.create(binding)
    author = acting(api, team, "author", ALL_OF_ARGO)
    wait_until(
        lambda: not may_patch(author, run, {"status": {"phase": uuid.uuid4().hex}}), "the policy"
    )
    assert engine.patch(run, {"status": {"phase": "Succeeded"}, "spec": {"onExit": "main"}})


@pytest.mark.parametrize("role", ["edit", "admin"])
def test_the_roles_of_people_make_nobody_an_engine(api, team, role):
    acting(api, team, "somebody", ALL_OF_ARGO)
    account = new_account(api, team, f"somebody-who-may-{role}", role=role, role_kind="ClusterRole")
    parts: JsonObject = {
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "somebody"},
        "subjects": [
            {"kind": "ServiceAccount", "name": f"somebody-who-may-{role}", "namespace": team}
        ],
    }
    api.create(an_object(f"{RBAC}/v1", "RoleBinding", "as-argo", team, **parts))
    run = going_on(api, team, SPEC, STATUS)
    wait_until(lambda: may_patch(account, run, {"metadata": {"labels": {"x": "y"}}}), "the right")
    with pytest.raises(ApiError, match=STATUS_IS_KEPT):
        account.patch(run, {"status": {"phase": "Failed"}})


def may_patch(account: Api, run: JsonObject, patch: JsonObject) -> bool:
    """Return whether an account's patch of a run is accepted."""
    try:
        return bool(account.patch(run, patch))
    except ApiError:
        return False


ODD: tuple[Any, ...] = (None, [], [1], 5, 0.5, "x", True, {}, {"x": None})
"""Values of every type, as JSON has them."""

PLACES = (
    *(("spec", key) for key in ("suspend", "shutdown", "activeDeadlineSeconds", "templates")),
    *(
        ("status", key)
        for key in ("nodes", "phase", "storedTemplates", "storedWorkflowTemplateSpec")
    ),
    *(("status", "nodes", "pause", key) for key in ("type", "name", "outputs")),
    ("status", "nodes", "pause"),
    ("spec",),
    ("status",),
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("metadata", "finalizers"),
)
"""Fields at which the expressions of admission look."""


@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_no_value_makes_an_expression_fail(api, team, author, place):
    """One that failed would let the write pass, whatever else is in it."""
    run = going_on(api, team, SPEC, STATUS)
    for value in ODD:
        whole = copy.deepcopy(run)
        parent: Any = whole
        for key in place[:-1]:
            parent = parent[key]
        parent[place[-1]] = value
        for change in ("spec", "status"):
            written = copy.deepcopy(whole)
            if isinstance(written[change], dict):
                written[change]["more"] = 1
            elif change != place[0]:
                continue
            with pytest.raises(ApiError) as refused:
                author.replace(written)
            assert refused.value.status in (400, 422), value


OF_ARGO: dict[str, JsonObject] = {
    "stored-spec": {"status": {"storedWorkflowTemplateSpec": None}},
    "stored-templates": {"status": {"storedTemplates": {}}},
    "compressed-nodes": {"status": {"compressedNodes": "x"}},
    "offloaded-nodes": {"status": {"offloadNodeStatusVersion": "x"}},
    "folded": {"status": {"\N{LATIN SMALL LETTER LONG S}toredTemplates": {}}},
    "nodes": {"status": {"nodes": {f"{number:x}": {} for number in range(3_001)}}},
}


@pytest.mark.parametrize("parts", OF_ARGO.values(), ids=OF_ARGO)
def test_nobody_creates_a_run_with_what_argo_alone_writes(api, team, author, parts):
    with pytest.raises(ApiError, match="submit it without its status"):
        author.create(a_workflow(team, **parts))
    assert api.create(a_workflow(team, **parts))


@pytest.mark.parametrize("labels", [None, COMPLETED], ids=["new", "completed"])
def test_nobody_asks_argo_to_delete_artifacts_by_pods(api, team, author, labels):
    run = a_workflow(team, labels)
    run["metadata"]["finalizers"] = [ARTIFACT_FINALIZER]
    with pytest.raises(ApiError, match="only Argo adds the finalizer"):
        author.create(copy.deepcopy(run))
    made = author.create(a_workflow(team, labels))
    finalizers = {"metadata": {"finalizers": [ARTIFACT_FINALIZER]}}
    with pytest.raises(ApiError, match="only Argo adds the finalizer"):
        author.patch(made, finalizers)
    assert api.patch(made, finalizers)
    with pytest.raises(ApiError, match=SPEC_IS_KEPT):
        author.patch(made, {"spec": {"artifactGC": {"podSpecPatch": "{}"}}})
    assert author.patch(made, {"metadata": {"finalizers": None}})


def many(count: int, value: Any) -> JsonObject:
    return {f"{number:x}": value for number in range(count)}


LARGE: dict[str, tuple[JsonObject, JsonObject, bool]] = {
    "text": ({"templates": [{"name": "x" * 1_360_000}]}, STATUS, True),
    "keys": (many(5_000, 0), STATUS, False),
    "nodes": (SPEC, {"nodes": many(6_000, {"type": "Pod"})}, True),
}


@pytest.mark.parametrize(("spec", "status", "may_end"), LARGE.values(), ids=LARGE)
def test_a_run_cannot_be_too_large_to_be_compared(api, team, author, spec, status, may_end):
    run = going_on(api, team, spec, status)
    for patch in ({"spec": {"more": 1}}, {"status": {"phase": "Failed"}}):
        with pytest.raises(ApiError, match="a queue counts with"):
            author.patch(run, patch)
    assert may_patch(author, run, {"spec": {"shutdown": "Terminate"}}) is may_end
    author.delete(run)


ACCOUNT_IN_FULL = "an account is written in full: system:serviceaccount:NAMESPACE:NAME"
REFUSED = {
    "kueue-without-a-queue": ({"backend": "kueue"}, "backend kueue needs localQueue"),
    "priorities": ({"priorities": {"min": 2, "max": 1}}, "min is greater than max"),
    "across": ({"priorities": {"max": 0, "maxAcross": 10}}, "maxAcross is greater than max"),
    "no-weight": ({"weight": 0}, "a weight is from 0.001 to 1000"),
    "small-weight": ({"weight": 0.0001}, "spec.weight"),
    "short-account": ({"engineAccounts": ["argo"]}, ACCOUNT_IN_FULL),
    "group": ({"engineAccounts": ["system:serviceaccounts"]}, ACCOUNT_IN_FULL),
    "no-account": ({"engineAccounts": [""]}, ACCOUNT_IN_FULL),
    "no-id": ({"exemptInstanceIDs": [""]}, "an instance id is a value of a label"),
    "no-label": ({"exemptInstanceIDs": ["my id"]}, "an instance id is a value of a label"),
    "our-id": ({"exemptInstanceIDs": [QUEUE_INSTANCE]}, "marks the runs that wait"),
    "deadline": ({"holdDeadline": "2h"}, "write a time such as 90s, 10m or 1h30m, from 1s to 1h"),
    "time-in-words": ({"idleAfter": "10 minutes"}, "write a time such as 90s, 10m or 1h30m"),
    "days": ({"reserveAfter": "2d"}, "write a time such as 90s, 10m or 1h30m, from 1m to 8760h"),
    "quantity": (
        {"quota": {"resources": [{"name": "cpu", "amount": "four"}]}},
        "write an amount such as 4, 500m or 16Gi",
    ),
    "capacity": (
        {"capacity": [{"name": "memory", "amount": "16 GB"}]},
        "write an amount such as 4, 500m or 16Gi",
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
