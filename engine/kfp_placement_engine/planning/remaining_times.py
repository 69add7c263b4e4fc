"""Run times of what is left of runs, drawn many times: samples that the kernel plays.

What has happened to a run by now counts: a running step takes longer than it has run, and the
steps that have ended tell of what all steps of the run have in common.
"""

from collections.abc import Iterator

import numpy as np

from kfp_placement_engine.history.common_factor import score_of
from kfp_placement_engine.history.levels import SHORT_SECONDS
from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.lowering.activities import needs_pod
from kfp_placement_engine.lowering.work import stored_bytes
from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState, StepProgress
from kfp_placement_engine.model.forecast import OWN_LEVELS, CommonFactor, Distribution
from kfp_placement_engine.model.run_graph import DurationSource, Step, StepKind
from kfp_placement_engine.planning.sampled_times import drawn_times
from kfp_placement_engine.problem.problem import Floats

MOST_TELLING = 10
"""However many steps have ended, they tell of the common factor as this many at most: steps of a
loop or a node are slow together too, and the factor's share is an estimate."""


def remaining_durations(lowered: Lowered, samples: int, random: np.random.Generator) -> Floats:
    """[S, A] seconds on the reference node that activities still take, for the kernel.

    Args:
        lowered: the problem, and the runs with their forecasts; runs without take what it says.
        samples: how many, 1 or more.
        random: where numbers are drawn from.
    """
    durations = np.repeat(lowered.problem.arrays.duration_seconds[None], samples, axis=0)
    for run, active in enumerate(lowered.runs):
        if active.forecast is None:
            continue
        known, common = dict(_distributions(run, lowered)), _common_factor(active, lowered)
        given = _given_times(run, lowered)
        for index, seconds in drawn_times(known, samples, random, common):
            # Drawn for all, so that a run time that is given changes no other.
            if index not in given:
                durations[:, index] = _left_seconds(seconds, index, lowered)
        if active.forecast.driver_seconds is not None:
            for index, left in _driver_times(run, lowered, active.forecast.driver_seconds):
                durations[:, index] = left
    return durations


def _distributions(run: int, lowered: Lowered) -> Iterator[tuple[int, Distribution]]:
    """Of the steps of a run that have not ended, by activity; running ones run on."""
    active, activities = lowered.runs[run], lowered.step_activities[run]
    assert active.forecast is not None
    for name, forecast in active.forecast.steps.items():
        index = activities.get(name)
        if index is None:
            continue
        running = lowered.activities[index].running
        if running is None:
            yield index, forecast.distribution
        else:
            reference_seconds = ran_seconds(running) * _speed(lowered, running)
            yield index, forecast.distribution.after(reference_seconds)


def _given_times(run: int, lowered: Lowered) -> set[int]:
    """Activities of steps whose run time somebody has given, maybe since the forecast."""
    activities = lowered.step_activities[run]
    return {
        activities[step.name]
        for step in lowered.runs[run].graph.steps
        if step.duration_source is DurationSource.GIVEN and step.name in activities
    }


def _driver_times(run: int, lowered: Lowered, seconds: float) -> Iterator[tuple[int, float]]:
    """What drivers of a run, and steps that a driver carries out, still take, by activity."""
    assumptions = lowered.options.assumptions
    for index, activity in enumerate(lowered.activities):
        step, running = activity.step, activity.running
        if activity.run != run or not needs_pod(activity):
            continue
        if step is None or (step.kind is not StepKind.CONTAINER and step.duration_seconds is None):
            since_start = 0.0 if running is None else running.seconds_since_start
            yield index, assumptions.remaining_seconds(seconds, since_start)


def _left_seconds(seconds: Floats, index: int, lowered: Lowered) -> Floats:
    """What a running step still needs, in seconds on its node, as in lowering; else all of it."""
    running = lowered.activities[index].running
    if running is None:
        return seconds
    left = seconds / _speed(lowered, running) - ran_seconds(running)
    return np.asarray(np.maximum(0.0, left))


def _common_factor(active: ActiveRun, lowered: Lowered) -> CommonFactor:
    """What the steps of the run have in common, by those that have ended."""
    assert active.forecast is not None
    scores = _scores(active, lowered)
    return active.forecast.common.given(scores, 1 / (1 + len(scores) / MOST_TELLING))


def _scores(active: ActiveRun, lowered: Lowered) -> list[float]:
    """How the steps that have ended did, beside what was forecast of them."""
    return [
        score
        for step in active.graph.steps
        if (progress := active.progress.get(step.name)) is not None
        and progress.state is ProgressState.DONE
        and (score := _score(step, progress, active, lowered)) is not None
    ]


def _score(step: Step, progress: StepProgress, active: ActiveRun, lowered: Lowered) -> float | None:
    """The score of a step that has ended; None = it tells nothing."""
    assert active.forecast is not None
    known = active.forecast.steps.get(step.name)
    if known is None or known.basis.level not in OWN_LEVELS or progress.ran_seconds is None:
        return None
    moved_bytes = stored_bytes(
        step, lowered.options.assumptions, direct_transfers=active.graph.direct_transfers
    )
    moved_seconds = moved_bytes / _store_rate(lowered, progress)
    seconds = (progress.ran_seconds - moved_seconds) * _speed(lowered, progress)
    if seconds < SHORT_SECONDS:
        return None
    return score_of(known.distribution.probability(seconds))


def ran_seconds(running: StepProgress) -> float:
    """How long a step has run; since its bind where nobody knows more."""
    known = running.ran_seconds
    return running.seconds_since_start if known is None else known


def _speed(lowered: Lowered, progress: StepProgress) -> float:
    """Of the node of a step; 1 where that is not known."""
    node = _node(lowered, progress)
    return 1.0 if node is None else float(lowered.problem.arrays.speed[node])


def _store_rate(lowered: Lowered, progress: StepProgress) -> float:
    """Bytes per second to the object store."""
    node = _node(lowered, progress)
    if node is None:
        return lowered.options.assumptions.store_bytes_per_second
    return float(lowered.problem.arrays.store_rate[node])


def _node(lowered: Lowered, progress: StepProgress) -> int | None:
    names = lowered.problem.node_names
    return names.index(progress.node) if progress.node in names else None
