"""Which runs are planned at once: none is kept waiting by others that get no plan."""

from datetime import timedelta

import pytest

from kfp_placement_controller.planning.first_plans import FirstPlans
from kfp_placement_controller.runs.planner_parameters import PLANS_PER_EVALUATION
from kfp_placement_controller.runs.step_statuses import StepStatus
from kfp_placement_controller.runs.turns import Turns
from tests.controller.planning.builders import START, a_workflow


class ARun:
    """As much of a run as matters here."""

    def __init__(self, number: int) -> None:
        self.observed = a_workflow(f"run-{number}", created_at=START + timedelta(seconds=number))
        self.key = self.observed.key
        self.needs_plan = True
        self.problem = ""
        self.changed = False
        self.steps = 1
        self.statuses: dict[str, StepStatus] = {"first": StepStatus()}

    @property
    def tracked(self) -> "ARun":
        """All that is known of it."""
        return self


class APlanner:
    """Has runs, and refuses some."""

    def __init__(self, *runs: ARun) -> None:
        self.runs = runs

    def active(self):
        """All of them, oldest first."""
        return self.runs

    def refuse(self, runs):
        """There is no plan for these."""
        for run in runs:
            run.problem = "no node at all"


@pytest.fixture
def runs():
    return [ARun(number) for number in range(2 * PLANS_PER_EVALUATION)]


@pytest.fixture
def planner(runs):
    return APlanner(*runs)


@pytest.fixture
def first_plans(planner):
    return FirstPlans(planner, 1.0, lambda _run, _at: False, Turns())


def test_runs_never_tried_go_first_oldest_first(first_plans, planner, runs):
    planner.refuse(runs[:3])
    assert list(first_plans.due(100)) == runs[3 : 3 + PLANS_PER_EVALUATION]
    assert first_plans.awaited() == {run.key for run in runs[3:]}


def test_new_runs_whose_first_pod_can_be_in_time_go_before_those_that_have_begun(first_plans, runs):
    for run in runs[:3]:
        run.statuses["first"] = StepStatus(started_at=START)
    waiting = runs[3:]
    assert list(first_plans.due(100)) == waiting[:PLANS_PER_EVALUATION]
    for run in waiting:
        run.needs_plan = False
    assert list(first_plans.due(100)) == runs[:3]


def test_those_refused_take_turns_and_each_has_one_in_a_second(first_plans, planner, runs):
    planner.refuse(runs)
    assert list(first_plans.due(100)) == runs[:PLANS_PER_EVALUATION]
    assert list(first_plans.due(100.1)) == runs[PLANS_PER_EVALUATION:]
    assert list(first_plans.due(100.2)) == []
    assert not first_plans.awaited()
    assert list(first_plans.due(101)) == runs[:PLANS_PER_EVALUATION]
    assert list(first_plans.due(102)) == runs[PLANS_PER_EVALUATION:]


def test_one_that_could_be_planned_by_now_gets_its_turn(first_plans, planner, runs):
    """Those that never can are older, and as many as are tried at once."""
    planner.refuse(runs)
    late = runs[-1]
    for tenth in range(30):
        if late in list(first_plans.due(100 + tenth / 10)):
            late.needs_plan = False
    assert not late.needs_plan


def test_a_run_with_a_plan_is_left_alone(first_plans, runs):
    for run in runs:
        run.needs_plan = False
    assert list(first_plans.due(100)) == []
    assert not first_plans.awaited()
