"""Each of our accounts, taken over: what its token writes, on the installation with all features.

None of our processes runs here: only the API server holds the accounts, and it holds up nobody
else.
"""

import copy
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from kfp_placement_controller.observed.latency_limits import MAX_HOSTS
from kfp_placement_engine.contract.gates import Pin
from kfp_placement_engine.contract.keys import (
    PLAN_GATE,
    PREEMPTED_ANNOTATION,
    PREEMPTED_LABEL,
    QUEUE_INSTANCE,
    SCHEDULER_LABEL,
)
from kfp_placement_engine.readers.argo import holds
from kfp_placement_engine.readers.argo.keys import INSTANCE_LABEL
from kfp_placement_engine.readers.kubernetes.gates import opening_patch
from tests.controlplane import housekeeping, objects
from tests.controlplane.api import Api
from tests.controlplane.argo.crds import VERSION, custom_resource_definitions
from tests.controlplane.exceptions import ApiError
from tests.controlplane.objects import JsonObject
from tests.controlplane.waiting import wait_until
from tests.support import manifests
from tests.support.account_rights import (
    COORDINATION,
    EXTEND,
    GATES,
    HISTORY_OF_PLAN,
    PLAN,
    QUEUE,
    QUEUES_OF_PLAN,
    RELEASE,
    RELEASE_RUNS,
    Right,
    rights,
)
from tests.support.custom_resources import remove_crds
from tests.support.manifests import NAMESPACE

SYSTEM = "kube-system"
FEATURES = ("gates", "queue", "history", "kfp-api", "workflow-templates")
ACCOUNTS = ("plan", "queue", "release", "release-runs", "scheduler")
GATING = ("plan", "release", "scheduler")
WRITING = ("create", "update", "patch", "delete", "deletecollection")
POLICY = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
LIMITS = ("kfp-placement-accounts", "kfp-placement-accounts-workflows")
HELD_BY_US = "ValidatingAdmissionPolicy 'kfp-placement-accounts"

KUBE_SCHEDULER = {
    "": {
        "bindings": "create",
        "events": "create patch update",
        "persistentvolumeclaims": "patch update",
        "persistentvolumes": "patch update",
        "pods": "delete",
        "pods/binding": "create",
        "pods/status": "patch update",
    },
    "authentication.k8s.io": {"tokenreviews": "create"},
    "authorization.k8s.io": {"subjectaccessreviews": "create"},
    COORDINATION: {
        "leases": "create",
        "leasecandidates": "create delete deletecollection patch update",
    },
    "events.k8s.io": {"events": "update"},
    "resource.k8s.io": {
        "resourceclaims": "create delete patch update",
        "resourceclaims/status": "patch update",
        "resourceclaims/binding": "patch update",
    },
}
"""Writes of Kubernetes' own roles for a scheduler."""

TABLE = {
    "plan": (PLAN, GATES, QUEUES_OF_PLAN, HISTORY_OF_PLAN),
    "queue": (QUEUE,),
    "release": (RELEASE, GATES),
    "release-runs": (RELEASE_RUNS,),
    "scheduler": (EXTEND, GATES, KUBE_SCHEDULER),
}
POWERS = {
    ("impersonate", "", "users"),
    ("impersonate", "", "groups"),
    ("impersonate", "", "serviceaccounts"),
    ("bind", "rbac.authorization.k8s.io", "clusterroles"),
    ("escalate", "rbac.authorization.k8s.io", "clusterroles"),
    ("approve", "certificates.k8s.io", "signers"),
    ("sign", "certificates.k8s.io", "signers"),
    ("update", "kfp-placement.dev", "runrequests/release"),
}
"""Rights that discovery does not list."""


