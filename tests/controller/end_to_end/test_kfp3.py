"""Runs of KFP 2 and of KFP 3, in one namespace, planned and placed alike."""

from functools import partial

from kfp_placement_engine.contract.custom_resources import read_resource
from kfp_placement_engine.contract.history.pipeline_history import PipelineHistory
from kfp_placement_engine.contract.keys import API_VERSION, DEFAULT_SCHEDULER
from kfp_placement_engine.model.history import PastRun
from tests.controller.end_to_end.placements import nodes_planned_for, wait_until_success_is_shown
from tests.controller.end_to_end.small_pipelines import compiled, package_of, step
from tests.controller.end_to_end.taxi_runs import is_marked, step_of
from tests.controller.end_to_end.teams import Team, team_of
from tests.controlplane.argo.state import LABEL_WORKFLOW
from tests.controlplane.waiting import wait_until


def diamond() -> None:
    """Four steps that say what they need."""
    first = step("first", duration="1s")
    middle = [step(f"middle-{number}", first, cpu="300m") for number in range(2)]
    step("last", *middle)


STEPS = {"first", "middle-0", "middle-1", "last"}


def test_runs_of_both_are_planned_and_placed_in_one_namespace(installation, team, history):
    runs = (
        team.submit(compiled("diamond", diamond)),
        team.submit_package(package_of("diamond", diamond)),
    )
    for run in runs:
        wait_until(partial(team.placement, run), f"the plan of {run}")
        assert set(nodes_planned_for(team, run)) == STEPS
    for run in runs:
        team.wait_for_success(run)
        wait_until_success_is_shown(team, run)
    for run in runs:
        pods = [
            pod
            for pod in team.pods()
            if pod["metadata"]["labels"][LABEL_WORKFLOW] == run and is_marked(pod)
        ]
        assert {step_of(pod) for pod in pods} == STEPS
        assert {pod["spec"]["schedulerName"] for pod in pods} == {DEFAULT_SCHEDULER}
        for pod in pods:
            assert pod["spec"]["nodeName"] in history.planned_for(pod)


def past_runs(team: Team) -> list[PastRun]:
    """What the namespace's histories hold."""
    raws = team.api.list(API_VERSION, "PipelineHistory", team.name)
    return [past for raw in raws for past in read_resource(PipelineHistory, raw).past_runs()]


def test_a_pipeline_that_ran_under_kfp_2_is_known_under_kfp_3(at_work):
    """After an upgrade: the outline is planned with the requests of the run before it."""
    with at_work("history") as running, team_of(running) as team:
        before = team.submit(compiled("diamond", diamond))
        team.wait_for_success(before)
        wait_until(lambda: len(past_runs(team)) == 1, "the first run to be learned")
        run = team.submit_package(package_of("diamond", diamond))
        placement = wait_until(partial(team.placement, run), "the plan of the second run")
        assert placement is not None
        assert placement.spec.basis == "outline"
        team.wait_for_success(run)
        wait_until(lambda: len(past_runs(team)) == 2, "the second run to be learned")
        steps = [{step.identity.step for step in past.steps} for past in past_runs(team)]
        assert steps == [STEPS, STEPS]
        [first, second] = (
            {step.identity.step: step.container for step in past.steps} for past in past_runs(team)
        )
        assert {name: each and each.image for name, each in first.items()} == {
            name: each and each.image for name, each in second.items()
        }
