"""Texts on the starts and ends that a plan promises on the basis of past runs."""

from datetime import datetime

from kfp_placement_engine.model.promise import Promise, confidence_text
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.planned_step import PlannedDriver, PlannedStep
from kfp_placement_engine.views.forecast_texts import (
    basis_text,
    ends_text,
    latest_end_text,
    moment_text,
    range_text,
)
from kfp_placement_engine.views.formatting import duration, finite


def plan_moment(seconds: float | None, begin: datetime | None) -> str:
    """Format a moment of a plan: since the submission, or the time of day to the second.

    Args:
        seconds: seconds since the submission; None = there is no such moment.
        begin: time of day of the submission; None = moments are shown as durations.
    """
    if begin is None or finite(seconds) is None:
        return duration(seconds)
    return moment_text(seconds or 0.0, begin, unit_seconds=1)


def span(plan: Plan, pod: PlannedStep | PlannedDriver) -> str:
    """Format start and end of a step or a driver: `47s to 20m49s`."""
    start, finish = (
        plan_moment(each, plan.run.submitted_at) for each in (pod.start_seconds, pod.finish_seconds)
    )
    return f"{start} to {finish}"


def submission(plan: Plan) -> str:
    """Format date and time of the submission; "" = not known.

    Without the date, readers cannot tell a time of today from the same time of tomorrow.
    """
    at = plan.run.submitted_at
    return "" if at is None else f"submitted {at.astimezone():%Y-%m-%d %H:%M:%S %Z}"


def promised_end(plan: Plan) -> str:
    """Describe the promised end: `By past runs: ends after 12m (11m-14m), by 14m (95%).`.

    The text is "" if no promise was requested, or if the run does not end.
    """
    figure = end(plan)
    if plan.promise is None or figure is None:
        return ""
    text, remark = figure
    if plan.promise.ends is None:
        return f"End: {text} ({remark})."
    ends_then = "ends after" if plan.run.submitted_at is None else "ends"
    return f"By past runs: {ends_then} {text}, {remark}."


def end(plan: Plan) -> tuple[str, str] | None:
    """Return the promised end and the latest one: `12m (11m-14m)`, `by 14m (95%)`; or None."""
    if plan.promise is None or plan.figures.unplaced:
        return None
    if plan.promise.ends is None:
        return "unknown", plan.promise.unknown
    begin = plan.run.submitted_at
    return ends_text(plan.promise, begin), latest_end_text(plan.promise, begin)


def start_and_end(plan: Plan, step: PlannedStep) -> tuple[str, str]:
    """Format the promised start and end of a step, each as `3m (2m-5m)`; "" = not known."""
    promise = plan.promise or Promise()
    times = promise.steps.get(step.name)
    if times is None:
        return "", ""
    begin, confidence = plan.run.submitted_at, promise.confidence
    return range_text(times.starts, begin, confidence), range_text(times.ends, begin, confidence)


def basis(step: PlannedStep) -> str:
    """Describe what a step's run time rests on: `9 runs`, `hint`, `assumed`."""
    return basis_text(str(step.run_time.source), step.run_time.basis, step.run_time.sized_input)


def percent(plan: Plan) -> str:
    """Format the confidence of the ranges: `90%`."""
    return confidence_text((plan.promise or Promise()).confidence)
