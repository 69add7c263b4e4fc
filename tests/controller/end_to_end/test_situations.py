"""What clusters are like: claims, GPUs, taints, nodes that go, no room, others in the same place.

All on three nodes: one large and fast, two small and half as fast.
"""

import contextlib
from collections.abc import Iterator, Mapping

import pytest
from kfp import dsl, kubernetes

from kfp_placement_engine.contract.keys import API_VERSION, HOST_LABEL
from kfp_placement_engine.contract.placement import ConditionReason, ConditionType
from kfp_placement_engine.contract.rows import StateRow
from kfp_placement_engine.model.step_state import WaitingFor
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.placements import nodes_planned_for, state_of
from tests.controller.end_to_end.small_pipelines import chain, compiled, step
from tests.controller.end_to_end.taxi_runs import bound, is_refused
from tests.controller.end_to_end.teams import LASTING_SECONDS, Team
from tests.controlplane import housekeeping, objects
from tests.controlplane.argo.state import LABEL_WORKFLOW
from tests.controlplane.stages import LOCAL_STORAGE_CLASS
from tests.controlplane.waiting import wait_until
from tests.support.installation import EXTEND
from tests.support.taxi_cluster import CLOUD, HOME, NITLAB

GPU = "nvidia.com/gpu"
GPU_NODE = "gpu-node"


def succeeds(team: Team, workflow: JsonObject) -> dict[str, str]:
    """Wait until a run has succeeded; returns the node of every step."""
    run = team.submit(workflow)
    team.wait_for_success(run)
    return bound(team)


@pytest.fixture
def urgent(team):
    """A priority above that of all other pods of users."""
    name, version = f"urgent-{team.name}", "scheduling.k8s.io/v1"
    made = team.api.create(objects.an_object(version, "PriorityClass", name, value=1000))
    yield name
    team.api.delete(made)


def test_our_scheduler_preempts_with_the_rights_of_its_account(team, urgent):
    """As every kube-scheduler does, though admission limits what it writes of pods."""
    room = {"cpu": "1500m"}
    only = {"schedulerName": "kfp-placement", "nodeSelector": {HOST_LABEL: HOME}}
    team.add_pod("low", room, "60s", **only)
    housekeeping.wait_for_node(team.api, "low", team.name)
    team.add_pod("high", room, "100ms", priorityClassName=urgent, **only)
    assert housekeeping.wait_for_node(team.api, "high", team.name) == HOME
    assert team.api.find("v1", "Pod", "low", team.name) is None


# Volumes.


def test_steps_that_share_a_volume_meet_on_one_node(team):
    """The volume is made where its first pod goes, and no node reaches that of another."""
    team.api.create(objects.claim("shared", team.name, LOCAL_STORAGE_CLASS))

    def body() -> None:
        for number in range(4):
            task = step(f"reader-{number}", duration="500ms", cpu="1")
            kubernetes.mount_pvc(task, pvc_name="shared", mount_path="/data")

    step_nodes = succeeds(team, compiled("sharing", body))
    assert len(step_nodes) == 4
    assert len(set(step_nodes.values())) == 1


def test_a_workspace_keeps_its_steps_together(team):
    def body() -> None:
        path = dsl.WORKSPACE_PATH_PLACEHOLDER
        first = step("first", command=("touch", path))
        step("second", first, command=("cat", path))
        step("third", first, command=("cat", path))

    claim = objects.claim_spec(LOCAL_STORAGE_CLASS)
    settings = dsl.KubernetesWorkspaceConfig(pvcSpecPatch=claim)
    config = dsl.PipelineConfig(workspace=dsl.WorkspaceConfig(size="1Gi", kubernetes=settings))
    step_nodes = succeeds(team, compiled("workspace", body, pipeline_config=config))
    assert set(step_nodes) == {"first", "second", "third"}
    assert len(set(step_nodes.values())) == 1


# Nodes that are not for everybody.


@pytest.fixture
def gpu_node(installation):
    """A node with one GPU, four times as fast as any, for those alone that tolerate it."""
    taint = {"key": GPU, "value": "present", "effect": "NoSchedule"}
    labels = {"kfp-placement.dev/speed": "4", "kfp-placement.dev/store-bandwidth": "1T"}
    node = objects.node(GPU_NODE, {GPU: "1"}, labels, taints=[taint])
    housekeeping.add_nodes(installation.api, node)
    yield GPU_NODE
    housekeeping.remove_nodes(installation.api, GPU_NODE)


def test_gpus_are_used_in_turn_and_their_node_by_nobody_else(team, gpu_node):
    def body() -> None:
        step("plain", duration="2s")
        for number in range(2):
            task = step(f"on-gpu-{number}", duration="2s", gpu=1, accelerator_type=GPU)
            kubernetes.add_toleration(task, key=GPU, operator="Exists", effect="NoSchedule")

    run = team.submit(compiled("gpus", body))
    planned = wait_until(lambda: team.placement(run), "the plan")
    starts = {row.name: row.start_seconds for row in planned.planned_rows().rows if row}
    # Times are written in tenths of a second.
    assert abs(starts["on-gpu-0"] - starts["on-gpu-1"]) > 0.45, starts
    team.wait_for_end(run)
    step_nodes = bound(team)
    assert step_nodes["on-gpu-0"] == step_nodes["on-gpu-1"] == gpu_node
    assert step_nodes["plain"] == CLOUD


