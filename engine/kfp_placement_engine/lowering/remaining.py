"""The rest of a run that has begun: the pods that run and those still to come."""

from collections.abc import Sequence

from kfp_placement_engine.lowering.activities import Activity, activities_of
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState, StepProgress

_WAITING = StepProgress()
_DONE = StepProgress(ProgressState.DONE)


def remaining_activities(runs: Sequence[ActiveRun]) -> list[Activity]:
    """Return the activities of all runs that have not ended, run after run.

    Pods that run do not have predecessors any longer.

    Raises:
        PlanningError: a step depends on one that does not exist.
    """
    result: list[Activity] = []
    for number, run in enumerate(runs):
        everything = activities_of(run.graph)
        if number == 0 and not run.progress and not run.group_progress:
            # Nothing of this run has begun, and no run comes before it: all indexes stay.
            result += everything
            continue
        states = _states(run, everything)
        position: dict[int, int] = {}
        for index, state in enumerate(states):
            if state.state is not ProgressState.DONE:
                position[index] = len(result) + len(position)
        for index in position:
            activity, state = everything[index], states[index]
            runs_now = state.state is ProgressState.RUNNING
            before = () if runs_now else activity.predecessors
            result.append(
                activity._replace(
                    predecessors=tuple(position[each] for each in before if each in position),
                    run=number,
                    running=state if runs_now else None,
                )
            )
    return result


def _states(run: ActiveRun, activities: list[Activity]) -> list[StepProgress]:
    """Return the progress of each activity; a driver is done when something it starts has begun."""
    if not run.progress and not run.group_progress:
        return [_WAITING] * len(activities)
    states = [_WAITING] * len(activities)
    entered = _entered_groups(run)
    for index, activity in enumerate(activities):
        if activity.step is not None:
            states[index] = run.progress.get(activity.name, _WAITING)
        elif activity.entered_group >= 0:
            name = run.graph.groups[activity.entered_group].name
            given = run.group_progress.get(name, _WAITING)
            states[index] = _DONE if name in entered else given
        elif not activity.is_join:
            states[index] = _driver_state(run.progress.get(activity.name, _WAITING))
    for index, activity in enumerate(activities):
        if activity.is_join and activity.entered_group < 0:
            done = all(states[at].state is ProgressState.DONE for at in activity.predecessors)
            states[index] = _DONE if done else _WAITING
    return states


def _driver_state(step: StepProgress) -> StepProgress:
    """Return the progress of a step's driver."""
    if step.state is not ProgressState.WAITING:
        return _DONE
    return step.driver or _WAITING


def _entered_groups(run: ActiveRun) -> set[str]:
    """Return the groups inside which something has started, driver pods included."""
    parent = {group.name: group.parent for group in run.graph.groups}
    started = {step.group for step in run.graph.steps if has_begun(run.progress.get(step.name))}
    started |= {
        parent[name]
        for name, progress in run.group_progress.items()
        if name and name in parent and progress.state is not ProgressState.WAITING
    }
    entered: set[str] = set()
    for name in started:
        while name in parent and name not in entered:
            entered.add(name)
            name = parent[name]
    return entered


def has_begun(progress: StepProgress | None) -> bool:
    """Return whether a step or its driver runs or has ended."""
    if progress is None:
        return False
    return (
        progress.state is not ProgressState.WAITING
        or _driver_state(progress).state is not ProgressState.WAITING
    )
