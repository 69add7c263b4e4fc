"""The other way to place pods: gates come off in the plan's order, the stock scheduler binds."""

import contextlib
import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from kfp_placement.cli import cli
from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.small_pipelines import chain, compiled, step
from tests.controller.end_to_end.taxi_runs import STEPS, executors, is_marked, taxi
from tests.controller.end_to_end.teams import Team
from tests.controlplane.waiting import wait_until
from tests.support.installation import EXTEND, PLANNER, Installation
from tests.support.taxi_cluster import CLOUD, HOME, NITLAB


def test_pods_go_where_they_are_planned_under_the_stock_scheduler(gated_team):
    run = gated_team.submit(taxi())
    gated_team.wait_for_success(run)
    pods = executors(gated_team)
    assert set(pods) == STEPS
    assert {pod["spec"]["schedulerName"] for pod in pods.values()} == {"default-scheduler"}
    # All of them were held back, and given their node when it was their turn.
    assert all("nodeAffinity" in pod["spec"]["affinity"] for pod in pods.values())
    drivers = [pod for pod in gated_team.pods() if not is_marked(pod)]
    assert not any(pod["spec"].get("affinity") for pod in drivers)
    assert pods["train"]["spec"]["nodeName"] == CLOUD
    assert pods["predict"]["spec"]["nodeName"] == HOME


@contextlib.contextmanager
def gates_overdue_after(installation: Installation, deadline: str, **others: str) -> Iterator[None]:
    """For a while gates are overdue sooner; other deadlines may be changed as well."""
    installation.set_policy(gateDeadline=deadline, **others)
    try:
        yield
    finally:
        installation.set_policy(gateDeadline=None, **dict.fromkeys(others))


@pytest.fixture
def short_deadline(gated_installation):
    """Gates come off two seconds after their pods were made."""
    with gates_overdue_after(gated_installation, "2s"):
        yield


@pytest.mark.usefixtures("short_deadline")
def test_explain_says_that_a_gate_came_off_late_and_what_was_full(gated_installation, gated_team):
    """Both are to be near the same users, where there is room for one at a time."""

    def body() -> None:
        for number in (1, 2):
            step(f"p{number}", duration="8s", cpu="1500m", type="predict", location="HOME-EDGE")

    run = gated_team.submit(compiled("near", body))
    both = (explained(gated_team, run, name) for name in ("p1", "p2"))
    (off,) = [each for each in both if each["node"] != HOME]
    assert (off["plannedNode"], off["elsewhere"]) == (
        HOME,
        f"planned on {HOME}, placed on {off['node']}: the deadline of the pod's gate had passed;"
        " not enough cpu free",
    )
    assert gated_installation.metric(PLANNER, "placed_elsewhere_total", ground="overdue")
    others = {each["node"]: each["latencyMs"] for each in off["alternatives"]}
    assert others == {NITLAB: pytest.approx(42.55, abs=0.01), CLOUD: pytest.approx(89.67, abs=0.01)}
    gated_team.wait_for_end(run)


def test_a_pod_that_argo_fails_soon_loses_its_gate_in_time_and_explain_says_whose_limit_it_is(
    gated_team,
):
    """There is room for one near their users; the policy's own deadline is a minute."""

    def body() -> None:
        for number in (1, 2):
            step(f"p{number}", duration="40s", cpu="1500m", type="predict", location="HOME-EDGE")

    workflow = compiled("hurried", body)
    workflow["spec"]["templateDefaults"] = {"pendingTimeout": "20s"}
    run = gated_team.submit(workflow)

    def waits() -> JsonObject | None:
        both = (explained_now(gated_team, run, name) for name in ("p1", "p2"))
        return next((each["waiting"] for each in both if each and each["waiting"]), None)

    waiting = wait_until(waits, "one of them to wait for its turn")
    assert waiting is not None
    assert waiting["for"] == "plan"
    assert waiting["detail"] == "Argo fails it unless it runs within 20s (pendingTimeout)"
    both = [explained(gated_team, run, name) for name in ("p1", "p2")]
    (off,) = [each for each in both if each["node"] != HOME]
    assert "the deadline of the pod's gate had passed" in off["elsewhere"]


@pytest.fixture
def deadline_after_a_look(gated_installation):
    """Gates come off only after the pod has been explained once, on a busy machine too."""
    with gates_overdue_after(gated_installation, "15s"):
        yield


@pytest.mark.usefixtures("deadline_after_a_look")
def test_a_limit_that_no_node_keeps_leaves_a_pod_unscheduled_and_explain_says_why(gated_team):
    def body() -> None:
        step("near", location="HOME-EDGE", max_latency="5ms")

    run = gated_team.submit(compiled("strict", body))

    def waits_for_its_limit() -> JsonObject | None:
        near = explained_now(gated_team, run, "near")
        return near if near and near["waiting"] and near["waiting"]["for"] == "limit" else None

    gated = wait_until(waits_for_its_limit, "the step to wait for a node within its limit")
    assert gated is not None
    assert gated["waiting"].get("untilSeconds")

    def is_unsatisfiable() -> JsonObject | None:
        near = waits_for_its_limit()
        return near if near and not near["waiting"].get("untilSeconds") else None

    near = wait_until(is_unsatisfiable, "the gate to come off")
    assert near is not None
    assert (near["node"], near["plannedNode"]) == (None, None)
    assert "3 nodes: round trip to HOME-EDGE beyond 5 ms" in near["reason"]
    assert "delete it" in near["waiting"]["detail"]
    (pod,) = executors(gated_team).values()
    assert "no-node-within-5ms" in json.dumps(pod["spec"]["affinity"])


