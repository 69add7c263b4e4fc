"""What a tenant can do to make runs of other namespaces wait, or stop, or to learn of them.

Two namespaces share one node of 16 CPU without overcommit, so 8 of them are the part of each.
"""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.queues import phase, set_queue, wait_status
from tests.controller.end_to_end.teams import Team, team_of
from tests.controller.hold_cases import is_held
from tests.controlplane import housekeeping, objects
from tests.controlplane.argo import small_workflows
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.argo.pods import owner_reference
from tests.controlplane.argo.small_workflows import dag, task
from tests.controlplane.exceptions import ApiError
from tests.controlplane.kubelet.workload import HINTS
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support.installation import Installation, InstallationOptions
from tests.support.manifests import a_queue

POLICY = {"engine": {"budget": "300ms"}, "defaults": {"driver": "100ms"}}
LONG_SECONDS = 600.0
IDLE_SECONDS = 5.0
STAYS_SECONDS = 3.0
"""Time in which whatever an attack starts or stops would do so; the queue decides within 0.1 s."""

MOST_SECONDS = 30.0
"""Bound on the wait of a run that is entitled to room, on a machine that does much else."""

NAMED = "payroll-of-the-board"


@dataclass
class Neighbours:
    """A tenant that attacks, and a team that suffers from it or not.

    Attributes:
        tenant, team: their namespaces.
    """

    tenant: Team
    team: Team

    def set_queues(self, **spec: Any) -> None:
        for each in (self.tenant, self.team):
            set_queue(each, overcommit=1, idleAfter=f"{IDLE_SECONDS:g}s", **spec)


@pytest.fixture(scope="module")
def queueing(control_plane_programs, argo_program) -> Iterator[Installation]:
    """Queues on one node."""
    options = InstallationOptions(features=("queue",), policy=POLICY, argo=argo_program)
    with ControlPlane(PlaneOptions(simulate_pods=False)) as plane:
        housekeeping.add_nodes(plane.api, objects.node("node", {"cpu": "16", "memory": "64Gi"}))
        with Installation(plane, options) as running:
            yield running


@pytest.fixture
def neighbours(queueing) -> Iterator[Neighbours]:
    queueing.wait_at_work()
    with team_of(queueing) as tenant, team_of(queueing) as team:
        made = Neighbours(tenant, team)
        made.set_queues()
        yield made
        tenant.tidy()
        team.tidy()


def work(cpu: float, seconds: float, priority: int = 0, queue: str = DEFAULT_QUEUE) -> JsonObject:
    """A template whose pod takes so much for so long."""
    made: JsonObject = small_workflows.step("work")
    made["container"]["resources"] = {"requests": {"cpu": str(cpu), "memory": "64Mi"}}
    hints = {"duration": f"{seconds}s", "priority": priority, "queue": queue}
    return {**made, "metadata": {"annotations": {HINTS: json.dumps(hints)}}}


def submit(
    of: Team,
    name: str,
    cpu: float,
    seconds: float = LONG_SECONDS,
    priority: int = 0,
    queue: str = DEFAULT_QUEUE,
    **spec: Any,
) -> str:
    """Create a run of one pod, or whose templates `spec` names."""
    template = work(cpu, seconds, priority, queue)
    templates = [template, *spec.pop("templates", ())]
    made = small_workflows.workflow(*templates, **{"entrypoint": "work", **spec})
    made["metadata"] = {"name": name, "namespace": of.name}
    del made["status"]
    of.api.create(made)
    return name


def submit_steps(
    of: Team, name: str, cpu: float, priority: int = 0, queue: str = DEFAULT_QUEUE
) -> str:
    """Create a run of many short pods, one after the other."""
    tasks = [task("t0"), *(task(f"t{n}", depends=f"t{n - 1}") for n in range(1, 12))]
    main = dag("main", *tasks)
    return submit(of, name, cpu, 1.5, priority, queue, templates=[main], entrypoint="main")


