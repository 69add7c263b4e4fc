"""What tenants write of pods, runs, images and histories is believed only as far as it can be."""

import base64
import gzip
import json
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from kfp_placement_controller.histories.runs_to_store import WRITE_PAUSE_SECONDS
from kfp_placement_engine.contract.keys import API_VERSION, SPEED_LABEL
from kfp_placement_engine.units.quantities import parse_cpu
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.queues import set_queue, wait_status
from tests.controller.end_to_end.queues import status as queue_status
from tests.controller.end_to_end.small_pipelines import chain, compiled, step
from tests.controller.end_to_end.teams import LASTING_SECONDS, Team, team_of
from tests.controller.hold_cases import is_held
from tests.controlplane import housekeeping, objects
from tests.controlplane.api import Api
from tests.controlplane.argo.pods import owner_reference
from tests.controlplane.argo.state import ANNOTATION_NODE_ID, ANNOTATION_NODE_NAME
from tests.controlplane.exceptions import ApiError
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support.attacks import run_of_steps, tenant_account
from tests.support.installation import PLANNER, Installation, InstallationOptions
from tests.support.process_usage import cpu_seconds

FAST, SLOW = "fast", "slow"
"""The node that plans prefer, of 64 CPU, and the other, of 12."""

POLICY = {"engine": {"budget": "300ms"}, "defaults": {"driver": "100ms"}}
LABEL = "workflows.argoproj.io/workflow"
LONG = '{"duration": "10m"}'


