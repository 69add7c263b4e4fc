"""Why nothing can be promised of a run: a step that surely runs was not seen, or fits no node."""

from collections.abc import Sequence

from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.forecast import KNOWN_LEVELS
from kfp_placement_engine.model.plan import Plan
from kfp_placement_engine.model.run_graph import DurationSource, RunGraph, Step, StepKind
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.planning.learned_times import RunForecast

_NAMED = 3


def why_unknown(plan: Plan, graph: RunGraph, forecast: RunForecast) -> str:
    """Why nothing can be promised, or "".

    Args:
        plan: of the run.
        graph: the run, as it was planned.
        forecast: what past runs tell of it.
    """
    if plan.figures.unplaced:
        return "a step fits no node"
    steps = [step for step in graph.steps if _is_open(step, plan)]
    if steps and not any(_is_known(step, forecast) for step in steps):
        # Of the pipeline there may be runs, whose steps came from the cache or had other names.
        return _not_seen(steps) if forecast.ends.runs else "no run seen"
    begun = {
        step.branch
        for step in graph.steps
        if plan.step(step.name).progress is not ProgressState.WAITING
    }
    unseen = [
        step
        for step in steps
        if not _is_known(step, forecast) and (step.branch in begun or _must_run(step, forecast))
    ]
    if unseen:
        return _not_seen(unseen)
    is_learned = any(_is_learned(step, forecast) for step in steps)
    return "" if is_learned or not steps else "all run times are given"


def _not_seen(steps: Sequence[Step]) -> str:
    tasks = list(dict.fromkeys(step.task for step in steps))
    return f"no run seen of {listed(tasks, _NAMED)}"


def _is_open(step: Step, plan: Plan) -> bool:
    """Whether the end of the run may depend on how long the step takes."""
    progress = plan.step(step.name).progress
    if step.kind is not StepKind.CONTAINER or progress is ProgressState.DONE:
        return False
    return progress is ProgressState.RUNNING or not step.assumed_cached


def _must_run(step: Step, forecast: RunForecast) -> bool:
    """Whether a step is in no branch, and in no loop that had no iteration before."""
    empty = tuple(f"{loop}[*]" for loop in forecast.empty_loops)
    return not step.conditions and not step.task.startswith(empty)


def _is_known(step: Step, forecast: RunForecast) -> bool:
    return step.duration_source is DurationSource.GIVEN or _is_learned(step, forecast)


def _is_learned(step: Step, forecast: RunForecast) -> bool:
    known = forecast.steps.get(step.name)
    return known is not None and known.basis.level in KNOWN_LEVELS
