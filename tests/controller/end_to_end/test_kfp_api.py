"""Runs of KFP 3 beside KFP's API: planned with their package, and never later because of it.

Who may read which run is decided by the API server of the control plane, for the shipped account
with the shipped rights and a token of the shipped audience.
"""

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kfp_placement_engine.contract.custom_resources import PipelinePlacement
from kfp_placement_engine.contract.placement import ConditionType
from tests.controller.end_to_end.small_pipelines import package_of, step
from tests.controller.end_to_end.taxi_runs import executors
from tests.controller.end_to_end.teams import Team, team_of
from tests.controlplane import kfp_api
from tests.controlplane.kfp_api import KfpApi, StoredRun, serving_kfp_api
from tests.controlplane.kubelet.workload import WorkloadSettings
from tests.controlplane.waiting import wait_until
from tests.support.installation import PLANNER, Installation
from tests.support.kfp3_workflow_emitter import emit_kfp3_workflow
from tests.support.placements import planned_nodes

LONGEST_WAIT_SECONDS = 3.0
SLACK_SECONDS = 2.5
"""Time for the watch of Workflows, the plan itself and its write, on a busy machine."""

DRIVER_SECONDS = 3.0
"""Time of a driver, shorter than in a cluster; two come before the first executor."""


def two_steps() -> None:
    step("second", step("first", cpu="600m"), cpu="700m")


PACKAGE = package_of("two-steps", two_steps)


@pytest.fixture(scope="module")
def installation(at_work) -> Iterator[Installation]:
    workload = WorkloadSettings(driver_seconds=DRIVER_SECONDS, step_seconds=0.1, start_seconds=0.0)
    with at_work("gates", "kfp-api", "kfp-api-network", more={"workload": workload}) as running:
        yield running


@pytest.fixture
def api_of_kfp(installation) -> Iterator[KfpApi]:
    """KFP's API without trouble, at the end too; the planner has forgotten earlier trouble."""
    served = installation.kfp_api
    served.trouble = None
    yield served
    served.trouble = None
    installation.restart(PLANNER)


def spec_read(placement: PipelinePlacement | None) -> tuple[str, str, str]:
    condition = None
    if placement is not None and placement.status is not None:
        condition = placement.status.condition(ConditionType.SPEC_READ)
    if condition is None:
        return "", "", ""
    return condition.status, condition.reason, condition.message


def wait_for_reason(team: Team, run: str, reason: str) -> str:
    """Wait for a reason of the condition; returns its message."""
    wait_until(
        lambda: spec_read(team.placement(run))[1] == reason,
        f"SpecRead with reason {reason}",
        state=lambda: spec_read(team.placement(run)),
    )
    return spec_read(team.placement(run))[2]


def seconds_until_planned(team: Team, run: str, began: float) -> float:
    """Time until there is a plan, which is there before the first pod that could wait for it."""
    wait_until(lambda: is_planned(team, run), "a plan")
    waited = time.monotonic() - began
    assert executors(team) == {}
    return waited


def is_planned(team: Team, run: str) -> bool:
    placement = team.placement(run)
    return placement is not None and bool(planned_nodes(placement))


def test_a_run_is_planned_with_its_package(installation, api_of_kfp, team):
    began = time.monotonic()
    run = team.submit_package(PACKAGE, seconds_until_stored=0.5)
    assert seconds_until_planned(team, run, began) < LONGEST_WAIT_SECONDS + SLACK_SECONDS
    wait_for_reason(team, run, "Read")
    assert spec_read(team.placement(run)) == ("True", "Read", "")
    team.wait_for_success(run)
    planned = planned_nodes(team.placement(run))
    placed = {name: pod["spec"]["nodeName"] for name, pod in executors(team).items()}
    assert placed == planned
    requests = api_of_kfp.requests
    assert {request.target.rpartition("/")[0] for request in requests} == {
        "/apis/v2beta1/runs",
        "/apis/v2beta1/experiments",
    }
    assert all(request.headers["authorization"].startswith("Bearer ") for request in requests)
    assert all("kubeflow-userid" not in request.headers for request in requests)
    times = [request.at_seconds for request in requests]
    assert min(after - before for before, after in itertools.pairwise(times)) >= 0.95
    assert installation.metric(PLANNER, "package_answers_total", outcome="Read") == 1