@contextlib.contextmanager
def shunned(installation: Installation, node: str) -> Iterator[None]:
    """The scheduler gives a preferred taint more weight than a preferred node."""
    api = installation.api
    taint = {"key": "busy", "effect": "PreferNoSchedule"}
    api.patch(api.get("v1", "Node", node), {"spec": {"taints": [taint]}})
    try:
        yield
    finally:
        api.patch(api.get("v1", "Node", node), {"spec": {"taints": []}})


@pytest.mark.usefixtures("short_deadline")
def test_a_pod_whose_gate_comes_off_late_goes_to_another_node_within_its_limit(
    gated_installation, gated_team
):
    """The nearest has room for one of both; of the others the scheduler likes the far one more."""

    def body() -> None:
        near: JsonObject = {"location": "HOME-EDGE", "max_latency": "50ms"}
        for number in (1, 2):
            step(f"p{number}", duration="8s", cpu="1500m", type="predict", **near)

    with shunned(gated_installation, NITLAB):
        run = gated_team.submit(compiled("within", body))
        both = [explained(gated_team, run, name) for name in ("p1", "p2")]
    assert {each["node"] for each in both} == {HOME, NITLAB}
    gated_team.wait_for_end(run)


@pytest.fixture
def shunned_cloud(gated_installation):
    """The planned node of most steps is one that the scheduler does not like."""
    with shunned(gated_installation, CLOUD):
        yield


@pytest.mark.usefixtures("shunned_cloud")
def test_explain_says_that_the_scheduler_preferred_another_node(gated_team):
    run = gated_team.submit(chain("shunned", 4, cpu="1"))
    off = explained(gated_team, run, "s1")
    assert off["plannedNode"] == CLOUD
    assert off["elsewhere"] == (
        f"planned on {CLOUD}, placed on {off['node']}: it had room; default-scheduler preferred"
        " another by its own rules and scores"
    )
    gated_team.wait_for_end(run)


def test_the_last_resort_brings_a_run_to_its_end_when_all_else_is_dead(
    gated_installation, gated_team
):
    """The shipped job's command with the shipped account, again and again, as the CronJob does."""
    installation = gated_installation
    freed: list[str] = []
    with installation.dead(PLANNER, EXTEND), gates_overdue_after(installation, "2s"):
        # Nobody is left to say that nobody opens gates.
        assert installation.policy()["status"]["gatesReady"] is True
        assert not installation.is_ready(PLANNER)
        assert not installation.is_ready(EXTEND)
        run = gated_team.submit(taxi())

        def ended() -> bool:
            freed.extend(released(installation))
            return bool(gated_team.workflow(run).get("status", {}).get("finishedAt"))

        wait_until(ended, "the job to bring the run to its end", 90, lambda: freed)
    assert gated_team.workflow(run)["status"]["phase"] == "Succeeded"
    # The job's log names them.
    assert len(freed) == len(STEPS)


def test_with_all_of_ours_dead_a_restart_after_the_deadline_frees_every_pod(
    gated_installation, gated_team
):
    """The guarantee: no gate of ours outlives its deadline and one restart of `extend`."""
    installation = gated_installation
    with installation.dead(PLANNER, EXTEND):
        run = gated_team.submit(taxi())
        wait_until(lambda: is_held(gated_team), "a pod to be held")
        # Only now: on a busy machine a planner that lives may renew its Lease later than this.
        with gates_overdue_after(installation, "2s", schedulerStaleAfter="3s"):
            # As its kubelet would; the planner stays dead.
            installation.restart(EXTEND)
            gated_team.wait_for_success(run)
            installation.wait_for_flag("gatesReady", False)
            assert installation.metric(EXTEND, "gates_overdue_total") >= 1
            assert not installation.is_ready(PLANNER)
    installation.wait_for_flag("gatesReady", True)


def is_held(team: Team) -> bool:
    """Whether our gate is all that keeps a pod."""
    gates = [pod["spec"].get("schedulingGates") for pod in team.pods()]
    return [{"name": PLAN_GATE}] in gates


def explained(team: Team, run: str, step_name: str) -> JsonObject:
    """What `explain` says of a step that is bound, and has been told of if it is elsewhere."""

    def settled() -> JsonObject | None:
        explained_step = explained_now(team, run, step_name)
        if explained_step is None or not explained_step["node"]:
            return None
        is_there = explained_step["node"] == explained_step["plannedNode"]
        return explained_step if is_there or explained_step["elsewhere"] else None

    explained_step = wait_until(settled, f"{step_name} to be explained")
    assert explained_step is not None
    return explained_step


def explained_now(team: Team, run: str, step_name: str) -> JsonObject | None:
    """What `explain` says of a step now; None = there is no plan yet."""
    command = ["explain", run, step_name, "-n", team.name, "-o", "json"]
    result = CliRunner().invoke(cli, [*command, "--kubeconfig", str(team.installation.kubeconfig)])
    if result.exit_code:
        return None
    steps: list[JsonObject] = json.loads(result.stdout)["steps"]
    (explained_step,) = steps
    return explained_step


def released(installation: Installation) -> list[str]:
    """The pods that one run of the job has freed."""
    return [line for line in installation.release().splitlines() if line.startswith("freed ")]
