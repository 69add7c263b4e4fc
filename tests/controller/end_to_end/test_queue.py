"""Whole runs wait without a pod until their queue admits them: everything as shipped, on Argo."""

import pytest

from kfp_placement_engine.readers.argo.keys import INSTANCE_LABEL, NODE_NAME_ANNOTATION
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.queues import (
    are_past_deadline,
    phase,
    released,
    request,
    set_queue,
    status,
    try_again,
    wait_for_workflow,
    wait_until_none_is_held,
)
from tests.controller.end_to_end.small_pipelines import chain, package_of, step
from tests.controller.end_to_end.teams import LASTING_SECONDS, Team, team_of, tidy_team
from tests.controller.hold_cases import is_held
from tests.controlplane import housekeeping
from tests.controlplane.exceptions import ApiError
from tests.controlplane.objects import an_object
from tests.controlplane.waiting import wait_until
from tests.support.installation import FIRST_QUEUE, PLANNER
from tests.support.manifests import a_queue

SHORT = chain("short", 0.1)
LASTING = chain("lasting", LASTING_SECONDS, 0.1)


def two() -> None:
    """One step after another."""
    step("second", step("first"))


PACKAGE = package_of("two", two)


@pytest.fixture(scope="module")
def queueing(at_work):
    """An installation with queues."""
    with at_work("queue") as running:
        yield running


@pytest.fixture
def team(queueing):
    """A namespace whose queue admits one run at a time."""
    for made in tidy_team(queueing):
        set_queue(made, quota={"runs": 1})
        yield made


def held(team: Team) -> str:
    """A run that is held, and says so, behind one that its queue has admitted nobody for."""
    set_queue(team, quota={"runs": 0})
    name = team.submit(SHORT)
    wait_for_workflow(team, name, "Pending")
    return name


def test_runs_go_one_after_the_other(team):
    first = team.submit(LASTING)
    # Of two that were submitted within one second either may be first: times are whole seconds.
    released(team, first)
    second = team.submit(SHORT)
    waiting = wait_until(
        lambda: workflow if phase(workflow := team.workflow(second)) == "Pending" else None,
        "the second to wait",
    )
    assert waiting is not None
    assert waiting["status"] == {"phase": "Pending", "message": "waits in RunQueue default"}
    wait_until(
        lambda: (status(team)["waiting"], status(team)["admitted"]) == (1, 1),
        "the queue to count them",
    )
    team.end_step(first)
    one, other = (team.wait_for_success(name) for name in (first, second))
    assert one["status"]["finishedAt"] <= other["status"]["startedAt"]


def test_a_held_run_has_no_pod_and_has_not_begun(team):
    name = held(team)
    workflow = team.workflow(name)
    assert is_held(workflow)
    assert workflow["status"].keys() == {"phase", "message"}
    assert team.pods() == []
    set_queue(team, quota={})
    ended = team.wait_for_success(name)
    assert ended["status"].get("message") is None


def test_a_run_of_kfp_3_waits_in_the_same_queue_with_an_estimated_need(team):
    set_queue(team, quota={"runs": 0})
    name = team.submit_package(PACKAGE)
    wait_for_workflow(team, name, "Pending")
    need = wait_until(lambda: request(team, name), "what it needs")
    assert "its need is estimated" in str(need)
    assert need["spec"]["demand"]
    assert team.pods() == []
    set_queue(team, quota={})
    team.wait_for_success(name)


def test_a_run_that_is_terminated_while_it_waits_fails_without_a_pod(team):
    name = held(team)
    # As KFP's Terminate does.
    team.api.patch(team.workflow(name), {"spec": {"activeDeadlineSeconds": 0}})
    ended = team.wait_for_end(name)
    assert phase(ended) == "Failed"
    assert team.pods() == []


