"""Pipelines that nobody has marked, in a namespace labelled kfp-placement.dev/pipelines=all."""

from collections.abc import Iterator

import pytest

from kfp_placement import place
from kfp_placement_engine.contract.keys import (
    ALL_PIPELINES,
    DEFAULT_SCHEDULER,
    KUBERNETES_SCHEDULER,
    PIPELINES_LABEL,
)
from kfp_placement_engine.readers.argo.keys import KFP_POD_LABEL
from tests.controller.end_to_end.history import History
from tests.controller.end_to_end.placements import phase
from tests.controller.end_to_end.small_pipelines import compiled_unmarked, unmarked_step
from tests.controller.end_to_end.taxi_runs import JsonObject, step_of
from tests.controlplane.kubelet.workload import is_driver
from tests.controlplane.waiting import wait_until
from tests.support.installation import Installation

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

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
STEPS = {"first", "middle-0", "middle-1", "last"}


def executors(installation: Installation, team: str) -> dict[str, JsonObject]:
    """The pods of steps, by step."""
    return {step_of(pod): pod for pod in installation.pods(team) if not is_driver(pod)}


def schedulers(installation: Installation, run: str, team: str) -> dict[str, str]:
    """Wait for a run's end, which must be a good one; returns the scheduler of every step."""
    installation.wait_for_success(run, team, timeout_seconds=90)
    pods = executors(installation, team)
    return {step: pod["spec"]["schedulerName"] for step, pod in pods.items()}


@pytest.fixture
def history(installation: Installation) -> Iterator[History]:
    with History(installation.api, pods=KFP_POD_LABEL) as watched:
        yield watched


def test_a_run_that_nobody_has_marked_is_placed_by_plan(installation, history):
    with installation.namespace(ALL) as team:
        run = installation.submit(RUN, team)
        found = schedulers(installation, run, team)
        ours = dict.fromkeys(STEPS, DEFAULT_SCHEDULER)
        assert found == {**ours, "left": KUBERNETES_SCHEDULER}
        for name, pod in executors(installation, team).items():
            if name in STEPS:
                assert pod["spec"]["nodeName"] in history.planned_for(pod)
        drivers = [pod for pod in installation.pods(team) if is_driver(pod)]
        assert {pod["spec"]["schedulerName"] for pod in drivers} == {KUBERNETES_SCHEDULER}
        wait_until(lambda: phase(installation, run, team) == "Succeeded", "its end to be said")


def test_in_a_namespace_that_does_not_ask_for_it_the_same_run_is_untouched(installation, history):
    with installation.namespace() as team, installation.namespace(ALL) as other:
        run = installation.submit(RUN, team)
        planned = installation.submit(RUN, other)
        assert set(schedulers(installation, run, team).values()) == {KUBERNETES_SCHEDULER}
        # By then the planner has seen both.
        installation.wait_for_success(planned, other)
        assert installation.placement(planned, other) is not None
        assert history.written(run, team) == ()


def test_a_label_that_goes_ends_it_for_new_runs_and_planned_ones_go_on(installation):
    with installation.namespace(ALL) as team:
        run = installation.submit(compiled_unmarked("long", long), team)
        wait_until(lambda: installation.placement(run, team), "its plan")
        wait_until(lambda: "first" in executors(installation, team), "its first step")
        item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}}
        installation.api.patch(item, {"metadata": {"labels": {PIPELINES_LABEL: None}}})

        def is_left_alone() -> bool:
            # Admission and the planner learn of the label somewhat later.
            later = installation.submit(compiled_unmarked("later", short), team)
            installation.wait_for_success(later, team)
            return installation.placement(later, team) is None

        wait_until(is_left_alone, "a run to be left alone", 60)
        installation.wait_for_success(run, team)
        wait_until(lambda: phase(installation, run, team) == "Succeeded", "its end to be said")


def test_gates_hold_such_steps_back_until_it_is_their_turn(gated_installation):
    with gated_installation.namespace(ALL) as team:
        run = gated_installation.submit(RUN, team)
        found = schedulers(gated_installation, run, team)
        assert set(found.values()) == {KUBERNETES_SCHEDULER}
        pods = executors(gated_installation, team)
        # A gate comes off with the node that the pod prefers.
        assert {name for name, pod in pods.items() if pod["spec"].get("affinity")} == STEPS
