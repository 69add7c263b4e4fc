"""Runs without a mark teach the runs after them, on a real control plane with `features/history`.

Three namespaces, each with a loop pipeline of KFP's that runs again and again, whose times differ
from run to run. In between the planner is restarted.
"""

from collections.abc import Iterable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import yaml

from kfp_placement_engine.contract.custom_resources import PipelinePlacement, read_resource
from kfp_placement_engine.contract.history.pipeline_history import PipelineHistory
from kfp_placement_engine.contract.keys import ALL_PIPELINES, ENABLED_LABEL, PIPELINES_LABEL
from kfp_placement_engine.model.history import PastRun
from tests.controller.end_to_end.many_runs import lose
from tests.controller.end_to_end.teams import Team, team_of
from tests.controlplane import housekeeping, objects
from tests.controlplane.kubelet.drivers import DriverChoices, Json
from tests.controlplane.kubelet.workload import WorkloadSettings
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.times import read_time
from tests.controlplane.waiting import wait_until
from tests.support.data import data_path
from tests.support.installation import PLANNER, Installation, InstallationOptions
from tests.support.workflow_marks import Mark, with_marks

HISTORIES = "kfp-placement.dev/v1alpha1"

RUNS = 5
"""Number of runs in each namespace."""

NAMESPACES = 3
KNOWN_AFTER = 3
"""Number of runs after which promises must hold."""

LEAST_KEPT = 1 / 3
"""Least share of promises that hold; on an idle machine 85% and more do."""

LOOPS = DriverChoices(iteration_counts={"for-loop-2": 5})
IMAGES = {"docker.io/library/python:3.11": "350Mi"}
"""The nodes hold it, so that nothing is pulled: pods here start without."""

RECENTLY_STARTED = timedelta(seconds=10.5)
"""Argo waits this long for a pod that it does not see yet."""

WORKLOAD = WorkloadSettings(driver_seconds=0.05, step_seconds=5.0, spread=0.2, start_seconds=0.0)


@pytest.fixture(scope="module")
def installation(control_plane_programs, argo_program):
    options = InstallationOptions(
        features=("history",),
        policy={"engine": {"budget": "300ms"}},
        workload=WORKLOAD,
        choices=LOOPS,
        argo=argo_program,
    )
    room = {"cpu": "64", "memory": "256Gi", "pods": "500"}
    with ControlPlane(PlaneOptions(simulate_pods=False)) as plane:
        nodes = (objects.node(f"n{each}", room, images=IMAGES) for each in range(2))
        housekeeping.add_nodes(plane.api, *nodes)
        with Installation(plane, options) as running:
            yield running


def a_run(name: str = "pipeline_with_loops") -> Json:
    """Steps in loops, of which one has its width only at run time; nobody has marked them."""
    text = data_path("kfp-2.17.0", "workflows", f"{name}.yaml").read_text("utf-8")
    workflow: Json = yaml.load(text, yaml.CSafeLoader)
    return workflow


def placement(team: Team, run: str) -> PipelinePlacement:
    stored = team.placement(run)
    assert stored is not None
    return stored


def run_to_end(teams: Iterable[Team]) -> dict[Team, str]:
    """One run of each team, to its end."""
    runs = {team: team.submit(a_run()) for team in teams}
    for team, run in runs.items():
        team.wait_for_success(run, 240)
    return runs


def run_and_learn(teams: list[Team]) -> dict[Team, str]:
    """One run of each team, to its end, and until it has been learned from."""
    runs = run_to_end(teams)
    for team, run in runs.items():
        wait_until(partial(is_known, team, run), f"the history of {run}")
    return runs


def histories(team: Team) -> list[PipelineHistory]:
    raws = team.api.list(HISTORIES, "PipelineHistory", team.name)
    return [read_resource(PipelineHistory, each) for each in raws]