@dataclass
class Neighbours:
    """A tenant that attacks, and a team that suffers from it or not.

    Attributes:
        installation: the installation that both share.
        tenant, team: their namespaces.
        account: the API server as the tenant sees it.
    """

    installation: Installation
    tenant: Team
    team: Team
    account: Api

    def forge(self, run: str, pods: int = 3, node: str = "", **metadata: Any) -> None:
        """Create bound pods of the tenant that take 60 of 64 CPU, and say that they are a run's."""
        workflow = self.tenant.workflow(run)
        for number in range(pods):
            cpu = {"cpu": str(60 // pods)}
            pod = objects.pod(f"forged-{number}", self.tenant.name, cpu, nodeName=FAST)
            pod["metadata"]["labels"] = {LABEL: run}
            pod["metadata"]["annotations"] = {
                "kfp-placement.dev/hints": LONG,
                ANNOTATION_NODE_ID: pod["metadata"]["name"],
                ANNOTATION_NODE_NAME: f"{run}{node}" if node else "",
            }
            pod["metadata"]["ownerReferences"] = [owner_reference(workflow)]
            pod["metadata"] |= metadata
            self.account.create(pod)

    def planned_node(self, workflow: Mapping[str, Any]) -> str:
        """Where the only step of a new run of the team is planned first."""
        run = self.team.submit(workflow)

        def node() -> str | None:
            placement = self.team.placement(run)
            if placement is None:
                return None
            rows = placement.planned_rows().rows
            return next((placement.node_name(row.node) for row in rows if row), None)

        planned = wait_until(node, f"a plan of {run}")
        self.team.wait_for_success(run)
        return str(planned)

    def wait_until_seen(self) -> None:
        """Wait until runs are planned for the node that is left, as soon as pods are seen.

        If pods hid their room, that would never be.
        """
        wait_until(lambda: self.planned_node(wide()) == SLOW, "the room to be seen")

    def seconds_to_plan(self) -> float:
        """How long a new run of the team waits for its plan."""
        begun = time.monotonic()
        self.planned_node(chain("small", 0.1))
        return time.monotonic() - begun


@pytest.fixture(scope="module")
def installation(control_plane_programs, argo_program) -> Iterator[Installation]:
    """Two nodes, gates, queues and histories."""
    features = ("gates", "queue", "history")
    options = InstallationOptions(features=features, policy=POLICY, argo=argo_program)
    nodes = [
        objects.node(FAST, {"cpu": "64", "memory": "256Gi"}, {SPEED_LABEL: "2"}),
        objects.node(SLOW, {"cpu": "12"}, {SPEED_LABEL: "1"}),
    ]
    with ControlPlane(PlaneOptions(simulate_pods=False)) as plane:
        housekeeping.add_nodes(plane.api, *nodes)
        with Installation(plane, options) as running:
            yield running


@pytest.fixture
def neighbours(installation) -> Iterator[Neighbours]:
    with team_of(installation) as tenant, team_of(installation) as team:
        account = tenant_account(tenant.api, tenant.name)
        yield Neighbours(installation, tenant, team, account)
        tenant.tidy()
        team.tidy()


def wide(name: str = "wide", count: int = 1) -> JsonObject:
    """A run of steps of 8 CPU, side by side."""

    def body() -> None:
        for number in range(count):
            step(f"s{number}", cpu="8", duration="500ms")

    return compiled(name, body)


def running_step(team: Team) -> bool:
    """Whether a pod of a team runs."""
    return any(each.get("status", {}).get("phase") == "Running" for each in team.pods())


def long_run(neighbours: Neighbours) -> str:
    """A run of the tenant with a plan, whose step takes longer than any test."""
    run = neighbours.tenant.submit(chain("long", LASTING_SECONDS))
    wait_until(lambda: neighbours.tenant.placement(run), "a plan of the tenant")
    return run


FORGERIES: dict[str, JsonObject] = {
    "a label": {"ownerReferences": []},
    "an owner that does not control": {"node": ".root.s1.executor", "ownerReferences": None},
    "no step": {},
    "an unknown step": {"node": ".root.s7.executor"},
    "a small step": {"node": ".root.s1.executor"},
    "a driver": {"node": ".root.s1-driver"},
    "a driver of the run": {"node": ".root-driver"},
    "other attempts": {"node": "(0).root(0).s1(0).executor(7)"},
}


@pytest.mark.parametrize("how", FORGERIES)
def test_pods_that_claim_to_be_of_a_run_hide_no_room(neighbours, how):
    """With the room in sight, the step of 8 CPU can only be planned on the other node."""
    run, forgery = long_run(neighbours), dict(FORGERIES[how])
    if forgery.get("ownerReferences", ()) is None:
        reference = owner_reference(neighbours.tenant.workflow(run))
        forgery["ownerReferences"] = [{**reference, "controller": False}]
    # Pods of the attack before are forgotten.
    wait_until(lambda: neighbours.planned_node(wide()) == FAST, "the room to be free")
    neighbours.forge(run, **forgery)
    neighbours.wait_until_seen()
    assert neighbours.tenant.workflow(run)["status"]["phase"] == "Running"


def test_amounts_that_nobody_has_hide_no_room(neighbours):
    """A limit beyond int64 is valid, and says nothing of what is requested."""
    pod = objects.pod("odd", neighbours.tenant.name, {"cpu": "60"}, nodeName=FAST)
    pod["metadata"]["annotations"] = {"kfp-placement.dev/hints": LONG}
    resources = pod["spec"]["containers"][0]["resources"]
    resources["requests"] |= {"memory": "1Mi"}
    resources["limits"] = {"memory": "1e30"}
    neighbours.account.create(pod)
    neighbours.wait_until_seen()


def test_pods_of_a_small_run_take_room_from_the_queue(neighbours):
    """An admitted run of half a CPU hides 60 of 76 CPU; the next run needs 24."""
    tenant, team = neighbours.tenant, neighbours.team
    quota = {"resources": [{"name": "cpu", "amount": "100"}]}
    for each in (tenant, team):
        set_queue(each, quota=quota, overcommit=1)
    small = long_run(neighbours)
    wait_until(lambda: running_step(tenant), "its step to run")
    neighbours.forge(small)

    def used_cpu_milli() -> int:
        return sum(parse_cpu(each["amount"]) for each in queue_status(tenant).get("used", ()))

    wait_until(lambda: used_cpu_milli() >= 60_000, "the queue to see the pods")
    run = team.submit(wide(count=3))
    wait_until(
        lambda: "of the cluster" in wait_status(team, run).get("message", ""),
        "it to wait",
        state=lambda: (wait_status(team, run), tenant.pods()),
    )
    assert is_held(team.workflow(run))
    tenant.tidy()
    team.wait_for_success(run)


def test_sizes_of_images_are_not_believed_of_other_namespaces(neighbours):
    """Both runs are in one search; at 50 MB/s, an exbibyte takes 700 years."""

    def body() -> None:
        first = step("s1", duration="20s")
        step("s2", first, duration="1s", image_size="1Ei")

    with neighbours.installation.paused(PLANNER):
        neighbours.tenant.submit(compiled("large", body))
        run = neighbours.team.submit(chain("usual", 20.0, 1.0))

    def makespan_seconds() -> float:
        placement = neighbours.team.placement(run)
        return 0.0 if placement is None else placement.spec.makespan_seconds or 0.0

    most = wait_until(makespan_seconds, "a plan")
    for _ in range(16):
        time.sleep(0.5)
        most = max(most, makespan_seconds())
    assert most < 100


def statuses() -> Iterator[JsonObject]:
    """Statuses of Workflows that their owners may write."""
    node = {"name": "NAME.s0", "displayName": "s0", "type": "Pod", "phase": "Running"}
    yield {
        "startedAt": "9999-12-31T23:59:59Z",
        "nodes": {"a": {**node, "startedAt": "0001-01-01T00:00:00Z"}},
    }
    yield {"finishedAt": "9999-12-31T23:59:59Z", "startedAt": "9999-12-31T23:59:59Z"}
    yield {
        "nodes": {
            "a": {**node, "startedAt": "9999-12-31T23:59:59Z", "finishedAt": "1970-01-01T00:00:00Z"}
        }
    }
    cycle = {
        "a": {**node, "children": ["b"]},
        "b": {**node, "name": "NAME", "children": ["a", "b"]},
    }
    yield {"nodes": cycle}
    wide = {"name": "NAME.s0(1000000000:{})", "type": "StepGroup", "phase": "Running"}
    yield {"nodes": {str(n): {**wide, "name": f"NAME.s0({10**9 + n}:x)"} for n in range(50)}}
    bomb = gzip.compress(b'{"a":' + b"[" * 10 + b"0," * 20_000_000)
    yield {"compressedNodes": base64.b64encode(bomb).decode()}
    yield {"compressedNodes": "x" * 1000, "offloadNodeStatusVersion": "v1"}
    yield {
        "nodes": {
            "a": {
                **node,
                "phase": "Sleeping",
                "outputs": {"parameters": [{"name": "x", "value": "9" * 9999}]},
            }
        }
    }


def test_statuses_that_owners_write_stop_nobody(neighbours):
    """And the planner works for less than a second on each of them."""
    tenant, planner = neighbours.tenant, neighbours.installation.processes[PLANNER].pid
    for number, status in enumerate(statuses()):
        name = f"odd-{number}"
        workflow = run_of_steps(3, name, tenant.name)
        # Argo is not asked about what it has not begun.
        workflow["metadata"]["labels"] = {"workflows.argoproj.io/controller-instanceid": "nobody"}
        status = json.loads(json.dumps({"phase": "Running", **status}).replace("NAME", name))
        neighbours.account.create({**workflow, "status": status})
    before = cpu_seconds(planner)
    assert neighbours.seconds_to_plan() < 30
    time.sleep(3)
    assert cpu_seconds(planner) - before < 8
    assert neighbours.installation.processes[PLANNER].pid == planner


def test_histories_that_finalizers_keep_are_not_more_than_allowed(neighbours):
    """Every run of a new pipeline would make one, and remove another that stays."""
    tenant = neighbours.tenant
    for number in range(200):
        history = objects.an_object(API_VERSION, "PipelineHistory", f"old-{number}", tenant.name)
        history = tenant.api.create({**history, "spec": {"pipeline": f"old-{number}"}})
        neighbours.account.patch(history, {"metadata": {"finalizers": ["example.com/kept"]}})
    for number in range(3):
        tenant.wait_for_success(tenant.submit(chain(f"new{number}", 0.1)))

    stored: list[JsonObject] = []

    def is_settled() -> bool:
        before = histories()
        time.sleep(5)
        return before == histories()

    def histories() -> set[str]:
        nonlocal stored
        stored = tenant.api.list(API_VERSION, "PipelineHistory", tenant.name)
        assert len(stored) <= 201
        assert sum("deletionTimestamp" in each["metadata"] for each in stored) <= 2
        return {each["metadata"]["resourceVersion"] for each in stored}

    try:
        wait_until(lambda: len(histories()) == 201, "the first of them to be stored")
        wait_until(is_settled, "nothing more to be written")
    finally:
        for each in stored:
            tenant.api.patch(each, {"metadata": {"finalizers": None}})


def refused(account: Api, method: str, path: str, body: JsonObject, **how: Any) -> None:
    """The account has no right to this."""
    with pytest.raises(ApiError) as error:
        account.request(method, path, body, **how)
    assert error.value.status == 403, error.value


def test_of_histories_people_change_only_what_is_forgotten(neighbours):
    """The rest that they may write, metadata, is neither believed nor kept in memory."""
    tenant, account = neighbours.tenant, neighbours.account

    def run() -> JsonObject:
        before = seen(stored())
        tenant.wait_for_success(tenant.submit(chain("known", 0.1)))
        # One object is not written twice within the pause.
        learned_within = WRITE_PAUSE_SECONDS + 60
        wait_until(lambda: seen(stored()) > before, "the planner to learn", learned_within)
        history = stored()
        assert history is not None
        return history

    def stored() -> JsonObject | None:
        return next(iter(tenant.api.list(API_VERSION, "PipelineHistory", tenant.name)), None)

    def seen(history: JsonObject | None) -> int:
        return 0 if history is None else int(history.get("status", {}).get("runsSeen", 0))

    history = run()
    kind = f"/apis/{API_VERSION}/namespaces/{tenant.name}/pipelinehistories"
    own = f"{kind}/{history['metadata']['name']}"
    other = {**history, "metadata": {"name": "other", "namespace": tenant.name}}
    refused(account, "POST", kind, other)
    refused(account, "PUT", own, history)
    refused(account, "DELETE", own, {})
    applied = {"query": {"fieldManager": "me"}, "content_type": "application/apply-patch+yaml"}
    refused(account, "PATCH", f"{kind}/other", other, **applied)
    refused(
        account,
        "PATCH",
        f"{own}/status",
        {"status": None},
        content_type="application/merge-patch+json",
    )
    with pytest.raises(ApiError, match="belongs to one pipeline"):
        account.patch(history, {"spec": {"pipeline": "of-others"}})
    junk = random.Random(1).randbytes(120_000).hex()
    lies = {
        "annotations": {"junk": junk},
        "labels": {"pipelines.kubeflow.org/pipeline": "of-others"},
        "ownerReferences": [owner_reference({"metadata": {"name": "w", "uid": "nobody"}})],
        "finalizers": ["example.com/kept"],
    }
    changed = account.patch(history, {"metadata": lies, "status": {"runsSeen": 0, "runs": []}})
    try:
        assert changed["status"] == history["status"]
        assert seen(run()) == seen(history) + 1
        kept = neighbours.installation.metric(PLANNER, "histories_bytes")
        assert 0 < kept < 20_000
    finally:
        account.patch(history, {"metadata": {"finalizers": None}})