def submit_giant(of: Team, name: str = "giant", padding: int = 0) -> str:
    """Create a run that pauses for long, and would then take the whole node."""
    pause = {"name": "pause", "suspend": {"duration": "600"}}
    if padding:
        pause["inputs"] = {"parameters": [{"name": "none", "value": padding * "x"}]}
    tasks = [task("wait", "pause"), task("take", "work", depends="wait")]
    return submit(of, name, 16, templates=[pause, dag("main", *tasks)], entrypoint="main")


def begins(of: Team, name: str, most_seconds: float = MOST_SECONDS) -> None:
    """Wait until a run begins, at most for so long."""
    wait_until(
        lambda: not is_held(of.workflow(name)),
        f"{name} to begin",
        most_seconds,
        lambda: wait_status(of, name),
    )


def is_stopped(of: Team, name: str) -> bool:
    return bool(of.workflow(name)["spec"].get("suspend"))


def stays(of: Team, *names: str, held: bool = False, seconds: float = STAYS_SECONDS) -> None:
    """Check for some time that runs are held, or go on and are not stopped."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for name in names:
            assert is_held(of.workflow(name)) == held, name
            assert not is_stopped(of, name), name
        time.sleep(0.2)


def test_the_highest_priority_stops_no_run_of_another_namespace(neighbours):
    """Gains nothing: within its part, the team's run goes on."""
    begins(neighbours.team, submit(neighbours.team, "mine", 8))
    for number in range(3):
        submit(neighbours.tenant, f"urgent-{number}", 12, priority=1_000_000)
    wait_until(
        lambda: "cpu" in str(wait_status(neighbours.tenant, "urgent-0").get("missing")),
        "it to be decided about",
    )
    stays(neighbours.tenant, "urgent-0", held=True)
    stays(neighbours.team, "mine", seconds=0.1)


def test_who_is_stopped_is_not_told_for_whom(neighbours):
    """Gains no name of a run or namespace, in any object of its own."""
    for name in ("first", "second"):
        begins(neighbours.tenant, submit_steps(neighbours.tenant, name, 8))
    submit(neighbours.team, NAMED, 4)
    begins(neighbours.team, NAMED)
    wait_until(
        lambda: any(
            "another namespace" in str(wait_status(neighbours.tenant, name))
            for name in ("first", "second")
        ),
        "one to be told why it was stopped",
    )
    api, namespace = neighbours.tenant.api, neighbours.tenant.name
    kinds = (
        (ARGO_VERSION, "Workflow"), (API_VERSION, "RunRequest"), (API_VERSION, "RunQueue"),
        (API_VERSION, "PipelinePlacement"), ("events.k8s.io/v1", "Event"),
    )  # fmt: skip
    seen = json.dumps([api.list(version, kind, namespace) for version, kind in kinds])
    assert "another namespace" in seen
    assert NAMED not in seen
    assert neighbours.team.name not in seen


def test_a_flood_of_runs_keeps_no_other_namespace_waiting(neighbours):
    """Gains less than 30 s: its own runs wait, and its latest stop."""
    names = [submit_steps(neighbours.tenant, f"flood-{n:02}", 2, 1_000_000) for n in range(30)]
    wait_until(
        lambda: sum(not is_held(neighbours.tenant.workflow(name)) for name in names) >= 8,
        "the flood to take the node",
        60,
    )
    begins(neighbours.team, submit(neighbours.team, "small", 2, 0.1))
    begins(neighbours.team, submit(neighbours.team, "large", 6, 0.1))


def test_more_queues_give_a_namespace_no_larger_share(neighbours):
    """Gains nothing: all queues of a namespace share its part, whatever their weights."""
    tenant, team = neighbours.tenant, neighbours.team
    queues = [a_queue(tenant.name, f"q{n}", overcommit=1, weight=1000) for n in range(3)]
    for queue in queues:
        tenant.api.patch(queue, queue, how="apply")
    names = [submit_steps(tenant, f"in-{n}", 4, queue=f"q{n % 3}") for n in range(9)]
    wait_until(
        lambda: sum(not is_held(tenant.workflow(name)) for name in names) >= 4,
        "its runs to take the node",
        60,
    )
    begins(team, submit(team, "mine", 8, 0.1))


