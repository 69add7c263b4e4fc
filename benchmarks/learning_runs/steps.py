"""Forecasts of every step before its run, beside what the step then took.

Steps shorter than 2 s are learned from and not counted: their times are cut to whole seconds.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random

from benchmarks.learning_runs.cases import Case, seen_text, simple_forecasts
from benchmarks.learning_runs.traces import Trace, TracedPod
from kfp_placement_engine.history import StepTimes
from kfp_placement_engine.model.forecast import Forecast, Level
from kfp_placement_engine.model.history import PastStep, StepIdentity

SHORT_SECONDS = 2.0
RUNS_ELSEWHERE = 20
"""Runs of each other pipeline that are known when a pipeline is seen first."""

HALVES, RUNS_BEFORE = range(3), 3
"""Seeds of the halves of iterations that are known, and the runs in which they were."""


def same_inputs(traces: Sequence[Trace]) -> Iterator[Case]:
    """Yield each run's steps from earlier runs; groups are how often the iteration was seen."""
    for trace in traces:
        times, seen = StepTimes(), defaultdict[StepIdentity, list[float]](list)
        for run in trace.runs:
            for step in run:
                before, forecast = seen[step.identity], _forecast(times, step)
                if forecast is not None:
                    yield _case(step, forecast, seen_text(len(before)), simple_forecasts(before))
            times.observe(run)
            for step in run:
                seen[step.identity].append(step.seconds or 0.0)


def first_sight(traces: Sequence[Trace]) -> Iterator[Case]:
    """Yield the first run of each pipeline, when only others are known; groups are levels."""
    for trace in traces:
        times = StepTimes()
        for other in traces:
            for run in other.runs[:RUNS_ELSEWHERE] if other is not trace else ():
                times.observe(run)
        for step in trace.runs[0]:
            forecast = _forecast(times, step)
            if forecast is not None:
                for group in ("new pipeline", f"same {forecast.basis.level}"):
                    yield _case(step, forecast, group)


def new_iterations(traces: Sequence[Trace]) -> Iterator[Case]:
    """Yield iterations of known steps: a drawn half was in three runs, the others come next."""
    for trace in traces:
        for seed in HALVES:
            names = sorted({_name(pod) for run in trace.pods for pod in run})
            old_names = set(Random(seed).sample(names, len(names) // 2))
            times = StepTimes()
            for run in trace.pods[:RUNS_BEFORE]:
                times.observe([pod.past for pod in run if _name(pod) in old_names])
            for run in trace.pods[RUNS_BEFORE : RUNS_BEFORE + 1]:
                for pod in run:
                    forecast = None if _name(pod) in old_names else _forecast(times, pod.past)
                    if forecast is not None and forecast.basis.level is Level.STEP:
                        yield _case(pod.past, forecast, "new iteration")


def _name(pod: TracedPod) -> tuple[str, str]:
    return pod.step.task, pod.step.iteration_key


def _forecast(times: StepTimes, step: PastStep) -> Forecast | None:
    """Return the forecast of a step, or None without one or for a step too short to count."""
    if (step.seconds or 0.0) < SHORT_SECONDS:
        return None
    return times.predict(step.identity, step.input_bytes)


def _case(
    step: PastStep, forecast: Forecast, group: str, others: dict[str, float] | None = None
) -> Case:
    return Case(step.identity.pipeline, group, step.seconds or 0.0, forecast.times, others or {})