@pytest.fixture(scope="module")
def cluster(control_plane):
    """The API server with everything applied, once it limits the accounts."""
    api = control_plane.api
    definitions = custom_resource_definitions()
    manifests.apply(api, definitions)
    items = manifests.rendered(*FEATURES)
    manifests.apply(api, items)
    queue, plan = (_acting(api, name) for name in ("queue", "plan"))
    with housekeeping.temporary_namespace(api, f"probe-{uuid.uuid4().hex[:8]}") as namespace:
        workflow = api.create(a_workflow(namespace))
        pod = api.create(a_gated_pod(namespace))
        label = {"metadata": {"labels": {"x": "y"}}}
        for actor, item in ((queue, workflow), (plan, pod)):

            def is_held(actor: Api = actor, item: JsonObject = item) -> bool:
                return HELD_BY_US in refusal(actor.patch, item, label, dryRun="All")

            wait_until(is_held, f"{item['kind']}s to be guarded")
    yield api
    manifests.remove(api, items)
    remove_crds(api, definitions)


def _acting(api: Api, name: str) -> Api:
    return api.acting_as(housekeeping.account_token(api, NAMESPACE, name))


@pytest.fixture(scope="module")
def stolen(cluster):
    """The API server as whoever has taken over one of our accounts sees it, by its name."""
    return {name: _acting(cluster, name) for name in ACCOUNTS}


@pytest.fixture
def tenant(cluster):
    """The namespace of somebody else."""
    with housekeeping.temporary_namespace(cluster, f"tenant-{uuid.uuid4().hex[:8]}") as name:
        yield name


@pytest.fixture
def victim(cluster, tenant, add_nodes):
    """A pod of somebody else that has a node."""
    add_nodes(objects.node(f"n-{tenant}"))
    return cluster.create(objects.pod("works", tenant, nodeName=f"n-{tenant}"))


def refusal(call: Callable[..., object], *arguments: Any, **named: Any) -> str:
    """Return what the server says instead of doing what is asked; "" = it did it."""
    try:
        call(*arguments, **named)
    except ApiError as error:
        return str(error)
    return ""


def a_gated_pod(namespace: str, name: str = "gated", **spec: Any) -> JsonObject:
    gates = [{"name": PLAN_GATE}, {"name": "example.com/theirs"}]
    spec = {"schedulingGates": gates, "tolerations": UNREADY, **spec}
    pod = objects.pod(name, namespace, labels={"app": "x"}, **spec)
    pod["metadata"]["annotations"] = {"says": "something"}
    return pod


def a_workflow(namespace: str, name: str = "run", **parts: Any) -> JsonObject:
    labels = {INSTANCE_LABEL: QUEUE_INSTANCE, "pipeline/runid": "1"}
    container = {"name": "main", "container": {"image": "busybox:1"}}
    spec = {"entrypoint": "main", "serviceAccountName": "poor", "templates": [container]}
    workflow = objects.an_object(VERSION, "Workflow", name, namespace, **{"spec": spec, **parts})
    workflow["metadata"] |= {"labels": labels, "annotations": {"says": "something"}}
    return workflow


def merged(*patches: Mapping[str, Any]) -> JsonObject:
    """Return one merge patch that does what several do."""
    result: JsonObject = {}
    for patch in patches:
        for key, value in patch.items():
            both = isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = merged(result[key], value) if both else copy.deepcopy(value)
    return result


def kinds_of(api: Api) -> Iterator[tuple[str, str]]:
    """Each group and resource that the server knows, parts of objects too."""
    groups = api.request("GET", "/apis")["groups"]
    versions = {v["groupVersion"]: g["name"] for g in groups for v in g["versions"]}
    for path, group in {"/api/v1": "", **{f"/apis/{v}": g for v, g in versions.items()}}.items():
        for resource in api.request("GET", path)["resources"]:
            yield group, resource["name"]


def may(api: Api, right: tuple[str, str, str], namespace: str) -> bool:
    verb, group, resource = right
    plural, _, part = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": part}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    review = {"spec": {"resourceAttributes": {**attributes, "namespace": namespace}}}
    return bool(api.request("POST", path, review)["status"]["allowed"])


@pytest.mark.parametrize("name", ACCOUNTS)
def test_no_account_writes_a_kind_that_is_not_in_its_table(cluster, stolen, tenant, name):
    kinds = {*kinds_of(cluster)}
    asked = {(verb, *kind) for verb in WRITING for kind in kinds} | POWERS
    assert len(asked) > 400
    # What everybody may do, such as to ask who he is.
    anybody = _nobody(cluster, tenant)
    listed: set[Right] = rights(*TABLE[name])
    expected = {right[:3] for right in listed} & asked
    for namespace in (tenant, SYSTEM):
        allowed = {right for right in asked if may(stolen[name], right, namespace)}
        free = {right for right in allowed - expected if may(anybody, right, namespace)}
        assert allowed - free == expected


