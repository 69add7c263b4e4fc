"""What the shipped accounts may do on a real API server: all that is listed here, and no more."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kfp_placement_controller import extend_process, plan_process, queue_process
from kfp_placement_controller.connection import connect
from kfp_placement_controller.release_process import release
from kfp_placement_controller.settings import (
    ExtendSettings,
    PlanSettings,
    QueueSettings,
    ReleaseSettings,
    Settings,
)
from kfp_placement_controller.sources import DEFAULT_SOURCES, QUEUE_SOURCES
from kfp_placement_engine.contract.keys import API_VERSION, PLAN_GATE
from kfp_placement_kube.access import check_access
from kfp_placement_kube.exceptions import AccessError
from tests.controlplane import housekeeping, objects
from tests.controlplane.api import Api
from tests.controlplane.argo.crds import custom_resource_definitions
from tests.controlplane.argo.small_workflows import step, workflow
from tests.controlplane.exceptions import ApiError
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.custom_resources import a_history, a_placement
from tests.support.hold_webhook import WITH_WEBHOOK
from tests.support.manifests import GROUP, NAMESPACE

pytestmark = pytest.mark.cluster

Right = tuple[str, str, str, str]
"""Verb, API group, resource, and the name it is limited to or ""."""

READ = "get list watch"
ARGO, COORDINATION, EVENTS = "argoproj.io", "coordination.k8s.io", "events.k8s.io"
ELSEWHERE = "default"

PLAN = {
    "": {
        "nodes": READ,
        "namespaces": READ,
        "persistentvolumes": READ,
        "persistentvolumeclaims": READ,
        "pods": f"{READ} delete",
    },
    ARGO: {"workflows": READ},
    GROUP: {
        "locations": READ,
        "placementpolicies": f"{READ} create",
        "placementpolicies/status": "patch",
        "pipelineplacements": f"{READ} create patch delete",
        "pipelineplacements/status": "patch",
    },
    EVENTS: {"events": f"{READ} create patch"},
}
EXTEND = {
    "": {"nodes": READ, "persistentvolumeclaims": READ, "pods": READ},
    GROUP: {
        "locations": READ,
        "placementpolicies": f"{READ} create",
        "placementpolicies/status": "patch",
        "pipelineplacements": READ,
    },
    EVENTS: {"events": "create patch"},
}
QUEUES_OF_PLAN = {
    GROUP: {
        "runqueues": READ,
        "runqueues/status": "patch",
        "runrequests": f"{READ} create patch delete",
    }
}
HISTORY_OF_PLAN = {
    GROUP: {
        "pipelinehistories": f"{READ} create delete",
        "pipelinehistories/status": "patch",
    }
}
QUEUE = {
    "": {"namespaces": READ, "nodes": READ, "pods": READ},
    ARGO: {"workflows": f"{READ} patch"},
    GROUP: {
        "placementpolicies": READ,
        "runqueues": READ,
        "runqueues/status": "patch",
        "runrequests": READ,
        "runrequests/status": "patch",
        "runrequests/release": "update",
    },
    EVENTS: {"events": "create patch"},
}
RELEASE_RUNS = {
    ARGO: {"workflows": "get list patch"},
    GROUP: {
        "placementpolicies": "get",
        "runqueues": "list",
        "runqueues/status": "patch",
        "runrequests/release": "update",
    },
}
RELEASE = {"": {"pods": "get list"}, GROUP: {"placementpolicies": "get"}}
GATES = {"": {"pods": "patch"}}
ANY_LEASE = {COORDINATION: {"leases": f"{READ} create"}}

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
NAMED = {"name": "default"}


def rights(*tables: dict[str, dict[str, str]], name: str = "") -> set[Right]:
    return {
        (verb, group, resource, name)
        for table in tables
        for group, resources in table.items()
        for resource, verbs in resources.items()
        for verb in verbs.split()
    }


def expanded(rules: list[dict[str, Any]]) -> set[Right]:
    return {
        right
        for rule in rules
        for right in itertools.product(
            rule["verbs"], rule["apiGroups"], rule["resources"], rule.get("resourceNames") or [""]
        )
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
def account(installed: Api):
    """The API server as one of our accounts sees it."""
    tokens: dict[str, str] = {}

    def acting(name: str) -> Api:
        if name not in tokens:
            tokens[name] = housekeeping.account_token(installed, NAMESPACE, name)
        return installed.acting_as(tokens[name])

    return acting


@pytest.fixture(scope="module")
def everyones(installed: Api) -> set[Right]:
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
        (
            "plan",
            (
                *plan_process.needs(PlanSettings(gates=True, queues=True), DEFAULT_SOURCES),
                *plan_process.learning_needs(PlanSettings(history=True)),
            ),
        ),
        ("queue", queue_process.needs(QueueSettings(), QUEUE_SOURCES, DEFAULT_SOURCES)),
    ],
)
def test_the_processes_find_the_rights_they_look_for(control_plane, installed, name, needs):
    token = housekeeping.account_token(installed, NAMESPACE, name)
    kubeconfig = control_plane.kubeconfig_for(f"rights-of-{name}", token)
    check_access(connect(Settings(kubeconfig=kubeconfig)), needs)


def role(api: Api, name: str) -> set[Right]:
    return expanded(api.get("rbac.authorization.k8s.io/v1", "ClusterRole", name)["rules"])


def test_the_planner_may_do_this_and_no_more(account, everyones):
    expected = rights(PLAN, GATES, QUEUES_OF_PLAN, HISTORY_OF_PLAN) - everyones
    assert rules_of(account("plan"), ELSEWHERE) - everyones == expected
    lease = rights({COORDINATION: {"leases": "update"}}, name="kfp-placement-planner")
    assert rules_of(account("plan"), NAMESPACE) - everyones == expected | rights(ANY_LEASE) | lease


def test_the_scheduler_may_do_what_every_scheduler_may_and_the_extender_reads(
    installed, account, everyones
):
    stock = role(installed, "system:kube-scheduler") | role(installed, "system:volume-scheduler")
    expected = rights(EXTEND, GATES) | stock
    assert rules_of(account("scheduler"), ELSEWHERE) - everyones == expected - everyones
    lease = rights({COORDINATION: {"leases": "update"}}, name="kfp-placement-scheduler")
    own = rules_of(account("scheduler"), NAMESPACE) - everyones
    assert own == (expected | rights(ANY_LEASE) | lease) - everyones


@pytest.fixture
def extender_rights(control_plane, installed: Api):
    """Checks the rights that the extender looks for where its webhook holds runs."""
    token = housekeeping.account_token(installed, NAMESPACE, "scheduler")
    kubeconfig = control_plane.kubeconfig_for("rights-of-webhook", token)
    client = connect(Settings(kubeconfig=kubeconfig))
    return lambda: check_access(client, extend_process.needs(ExtendSettings(queues=True)))


def test_the_extender_reads_queues_only_where_its_webhook_holds_runs(
    installed, account, everyones, extender_rights
):
    before = rules_of(account("scheduler"), ELSEWHERE)
    with pytest.raises(AccessError, match="runqueues"):
        extender_rights()
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
        assert more == rights({GROUP: {"runqueues": READ}})
        extender_rights()
    finally:
        for item in brought:
            installed.delete(item)


def test_the_last_resort_may_do_this_and_no_more(account, everyones):
    for namespace in (ELSEWHERE, NAMESPACE, "kube-system"):
        found = rules_of(account("release"), namespace) - everyones
        assert found == rights(RELEASE, GATES) - everyones


def test_the_queue_may_do_this_and_no_more(account, everyones):
    expected = rights(QUEUE) - everyones
    assert rules_of(account("queue"), ELSEWHERE) - everyones == expected
    lease = rights({COORDINATION: {"leases": "update"}}, name="kfp-placement-queue")
    assert rules_of(account("queue"), NAMESPACE) - everyones == expected | rights(ANY_LEASE) | lease


def test_the_last_resort_for_runs_may_do_this_and_no_more(account, everyones):
    expected = rights(RELEASE_RUNS) - everyones
    assert rules_of(account("release-runs"), ELSEWHERE) - everyones == expected
    leases = {
        right
        for name in ("kfp-placement-planner", "kfp-placement-queue")
        for right in rights({COORDINATION: {"leases": "get"}}, name=name)
    }
    assert rules_of(account("release-runs"), NAMESPACE) - everyones == expected | leases


OPERATE_QUEUES = {
    ARGO: {"workflows": "get list patch"},
    GROUP: {
        "runqueues": f"{READ} create update patch delete",
        "runrequests": f"{READ} patch",
        "runrequests/release": "update",
    },
}


def test_who_operates_queues_may_release_held_and_preempted_runs(installed):
    """Their objects are Workflows: without the right to patch these the other right is no use."""
    assert role(installed, "kfp-placement-operate-queues") == rights(OPERATE_QUEUES)


@pytest.fixture
def person(installed: Api, namespace: str):
    """Somebody with a built-in role in the namespace, once its rights have arrived."""

    def acting(role_name: str) -> Api:
        account = {"name": f"a-person-of-{role_name}", "namespace": namespace}
        installed.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        group = "rbac.authorization.k8s.io"
        binding = {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": account,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role_name},
            "subjects": [{"kind": "ServiceAccount", **account}],
        }
        installed.create(binding)
        token = housekeeping.account_token(installed, namespace, account["name"])
        api = installed.acting_as(token)
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
    forget = {"spec": {"forgetBefore": "2026-11-20T10:00:00Z"}}
    changed = editor.patch(history, {**forget, "status": {"runsSeen": 99}})
    assert changed["spec"]["forgetBefore"] == "2026-11-20T10:00:00Z"
    assert changed["status"]["runsSeen"] == status["runsSeen"]
    for call in (
        lambda: viewer.patch(history, forget),
        lambda: editor.patch(history, {"status": {"runsSeen": 99}}, part="status"),
        lambda: editor.create(a_history(namespace) | {"metadata": in_(namespace)}),
        lambda: editor.delete(history),
    ):
        with pytest.raises(ApiError, match="Forbidden"):
            call()


def test_only_gates_bring_the_right_to_change_pods():
    items = manifests.rendered()
    roles = [item for item in items if item["kind"] in ("ClusterRole", "Role")]
    granted = {right for item in roles for right in expanded(item["rules"])}
    assert not {verb for verb, _, resource, _ in granted if resource.startswith("pods")} - {
        *READ.split(),
        "delete",
    }


@pytest.mark.parametrize("name", ["plan", "scheduler", "release", "queue", "release-runs"])
def test_nobody_may_do_harm(installed, account, name):
    """Asked one by one of the server, in a user's namespace, in ours and in the system's."""
    stock = role(installed, "system:kube-scheduler") | role(installed, "system:volume-scheduler")
    changes_workflows = rights({ARGO: {"workflows": "patch"}})
    allowed_by_design = {
        "scheduler": stock,
        "plan": rights({GROUP: {"runrequests": "create patch delete"}}, HISTORY_OF_PLAN),
        "queue": changes_workflows | rights({GROUP: {"runrequests/status": "patch"}}),
        "release-runs": changes_workflows,
    }.get(name, set())
    api = account(name)
    harmful = rights(MUST_NOT) - allowed_by_design
    assert len(harmful) > 60
    for namespace in (ELSEWHERE, NAMESPACE, "kube-system"):
        assert [right for right in sorted(harmful) if may(api, right, namespace)] == []


@pytest.fixture(scope="module")
def argo(installed: Api):
    """Argo's kinds, so that Workflows can be asked for."""
    manifests.apply(installed, custom_resource_definitions())
    yield
    for item in custom_resource_definitions():
        installed.delete(item)


