"""When a previewed run and its steps start and end by past runs, as its author sees it."""

from dataclasses import dataclass, fields
from operator import attrgetter

from kfp_placement_engine.model.promise import TimeRange
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.planned_step import PlannedStep
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

    # What stands in the parts of a planned step, under the names that notebooks use.
    task = property(attrgetter("spec.task"))
    display_name = property(attrgetter("spec.display_name"))
    kind = property(attrgetter("spec.kind"))
    iteration = property(attrgetter("spec.iteration"))
    assumed = property(attrgetter("spec.assumed"))
    conditional = property(attrgetter("spec.is_conditional"))
    type = property(attrgetter("spec.type"))
    type_guessed = property(attrgetter("spec.type_guessed"))
    location = property(attrgetter("spec.location"))
    image = property(attrgetter("spec.image"))
    labels = property(attrgetter("spec.labels"))
    attempt_limit = property(attrgetter("spec.attempt_limit"))
    depends_on = property(attrgetter("spec.depends_on"))
    cached = property(attrgetter("is_cached"))
    image_pull_seconds = property(attrgetter("phases.image_pull_seconds"))
    transfer_seconds = property(attrgetter("phases.transfer_seconds"))
    duration_seconds = property(attrgetter("phases.duration_seconds"))
    duration_source = property(attrgetter("run_time.source"))
    duration_basis = property(attrgetter("run_time.basis"))
    sized_input = property(attrgetter("run_time.sized_input"))
    node_speed = property(attrgetter("run_time.node_speed"))
    is_guessed = property(attrgetter("run_time.is_guess"))
    reason = property(attrgetter("explanation.sentence"))
    why = property(attrgetter("explanation.reason"))
    alternatives = property(attrgetter("explanation.alternatives"))


def range_of(times: TimeRange | None) -> Range | None:
    """The range as its author sees it."""
    return None if times is None else Range(*times.moments)


def previewed(plan: Plan, step: PlannedStep) -> PreviewedStep:
    """The step of a plan as its author sees it."""
    known = None if plan.promise is None else plan.promise.steps.get(step.name)
    return PreviewedStep(
        **{field.name: getattr(step, field.name) for field in fields(step)},
        starts=None if known is None else range_of(known.starts),
        ends=None if known is None else range_of(known.ends),
        basis=visible(promises.basis(step)),
    )