def _nobody(api: Api, namespace: str) -> Api:
    return api.acting_as(housekeeping.account_token(api, namespace, "default"))


@pytest.mark.parametrize("name", ACCOUNTS)
def test_no_account_gets_into_a_container_or_becomes_another(cluster, stolen, victim, name):
    """By real requests: what a right in a role would allow at once."""
    api, namespace = stolen[name], victim["metadata"]["namespace"]
    pods = f"/api/v1/namespaces/{namespace}/pods"
    pod, account = f"{pods}/works", f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/default/token"
    image = {"spec": {"containers": [{"name": "main", "image": "evil"}]}}
    attacks: list[tuple[str, str, JsonObject | None]] = [
        ("GET", f"{pod}/exec?command=id", None),
        ("POST", f"{pod}/exec?command=id", None),
        ("POST", f"{pod}/attach", None),
        ("POST", f"{pod}/portforward", None),
        ("GET", f"{pod}/log", None),
        ("PATCH", f"{pod}/ephemeralcontainers", image),
        ("PATCH", f"{pod}/resize", image),
        ("POST", f"{pod}/eviction", {"metadata": {"name": "works"}}),
        ("POST", pods, objects.pod("mine", namespace)),
        ("PUT", pod, merged(victim, {"metadata": {"labels": {"x": "y"}}})),
        ("DELETE", pods, None),
        ("POST", account, {"spec": {}}),
        ("GET", f"/api/v1/nodes/n-{namespace}/proxy/pods", None),
        ("GET", f"/api/v1/namespaces/{SYSTEM}/secrets", None),
    ]
    for method, path, body in attacks:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        refused = refusal(api.request, method, path, body, content_type=kind)
        assert "orbidden" in refused, (method, path)


def without_gate(name: str) -> JsonObject:
    """Return the strategic merge patch that takes a gate off."""
    return {"spec": {"schedulingGates": [{"$patch": "delete", "name": name}]}}


OPENING = without_gate(PLAN_GATE)


def a_term(key: str, **more: Any) -> JsonObject:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": ["a"]}], **more}


def nodes(**affinity: Any) -> JsonObject:
    return {"spec": {"affinity": {"nodeAffinity": affinity}}}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"


def hosts(number: int) -> JsonObject:
    values = [f"host-{index}" for index in range(number)]
    return {"matchExpressions": [{"key": HOST, "operator": "In", "values": values}]}


BY_NAME = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
BUT_ONE = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]}
PREFERS = {"weight": 100, "preference": BY_NAME}
UNREADY = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute"}
    for what in ("not-ready", "unreachable")
]
ON_GATED_PODS: dict[str, JsonObject] = {
    "image": {"spec": {"containers": [{"name": "main", "image": "evil"}]}},
    "label": {"metadata": {"labels": {"app": "y"}}},
    "new-label": {"metadata": {"labels": {"role": "admin"}}},
    "no-label": {"metadata": {"labels": None}},
    "annotation": {"metadata": {"annotations": {"says": "another"}}},
    "no-annotation": {"metadata": {"annotations": {"says": None}}},
    "finalizer": {"metadata": {"finalizers": ["example.com/never"]}},
    "owner": {
        "metadata": {
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}]
        }
    },
    "all-gates": {"spec": {"schedulingGates": [{"$patch": "replace"}]}},
    "node-selector": {"spec": {"nodeSelector": {"x": "y"}}},
    "toleration": {"spec": {"tolerations": [*UNREADY, {"operator": "Exists"}]}},
    "deadline": {"spec": {"activeDeadlineSeconds": 1}},
    "required-zone": nodes(**{REQUIRED: {"nodeSelectorTerms": [a_term("zone")]}}),
    "required-none": nodes(**{REQUIRED: {"nodeSelectorTerms": [a_term(HOST, **BY_NAME)]}}),
    "not-on-hosts": nodes(
        **{
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": HOST, "operator": "NotIn", "values": ["a"]}]}
                ]
            }
        }
    ),
    "many-hosts": nodes(**{REQUIRED: {"nodeSelectorTerms": [hosts(MAX_HOSTS + 1)]}}),
    "prefers-zone": nodes(**{PREFERRED: [{"weight": 100, "preference": a_term("zone")}]}),
    "prefers-two": nodes(**{PREFERRED: [PREFERS, PREFERS]}),
    "prefers-little": nodes(**{PREFERRED: [{**PREFERS, "weight": 1}]}),
    "avoids-one": nodes(**{PREFERRED: [{"weight": 100, "preference": BUT_ONE}]}),
}
"""What the API server lets be done with a gated pod by whoever may patch it."""


