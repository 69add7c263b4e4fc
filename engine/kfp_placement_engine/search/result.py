"""What a solver returns."""

from dataclasses import dataclass

from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.search.simulation import Schedule


@dataclass(frozen=True)
class Candidate:
    """A placement with its schedule."""

    placement: Placement
    schedule: Schedule


@dataclass(frozen=True)
class Result:
    """The best plan found.

    Attributes:
        placement: the decision.
        schedule: the decision played under the problem's dispatch.
        generations: generations searched, plans to start from included (all but the first two);
            with the seed they replay the plan.
        seed: of the random generator.
        seconds: time searched.
        exact: all assignments were tried, under `ordered` with all orders. Held starts
            (`Placement.not_before`) were not: a plan that keeps a step waiting although it could
            start may be better still.
    """

    placement: Placement
    schedule: Schedule
    generations: int
    seed: int
    seconds: float
    exact: bool = False
