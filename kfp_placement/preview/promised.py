"""When a previewed run and its steps start and end by past runs, as its author sees it."""

from dataclasses import dataclass

from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.plans.plan import Plan, PlannedStep
from kfp_placement_engine.views.formatting import visible
from kfp_placement_engine.views.plans import promises


@dataclass(frozen=True)
class Range:
    """A range that holds as often as the confidence of the plan says.

    Attributes:
        low: its begin, in seconds: of times since the submission of the run.
        typical: the median.
        high: its end.
    """

    low: float
    typical: float
    high: float


@dataclass(frozen=True)
class PreviewedStep(PlannedStep):
    """A step of a plan, and what past runs tell of it.

    Attributes:
        starts, ends: when it starts and ends by past runs; None = not known.
        basis: what its run time rests on: `9 runs`, `same image, 3 runs`, `hint`, `assumed`.
    """

    starts: Range | None = None
    ends: Range | None = None
    basis: str = ""


def range_of(times: TimeRange | None) -> Range | None:
    """The range as its author sees it."""
    return None if times is None else Range(*times.moments)


def previewed(plan: Plan, step: PlannedStep) -> PreviewedStep:
    """The step of a plan as its author sees it."""
    known = None if plan.promise is None else plan.promise.steps.get(step.name)
    return PreviewedStep(
        **vars(step),
        starts=None if known is None else range_of(known.starts),
        ends=None if known is None else range_of(known.ends),
        basis=visible(promises.basis(step)),
    )