def test_room_of_a_suspended_giant_goes_to_others_and_it_gains_nothing_by_waking(neighbours):
    """Gains the bound of `idleAfter`; when it wakes, it runs, and stops nobody."""
    giant = submit_giant(neighbours.tenant)
    begins(neighbours.tenant, giant)
    # While its owner suspends it, nobody else can stop it.
    suspend = {"spec": {"suspend": True}}
    neighbours.tenant.api.patch(neighbours.tenant.workflow(giant), suspend)
    begins(neighbours.team, submit(neighbours.team, "mine", 12), IDLE_SECONDS + MOST_SECONDS)
    wait_until(
        lambda: "no pod for long" in str(wait_status(neighbours.tenant, giant).get("notes")),
        "it to be told",
    )
    submit(neighbours.tenant, "more", 4)
    neighbours.tenant.api.patch(neighbours.tenant.workflow(giant), {"spec": {"suspend": None}})
    stays(neighbours.team, "mine")
    assert not is_held(neighbours.tenant.workflow(giant))
    assert is_held(neighbours.tenant.workflow("more"))


def test_two_runs_that_pause_keep_no_small_run_waiting(neighbours):
    """Gains nothing: what they hold above the tenant's part is given back at once."""
    for name in ("giant-0", "giant-1"):
        submit_giant(neighbours.tenant, name)
    begins(neighbours.tenant, "giant-0")
    begins(neighbours.team, submit(neighbours.team, "small", 0.5, 0.1))
    assert phase(neighbours.team.wait_for_end("small")) == "Succeeded"


def test_no_room_is_kept_for_a_giant_from_runs_within_their_part(neighbours):
    """Gains nothing by waiting for long: room is kept only from queues that take more."""
    neighbours.set_queues(reserveAfter="1m")
    begins(neighbours.team, submit(neighbours.team, "mine", 2))
    submit(neighbours.tenant, "giant", 16)
    stays(neighbours.tenant, "giant", held=True, seconds=62)
    begins(neighbours.team, submit(neighbours.team, "small", 2, 0.1))
    assert is_held(neighbours.tenant.workflow("giant"))


def test_pods_that_wait_keep_no_room_for_a_run_that_has_ended(neighbours):
    """Gains nothing: what is on no node counts against the tenant's own quota alone."""
    ended = submit(neighbours.tenant, "ended", 1, 0.1)
    neighbours.tenant.wait_for_end(ended)
    pod = objects.pod("giant", neighbours.tenant.name, {"cpu": "1000"})
    pod["metadata"]["labels"] = {"workflows.argoproj.io/workflow": ended}
    pod["metadata"]["ownerReferences"] = [owner_reference(neighbours.tenant.workflow(ended))]
    neighbours.tenant.api.create(pod)
    wait_until(lambda: "its pods" in str(wait_status(neighbours.tenant, ended)), "the pod to count")
    begins(neighbours.team, submit(neighbours.team, "mine", 12))


def test_a_run_too_large_to_be_stopped_keeps_no_room_that_it_does_not_use(neighbours):
    """Gains nothing: etcd takes no larger object, so nobody can stop it; its pods count alone."""
    giant = submit_giant(neighbours.tenant, padding=1_350_000)
    begins(neighbours.tenant, giant, 60)
    for number, size in enumerate(2**power for power in range(17, -1, -1)):
        patch = {"metadata": {"annotations": {f"fill-{number:02}": size * "x"}}}
        with contextlib.suppress(ApiError):
            neighbours.tenant.api.patch(neighbours.tenant.workflow(giant), patch)
    begins(neighbours.team, submit(neighbours.team, "mine", 8))
    assert not is_stopped(neighbours.tenant, giant)
