"""What `extend` says of dead ones, and which gates it takes off."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kfp_placement_controller.actuators.guard import Guard
from kfp_placement_controller.actuators.policies import findings_patch
from kfp_placement_controller.extender.knowledge import Knowledge, KnownNode
from kfp_placement_controller.kinds import POLICIES
from kfp_placement_controller.observed.liveness import HeldLease, gates_finding
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.custom_resources import PlacementPolicy, read_resource
from kfp_placement_engine.model.cluster import Node
from kfp_placement_kube.change import Change
from kfp_placement_kube.exceptions import UnreachableError
from kfp_placement_kube.kinds import PODS, JsonObject
from tests.controller.extender.cluster import pod_object

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
SCHEDULER, PLANNER = "scheduler-lease", "planner-lease"
GATE = "kfp-placement.dev/plan"


class Server:
    """An API server with one policy and some pods, as far as the guard writes to it."""

    def __init__(self) -> None:
        self.policy: dict[str, Any] = {"metadata": {"name": "default"}}
        self.pods: dict[str, dict[str, Any]] = {}
        self.is_down = False

    def get(self, kind, name, namespace=""):
        """One object."""
        if self.is_down:
            raise UnreachableError("down")
        return self.policy if kind is POLICIES else self.pods.get(name)

    def patch(self, kind, name, namespace, patch, *, subresource=""):
        """Keeps what is written."""
        if kind is PODS:
            self.pods[name]["spec"].update(patch["spec"])
        else:
            assert subresource == "status"
            status = {**self.policy.get("status", {}), **patch["status"]}
            self.policy = {**self.policy, "status": status}


class Scene:
    """A guard, a clock and a server."""

    def __init__(self, **policy: Any) -> None:
        self.server = Server()
        self.server.policy["spec"] = policy
        self.now = START
        self.nodes: dict[str, KnownNode] = {}
        self.guard = Guard(
            self.server,  # type: ignore[arg-type]
            lambda: Knowledge(
                DEFAULT_SOURCES,
                policy=read_resource(PlacementPolicy, self.server.policy),
                nodes=self.nodes,
            ),
            scheduler_lease=SCHEDULER,
            planner_lease=PLANNER,
            clock=lambda: self.now,
            monotonic=lambda: self.now.timestamp(),
        )
        self._leases: dict[str, HeldLease] = {}

    def renew(self, name: str) -> None:
        """A Lease is renewed, by a clock that is hours wrong."""
        new = HeldLease("one", self.now - timedelta(hours=5))
        self.guard.lease_changed(Change(("", name), self._leases.get(name), new))
        self._leases[name] = new

    def pass_seconds(self, seconds: float, *renewed: str) -> None:
        """Time goes by while some Leases are renewed."""
        for _ in range(round(seconds)):
            self.now += timedelta(seconds=1)
            for name in renewed:
                self.renew(name)
            self.guard.tick()

    def add_pod(
        self,
        name: str,
        age_seconds: float,
        gates: tuple[str, ...] = (GATE,),
        deleted: str | None = None,
        spec: JsonObject | None = None,
        **given: Any,
    ) -> None:
        """A gated pod appears."""
        raw = pod_object(name=name, **given)
        created = self.now - timedelta(seconds=age_seconds)
        raw["metadata"] |= {"creationTimestamp": created.isoformat(), "deletionTimestamp": deleted}
        raw["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
        raw["spec"] |= spec or {}
        self.server.pods[name] = raw
        self.guard.pod_changed(Change(("team-a", name), None, DEFAULT_SOURCES.observe_pod(raw)))

    def flags(self) -> tuple[object, object]:
        status = self.server.policy.get("status", {})
        return status.get("schedulerReady"), status.get("gatesReady")

    def reason(self, condition: str) -> str:
        conditions = self.server.policy["status"]["conditions"]
        return next(each["reason"] for each in conditions if each["type"] == condition)

    def gates(self, name: str) -> list[str]:
        return [each["name"] for each in self.server.pods[name]["spec"]["schedulingGates"]]


@pytest.fixture
def scene():
    return Scene()


@pytest.mark.parametrize(
    ("policy", "course"),
    [
        pytest.param(
            {},
            [(3, [SCHEDULER], True), (15, [], True), (1, [], False), (1, [SCHEDULER], True)],
            id="one that renews is alive and one that stops is dead",
        ),
        pytest.param(
            {},
            [(1, [SCHEDULER], None), (10, [], None), (10, [], False)],
            id="a Lease of one long dead is not taken for life",
        ),
        pytest.param(
            {"schedulerStaleAfter": "3s"},
            [(3, [SCHEDULER], True), (4, [], False)],
            id="the policy says how old a Lease may be",
        ),
        pytest.param({}, [(1, ["another"], False)], id="other Leases do not count"),
    ],
)
def test_whether_the_scheduler_is_alive(policy, course):
    scene = Scene(**policy)
    for seconds, renewed, ready in course:
        scene.pass_seconds(seconds, *renewed)
        assert scene.flags() == (ready, False)


def test_only_a_planner_says_that_gates_are_ready(scene):
    scene.pass_seconds(3, SCHEDULER, PLANNER)
    assert scene.flags() == (True, None)
    scene.server.policy["status"]["gatesReady"] = True
    scene.pass_seconds(10, SCHEDULER, PLANNER)
    assert scene.flags() == (True, True)
    scene.pass_seconds(16, SCHEDULER)
    assert scene.flags() == (True, False)


def test_a_dead_planner_is_told_also_where_gates_are_not_installed(scene):
    not_installed = gates_finding(leads=True, installed=False)
    status_patch = findings_patch(scene.server.policy, [not_installed], START)
    assert status_patch is not None
    scene.server.policy["status"] = status_patch["status"]
    scene.pass_seconds(3, SCHEDULER, PLANNER)
    assert scene.reason("GatesReady") == "NotInstalled"
    scene.pass_seconds(16, SCHEDULER)
    assert scene.reason("GatesReady") == "NoPlanner"


def test_overdue_gates_come_off_and_others_stay():
    scene = Scene(gateDeadline="60s")
    scene.add_pod("old", 59.5, ("example.com/other", GATE))
    scene.add_pod("young", 10)
    scene.add_pod("going", 99, deleted="2026-11-21T10:00:00Z")
    scene.pass_seconds(1)
    assert scene.gates("going") == [GATE]
    assert scene.gates("old") == ["example.com/other"]
    assert scene.gates("young") == [GATE]
    scene.pass_seconds(49)
    assert scene.gates("young") == []


def test_a_pod_that_argo_fails_soon_loses_its_gate_at_half_of_its_limit():
    scene = Scene(gateDeadline="60s")
    for name, template in (("hurried", {"pendingTimeout": "20s"}), ("calm", {"timeout": "1h"})):
        variable = {"name": "ARGO_TEMPLATE", "value": json.dumps(template)}
        scene.add_pod(name, 8, spec={"initContainers": [{"name": "init", "env": [variable]}]})
    scene.pass_seconds(1)
    assert scene.gates("hurried") == [GATE]
    scene.pass_seconds(1)
    assert (scene.gates("hurried"), scene.gates("calm")) == ([], [GATE])


@pytest.mark.parametrize(
    ("limit", "hosts"), [("20ms", ["h2", "h1"]), ("1ms", ["no-node-within-1ms"])]
)
def test_a_hard_limit_holds_past_the_deadline(scene, limit, hosts):
    trips = {"n1": 12.0, "n2": 3.0, "n3": 90.0}
    scene.nodes = {
        name: KnownNode(
            Node(name, {}, labels={"kubernetes.io/hostname": f"h{name[1]}"}), {"home-edge": trip}
        )
        for name, trip in trips.items()
    }
    hints = f'{{"v": 1, "maxLatency": "{limit}"}}'
    scene.add_pod("limited", 100, labels={"OurLocation": "HOME-EDGE"}, hints=hints)
    scene.add_pod("free", 100, labels={"OurLocation": "HOME-EDGE"})
    scene.guard.tick()
    assert scene.gates("limited") == scene.gates("free") == []
    assert "affinity" not in scene.server.pods["free"]["spec"]
    affinity = scene.server.pods["limited"]["spec"]["affinity"]["nodeAffinity"]
    (required,) = affinity.values()
    (term,) = required["nodeSelectorTerms"]
    assert [each["values"] for each in term["matchExpressions"]] == [hosts]


def test_a_pod_whose_gate_is_off_is_forgotten(scene):
    scene.add_pod("pod", 100)
    scene.add_pod("pod", 100, ())
    assert scene.guard.overdue(scene.now) == []
    scene.add_pod("gone", 100)
    scene.guard.pod_changed(Change(("team-a", "gone"), None, None))
    assert scene.guard.overdue(scene.now) == []


def test_what_does_not_work_is_tried_again(scene, caplog):
    scene.add_pod("pod", 100)
    scene.server.is_down = True
    scene.pass_seconds(2)
    assert scene.gates("pod") == [GATE]
    assert "down" in caplog.text
    scene.server.is_down = False
    scene.pass_seconds(1)
    assert scene.gates("pod") == []
    assert scene.flags() == (False, False)


@pytest.mark.parametrize("name", [SCHEDULER, PLANNER])
def test_a_lease_that_is_given_back_or_deleted_is_nobody_s(scene, name):
    scene.pass_seconds(3, SCHEDULER, PLANNER)
    scene.guard.lease_changed(Change(("", name), None, None))
    scene.guard.tick()
    assert scene.flags()[0 if name == SCHEDULER else 1] is False
    assert scene.guard.findings() == []
