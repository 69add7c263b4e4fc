"""Which branches samples of a run take, and what comes from the cache: as in one of the last runs.

One of the last runs is drawn for each sample, so that branches that exclude each other do so in
samples, too, and tasks that come from the cache together stay together.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState
from kfp_placement_engine.model.promise import WEIGHT_OF_OLDER, Course
from kfp_placement_engine.model.run_graph import Step, StepKind
from kfp_placement_engine.problem.problem import Floats

LEAST_COURSES = 3
"""From this many runs on what they left out counts."""

OpenCourses = Mapping[frozenset[int], float]
"""Activities that take no time, and how probable it is that just these do."""


def open_courses(run: int, lowered: Lowered) -> OpenCourses:
    """What may be left out of a run from now on; empty = nothing is known of that.

    The last runs count that are most like what has happened to this one by now.

    Args:
        run: its number.
        lowered: the problem and what it was made from.
    """
    active = lowered.runs[run]
    if active.forecast is None or len(active.forecast.courses) < LEAST_COURSES:
        return {}
    courses = active.forecast.courses
    if not any(each.left_out for each in courses):
        return {}
    ran, not_run = _tasks_that_ran(active)
    unlike = [len(ran & each.left_out) + len(not_run - each.left_out - ran) for each in courses]
    weights: dict[Course, float] = {}
    for age, course in enumerate(reversed(courses)):
        if unlike[len(courses) - 1 - age] == min(unlike):
            weights[course] = weights.get(course, 0.0) + WEIGHT_OF_OLDER**age
    found: dict[frozenset[int], float] = {}
    whole, may_be_left_out = sum(weights.values()), _may_be_left_out(run, lowered)
    for course, weight in weights.items():
        activities = frozenset(_activities(course, may_be_left_out))
        found[activities] = found.get(activities, 0.0) + weight / whole
    return found


def leave_out(durations: Floats, courses: OpenCourses, random: np.random.Generator) -> None:
    """Let activities take no time in samples in which they are left out.

    Args:
        durations: [S, A] seconds of all samples, which are changed.
        courses: of one run.
        random: where numbers are drawn from; not asked where only one course is open.
    """
    choices = list(courses)
    if not choices:
        return
    drawn = np.zeros(len(durations), np.int64)
    if len(choices) > 1:
        drawn = random.choice(len(choices), len(durations), p=list(courses.values()))
    for number, activities in enumerate(choices):
        if activities:
            durations[np.ix_(drawn == number, sorted(activities))] = 0.0


def _tasks_that_ran(active: ActiveRun) -> tuple[set[str], set[str]]:
    """Tasks of which a step runs or has run, and those of which one did not run and never will."""
    ran, not_run = set(), set()
    for step in active.graph.steps:
        progress = active.progress.get(step.name)
        if progress is None or step.kind is not StepKind.CONTAINER:
            continue
        if progress.has_run:
            ran.add(step.task)
        elif progress.state is ProgressState.DONE:
            not_run.add(step.task)
    return ran, not_run


def _may_be_left_out(run: int, lowered: Lowered) -> list[tuple[Step, int, int | None]]:
    """Steps that wait and whose branch is not taken yet, their activities and their drivers."""
    active, activities = lowered.runs[run], lowered.step_activities[run]
    taken = active.branches_taken
    drivers = {
        each.name: index
        for index, each in enumerate(lowered.activities)
        if each.run == run and each.step is None and each.entered_group < 0 and not each.is_join
    }
    return [
        (step, activities[step.name], drivers.get(step.name))
        for step in active.graph.steps
        if step.name in activities
        and step.kind is StepKind.CONTAINER
        and active.state_of(step.name) is ProgressState.WAITING
        and not (step.conditions and step.branch in taken)
    ]


def _activities(course: Course, steps: list[tuple[Step, int, int | None]]) -> Iterator[int]:
    """Those that a course leaves out; the driver of a step finds it in the cache, and so runs."""
    for step, activity, driver in steps:
        if step.task in course.left_out:
            yield activity
            if driver is not None and step.task in course.skipped:
                yield driver