def gated_pod(api: Api, namespace: str) -> dict[str, Any]:
    gates = [{"name": PLAN_GATE}]
    return api.create(objects.pod("p", namespace, schedulingGates=gates))


def event(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{EVENTS}/v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": namespace},
        "eventTime": "2026-11-20T10:00:00.000000Z",
        "reportingController": "kfp-placement.dev/plan",
        "reportingInstance": "plan-0",
        "type": "Normal",
        "reason": "PlacedElsewhere",
        "action": "Placing",
        "regarding": {"kind": "Pod", "name": "p", "namespace": namespace},
    }


@pytest.mark.usefixtures("argo")
def test_the_planner_does_its_work(installed, account, namespace):
    api = account("plan")
    created = api.create(a_placement(namespace))
    api.patch(created, {"spec": {"revision": 3}})
    api.patch(created, {"status": {"phase": "Running"}}, part="status")
    history = api.create(a_history(namespace))
    api.patch(history, {"status": a_history(namespace)["status"]}, part="status")
    api.delete(history)
    assert api.list(f"{ARGO}/v1alpha1", "Workflow") == []
    policy = installed.get(API_VERSION, "PlacementPolicy", "default")
    api.patch(policy, {"status": {"gatesReady": False}}, part="status")
    installed.delete(policy)
    api.create({key: policy[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": NAMED})
    api.create(event(namespace))
    pod = gated_pod(installed, namespace)
    api.patch(pod, [{"op": "remove", "path": "/spec/schedulingGates"}], how="json")
    api.delete(pod)


@pytest.mark.usefixtures("argo")
def test_the_planner_is_refused_everything_else(installed, account, namespace, add_nodes):
    api = account("plan")
    add_nodes(objects.node(f"{namespace}-1"))
    node = installed.get("v1", "Node", f"{namespace}-1")
    pod = gated_pod(installed, namespace)
    run = installed.create(workflow(step(), entrypoint="work") | {"metadata": in_(namespace)})
    refused = [
        lambda: api.list("v1", "Secret", namespace),
        lambda: api.list("v1", "Secret", NAMESPACE),
        lambda: api.create(objects.pod("q", namespace)),
        lambda: api.request("POST", f"{api.path('v1', 'Pod', namespace, 'p')}/exec"),
        lambda: api.replace(pod),
        lambda: api.patch(pod, {"status": {"phase": "Failed"}}, part="status"),
        lambda: api.patch(node, {"metadata": {"labels": {"a": "b"}}}),
        lambda: api.patch(run, {"metadata": {"labels": {"a": "b"}}}),
        lambda: api.delete(run),
        lambda: api.patch(policy_named_default(), {"spec": {"paused": True}}),
        lambda: api.create(lease("kfp-placement-planner", namespace)),
        lambda: api.replace(installed.create(lease("of-somebody-else", NAMESPACE))),
    ]
    for call in refused:
        with pytest.raises(ApiError, match="Forbidden"):
            call()


def test_the_last_resort_takes_gates_off(installed, account, namespace):
    api = account("release")
    pod = gated_pod(installed, namespace)
    assert api.get(API_VERSION, "PlacementPolicy", "default")
    assert "p" in {item["metadata"]["name"] for item in api.list("v1", "Pod")}
    api.patch(pod, [{"op": "remove", "path": "/spec/schedulingGates"}], how="json")
    for call in (
        lambda: api.delete(pod),
        lambda: api.patch(policy_named_default(), {"spec": {"paused": True}}),
        lambda: api.list("v1", "Secret", namespace),
    ):
        with pytest.raises(ApiError, match="Forbidden"):
            call()


def test_the_command_of_the_last_resort_needs_no_other_account(control_plane, installed, namespace):
    pod = gated_pod(installed, namespace)
    token = housekeeping.account_token(installed, NAMESPACE, "release")
    kubeconfig = control_plane.kubeconfig_for("rights-of-release", token)
    client = connect(Settings(kubeconfig=kubeconfig))
    later = datetime.now(UTC) + timedelta(minutes=2)
    lines: list[str] = []
    assert (
        release(client, later, lines.append, ReleaseSettings(overdue=True), DEFAULT_SOURCES) == 0
    ), lines
    assert f"freed {namespace}/p" in lines
    found = installed.get("v1", "Pod", pod["metadata"]["name"], namespace)
    assert "schedulingGates" not in found["spec"]


def in_(namespace: str) -> dict[str, str]:
    return {"name": "wf", "namespace": namespace}


def policy_named_default() -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "PlacementPolicy", "metadata": NAMED}


def lease(name: str, namespace: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{COORDINATION}/v1", "kind": "Lease", "metadata": metadata, "spec": {}}