@pytest.mark.parametrize("name", GATING)
def test_who_takes_a_gate_off_changes_nothing_else(cluster, stolen, tenant, name):
    pod = cluster.create(a_gated_pod(tenant))
    alone = {**ON_GATED_PODS, "pin": nodes(**{PREFERRED: [PREFERS]})}
    alone["foreign-gate"] = without_gate("example.com/theirs")
    opening = {each: merged(OPENING, patch) for each, patch in ON_GATED_PODS.items()}
    opening["all-gates"] = ON_GATED_PODS["all-gates"]
    for attack, patch in (*alone.items(), *opening.items()):
        cluster.patch(pod, patch, "strategic", dryRun="All")
        refused = refusal(stolen[name].patch, pod, patch, "strategic")
        assert HELD_BY_US in refused, attack


AFFINITY = {
    "nodeAffinity": {
        REQUIRED: {"nodeSelectorTerms": [a_term("zone"), {}, BY_NAME, a_term("disk", **BY_NAME)]},
        PREFERRED: [{"weight": 1, "preference": a_term("zone")}],
    },
    "podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": {}}]},
}
"""As much as a pod may ask for."""

MOST_HOSTS = tuple(f"{index:a>63}" for index in range(MAX_HOSTS))
"""As many host labels as the planner names, each as long as a label may be."""


@pytest.mark.parametrize("name", GATING)
@pytest.mark.parametrize("affinity", [None, AFFINITY], ids=["plain", "choosy"])
@pytest.mark.parametrize(
    "pin", [None, Pin(node="a"), Pin(hosts=("a", "b")), Pin(node="a", hosts=MOST_HOSTS)], ids=str
)
def test_our_patches_of_pods_pass_and_none_that_drops_a_wish(
    cluster, stolen, tenant, name, affinity, pin
):
    wishes = {} if affinity is None else {"affinity": affinity}
    pod = cluster.create(a_gated_pod(tenant, **wishes))
    patch = opening_patch(pod, pod["metadata"]["uid"], pin)
    assert patch is not None
    if affinity and pin is not None:
        for less in ({"nodeAffinity": {PREFERRED: [PREFERS]}}, {"podAntiAffinity": None}):
            assert refusal(stolen[name].patch, pod, merged(patch, {"spec": {"affinity": less}}))
    if name == "release" and pin is not None:
        assert "gives a pod no node" in refusal(stolen[name].patch, pod, patch)
        return
    changed = stolen[name].patch(pod, patch)
    assert changed["spec"]["schedulingGates"] == [{"name": "example.com/theirs"}]


def test_no_account_writes_a_pod_of_the_system(cluster, stolen, add_nodes):
    add_nodes(objects.node("of-system"))
    gated = cluster.create(a_gated_pod(SYSTEM, f"g-{uuid.uuid4().hex[:8]}"))
    bound = cluster.create(
        objects.pod(
            f"b-{uuid.uuid4().hex[:8]}",
            SYSTEM,
            nodeName="of-system",
            priorityClassName="system-node-critical",
        )
    )
    waiting = objects.pod(f"w-{uuid.uuid4().hex[:8]}", SYSTEM, schedulerName="kfp-placement")
    waiting = cluster.create(waiting)
    try:
        patch = opening_patch(gated, gated["metadata"]["uid"], None)
        image = {"spec": {"containers": [{"name": "main", "image": "evil"}]}}
        scheduler = stolen["scheduler"]
        failed = {"status": {"phase": "Failed"}}
        attacks = [
            *(partial(stolen[name].patch, gated, patch) for name in GATING),
            *(partial(stolen[name].patch, bound, image, "strategic") for name in GATING),
            *(partial(stolen[name].delete, bound) for name in ("plan", "scheduler")),
            partial(stolen["plan"].delete, waiting),
            partial(bind, scheduler, waiting, "of-system"),
            partial(scheduler.patch, bound, failed, part="status"),
        ]
        for attack in attacks:
            assert "change nothing in kube-system" in refusal(attack)
    finally:
        for pod in (gated, bound, waiting):
            cluster.delete(pod, grace_seconds=0)