TROUBLES: dict[str, tuple[Any, str]] = {
    "dead": (kfp_api.refusing(503), "Unreachable"),
    "slow": (kfp_api.waiting(20.0), "Unreachable"),
    "dripping": (kfp_api.dripping(20.0), "Unreachable"),
    "no token": (kfp_api.refusing(401), "Forbidden"),
    "no right": (kfp_api.refusing(403), "Forbidden"),
    "large": (kfp_api.large(9), "TooLarge"),
    "large, of no length": (kfp_api.large(9, states_length=False), "TooLarge"),
    "deep": (kfp_api.deep(), "Malformed"),
    "another run": (
        kfp_api.answering_for(StoredRun("another", "other", "other-run", PACKAGE)),
        "Malformed",
    ),
    "unknown": (kfp_api.refusing(404), "NotFound"),
}


@pytest.mark.parametrize(("trouble", "reason"), TROUBLES.values(), ids=TROUBLES)
def test_trouble_with_kfp_s_api_makes_no_plan_and_no_pod_late(
    installation, api_of_kfp, team, trouble, reason
):
    api_of_kfp.trouble = trouble
    began = time.monotonic()
    run = team.submit_package(PACKAGE)
    waited = seconds_until_planned(team, run, began)
    assert waited < LONGEST_WAIT_SECONDS + SLACK_SECONDS
    message = wait_for_reason(team, run, reason)
    assert "other-run" not in message
    team.wait_for_success(run)


def test_an_account_without_the_right_is_told_which_one_it_takes(installation, api_of_kfp, team):
    kind = ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "kfp-placement-plan-kfp-api")
    binding = installation.api.get(*kind)
    installation.api.delete(binding)
    try:
        run = team.submit_package(PACKAGE)
        message = wait_for_reason(team, run, "Forbidden")
        assert "ServiceAccount plan of namespace kfp-placement" in message
        assert "get runs and experiments of pipelines.kubeflow.org" in message
        team.wait_for_success(run)
    finally:
        kept = {key: binding["metadata"][key] for key in ("name", "labels")}
        installation.api.create({**binding, "metadata": kept})


def test_a_redirect_takes_no_token_along(installation, api_of_kfp, team):
    with serving_kfp_api(installation.api) as other:
        api_of_kfp.trouble = kfp_api.redirecting(other.address)
        run = team.submit_package(PACKAGE)
        assert "redirect" in wait_for_reason(team, run, "Unreachable")
        team.wait_for_success(run)
        assert other.requests == []


def test_a_run_shows_nothing_of_the_run_of_another_namespace(installation, api_of_kfp, team):
    """Its Workflow names that run, has its steps and is older than the answer."""
    with team_of(installation) as thief:
        run = team.submit_package(PACKAGE)
        wait_for_reason(team, run, "Read")
        run_id = team.workflow(run)["metadata"]["labels"]["pipeline/runid"]
        stolen = thief.submit(emit_kfp3_workflow(*PACKAGE))
        label = {"metadata": {"labels": {"pipeline/runid": run_id}}}
        installation.api.patch(thief.workflow(stolen), label)
        wait_until(lambda: run_id in spec_read(thief.placement(stolen))[2], "its answer")
        message = wait_for_reason(thief, stolen, "NotFound")
        assert message == f"KFP's API has no run {run_id} in namespace {thief.name}"
        asked = f"/apis/v2beta1/runs/{run_id}?view=FULL"
        wait_until(
            lambda: sum(request.target == asked for request in api_of_kfp.requests) >= 4,
            "the planner to ask again and again",
        )
        assert spec_read(thief.placement(stolen))[1] == "NotFound"
        assert spec_read(team.placement(run))[1] == "Read"
        thief.tidy()
    team.wait_for_success(run)
