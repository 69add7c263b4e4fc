"""Demand of a run by a plan of it alone, and for some runs how it shrinks."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kfp_placement_controller.runs.run_reading import RunReading
from kfp_placement_engine.contract.placement import bounded_seconds
from kfp_placement_engine.contract.run_request import MAX_MESSAGE_CHARACTERS, RunDemand, run_demand
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.promise import least_move
from kfp_placement_engine.planning.demand_profile import DemandProfile
from kfp_placement_engine.plans.plan import Plan


@dataclass(frozen=True)
class ReadFacts:
    """Facts of a run as it was read for its plan; they are small, however large its graph.

    Attributes:
        steps: number of its steps.
        pipeline: name of its pipeline; "" = the run could not be read.
        priority: highest priority of its steps.
        queues: RunQueues that its steps name.
        claims: names of the volume claims that it mounts.
        widths: widths of loops, as known then.
        unknown: reason why not all of its demand is known; "" = it is.
        is_outline: whether its object does not say what its steps request.
    """

    steps: int = 0
    pipeline: str = ""
    priority: int = 0
    queues: tuple[str, ...] = ()
    claims: frozenset[str] = frozenset()
    widths: Mapping[str, int] | None = None
    unknown: str = ""
    is_outline: bool = False

    @classmethod
    def of(cls, reading: RunReading) -> "ReadFacts":
        """Return the facts of a run as read."""
        graph = reading.graph
        unknown = next((str(each) for each in graph.notices if each.hides_demand), "")
        return cls(
            steps=len(graph.steps),
            pipeline=graph.name,
            priority=max((step.priority for step in graph.steps), default=0),
            queues=tuple(sorted({step.queue for step in graph.steps if step.queue})),
            claims=frozenset(each.name for each in graph.claims),
            widths=reading.widths,
            unknown=unknown[:MAX_MESSAGE_CHARACTERS],
            is_outline=graph.is_outline,
        )


@dataclass(frozen=True)
class PlannedAlone:
    """Facts from a plan of the run alone.

    Attributes:
        demand: demand of the whole run; None = it is too long for a RunRequest.
        problem: reason for that; "" = it is not.
        makespan_seconds: time that the run takes; None = a step has no node.
        unschedulable: reason why a step has no node; "" = all have one.
    """

    demand: RunDemand | None
    problem: str
    makespan_seconds: float | None
    unschedulable: str

    @classmethod
    def of(cls, plan: Plan, profile: DemandProfile) -> "PlannedAlone":
        """Return the facts from a plan and the room that it takes over time."""
        unplaced = [f"step {name}: {reason}" for name, reason in plan.unschedulable]
        more = f" (and {len(unplaced) - 1} more)" if unplaced[1:] else ""
        text = f"{unplaced[0][: MAX_MESSAGE_CHARACTERS - 20]}{more}" if unplaced else ""
        ends = [step.finish_seconds for step in plan.steps if step.finish_seconds is not None]
        makespan_seconds = None if unplaced else bounded_seconds(max(ends, default=0.0))
        return cls(*demand_left(profile), makespan_seconds, text)

    def is_like(self, other: "PlannedAlone") -> bool:
        """Return whether the difference to `other` is too small to write."""
        own, others = self.makespan_seconds, other.makespan_seconds
        if own is None or others is None:
            return (own, self.unschedulable) == (others, other.unschedulable)
        return abs(own - others) < least_move(others) and self.demand == other.demand


@dataclass(frozen=True)
class Unfolded:
    """Graph and plan of a run that was planned alone, by which its demand shrinks as steps end.

    Attributes:
        reading: run as it was read for the plan.
        profile: resources that the run takes over time.
    """

    reading: RunReading
    profile: DemandProfile


def demand_left(
    profile: DemandProfile, ended: Collection[str] = (), running: Collection[str] = ()
) -> tuple[RunDemand | None, str]:
    """Return the demand of the steps that are left, and the reason why there is none."""
    try:
        return run_demand(profile.left(ended, running)), ""
    except LimitError as error:
        return None, str(error)