def is_known(team: Team, run: str) -> bool:
    """Whether the run has been learned from, and what it took is written."""
    uid = placement(team, run).spec.workflow_uid
    seen = [past.uid for each in histories(team) for past in each.past_runs()]
    status = placement(team, run).status
    return uid in seen and status is not None and status.makespan_seconds is not None


def test_runs_that_nobody_plans_teach_too(installation):
    with team_of(installation) as team, team_of(installation, {ENABLED_LABEL: "false"}) as out:
        teams = (team, out)
        runs = run_to_end(teams)
        wait_until(lambda: histories(team), "what the run has taught")
        # A planner that starts finds it again, and learns nothing twice.
        installation.restart(PLANNER)
        run_to_end([team])

        def seen() -> list[PastRun]:
            return [run for each in histories(team) for run in each.past_runs()]

        wait_until(lambda: len(seen()) > 1, "what the second run has taught")
        first, second = seen()
        assert len(first.steps) == len(second.steps) > 1
        assert all(each.node in ("n0", "n1") and (each.seconds or 0) > 0 for each in first.steps)
        assert team.placement(runs[team]) is None
        assert histories(out) == []


def test_promises_of_runs_without_a_mark_hold(installation):
    kept: list[bool] = []
    with ExitStack() as stack:
        labels = {PIPELINES_LABEL: ALL_PIPELINES}
        teams = [stack.enter_context(team_of(installation, labels)) for _ in range(NAMESPACES)]
        for number in range(RUNS):
            if number == KNOWN_AFTER + 1:
                installation.restart(PLANNER)
            runs = run_and_learn(teams)
            for team, run in runs.items():
                run_placement = placement(team, run)
                assert run_placement.spec.steps, "the run was not planned"
                if number == 0:
                    assert run_placement.spec.first_ends is None
                if number < KNOWN_AFTER:
                    continue
                ends, status = run_placement.spec.first_ends, run_placement.status
                assert ends is not None
                assert status is not None
                took = status.makespan_seconds
                assert took is not None
                print(f"{number} {team.name}: {ends.low} {ends.typical} {ends.high}, took {took}")
                kept.append(ends.low <= took <= ends.high)
        for team in teams:
            (history,) = histories(team)
            assert history.spec.pipeline == "pipeline-with-loops"
            assert len(history.past_runs()) == RUNS
    # Drivers take as long as the cores of this machine are busy with other things; how many of many
    # promises hold is tested where runs are simulated, on a clock of their own.
    assert sum(kept) >= LEAST_KEPT * len(kept)


def runs_for_long(team: Team, run: str) -> bool:
    """Whether a step runs, and Argo takes a pod of it that is gone for lost.

    It makes one again that is gone soon after its start, and that is the same attempt.
    """
    nodes = team.workflow(run).get("status", {}).get("nodes", {})
    return any(
        each["name"].endswith(".executor(0)")
        and each["phase"] == "Running"
        and datetime.now(UTC) - read_time(each["startedAt"]) > RECENTLY_STARTED
        for each in nodes.values()
    )


def test_a_step_whose_pod_was_lost_teaches_what_its_last_attempt_took(installation):
    """Argo tries it again; the pod of its first attempt is gone."""
    with team_of(installation, {PIPELINES_LABEL: ALL_PIPELINES}) as team:
        workflow = with_marks(
            a_run("local_execution_pipeline_with_retry"), lambda _: Mark(duration="30s")
        )
        run = team.submit(workflow)
        wait_until(partial(runs_for_long, team, run), "the step to have run")
        lose(team, "*.executor(0)")
        team.wait_for_success(run, 240)
        wait_until(partial(is_known, team, run), "the history of the run")
        (history,) = histories(team)
        (past,) = history.past_runs()
        (step,) = past.steps
        assert past.seconds is not None
        assert step.seconds is not None
        # Argo says when an attempt began in whole seconds.
        assert 0 < step.seconds < past.seconds - RECENTLY_STARTED.total_seconds() + 2
