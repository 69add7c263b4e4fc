"""One round of planning: as it is asked, planned in the process that searches, and answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kfp_placement_engine.model.active_runs import ActiveRun, ProgressState, ReservedRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.planning.plan_options import PlanOptions
from kfp_placement_engine.planning.plan_runs import plan_runs
from kfp_placement_engine.planning.warm_start import WarmStart
from kfp_placement_engine.plans.plan import Plan, RunsPlan


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


def plan_round(asked: PlanningRound) -> RoundResult:
    """Plan; whatever is in `movable` moves only if all runs together gain enough.

    Raises:
        PlanningError: what was asked cannot be planned with.
    """
    if not asked.movable:
        alone = plan_runs(
            asked.to_replan,
            asked.cluster,
            asked.options,
            warm_start=asked.warm_start,
            reserved=asked.fixed,
        )
        return RoundResult(asked.number, alone.plans)
    half = replace(asked.options, budget_seconds=asked.options.budget_seconds / 2)
    stayed = _with_movable_staying(asked, half)
    warm = {**asked.warm_start, **_nodes_of(stayed.plans)}
    moved = plan_runs(
        (*asked.to_replan, *asked.movable),
        asked.cluster,
        half,
        warm_start=warm,
        reserved=asked.fixed,
    )
    if gains(stayed, moved, asked.gain_percent):
        return RoundResult(asked.number, moved.plans)
    kept = {run.key: stayed.plans[run.key] for run in asked.to_replan}
    return RoundResult(asked.number, kept)


def _with_movable_staying(asked: PlanningRound, options: PlanOptions) -> RunsPlan:
    """The plans if nobody of `movable` moves."""
    if asked.to_replan:
        reserved = (*asked.fixed, *asked.reserved)
        return plan_runs(
            asked.to_replan,
            asked.cluster,
            options,
            warm_start=asked.warm_start,
            reserved=reserved,
        )
    held = tuple(_held_run(run, asked.warm_start) for run in asked.movable)
    return plan_runs(held, asked.cluster, replace(options, quick=True), reserved=asked.fixed)


def _held_run(run: ActiveRun, nodes: WarmStart) -> ActiveRun:
    """The run with every step on its planned node."""
    held = {
        step.name: node
        for step in run.graph.steps
        if run.state_of(step.name) is ProgressState.WAITING
        and (node := nodes.get((run.key, step.name)))
    }
    return replace(run, held=held)


def _nodes_of(plans: Mapping[str, Plan]) -> WarmStart:
    return {
        (key, step.name): step.node
        for key, plan in plans.items()
        for step in plan.steps
        if step.node is not None
    }


def gains(stayed: RunsPlan, moved: RunsPlan, gain_percent: float) -> bool:
    """Whether moving is worth it: fewer steps without a node, nearer to users, or much sooner."""
    before, after = _first_terms(stayed.terms), _first_terms(moved.terms)
    if before != after:
        return after < before
    share = 1 - gain_percent / 100
    # What counts before completions, by one limit for both: the objective makespan, makespanWithin.
    late, later = (_beyond(plan, moved.makespan_limit_seconds) for plan in (stayed, moved))
    if later > late or later < late * share:
        return later < late
    return moved.completion_seconds < stayed.completion_seconds * share


def _beyond(plan: RunsPlan, limit_seconds: float) -> float:
    """How much later than the limit the last run ends; what differs less is equal."""
    return round(max(0.0, plan.makespan_seconds - limit_seconds), 6)


def _first_terms(terms: Sequence[float]) -> tuple[float, ...]:
    """Steps unplaced and round trips beyond the tolerance; what differs less is equal."""
    return tuple(round(term, 6) for term in terms[:2])
