"""Why nothing can be promised of a run: a step that surely runs was not seen, or fits no node."""

from collections.abc import Collection, Sequence

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState
from kfp_placement_engine.model.forecast import KNOWN_LEVELS
from kfp_placement_engine.model.promise import RunForecast
from kfp_placement_engine.model.run_graph import Branch, DurationSource, Step, StepKind
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.planning.drawn_courses import LEAST_COURSES
from kfp_placement_engine.search.simulation import Schedule

_NAMED = 3


def why_unknown(run: int, lowered: Lowered, schedule: Schedule) -> str:
    """Why nothing can be promised, or ""."""
    active, problem = lowered.runs[run], lowered.problem
    own = problem.arrays.run == run
    if not own.any():
        return "the run has ended"
    if (own & problem.is_step & (problem.unplaceable | ~schedule.finished)).any():
        return "a step fits no node"
    assert active.forecast is not None  # asked by the caller
    open_steps = [step for step in active.graph.steps if _is_open(step, active)]
    taken = active.branches_taken
    never_ran = _never_ran(active.forecast)
    unseen = [
        step
        for step in open_steps
        if _surely_runs(step, active, taken, never_ran) and not _is_known(step, active.forecast)
    ]
    if open_steps and not any(_is_known(step, active.forecast) for step in open_steps):
        # Of the pipeline there may be runs, whose steps came from the cache or had other names.
        return _not_seen(open_steps) if active.forecast.courses else "no run seen"
    if unseen:
        return _not_seen(unseen)
    learned = any(_is_learned(step, active.forecast) for step in open_steps)
    return "" if learned or not open_steps else "all run times are given"


def _not_seen(steps: Sequence[Step]) -> str:
    tasks = list(dict.fromkeys(step.task for step in steps))
    return f"no run seen of {listed(tasks, _NAMED)}"


def _is_open(step: Step, active: ActiveRun) -> bool:
    """Whether the end of the run may depend on how long the step takes."""
    state = active.state_of(step.name)
    if step.kind is not StepKind.CONTAINER or state is ProgressState.DONE:
        return False
    return state is ProgressState.RUNNING or not step.assumed_cached


def _never_ran(forecast: RunForecast) -> frozenset[str]:
    """Tasks that were skipped in each of the last runs: samples are without them, too."""
    if len(forecast.courses) < LEAST_COURSES:
        return frozenset()
    return frozenset.intersection(*(each.skipped for each in forecast.courses))


def _surely_runs(
    step: Step, active: ActiveRun, taken: Collection[Branch], never_ran: Collection[str]
) -> bool:
    """Whether a step that is open runs already, or is in no branch or loop that may be empty."""
    if active.state_of(step.name) is ProgressState.RUNNING:
        return True
    if step.conditions:
        return step.branch in taken
    return step.task not in never_ran


def _is_known(step: Step, forecast: RunForecast) -> bool:
    return step.duration_source is DurationSource.GIVEN or _is_learned(step, forecast)


def _is_learned(step: Step, forecast: RunForecast) -> bool:
    known = forecast.steps.get(step.name)
    return known is not None and known.basis.level in KNOWN_LEVELS
