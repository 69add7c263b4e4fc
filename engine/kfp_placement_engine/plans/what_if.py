"""Answers about changes of a run or its cluster, for people and programs."""

import math
from dataclasses import dataclass

from kfp_placement_engine.plans.comparison import Figures
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.what_if_changes import Change

LEAST_GAIN = 0.01
"""Smallest gain, as a share of the run's time, that is worth a change."""


@dataclass(frozen=True)
class ChangedPlan:
    """The plan after changes, beside the present one.

    Attributes:
        changes: changes, all of them together.
        plan: the plan then.
        gain_seconds: gain of the run's end; negative = later, infinite = it ends only then,
            minus infinite = it no longer ends.
        is_anomaly: whether it ends later although no node and no step has got less.
    """

    changes: tuple[Change, ...]
    plan: Plan
    gain_seconds: float
    is_anomaly: bool = False


@dataclass(frozen=True)
class Suggestion:
    """A single change that makes the run shorter.

    Attributes:
        change: single change.
        makespan_seconds: makespan of the run with the change.
        gain_seconds: gain of the run's end; infinite = it ends only with the change.
        nodes_added: number of additional nodes.
        cpu_added_milli: additional CPU in thousandths of a core, on all nodes together.
    """

    change: Change
    makespan_seconds: float
    gain_seconds: float
    nodes_added: int = 0
    cpu_added_milli: int = 0


@dataclass(frozen=True)
class Suggestions:
    """The single changes that make a run shorter.

    Attributes:
        best: changes that gain at least `LEAST_GAIN`, the best first.
        tried: number of changes that were tried.
        present_seconds: makespan of the present plan; infinite = it does not end.
        unchanged_gain_seconds: gain of a longer search without any change; no other gain includes
            it.
    """

    best: tuple[Suggestion, ...]
    tried: int
    present_seconds: float
    unchanged_gain_seconds: float = 0.0


def end_seconds(figures: Figures) -> float:
    """Return the end of the run; infinite if a step of it fits no node."""
    return math.inf if figures.unplaced else figures.makespan_seconds


def gain_seconds(before_seconds: float, after_seconds: float) -> float:
    """Return the gain between two ends of a run; 0 if it ends neither before nor after."""
    return 0.0 if before_seconds == after_seconds else before_seconds - after_seconds
