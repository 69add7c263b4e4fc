"""A second kube-scheduler set up as ours will be: own account, own lease, an extender beside it."""

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane import objects
from tests.controlplane.api import Api, JsonObject
from tests.controlplane.housekeeping import account_token, wait_until_seen
from tests.controlplane.plane import ControlPlane
from tests.controlplane.ports import LOOPBACK
from tests.controlplane.waiting import wait_until
from tests.support.data import data_path

pytestmark = pytest.mark.cluster

SCHEDULER = "scheduler-with-extender"
RBAC = "rbac.authorization.k8s.io"
COORDINATION = "coordination.k8s.io"
WAITING = "waiting for the plan"


class Extender:
    """Answers `filter` with one node, or with a reason for every node.

    Attributes:
        requests: what was asked, in order.
        chosen: the node to answer with; none: all are refused.
    """

    def __init__(self) -> None:
        self.requests: list[JsonObject] = []
        self.chosen = ""

    def answer(self, request: JsonObject) -> JsonObject:
        """A filter's reply, by node names only."""
        self.requests.append(request)
        names = request["NodeNames"]
        refused = {} if self.chosen in names else dict.fromkeys(names, WAITING)
        return {
            "Nodes": None,
            "NodeNames": [name for name in names if name == self.chosen],
            "FailedNodes": {},
            "FailedAndUnresolvableNodes": refused,
            "Error": "",
        }


@pytest.fixture
def extender() -> Iterator[tuple[Extender, str]]:
    """An extender, and the address it serves at."""
    served = Extender()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/scheduler/filter"
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = json.dumps(served.answer(body)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield served, f"http://{LOOPBACK}:{server.server_port}/scheduler"
        server.shutdown()
        thread.join()


def bind(
    api: Api, kind: str, role: tuple[str, str], account: JsonObject, namespace: str
) -> JsonObject:
    """Give an account a role, in a namespace or, for a ClusterRoleBinding, everywhere."""
    metadata = {"name": f"{account['namespace']}-{role[1].replace(':', '-')}"}
    if kind == "RoleBinding":
        metadata["namespace"] = namespace
    return api.create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": kind,
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": role[0], "name": role[1]},
            "subjects": [{"kind": "ServiceAccount", **account}],
        }
    )


@pytest.fixture
def token(api: Api, namespace: str) -> Iterator[str]:
    """Of an account with the rights of a second scheduler (kubernetes.io, my-scheduler.yaml)."""
    account = {"name": "scheduler", "namespace": namespace}
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    leases = {
        "apiGroups": [COORDINATION],
        "resources": ["leases"],
        "verbs": ["create", "get", "list", "watch", "update"],
    }
    role = {"name": "leases", "namespace": namespace}
    api.create({"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": role, "rules": [leases]})
    reader = ("Role", "extension-apiserver-authentication-reader")
    bindings = [
        bind(api, "ClusterRoleBinding", ("ClusterRole", "system:kube-scheduler"), account, ""),
        bind(api, "ClusterRoleBinding", ("ClusterRole", "system:volume-scheduler"), account, ""),
        bind(api, "RoleBinding", reader, account, "kube-system"),
        bind(api, "RoleBinding", ("Role", "leases"), account, namespace),
    ]
    yield account_token(api, namespace, "scheduler")
    for binding in bindings:
        api.delete(binding)


@pytest.fixture
def scheduler(
    control_plane: ControlPlane, namespace: str, extender: tuple[Extender, str], token: str
) -> Iterator[Extender]:
    """The scheduler with its extender."""
    asked, address = extender
    configuration = {
        "leaderElection": {
            "leaderElect": True,
            "resourceNamespace": namespace,
            "resourceName": SCHEDULER,
        },
        "podMaxBackoffSeconds": 5,
        "profiles": [{"schedulerName": SCHEDULER, "percentageOfNodesToScore": 100}],
        "extenders": [
            {
                "urlPrefix": address,
                "filterVerb": "filter",
                "weight": 200,
                "nodeCacheCapable": True,
                "ignorable": True,
                "httpTimeout": "5s",
            }
        ],
    }
    process = control_plane.add_scheduler(SCHEDULER, configuration, token)
    yield asked
    control_plane.remove(process.name)


def test_the_extender_chooses(api, namespace, add_nodes, scheduler):
    names = [f"{namespace}-{number}" for number in range(3)]
    add_nodes(*map(objects.node, names))
    wait_until_seen(api, namespace, SCHEDULER)

    def pod() -> JsonObject:
        return api.get("v1", "Pod", "p", namespace)

    def why_unscheduled() -> str:
        conditions = pod()["status"].get("conditions", ())
        return next((row["message"] for row in conditions if row["status"] == "False"), "")

    created = api.create(objects.pod("p", namespace, schedulerName=SCHEDULER))
    wait_until(lambda: WAITING in why_unscheduled(), "the pod to be refused", state=pod)
    assert "nodes are available" in why_unscheduled()

    # Any change of the pod makes the scheduler try again.
    scheduler.chosen = names[1]
    api.patch(created, {"metadata": {"annotations": {"test.kfp-placement.dev/again": "yes"}}})
    bound = wait_until(lambda: pod()["spec"].get("nodeName"), "the pod to be bound", state=pod)
    assert bound == names[1]
    lease = api.get(f"{COORDINATION}/v1", "Lease", SCHEDULER, namespace)
    assert lease["spec"]["holderIdentity"]

    request = scheduler.requests[-1]
    assert request["Nodes"] is None
    assert set(names) <= set(request["NodeNames"])
    assert request["Pod"]["metadata"]["name"] == "p"


def test_requests_look_like_the_recorded_one(api, namespace, add_nodes, scheduler):
    recorded = json.loads(data_path("labelled", "extender", "filter-taxi-predict.json").read_text())
    name = f"{namespace}-0"
    add_nodes(objects.node(name))
    scheduler.chosen = name
    api.create(objects.pod("p", namespace, schedulerName=SCHEDULER))
    wait_until(lambda: scheduler.requests, "the extender to be asked")
    request = scheduler.requests[0]
    assert request.keys() == recorded.keys()
    assert request["Pod"].keys() == recorded["Pod"].keys()
    assert type(request["NodeNames"]) is type(recorded["NodeNames"])
