"""One round of planning, as asked and as answered: plain data that goes between processes."""

from collections.abc import Mapping
from dataclasses import dataclass

from kfp_placement_engine.model.active_runs import ActiveRun, ReservedRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.planning.warm_start import WarmStart
from kfp_placement_engine.plans.plan import Plan


@dataclass(frozen=True)
class PlanningRound:
    """What one round is asked, in the process that searches.

    Attributes:
        number: tells rounds apart.
        to_replan: runs to plan again.
        movable: runs whose unstarted steps move only for a gain.
        reserved: the room that the plans of `movable` take, by run, if they stay.
        fixed: the room of all further runs, which stay.
        cluster: as it is now.
        options: how to plan; the budget is for the whole round.
        warm_start: plans in force.
        gain_percent: that a move of `movable` must bring, of all completions.
    """

    number: int
    to_replan: tuple[ActiveRun, ...]
    movable: tuple[ActiveRun, ...]
    reserved: tuple[ReservedRun, ...]
    fixed: tuple[ReservedRun, ...]
    cluster: Cluster
    options: PlanOptions
    warm_start: WarmStart
    gain_percent: float


@dataclass(frozen=True)
class RoundResult:
    """What a round found.

    Attributes:
        number: of the round.
        plans: by run; runs that keep their plans are not in it.
    """

    number: int
    plans: Mapping[str, Plan]


@dataclass(frozen=True)
class RoundFailure:
    """A round that brought nothing.

    Attributes:
        number: of the round.
        why: in words.
        died: the process that searched ended or was killed.
    """

    number: int
    why: str
    died: bool
