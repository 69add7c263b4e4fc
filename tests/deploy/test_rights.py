"""What the shipped accounts may do on a real API server: all that is listed here, and no more."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kfp_placement_controller import admit_process, extend_process, plan_process, queue_process
from kfp_placement_controller.connection import connect
from kfp_placement_controller.release_process import release
from kfp_placement_controller.settings import (
    AdmitSettings,
    ExtendSettings,
    PlanSettings,
    QueueSettings,
    ReleaseSettings,
    Settings,
)
from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_kube.access import check_access
from kfp_placement_kube.exceptions import AccessError
from tests.controlplane import housekeeping, objects
from tests.controlplane.api import Api
from tests.controlplane.exceptions import ApiError
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.account_rights import (
    ANY_LEASE,
    ARGO,
    COORDINATION,
    EXTEND,
    GATES,
    HISTORY_OF_PLAN,
    PLAN,
    QUEUE,
    QUEUES_OF_PLAN,
    READ,
    RELEASE,
    RELEASE_RUNS,
    WATCH,
    Right,
    expanded,
    rights,
)
from tests.support.custom_resources import a_history
from tests.support.hold_webhook import WITH_WEBHOOK
from tests.support.manifests import GROUP, NAMESPACE

ELSEWHERE = "default"
ADMIT = AdmitSettings(webhook_certificate=Path("tls.crt"), webhook_key=Path("tls.key"))

MUST_NOT = {
    "": {
        "secrets": "get list watch create update patch delete",
        "configmaps": "create update patch delete",
        "serviceaccounts": "impersonate create update patch delete",
        "serviceaccounts/token": "create",
        "nodes": "create update patch delete",
        "nodes/status": "patch update",
        "nodes/proxy": "get create",
        "namespaces": "create update patch delete",
        "pods": "create update deletecollection",
        "pods/exec": "get create",
        "pods/attach": "get create",
        "pods/log": "get",
        "pods/ephemeralcontainers": "patch update",
        "persistentvolumeclaims": "create delete",
        "services": "create update patch delete",
        "users": "impersonate",
    },
    "apps": {"deployments": "create update patch delete", "daemonsets": "create patch"},
    "batch": {"jobs": "create patch delete", "cronjobs": "create patch delete"},
    ARGO: {"workflows": "create update patch delete", "workflows/finalizers": "update"},
    GROUP: {
        "placementpolicies": "update patch delete",
        "locations": "create update patch delete",
        "pipelineplacements": "update deletecollection",
        "runqueues": "create update patch delete",
        "runrequests": "create update patch delete deletecollection",
        "runrequests/status": "update patch",
        "pipelinehistories": f"{READ} create update patch delete deletecollection",
        "pipelinehistories/status": "update patch",
    },
    "metrics.k8s.io": {"pods": f"{READ}", "nodes": f"{READ}"},
    "rbac.authorization.k8s.io": {
        "clusterroles": "create update patch bind escalate",
        "clusterrolebindings": "create update patch",
        "rolebindings": "create update patch",
    },
    "admissionregistration.k8s.io": {
        "mutatingadmissionpolicies": "create update patch delete",
        "mutatingwebhookconfigurations": "create update patch delete",
    },
    "apiextensions.k8s.io": {"customresourcedefinitions": "create update patch delete"},
}


def rules_of(api: Api, namespace: str) -> set[Right]:
    """All that the caller may do in a namespace and cluster-wide."""
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    review = {"spec": {"namespace": namespace}}
    status = api.request("POST", path, review)["status"]
    assert not status["incomplete"], status
    return expanded(status["resourceRules"])


def may(api: Api, right: Right, namespace: str = ELSEWHERE) -> bool:
    verb, group, resource, name = right
    plural, _, part = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": part}
    attributes |= {"name": name, "namespace": namespace}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = api.request("POST", path, {"spec": {"resourceAttributes": attributes}})
    return bool(answer["status"]["allowed"])


@pytest.fixture(scope="module")
def account(installed):
    """The API server as one of our accounts sees it."""
    tokens: dict[str, str] = {}

    def acting(name: str) -> Api:
        if name not in tokens:
            tokens[name] = housekeeping.account_token(installed, NAMESPACE, name)
        return installed.acting_as(tokens[name])

    return acting


@pytest.fixture(scope="module")
def everyones(installed):
    """What every account may do: ask about itself."""
    token = housekeeping.account_token(installed, ELSEWHERE, "default")
    return rules_of(installed.acting_as(token), ELSEWHERE)


def test_everybody_may_read_what_lives_in_no_namespace_and_no_more_of_ours(everyones):
    ours = {right for right in everyones if right[1] == GROUP}
    assert ours == rights({GROUP: {"placementpolicies": READ, "locations": READ}})


@pytest.mark.usefixtures("argo")
@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("scheduler", extend_process.needs(ExtendSettings())),
        ("scheduler", admit_process.needs(ADMIT)),
        (
            "plan",
            (
                *plan_process.needs(PlanSettings(gates=True, queues=True)),
                *plan_process.learning_needs(PlanSettings(history=True)),
            ),
        ),
        ("queue", queue_process.needs(QueueSettings())),
    ],
)
def test_the_processes_find_the_rights_they_look_for(control_plane, installed, name, needs):
    token = housekeeping.account_token(installed, NAMESPACE, name)
    kubeconfig = control_plane.kubeconfig_for(f"rights-of-{name}", token)
    check_access(connect(Settings(kubeconfig=kubeconfig)), needs)


def role(api: Api, name: str) -> set[Right]:
    return expanded(api.get("rbac.authorization.k8s.io/v1", "ClusterRole", name)["rules"])


def stock(api: Api) -> set[Right]:
    """What every scheduler may do."""
    return role(api, "system:kube-scheduler") | role(api, "system:volume-scheduler")


def leading(lease: str) -> set[Right]:
    """What leads by a Lease of its own namespace."""
    return rights(ANY_LEASE) | rights({COORDINATION: {"leases": "update"}}, name=lease)


def reading(*leases: str) -> set[Right]:
    table = {COORDINATION: {"leases": "get"}}
    return {right for name in leases for right in rights(table, name=name)}


@pytest.mark.parametrize(
    ("name", "tables", "in_our_namespace"),
    [
        ("plan", (PLAN, GATES, QUEUES_OF_PLAN, HISTORY_OF_PLAN), leading("kfp-placement-planner")),
        ("scheduler", (EXTEND, GATES), leading("kfp-placement-scheduler")),
        ("queue", (QUEUE,), leading("kfp-placement-queue")),
        ("release", (RELEASE, GATES), set()),
        ("release-runs", (RELEASE_RUNS,), reading("kfp-placement-planner", "kfp-placement-queue")),
    ],
)
def test_an_account_may_do_this_and_no_more(
    installed, account, everyones, name, tables, in_our_namespace
):
    expected = rights(*tables) | (stock(installed) if name == "scheduler" else set())
    assert rules_of(account(name), ELSEWHERE) - everyones == expected - everyones
    own = rules_of(account(name), NAMESPACE) - everyones
    assert own == (expected | in_our_namespace) - everyones


def test_the_last_resort_has_no_more_rights_in_the_system_s_namespace(account, everyones):
    last_resort = rules_of(account("release"), "kube-system") - everyones
    assert last_resort == rights(RELEASE, GATES) - everyones


@pytest.fixture
def webhook_rights(control_plane, installed):
    """Checks the rights that the webhook looks for where it holds runs."""
    token = housekeeping.account_token(installed, NAMESPACE, "scheduler")
    kubeconfig = control_plane.kubeconfig_for("rights-of-webhook", token)
    client = connect(Settings(kubeconfig=kubeconfig))
    holding = ADMIT.model_copy(update={"queues": True})
    return lambda: check_access(client, admit_process.needs(holding))


def test_the_webhook_reads_queues_only_where_it_holds_runs(
    installed, account, everyones, webhook_rights
):
    before = rules_of(account("scheduler"), ELSEWHERE)
    with pytest.raises(AccessError, match="runqueues"):
        webhook_rights()
    brought = [
        item
        for item in manifests.rendered(*WITH_WEBHOOK)
        if item["kind"] in ("ClusterRole", "ClusterRoleBinding")
        and installed.find(item["apiVersion"], item["kind"], item["metadata"]["name"]) is None
    ]
    manifests.apply(installed, brought)
    try:
        wait_until(lambda: rules_of(account("scheduler"), ELSEWHERE) != before, "its rights")
        more = rules_of(account("scheduler"), ELSEWHERE) - before
        assert more == rights({GROUP: {"runqueues": WATCH}})
        webhook_rights()
    finally:
        for item in brought:
            installed.delete(item)


KFP = {"pipelines.kubeflow.org": {"runs": "get", "experiments": "get"}}


def test_the_planner_may_read_runs_of_kfp_only_where_that_is_installed(installed, account):
    """KFP asks the API server with the name of the account alone, without its groups."""
    before = rules_of(account("plan"), ELSEWHERE)
    brought = [
        item
        for item in manifests.rendered("kfp-api")
        if item["kind"] in ("ClusterRole", "ClusterRoleBinding")
        and installed.find(item["apiVersion"], item["kind"], item["metadata"]["name"]) is None
    ]
    manifests.apply(installed, brought)
    try:
        wait_until(lambda: rules_of(account("plan"), ELSEWHERE) != before, "its rights")
        assert rules_of(account("plan"), ELSEWHERE) - before == rights(KFP)
        attributes = {"verb": "get", "group": "pipelines.kubeflow.org", "resource": "runs"}
        review = {
            "user": f"system:serviceaccount:{NAMESPACE}:plan",
            "resourceAttributes": {**attributes, "version": "v2beta1", "namespace": ELSEWHERE},
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        assert installed.request("POST", path, {"spec": review})["status"]["allowed"]
    finally:
        for item in brought:
            installed.delete(item)


OPERATE_QUEUES = {
    ARGO: {"workflows": "get list patch"},
    GROUP: {
        "runqueues": READ,
        "runrequests": f"{READ} patch",
        "runrequests/release": "update",
    },
}


def test_who_operates_queues_may_release_held_and_preempted_runs(installed):
    """Workflows are patched to release them; whoever admits a run cannot raise its quota, too."""
    assert role(installed, "kfp-placement-operate-queues") == rights(OPERATE_QUEUES)


@pytest.fixture
def person(installed, namespace):
    """Somebody with a built-in role in the namespace, once its rights have arrived."""

    def acting(role_name: str) -> Api:
        name = f"a-person-of-{role_name}"
        api = housekeeping.new_account(
            installed, namespace, name, role=role_name, role_kind="ClusterRole"
        )
        reading = ("get", GROUP, "pipelinehistories", "")
        wait_until(lambda: may(api, reading, namespace), f"rights of {role_name}")
        return api

    return acting


def on_histories(api: Api, namespace: str) -> set[Right]:
    return {right for right in rules_of(api, namespace) if right[2].startswith("pipelinehistor")}


@pytest.mark.parametrize(
    ("role_name", "verbs"), [("view", READ), ("edit", f"{READ} patch"), ("admin", f"{READ} patch")]
)
def test_who_sees_plans_sees_histories_and_who_edits_has_something_forgotten(
    person, namespace, role_name, verbs
):
    api = person(role_name)
    expected = rights({GROUP: {"pipelinehistories": verbs}})
    wait_until(lambda: on_histories(api, namespace) == expected, f"rights of {role_name}")


def test_what_was_learned_is_written_by_the_planner_alone(installed, person, namespace):
    history = installed.create(a_history(namespace))
    status = a_history(namespace)["status"]
    installed.patch(history, {"status": status}, part="status")
    viewer, editor = person("view"), person("edit")
    another = {"name": "another", "namespace": namespace}
    forget = {"spec": {"forgetBefore": "2026-11-20T10:00:00Z"}}
    changed = editor.patch(history, {**forget, "status": {"runsSeen": 99}})
    assert changed["spec"]["forgetBefore"] == "2026-11-20T10:00:00Z"
    assert changed["status"]["runsSeen"] == status["runsSeen"]
    for call in (
        lambda: viewer.patch(history, forget),
        lambda: editor.patch(history, {"status": {"runsSeen": 99}}, part="status"),
        lambda: editor.create(a_history(namespace) | {"metadata": another}),
        lambda: editor.delete(history),
    ):
        with pytest.raises(ApiError, match="Forbidden"):
            call()


@pytest.mark.parametrize("name", ["plan", "scheduler", "release", "queue", "release-runs"])
def test_nobody_may_do_harm(installed, account, name):
    """Asked one by one of the server, in a user's namespace, in ours and in the system's."""
    changes_workflows = rights({ARGO: {"workflows": "patch"}})
    allowed_by_design = {
        "scheduler": stock(installed),
        "plan": rights({GROUP: {"runrequests": "create patch delete"}}, HISTORY_OF_PLAN),
        "queue": changes_workflows | rights({GROUP: {"runrequests/status": "patch"}}),
        "release-runs": changes_workflows,
    }.get(name, set())
    api = account(name)
    harmful = rights(MUST_NOT) - allowed_by_design
    assert len(harmful) > 60
    for namespace in (ELSEWHERE, NAMESPACE, "kube-system"):
        assert [right for right in sorted(harmful) if may(api, right, namespace)] == []


def test_the_command_of_the_last_resort_needs_no_other_account(control_plane, installed, namespace):
    gates = [{"name": PLAN_GATE}]
    pod = installed.create(objects.pod("p", namespace, schedulingGates=gates))
    token = housekeeping.account_token(installed, NAMESPACE, "release")
    kubeconfig = control_plane.kubeconfig_for("rights-of-release", token)
    client = connect(Settings(kubeconfig=kubeconfig))
    later = datetime.now(UTC) + timedelta(minutes=2)
    lines: list[str] = []
    assert release(client, later, lines.append, ReleaseSettings(overdue=True)) == 0, lines
    assert f"freed {namespace}/p" in lines
    released = installed.get("v1", "Pod", pod["metadata"]["name"], namespace)
    assert "schedulingGates" not in released["spec"]