def bind(api: Api, pod: JsonObject, node: str, **metadata: Any) -> JsonObject:
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = objects.an_object("v1", "Binding", name, namespace, target=target)
    body["metadata"] |= metadata
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
    answer: JsonObject = api.request("POST", path, body)
    return answer


def a_step(run: JsonObject, name: str, **spec: Any) -> JsonObject:
    """A pod of a Workflow, which must be there, or the garbage collector takes the pod."""
    namespace, uid = (run["metadata"][key] for key in ("namespace", "uid"))
    pod = objects.pod(name, namespace, **{"schedulerName": "kfp-placement", **spec})
    owner = {"apiVersion": VERSION, "kind": "Workflow", "name": "run", "uid": uid}
    pod["metadata"]["ownerReferences"] = [owner]
    return pod


def test_the_planner_deletes_only_steps_that_wait_for_its_scheduler(
    cluster, stolen, tenant, victim
):
    plan, run = stolen["plan"], cluster.create(a_workflow(tenant))
    ours = cluster.create(a_step(run, "ours"))
    marked = a_step(run, "marked", schedulerName="gpu-scheduler")
    marked["metadata"]["labels"][SCHEDULER_LABEL] = "gpu-scheduler"
    owned = cluster.create(marked)
    others = [
        victim,
        cluster.create(objects.pod("no-step", tenant, schedulerName="kfp-placement")),
        cluster.create(a_step(run, "of-others", schedulerName="gpu-scheduler")),
        cluster.create(a_step(run, "bound", nodeName=victim["spec"]["nodeName"])),
        cluster.create(a_gated_pod(tenant)),
    ]
    for pod in others:
        assert "deletes only steps of Workflows" in refusal(plan.delete, pod)
    for pod in (ours, owned):
        plan.delete(pod)
        assert cluster.find("v1", "Pod", pod["metadata"]["name"], tenant) is None