def test_a_cordoned_node_gets_no_further_step(team):
    run = team.submit(chain("cordoned", LASTING_SECONDS, 0.2, 0.2, cpu="1500m"))
    wait_until(lambda: "s1" in bound(team), "the first step to be placed")
    assert bound(team)["s1"] == CLOUD
    node = team.api.get("v1", "Node", CLOUD)
    team.api.patch(node, {"spec": {"unschedulable": True}})
    try:
        wait_until(
            lambda: nodes_planned_for(team, run)["s2"] in {HOME, NITLAB},
            "a plan without the cordoned node",
        )
        team.end_step(run)
        team.wait_for_success(run)
    finally:
        team.api.patch(node, {"spec": {"unschedulable": None}})
    step_nodes = bound(team)
    assert {step_nodes["s2"], step_nodes["s3"]} <= {HOME, NITLAB}


# No room.


@contextlib.contextmanager
def full(team: Team, taken_cpu: Mapping[str, str]) -> Iterator[None]:
    """Pods of somebody that run for an hour and take so much of every node."""
    blocks = [
        team.add_pod(f"block-{node}", {"cpu": amount}, "1h", nodeName=node)
        for node, amount in taken_cpu.items()
    ]
    try:
        yield
    finally:
        for pod in blocks:
            team.api.delete(pod, grace_seconds=0)


def test_in_a_full_cluster_a_step_waits_and_says_for_what(team):
    # Room for drivers, not for steps.
    with full(team, {CLOUD: "7500m", HOME: "1500m", NITLAB: "1500m"}):
        run = team.submit(chain("waiting", 0.1, cpu="1"))

        def waits() -> StateRow | None:
            row = state_of(team, run, "s1")
            return row if row is not None and row.waiting is not None else None

        row = wait_until(waits, "the step to wait", state=lambda: state_of(team, run, "s1"))
        assert row is not None
        assert row.waiting is not None
        assert row.waiting.what == WaitingFor.NODE
        assert "Insufficient cpu" in row.waiting.detail
        assert not team.workflow(run)["status"].get("finishedAt")
    team.wait_for_success(run)


def test_a_step_too_large_for_any_node_is_told_at_once_and_harms_no_other(team):
    def body() -> None:
        step("small")
        step("huge", cpu="64")

    run = team.submit(compiled("too-large", body))
    other = team.submit(chain("beside", 0.2, 0.2))

    def complaint() -> str:
        return condition(team, run, ConditionType.SCHEDULABLE).get("message", "")

    wait_until(lambda: "huge" in complaint(), "the condition to name the step", state=complaint)
    schedulable = condition(team, run, ConditionType.SCHEDULABLE)
    assert schedulable["status"] == "False"
    assert schedulable["reason"] == ConditionReason.NO_MATCHING_NODE
    team.wait_for_success(other)
    wait_until(
        lambda: (row := state_of(team, run, "small")) and row.state == "succeeded",
        "the other step of the run",
    )
    team.api.delete(team.workflow(run))


def condition(team: Team, run: str, kind: ConditionType) -> dict[str, str]:
    """A condition of a run's placement; empty = it has none of that type."""
    placement = team.api.find(API_VERSION, "PipelinePlacement", run, team.name) or {}
    rows = placement.get("status", {}).get("conditions", ())
    return next((dict(row) for row in rows if row["type"] == kind), {})


def test_rooms_that_two_schedulers_book_at_once_are_counted(installation, team):
    """The stock scheduler fills nodes at the same time; KFP does not try a refused pod again."""
    before = {
        who: installation.metric(EXTEND, "pods_rejected_total", scheduler=who)
        for who in ("ours", "another")
    }
    workflow = chain("competing", 0.3, 0.3, 0.3)
    runs = [team.submit(workflow) for _ in range(4)]
    for number in range(60):
        team.add_pod(f"other-{number}", {"cpu": "900m", "memory": "16Mi"}, "200ms")
    # Whoever placed this one has not seen the others.
    for number in range(2):
        team.add_pod(f"blind-{number}", {"cpu": "2", "memory": "16Mi"}, "1h", nodeName=HOME)
    phases = [team.wait_for_end(run)["status"]["phase"] for run in runs]
    refused = [pod for pod in team.pods() if is_refused(pod)]
    ours = sum(pod["spec"]["schedulerName"] != "default-scheduler" for pod in refused)
    expected = {"ours": ours, "another": len(refused) - ours}
    assert expected["another"] >= 1

    def counted() -> dict[str, float]:
        return {
            who: installation.metric(EXTEND, "pods_rejected_total", scheduler=who) - before[who]
            for who in before
        }

    wait_until(lambda: counted() == expected, f"{expected} to be counted", state=counted)
    refused_runs = {pod["metadata"].get("labels", {}).get(LABEL_WORKFLOW) for pod in refused}
    assert {run: "Failed" if run in refused_runs else "Succeeded" for run in runs} == dict(
        zip(runs, phases, strict=True)
    )
