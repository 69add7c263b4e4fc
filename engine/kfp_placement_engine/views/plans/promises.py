"""What a plan promises of its run by past runs, in words."""

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


def moment(seconds: float | None, begin: datetime | None) -> str:
    """A moment of a plan: since the submission, or the time of day to the second.

    Args:
        seconds: since the submission; None = there is none.
        begin: the time of day of the submission; None = moments are durations.
    """
    if begin is None or finite(seconds) is None:
        return duration(seconds)
    return moment_text(seconds or 0.0, begin, unit_seconds=1)


def span(plan: Plan, pod: PlannedStep | PlannedDriver) -> str:
    """From when to when a step or a driver takes: `47s to 20m49s`."""
    start, finish = (
        moment(each, plan.run.submitted_at) for each in (pod.start_seconds, pod.finish_seconds)
    )
    return f"{start} to {finish}"


def submission(plan: Plan) -> str:
    """From when on times of day count: `submitted 2026-11-26 10:14:00 UTC`; "" = not known.

    A time of day alone may be that of today or of tomorrow.
    """
    at = plan.run.submitted_at
    return "" if at is None else f"submitted {at.astimezone():%Y-%m-%d %H:%M:%S %Z}"


def headline(plan: Plan) -> str:
    """When the run ends: `By past runs: ends after 12m (11m-14m), by 14m (95%).`.

    "" where nobody asked, or the run does not end at all.
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
    """When the run ends as a figure: `12m (11m-14m)`, and `by 14m (95%)`; None as above."""
    if plan.promise is None or plan.figures.unplaced:
        return None
    if plan.promise.ends is None:
        return "unknown", plan.promise.unknown
    begin = plan.run.submitted_at
    return ends_text(plan.promise, begin), latest_end_text(plan.promise, begin)


def start_and_end(plan: Plan, step: PlannedStep) -> tuple[str, str]:
    """When a step starts and ends: `3m (2m-5m)`, likewise; "" where that is not known."""
    promise = plan.promise or Promise()
    known = promise.steps.get(step.name)
    if known is None:
        return "", ""
    begin, confidence = plan.run.submitted_at, promise.confidence
    return range_text(known.starts, begin, confidence), range_text(known.ends, begin, confidence)


def basis(step: PlannedStep) -> str:
    """What the run time rests on: `9 runs`, `hint`, `assumed`."""
    return basis_text(str(step.run_time.source), step.run_time.basis, step.run_time.sized_input)


def percent(plan: Plan) -> str:
    """How often the ranges are to hold: `90%`."""
    return confidence_text((plan.promise or Promise()).confidence)