ON_STATUS: dict[str, JsonObject] = {
    "address": {"status": {"podIP": "10.9.9.9", "podIPs": [{"ip": "10.9.9.9"}]}},
    "phase": {"status": {"phase": "Failed"}},
    "ready": {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
    "label": {"metadata": {"labels": {"app": "theirs"}}},
    "annotation": {"metadata": {"annotations": {"x": "y"}}},
}
"""What the right of every scheduler to patch the status of pods allows."""


@pytest.mark.parametrize("attack", ON_STATUS)
def test_the_scheduler_forges_no_status(cluster, stolen, victim, attack):
    cluster.patch(victim, ON_STATUS[attack], part="status", dryRun="All")
    refused = refusal(stolen["scheduler"].patch, victim, ON_STATUS[attack], part="status")
    assert HELD_BY_US in refused


def test_the_scheduler_takes_over_no_volume_lease_or_running_pod(
    cluster, stolen, tenant, victim, add_nodes
):
    api, node = stolen["scheduler"], victim["spec"]["nodeName"]
    waiting = cluster.create(objects.pod("waits", tenant, schedulerName="nobody"))
    claim = cluster.create(objects.claim("theirs", tenant, "none"))
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "name": "theirs"}
    reference |= {"namespace": tenant, "uid": claim["metadata"]["uid"]}
    volume = a_volume(f"v-{tenant}", claimRef=reference)
    free = a_volume(f"f-{tenant}")
    volume, free = cluster.create(volume), cluster.create(free)
    priority = {"priorityClassName": "system-node-critical", "nodeName": node}
    critical = cluster.create(objects.pod("critical", tenant, **priority))
    lease = objects.an_object(f"{COORDINATION}/v1", "Lease", "kube-scheduler", SYSTEM, spec={})
    stored = cluster.find(f"{COORDINATION}/v1", "Lease", "kube-scheduler", SYSTEM)
    stored = stored or cluster.create(lease)
    mine = {"claimRef": {**reference, "name": "mine", "uid": "2"}}
    attacks = [
        partial(api.patch, volume, {"spec": mine}),
        partial(api.patch, volume, {"spec": {"claimRef": None}}),
        partial(api.patch, volume, {"metadata": {"labels": {"x": "y"}}}),
        partial(api.patch, free, {"spec": {"persistentVolumeReclaimPolicy": "Delete"}}),
        partial(api.patch, claim, {"metadata": {"annotations": {"x": "y"}}}),
        partial(api.replace, merged(stored, {"spec": {"holderIdentity": "me"}})),
        partial(api.create, merged(lease, {"metadata": {"name": "kube-controller-manager-2"}})),
        partial(api.create, merged(lease, {"metadata": {"namespace": NAMESPACE, "name": "x"}})),
        partial(api.delete, victim, grace_seconds=0),
        partial(api.delete, critical),
        partial(api.delete, waiting),
        partial(bind, api, waiting, node, annotations={"x": "y"}),
        partial(bind, api, waiting, node, labels={"app": "theirs"}),
    ]
    try:
        for number, attack in enumerate(attacks):
            assert HELD_BY_US in refusal(attack), number
        # What it is there for.
        scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        status = {"status": {"conditions": [scheduled], "nominatedNodeName": node}}
        api.patch(waiting, status, "strategic", part="status")
        bind(api, waiting, node, labels={"topology.kubernetes.io/zone": "a"})
        api.patch(free, {"spec": {"claimRef": {**reference, "uid": "3"}}})
        chosen = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": node}}}
        api.patch(claim, chosen)
        api.delete(victim)
    finally:
        for item in (volume, free):
            cluster.delete(item)


def a_volume(name: str, **spec: Any) -> JsonObject:
    whole = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none",
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": "/tmp"},
        **spec,
    }
    return objects.an_object("v1", "PersistentVolume", name, spec=whole)


@pytest.mark.parametrize("name", ["plan", "queue", "release", "release-runs"])
def test_no_account_leads_in_the_place_of_another(cluster, stolen, name):
    leases = {"plan": "kfp-placement-planner", "queue": "kfp-placement-queue"}
    for lease in {"kube-scheduler", "kfp-placement-scheduler", *leases.values(), "any"}:
        for namespace in {NAMESPACE, SYSTEM}:
            item = objects.an_object(f"{COORDINATION}/v1", "Lease", lease, namespace, spec={})
            path = stolen[name].path(f"{COORDINATION}/v1", "Lease", namespace)
            refused = refusal(stolen[name].request, "POST", path, item, query={"dryRun": "All"})
            own = namespace == NAMESPACE and leases.get(name) == lease
            assert bool(refused) is not own


ON_WORKFLOWS: dict[str, JsonObject] = {
    "account": {"spec": {"serviceAccountName": "rich"}},
    "pod": {"spec": {"podSpecPatch": '{"hostNetwork": true}'}},
    "templates": {"spec": {"templates": [{"name": "main", "container": {"image": "evil"}}]}},
    "entrypoint": {"spec": {"entrypoint": "other"}},
    "arguments": {"spec": {"arguments": {"parameters": [{"name": "a", "value": "b"}]}}},
    "hooks": {"spec": {"hooks": {"exit": {"template": "main"}}}},
    "exit": {"spec": {"onExit": "main"}},
    "shutdown": {"spec": {"shutdown": "Terminate"}},
    "no-entrypoint": {"spec": {"entrypoint": None}},
    "label": {"metadata": {"labels": {"pipeline/runid": "2"}}},
    "another-controller": {"metadata": {"labels": {INSTANCE_LABEL: "mine"}}},
    "completed": {"metadata": {"labels": {"workflows.argoproj.io/completed": "true"}}},
    "annotation": {"metadata": {"annotations": {"says": "another"}}},
    "finalizer": {"metadata": {"finalizers": ["example.com/never"]}},
    "owner": {
        "metadata": {
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}]
        }
    },
    "phase": {"status": {"phase": "Succeeded"}},
    "nodes": {"status": {"nodes": {"run": {"id": "run", "phase": "Succeeded"}}}},
    "stored": {"status": {"storedWorkflowTemplateSpec": {"entrypoint": "other"}}},
    "other-field": {"execSpec": {"serviceAccountName": "rich"}},
    "unmarked-suspension": {"spec": {"suspend": True}},
}
"""What the right to patch Workflows allows."""


