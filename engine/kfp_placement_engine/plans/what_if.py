"""What changes would make of a run: the answers, for people and programs."""

import math
from dataclasses import dataclass

from kfp_placement_engine.plans.comparison import Figures
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.what_if_changes import Change


@dataclass(frozen=True)
class ChangedPlan:
    """The plan after changes, beside the present one.

    Attributes:
        changes: what changes, all of them together.
        plan: the plan then.
        gain_seconds: how much earlier the run ends; negative = later, infinite = it ends only then,
            minus infinite = it no longer ends.
        is_anomaly: it ends later although no node and no step has got less.
    """

    changes: tuple[Change, ...]
    plan: Plan
    gain_seconds: float
    is_anomaly: bool = False


@dataclass(frozen=True)
class Suggestion:
    """A single change that makes the run shorter.

    Attributes:
        change: what changes.
        makespan_seconds: of the run then.
        gain_seconds: how much earlier it ends; infinite = it ends only then.
        nodes_added: how many nodes more.
        cpu_added_milli: how much CPU more, on all nodes together.
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
        best: those that gain at least 1% of the run, the best first.
        tried: how many changes were tried.
        present_seconds: makespan of the present plan; infinite = it does not end.
        unchanged_gain_seconds: what a longer search gains without any change. No gain counts it in.
    """

    best: tuple[Suggestion, ...]
    tried: int
    present_seconds: float
    unchanged_gain_seconds: float = 0.0


def end_seconds(figures: Figures) -> float:
    """When the run ends; infinite if a step of it fits no node."""
    return math.inf if figures.unplaced else figures.makespan_seconds


def gain_seconds(before_seconds: float, after_seconds: float) -> float:
    """How much earlier a run ends; 0 if it ends neither before nor after."""
    return 0.0 if before_seconds == after_seconds else before_seconds - after_seconds
