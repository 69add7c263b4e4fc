"""Overheads learned from finished pods."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from kfp_placement_controller.runs.current_plan import CurrentPlan
from kfp_placement_controller.runs.overheads import WINDOW, LearnedOverheads, RunningCentre
from kfp_placement_controller.runs.run_reading import RunReading
from kfp_placement_controller.runs.step_statuses import StepStatus
from kfp_placement_controller.runs.tracked_run import TrackedRun
from kfp_placement_controller.sources.argo.workflows import WorkflowIndex
from kfp_placement_engine.model.run_graph import Group, GroupKind, RunGraph, Step
from kfp_placement_engine.model.step_state import StepState
from kfp_placement_engine.plans.assumptions import Assumptions
from tests.controller.planning.builders import START, a_pod, a_workflow, after

GRAPH = RunGraph(
    "run",
    "argo-workflow",
    (
        Step("a", "a", has_driver=True),
        Step("b", "b", has_driver=True, depends_on=("a",)),
        Step("in.c", "in.c", has_driver=True, group="in", depends_on=("a",)),
    ),
    (Group("", GroupKind.ROOT), Group("in", GroupKind.DAG, depends_on=("a",))),
    workflow="run",
)


def test_a_centre_needs_enough_values_and_forgets_old_ones():
    centre = RunningCentre()
    for value in (1, 1):
        centre.add(value)
    assert centre.value is None
    centre.add(100)
    assert centre.value == 1
    for _ in range(WINDOW // 2 + WINDOW // 4 + 1):
        centre.add(7)
    assert centre.value == 7


def test_whole_seconds_give_a_share_of_a_second():
    centre = RunningCentre()
    for value in (0, 1, 0, 1, 2, 0, 1, 0, 1, 1, 0, 1):
        centre.add(value)
    assert centre.value is not None
    assert 0.5 <= centre.value < 1


def test_absurd_values_are_not_learned_from():
    centre = RunningCentre(least=1)
    centre.add(-1)
    centre.add(10_000)
    assert centre.value is None


def learned(
    created: Mapping[str, float],
    ended: Mapping[str, datetime] | None = None,
    *,
    began_at: datetime | None = START,
    pulls: Mapping[str, float] | None = None,
    held_at: datetime | None = None,
) -> LearnedOverheads:
    """What is learned from pods created so long after Argo began their run."""
    observed, reading = a_workflow(), RunReading(GRAPH, WorkflowIndex(GRAPH), {}, Assumptions())
    state = replace(observed.state, started_at=began_at)
    run = TrackedRun(replace(observed, state=state), reading)
    for step, seconds in created.items():
        path = step.replace(".", "(0).")
        pod = a_pod(
            step,
            created_at=after(seconds),
            argo_node_name=f"run(0).root(0).{path}(0).executor(0)",
            node_name="n1",
            started_at=after(seconds + 1),
            running_at=after(seconds + 4),
        )
        run.observe_pod(None, pod, after(1000))
    run.statuses = {
        name: StepStatus(StepState.SUCCEEDED, ended_at=end) for name, end in (ended or {}).items()
    }
    run.hold.last_at = held_at
    run.put_into_force(CurrentPlan(1, START, {}, (), pull_seconds=pulls or {}))
    overheads = LearnedOverheads(RunningCentre(least=1), RunningCentre(least=1))
    for _ in range(2):
        overheads.learn(run, reading)
    return overheads


def test_the_first_step_has_two_drivers_before_it():
    assert learned({"a": 12}).driver.value == 6


def test_later_steps_have_their_own():
    assert learned({"b": 107}, {"a": after(100)}).driver.value == 7


def test_the_driver_of_a_group_that_begins_then_counts_too():
    assert learned({"in.c": 110}, {"a": after(100)}).driver.value == 5


def test_a_step_whose_dependencies_have_no_end_says_nothing():
    assert learned({"b": 107}).driver.value is None


def test_a_first_step_says_nothing_while_it_is_not_known_when_argo_began():
    assert learned({"a": 12}, began_at=None).driver.value is None


def test_what_waited_for_its_run_to_go_on_says_nothing():
    assert learned({"a": 12}, held_at=after(5)).driver.value is None
    assert learned({"b": 107}, {"a": after(100)}, held_at=after(104)).driver.value is None
    assert learned({"b": 107}, {"a": after(100)}, held_at=after(90)).driver.value == 7


def test_planned_pulls_are_no_overhead():
    assert learned({"a": 12}).start.value == 3
    assert learned({"a": 12}, pulls={"a": 2.5}).start.value == 0.5


def test_both_together_are_what_a_driver_takes():
    assert learned({"a": 12}).driver_seconds == 9
    assert LearnedOverheads().driver_seconds is None