@pytest.mark.parametrize("name", ["queue", "release-runs"])
def test_who_releases_runs_changes_nothing_else_of_them(cluster, stolen, tenant, name):
    api = stolen[name]
    held = cluster.create(a_workflow(tenant))
    release = holds.releasing_patch(held["metadata"]["resourceVersion"], has_message=False)
    for attack, patch in ON_WORKFLOWS.items():
        cluster.patch(held, patch, dryRun="All")
        for tried in (patch, merged(release, patch)):
            assert HELD_BY_US in refusal(api.patch, held, tried), attack
    assert "orbidden" in refusal(api.delete, held)
    assert "orbidden" in refusal(api.create, held)
    for at, name_there in ((SYSTEM, f"r-{uuid.uuid4().hex[:8]}"), (tenant, "runs")):
        other = a_workflow(at, name_there, status={"phase": "Running"})
        if at == tenant:
            del other["metadata"]["labels"][INSTANCE_LABEL]
        other = cluster.create(other)
        version = other["metadata"]["resourceVersion"]
        attacks = [holds.holding_patch(version, "waits"), holds.resuming_patch(version)]
        attacks += [holds.releasing_patch(version, has_message=True)]
        held_up = [HELD_BY_US in refusal(api.patch, other, patch) for patch in attacks]
        # To resume a run that is not suspended changes nothing.
        assert held_up == ([True] * 3 if at == SYSTEM else [True, False, True])
        cluster.delete(other)
    api.patch(held, release)
    now = cluster.get(VERSION, "Workflow", "run", tenant)
    assert now["metadata"]["labels"] == {"pipeline/runid": "1"}


def test_nobody_but_the_queue_suspends_a_run_or_resumes_what_its_owner_stopped(
    cluster, stolen, tenant
):
    queue, last = stolen["queue"], stolen["release-runs"]
    run = cluster.create(a_workflow(tenant))

    def version() -> str:
        stored: str = cluster.get(VERSION, "Workflow", "run", tenant)["metadata"]["resourceVersion"]
        return stored

    def suspend(api: Api) -> JsonObject:
        return api.patch(run, holds.suspending_patch(version(), "other"))

    def resume(api: Api) -> JsonObject:
        return api.patch(run, holds.resuming_patch(version()))

    assert HELD_BY_US in refusal(suspend, last)
    cluster.patch(run, {"spec": {"suspend": True}})
    for api in (queue, last):
        assert HELD_BY_US in refusal(resume, api)
    cluster.patch(run, {"spec": {"suspend": None}})
    for api in (queue, last):
        marks = suspend(queue)["metadata"]
        assert marks["labels"][PREEMPTED_LABEL] == "true"
        assert marks["annotations"][PREEMPTED_ANNOTATION] == "other"
        assert "suspend" not in resume(api)["spec"]


def a_large_workflow(namespace: str) -> JsonObject:
    """A run of 6,000 steps that has begun: 1.36 MB, most of what etcd takes."""
    step = {"container": {"image": "busybox:1", "args": ["x" * 20]}}
    steps = [{"name": f"step-{n}", **step} for n in range(6_000)]
    states = {
        f"run-{n}": {"id": f"run-{n}", "phase": "Succeeded", "message": "m" * 100}
        for n in range(5_000)
    }
    whole = a_workflow(namespace, status={"phase": "Running", "nodes": states})
    whole["spec"]["templates"] += steps
    return whole


