"""One round of planning: its question, the search in another process, and its result."""

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
    """Question of one round, as the process that searches gets it.

    Attributes:
        number: number that tells rounds apart.
        to_replan: runs to plan again.
        movable: runs whose unstarted steps move only for a gain.
        reserved: room that the plans of `movable` take, by run, if they stay.
        fixed: room of all further runs, which stay.
        cluster: cluster as it is now.
        options: options of planning; the budget is for the whole round.
        warm_start: plans in force.
        gain_percent: share of all completions that a move of `movable` must gain.
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
    """Result of a round.

    Attributes:
        number: number of the round.
        plans: new plans by run; runs that keep their plans are not in it.
    """

    number: int
    plans: Mapping[str, Plan]


@dataclass(frozen=True)
class RoundFailure:
    """Failure of a round, which brought no plans.

    Attributes:
        number: number of the round.
        why: reason, for people to read.
        died: whether the process that searched ended or was killed.
    """

    number: int
    why: str
    died: bool


def plan_round(question: PlanningRound) -> RoundResult:
    """Plan a round; the runs in `movable` move only if all runs together gain enough.

    Raises:
        PlanningError: the round cannot be planned.
    """
    if not question.movable:
        return RoundResult(question.number, _with_movable_staying(question, question.options).plans)
    half = replace(question.options, budget_seconds=question.options.budget_seconds / 2)
    stayed = _with_movable_staying(question, half)
    warm = {**question.warm_start, **_nodes_of(stayed.plans)}
    moved = plan_runs(
        (*question.to_replan, *question.movable),
        question.cluster,
        half,
        warm_start=warm,
        reserved=question.fixed,
    )
    if gains(stayed, moved, question.gain_percent):
        return RoundResult(question.number, moved.plans)
    kept = {run.key: stayed.plans[run.key] for run in question.to_replan}
    return RoundResult(question.number, kept)


def _with_movable_staying(question: PlanningRound, options: PlanOptions) -> RunsPlan:
    """Return the plans if no run in `movable` moves."""
    if question.to_replan:
        reserved = (*question.fixed, *question.reserved)
        return plan_runs(
            question.to_replan,
            question.cluster,
            options,
            warm_start=question.warm_start,
            reserved=reserved,
        )
    held = tuple(_held_run(run, question.warm_start) for run in question.movable)
    return plan_runs(held, question.cluster, replace(options, quick=True), reserved=question.fixed)


def _held_run(run: ActiveRun, nodes: WarmStart) -> ActiveRun:
    """Return a run with every waiting step held on its planned node."""
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
    """Return whether a move pays: fewer steps without a node, nearer to users, or much sooner."""
    before, after = _first_terms(stayed.terms), _first_terms(moved.terms)
    if before != after:
        return after < before
    share = 1 - gain_percent / 100
    # Seconds by which the last run ends after the limit, by one limit for both: with the objective
    # makespan, and with makespanWithin, they count before completions. Rounded for comparison.
    late_if_stayed, late_if_moved = (
        round(max(0.0, plan.makespan_seconds - moved.makespan_limit_seconds), 6)
        for plan in (stayed, moved)
    )
    if late_if_moved > late_if_stayed or late_if_moved < late_if_stayed * share:
        return late_if_moved < late_if_stayed
    return moved.completion_seconds < stayed.completion_seconds * share


def _first_terms(terms: Sequence[float]) -> tuple[float, ...]:
    """Return the unplaced steps and the excess of round trips, rounded for comparison."""
    return tuple(round(term, 6) for term in terms[:2])
