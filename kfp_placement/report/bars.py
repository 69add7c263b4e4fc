"""One step on the time line: where its bar and label go, and the phases inside it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from kfp_placement.report import summary, values
from kfp_placement.report.axis import Scale, whisker
from kfp_placement.report.drawing import Pen
from kfp_placement.report.labels import fit, short_name, text_width, unlike
from kfp_placement.report.markup import Markup, plain, tag
from kfp_placement.report.timeline import Interval
from kfp_placement_engine.model.plan import PlannedStep
from kfp_placement_engine.model.promise import TimeRange

_LABEL_GAP = 5.0
_LABEL_SIZE = 11.0
_LABEL_PIXELS = 220.0
_WHISKER_GAP = 1.0
BELOW_PIXELS = 14.0
"""Height of a row of labels below a lane."""

_WIDE_ENOUGH = 90.0
"""A run phase of this many pixels holds a shortened label."""


@dataclass(frozen=True)
class Bar:
    """A step's bar: `run` is the start of the run phase, `extent` what it takes of its lane.

    `times` are its start and end, in words. `ends` is when the step ends by past runs, in pixels:
    low, typical and high. `below` is what its label takes below the lane, and `below_row` in
    which of the rows there; None = nothing.
    """

    step: PlannedStep
    times: str
    left: float
    run: float
    right: float
    label: str
    anchor: str
    extent: Interval
    ends: tuple[float, float, float] | None = None
    below: Interval | None = None
    below_row: int = 0


def bar_labels(steps: Iterable[PlannedStep]) -> dict[str, str]:
    """The labels of a drawing's bars, by the step's name."""
    short = {step.name: short_name(step) for step in steps}
    return unlike(short, _LABEL_PIXELS, _LABEL_SIZE, bold=False)


def bar_of(
    step: PlannedStep,
    scale: Scale,
    label: str,
    room: Interval,
    below: bool,
    ends: TimeRange | None = None,
) -> Bar:
    """Place a step's bar; a label too long for it is beside or below it.

    Args:
        step: the step.
        scale: seconds to pixels.
        label: what to write.
        room: what of its lane neither other steps nor labels take.
        below: there is room for labels below the lane.
        ends: when the step ends by past runs; None = not known.
    """
    start, finish = step.start_seconds or 0.0, step.finish_seconds or 0.0
    left = scale.x(start)
    right = max(scale.x(finish), left + 2.0)
    run = max(left, right - scale.pixels(step.duration_seconds)) if finish > start else left
    times = f"{scale.written(step.start_seconds)} to {scale.written(step.finish_seconds)}"
    place = partial(Bar, step, times, left, run, right, ends=_pixels(ends, scale))
    needed = text_width(label, _LABEL_SIZE) + 2 * _LABEL_GAP
    # The label is on the run phase alone: the tints before it are too light for its colour.
    inside = right - run
    if needed <= inside:
        return place(label, "inside", Interval(left, right))
    if inside <= _WIDE_ENOUGH:
        if right + needed <= room.end:
            return place(label, "after", Interval(left, right + needed))
        if left - needed >= room.start:
            return place(label, "before", Interval(left - needed, right))
        if below:
            taken = needed - _LABEL_GAP
            at = max(min(left, scale.right - taken), scale.left)
            return place(label, "below", Interval(left, right), below=Interval(at, at + taken))
    fitting = fit(label, inside - 2 * _LABEL_GAP, _LABEL_SIZE)
    return place(fitting, "inside", Interval(left, right))


def _pixels(times: TimeRange | None, scale: Scale) -> tuple[float, float, float] | None:
    if times is None:
        return None
    low, high = scale.x(times.low_seconds), scale.x(times.high_seconds)
    return low, scale.x(times.typical_seconds), high


def draw_bar(bar: Bar, y: float, height: float, pen: Pen, *, critical: bool) -> Markup:
    """The bar with its phases, hatches, label and tooltip; what the run's end waits for is bold."""
    step = bar.step
    parts = [pen.tooltip(_bar_title(step, bar.times)), *_phases(bar, y, height)]
    for flag, kind in ((step.conditional, "conditional"), (step.assumed, "assumed")):
        if flag:
            parts.append(_rect(bar.left, bar.right, y, height, fill=pen.hatch(kind)))
    outline = "outline critical" if critical else "outline"
    parts.append(_rect(bar.left, bar.right, y, height, class_=outline))
    if bar.ends is not None:
        parts.append(whisker(*bar.ends, y + height + _WHISKER_GAP))
    if bar.label and height >= 11:
        x, anchor = {
            "inside": (bar.run + _LABEL_GAP, "start"),
            "after": (bar.right + _LABEL_GAP, "start"),
            "before": (bar.left - _LABEL_GAP, "end"),
            "below": (bar.below.start if bar.below else bar.left, "start"),
        }[bar.anchor]
        middle = (
            y + height / 2
            if bar.below is None
            else y + height + BELOW_PIXELS * (bar.below_row + 0.5)
        )
        kind = "label-in" if bar.anchor == "inside" else "label-out"
        parts.append(
            tag("text", plain(bar.label), x=x, y=middle + 4, text_anchor=anchor, class_=kind)
        )
    return tag("g", *parts)


def _phases(bar: Bar, y: float, height: float) -> list[Markup]:
    """Pull, wait, transfers and run, in this order; uploads are drawn with the downloads."""
    step = bar.step
    total = (step.finish_seconds or 0.0) - (step.start_seconds or 0.0)
    if total <= 0:
        return [_rect(bar.left, bar.right, y, height, class_="run")]
    per_second = (bar.right - bar.left) / total
    pull = bar.left + step.image_pull_seconds * per_second
    run = max(bar.right - step.duration_seconds * per_second, pull)
    transfer = max(run - step.transfer_seconds * per_second, pull)
    edges = (
        ("pull", bar.left, pull),
        ("wait", pull, transfer),
        ("transfer", transfer, run),
        ("run", run, bar.right),
    )
    return [_rect(a, b, y, height, class_=kind) for kind, a, b in edges if b - a > 0.05]


def _rect(left: float, right: float, y: float, height: float, **more: str) -> Markup:
    return tag("rect", x=left, y=y, width=right - left, height=height, rx=2.0, **more)


def _bar_title(step: PlannedStep, times: str) -> str:
    phases = [f"run {summary.run_time(step)}"]
    if values.noticeable(step.transfer_seconds):
        phases.insert(0, f"transfers {values.duration(step.transfer_seconds)}")
    if values.noticeable(step.image_pull_seconds):
        phases.insert(0, f"image pull {values.duration(step.image_pull_seconds)}")
    remark = summary.remark(step)
    suffix = f" ({remark})" if remark else ""
    return f"{step.name}{suffix}: {times}; {', '.join(phases)}. {step.reason}"