def test_a_run_of_the_largest_size_is_compared_whole(cluster, stolen, tenant):
    run = cluster.create(a_large_workflow(tenant))
    assert 1_300_000 < len(json.dumps(run, separators=(",", ":"))) < 1_500_000
    last = run["spec"]["templates"][:-1]
    api, version = stolen["queue"], run["metadata"]["resourceVersion"]
    suspend = holds.suspending_patch(version, "other")
    less = merged(suspend, {"spec": {"templates": last}})
    ended = merged(suspend, {"status": {"nodes": {"run-4999": {"phase": "Failed"}}}})
    for attack in (less, ended):
        assert HELD_BY_US in refusal(api.patch, run, attack)
    assert api.patch(run, suspend)["spec"]["suspend"] is True


def test_junk_in_a_run_costs_the_server_little(cluster, stolen, tenant):
    """To go through so many labels took 20 s of the API server's time, for each of our writes."""
    run = a_workflow(tenant)
    run["metadata"]["labels"] |= {f"{number:x}": "" for number in range(30_000)}
    version = cluster.create(run)["metadata"]["resourceVersion"]
    begin = time.monotonic()
    suspend = holds.suspending_patch(version, "other")
    assert HELD_BY_US in refusal(stolen["queue"].patch, run, suspend)
    assert time.monotonic() - begin < 10
    cluster.delete(run)


def test_no_junk_keeps_a_run_from_being_preempted(cluster, tenant):
    rules = [{"apiGroups": ["argoproj.io"], "resources": ["workflows"], "verbs": ["*"]}]
    cluster.create(objects.an_object(f"{housekeeping.RBAC}/v1", "Role", "all", tenant, rules=rules))
    author = housekeeping.new_account(cluster, tenant, "author", "all", "Role")
    cluster.create(manifests.a_queue(tenant))
    junk = {f"{number:x}": "" for number in range(1_001)}
    labels = {"metadata": {"labels": junk}}
    for attack in (labels, {"spec": junk}, {"status": junk}, merged(labels, {"status": None})):
        run = merged(a_workflow(tenant), attack)

        def is_held(run: JsonObject = run) -> bool:
            answer = refusal(author.create, run, dryRun="All")
            return "at most 1,000 labels" in answer or "submit it without its status" in answer

        wait_until(is_held, "the run to be refused")
    run = author.create(a_workflow(tenant))
    assert "at most 1,000 labels" in refusal(author.patch, run, labels)


def test_a_limit_that_fails_holds_up_nobody_else(cluster, stolen, tenant):
    """Copies of the shipped policies that can decide nothing, and deny what they cannot decide."""
    broken = []
    try:
        for name in LIMITS:
            shipped = cluster.get(*POLICY, name)
            rule = {"expression": "object.there.is.no.such.field == 1"}
            spec = {**shipped["spec"], "validations": [rule]}
            bound = {"policyName": f"broken-{name}", "validationActions": ["Deny"]}
            for kind, content in ((POLICY[1], spec), (f"{POLICY[1]}Binding", bound)):
                item = objects.an_object(POLICY[0], kind, f"broken-{name}", spec=content)
                broken.append(cluster.create(item))
        held = cluster.create(a_workflow(tenant))
        pod = cluster.create(a_gated_pod(tenant))
        release = {"metadata": {"labels": {INSTANCE_LABEL: None}}}

        def fails(api: Api, item: JsonObject, patch: JsonObject, how: str = "merge") -> bool:
            return "no such key: there" in refusal(api.patch, item, patch, how, dryRun="All")

        wait_until(lambda: fails(stolen["queue"], held, release), "the broken policy")
        wait_until(lambda: fails(stolen["plan"], pod, OPENING, "strategic"), "the other")
        housekeeping.bind_role(cluster, tenant, "default", "edit", "ClusterRole")
        somebody = _nobody(cluster, tenant)
        wait_until(lambda: may(somebody, ("create", "", "pods"), tenant), "rights")
        made = somebody.create(objects.pod("own", tenant))
        somebody.patch(made, {"metadata": {"labels": {"x": "y"}}})
        somebody.delete(made)
        cluster.patch(held, {"spec": {"entrypoint": "other"}})
        cluster.delete(held)
    finally:
        for item in broken:
            cluster.delete(item)