def test_a_failed_run_that_is_tried_again_waits_again_and_repeats_nothing(queueing, team):
    faults = queueing.options.exit_codes
    faults["*.s2(0).executor(0)"] = 1
    name = team.submit(chain("failing", 0.1, 0.1))
    failed = team.wait_for_end(name)
    assert phase(failed) == "Failed"
    faults.clear()
    before = {pod["metadata"]["uid"] for pod in executors_of(team, "s1")}
    set_queue(team, quota={"runs": 0})
    try_again(queueing, failed)
    assert is_held(team.workflow(name))
    wait_for_workflow(team, name, "Pending")
    set_queue(team, quota={})
    team.wait_for_success(name)
    assert {pod["metadata"]["uid"] for pod in executors_of(team, "s1")} == before


def executors_of(team: Team, step: str) -> list[JsonObject]:
    return [
        pod
        for pod in team.pods()
        if pod["metadata"]["annotations"]
        .get(NODE_NAME_ANNOTATION, "")
        .endswith(f".{step}(0).executor(0)")
    ]


def test_others_may_not_let_a_held_run_begin_but_end_it(team):
    name = held(team)
    rules = [{"apiGroups": ["argoproj.io"], "resources": ["workflows"], "verbs": ["*"]}]
    team.api.create(an_object(f"{housekeeping.RBAC}/v1", "ClusterRole", "author", rules=rules))
    author = housekeeping.new_account(
        team.api, team.name, "author", role="author", role_kind="ClusterRole"
    )
    workflow = team.workflow(name)
    labels = {INSTANCE_LABEL: None}
    with pytest.raises(ApiError, match="this run waits in a queue") as refused:
        author.patch(workflow, {"metadata": {"labels": labels}})
    assert refused.value.status == 422
    author.patch(workflow, {"spec": {"activeDeadlineSeconds": 0}})
    assert phase(team.wait_for_end(name)) == "Failed"


def test_held_runs_begin_when_their_queue_is_deleted(team):
    name = held(team)
    team.api.delete(a_queue(team.name))
    team.wait_for_success(name)


def test_runs_of_a_namespace_without_a_queue_are_left_alone(queueing):
    with team_of(queueing) as other:
        name = other.submit(SHORT)
        assert not is_held(other.workflow(name))
        other.wait_for_success(name)


def test_a_run_that_goes_on_is_never_held(team):
    name = team.submit(LASTING)
    wait_for_workflow(team, name, "Running")
    team.api.patch(team.workflow(name), {"metadata": {"labels": {"x": "y"}}})
    assert not is_held(team.workflow(name))
    team.end_step(name)
    team.wait_for_success(name)


@pytest.fixture
def impatient(queueing):
    """Leases count as stale after five seconds."""
    queueing.set_policy(schedulerStaleAfter="5s")
    yield
    queueing.set_policy(schedulerStaleAfter=None)


@pytest.mark.usefixtures("impatient")
def test_without_a_queue_process_new_runs_are_not_held(queueing, team):
    with queueing.dead(FIRST_QUEUE):
        wait_until_none_is_held(team)
        name = team.submit(SHORT)
        assert not is_held(team.workflow(name))
        team.wait_for_success(name)


@pytest.mark.usefixtures("impatient")
def test_without_a_queue_process_held_runs_begin_after_the_deadline(queueing, team):
    """Nor does one wait longer that was held while its queue stopped being ready."""
    name = held(team)
    set_queue(team, quota={"runs": 0}, holdDeadline="5s")
    with queueing.dead(FIRST_QUEUE):
        wait_until(lambda: "released run" in queueing.release(), "it to be released")
        assert status(team)["ready"] is False
        team.wait_for_end(name)


@pytest.mark.usefixtures("impatient")
def test_a_queue_that_holds_goes_on_to_hold_without_anybody(queueing, team):
    name = held(team)
    set_queue(team, quota={"runs": 0}, holdDeadline="1s", onControllerDown="hold")
    with queueing.dead(FIRST_QUEUE, PLANNER):
        wait_until(lambda: are_past_deadline(queueing, 6.0), "both Leases to be overdue")
        assert "0 runs released" in queueing.release()
        assert is_held(team.workflow(name))
        late = team.submit(SHORT)
        assert is_held(team.workflow(late))


def test_without_a_planner_new_runs_are_not_held(queueing, team):
    with queueing.dead(PLANNER):
        wait_until_none_is_held(team)
        name = team.submit(SHORT)
        assert not is_held(team.workflow(name))
        team.wait_for_end(name)
