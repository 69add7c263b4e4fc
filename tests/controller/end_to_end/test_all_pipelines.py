"""Pipelines that nobody has marked, in a namespace labelled kfp-placement.dev/pipelines=all."""

import pytest

from kfp_placement import place
from kfp_placement_engine.contract.keys import (
    ALL_PIPELINES,
    DEFAULT_SCHEDULER,
    KUBERNETES_SCHEDULER,
    PIPELINES_LABEL,
)
from kfp_placement_kube.kinds import JsonObject
from tests.controller.end_to_end.placements import wait_until_success_is_shown
from tests.controller.end_to_end.small_pipelines import (
    compiled_unmarked,
    unmarked_package_of,
    unmarked_step,
)
from tests.controller.end_to_end.taxi_runs import executors, schedulers_at_end
from tests.controller.end_to_end.teams import team_of
from tests.controlplane.kubelet.workload import is_driver
from tests.controlplane.waiting import wait_until

ALL = {PIPELINES_LABEL: ALL_PIPELINES}


def fan_out() -> None:
    """Four steps without marks, and one whose author leaves it to the default scheduler."""
    first = unmarked_step("first")
    for number in range(2):
        unmarked_step(f"middle-{number}", first).set_cpu_request("500m")
    last = unmarked_step("last", first)
    place(unmarked_step("left", last), scheduler=KUBERNETES_SCHEDULER)


def long() -> None:
    unmarked_step("third", unmarked_step("second", unmarked_step("first")))


def short() -> None:
    unmarked_step("only")


RUN = compiled_unmarked("fan-out", fan_out)
PACKAGE = unmarked_package_of("fan-out", fan_out)
STEPS = {"first", "middle-0", "middle-1", "last"}


def is_executor(pod: JsonObject) -> bool:
    return not is_driver(pod)


@pytest.mark.parametrize("kfp", [2, 3])
def test_a_run_that_nobody_has_marked_is_placed_by_plan(installation, history, kfp):
    with team_of(installation, ALL) as team:
        run = team.submit(RUN) if kfp == 2 else team.submit_package(PACKAGE)
        schedulers = schedulers_at_end(team, run, is_executor)
        ours = dict.fromkeys(STEPS, DEFAULT_SCHEDULER)
        assert schedulers == {**ours, "left": KUBERNETES_SCHEDULER}
        for name, pod in executors(team, is_executor).items():
            if name in STEPS:
                assert pod["spec"]["nodeName"] in history.planned_for(pod)
        drivers = [pod for pod in team.pods() if is_driver(pod)]
        assert {pod["spec"]["schedulerName"] for pod in drivers} == {KUBERNETES_SCHEDULER}
        wait_until_success_is_shown(team, run)


def test_in_a_namespace_that_does_not_ask_for_it_the_same_run_is_untouched(installation, history):
    with team_of(installation) as team, team_of(installation, ALL) as other:
        run = team.submit(RUN)
        planned = other.submit(RUN)
        assert set(schedulers_at_end(team, run, is_executor).values()) == {KUBERNETES_SCHEDULER}
        # By then the planner has seen both.
        other.wait_for_success(planned)
        assert other.placement(planned) is not None
        assert history.written(run, team.name) == ()


def test_a_label_that_goes_ends_it_for_new_runs_and_planned_ones_go_on(installation):
    with team_of(installation, ALL) as team:
        run = team.submit(compiled_unmarked("long", long))
        wait_until(lambda: team.placement(run), "its plan")
        wait_until(lambda: "first" in executors(team, is_executor), "its first step")
        team.label(PIPELINES_LABEL, None)

        def is_left_alone() -> bool:
            # Admission and the planner learn of the label somewhat later.
            later = team.submit(compiled_unmarked("later", short))
            team.wait_for_success(later)
            return team.placement(later) is None

        wait_until(is_left_alone, "a run to be left alone")
        team.wait_for_success(run)
        wait_until_success_is_shown(team, run)


def test_gates_hold_such_steps_back_until_it_is_their_turn(gated_installation):
    with team_of(gated_installation, ALL) as team:
        run = team.submit(RUN)
        schedulers = schedulers_at_end(team, run, is_executor)
        assert set(schedulers.values()) == {KUBERNETES_SCHEDULER}
        pods = executors(team, is_executor)
        # A gate comes off with the node that the pod prefers.
        assert {name for name, pod in pods.items() if pod["spec"].get("affinity")} == STEPS
