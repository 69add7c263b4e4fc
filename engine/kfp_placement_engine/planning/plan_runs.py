"""Plan runs on a cluster: the façade used by SDK, command line and controller.

`plan_run` plans one run before it starts; `plan_runs` plans all active runs together, with what has
already happened to each.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kfp_placement_engine.bounds.effort import IN_A_PLAN
from kfp_placement_engine.bounds.lower_bound import critical_path_bounds, lower_bound
from kfp_placement_engine.lowering import (
    Lowered,
    lower_runs,
    with_reservations,
)
from kfp_placement_engine.model.active_runs import ActiveRun, ReservedRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.objective import MakespanWithin
from kfp_placement_engine.model.run_graph import Notice, RunGraph
from kfp_placement_engine.planning.alternatives import WHAT_IF_WORK, completions
from kfp_placement_engine.planning.explanation import Explainer
from kfp_placement_engine.planning.plan_options import (
    PlanOptions,
    lowering_options_of,
    within_makespan,
)
from kfp_placement_engine.planning.plan_parts import PlanParts, plan_of
from kfp_placement_engine.planning.plan_rows import Explanations
from kfp_placement_engine.planning.warm_start import WarmStart, replayed, warm_placement
from kfp_placement_engine.plans.plan import Bound, Plan, RunsPlan
from kfp_placement_engine.plans.progress import GenerationProgress, Progress, no_progress
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.baselines import schedules_of
from kfp_placement_engine.search.genetic import starting_schedules
from kfp_placement_engine.search.list_scheduling import list_placements, list_schedule
from kfp_placement_engine.search.parameters import GeneticParams
from kfp_placement_engine.search.refine import refine
from kfp_placement_engine.search.result import Result
from kfp_placement_engine.search.simulation import Schedule, simulate
from kfp_placement_engine.search.solve import is_tiny, solve
from kfp_placement_engine.search.stop import (
    AnyOf,
    BoundReached,
    StoppingCriterion,
)

_ORDERED_WORK = 3_000_000
"""Of the search that says what waiting would gain, as `trial_work` counts it: some 40 ms."""


def plan_run(
    graph: RunGraph,
    cluster: Cluster,
    options: PlanOptions | None = None,
    progress: Progress = no_progress,
    *,
    warm_start: Plan | None = None,
) -> Plan:
    """Plan `graph` on `cluster`.

    Args:
        graph: the run.
        cluster: the cluster.
        options: how to plan.
        progress: told how far planning is.
        warm_start: a plan of the run to start from, made before something about it or its cluster
            changed.

    Raises:
        PlanningError: an option, a run without steps or a cluster without nodes, which cannot be
            planned with.
    """
    runs = (ActiveRun("", graph),)
    planned = plan_runs(runs, cluster, options, warm_start=warm_start, progress=progress)
    plan = planned.plans[""]
    if options is None or options.makespan_within is None:
        return plan
    return replace(plan, notices=(*plan.notices, _undecided(options.makespan_within)))


def _undecided(within: MakespanWithin) -> Notice:
    return Notice(
        "makespan-within-unused",
        f"makespanWithin {within.text} decides nothing here: it limits the latest end of several"
        " runs, and this plan is of one",
    )


def plan_runs(
    runs: Sequence[ActiveRun],
    cluster: Cluster,
    options: PlanOptions | None = None,
    *,
    warm_start: WarmStart | Plan | None = None,
    reserved: Sequence[ReservedRun] = (),
    progress: Progress = no_progress,
) -> RunsPlan:
    """Plan runs together; what has started stays, the rest may move.

    Args:
        runs: the runs, with what has happened.
        cluster: the cluster; its load must not count pods of `runs` or of `reserved`.
        options: how to plan.
        warm_start: (run key, step name) -> node name of a plan to start from; what is missing, None
            or not allowed is free. Of a single run also its plan, whose order is kept as well.
        reserved: runs that keep their plans; their keys are not keys of `runs`.
        progress: told how far planning is.

    Raises:
        PlanningError: an option, runs or a cluster which cannot be planned with.
    """
    options, tell = options or PlanOptions(), progress
    tell(0.0, "reading the problem")
    bare = lower_runs(runs, cluster, lowering_options_of(runs, cluster, options))
    lowered = replace(bare, problem=with_reservations(bare.problem, reserved))
    start = _start(lowered, warm_start)
    lowered = replace(lowered, problem=_limited(lowered.problem, options, start))
    tell(0.05, "comparing with " + ", ".join(options.compare) if options.compare else "searching")
    baselines = {
        name: schedules_of(name, lowered.problem, options.seed) for name in options.compare
    }
    tell(0.1, "searching")
    known = [schedule for schedules in baselines.values() for schedule in schedules]
    result, bounds = _solution(lowered, bare.problem, options, start, known, tell)
    tell(0.95, "explaining")
    parts = PlanParts(
        cluster=cluster,
        lowered=lowered,
        result=result,
        baselines=baselines,
        explanations=_explanations(lowered, cluster, options, result),
        bounds=bounds,
        limits=options.limits,
        ordered_makespan_seconds=_ordered_makespan(lowered.problem, options, result, bounds),
    )
    plans = {run.key: plan_of(number, parts) for number, run in enumerate(runs)}
    tell(1.0, "done")
    ends = completions(lowered.problem, result.schedule)
    return RunsPlan(
        plans=plans,
        terms=tuple(result.schedule.terms.tolist()),
        completion_seconds=float(lowered.problem.arrays.run_weight @ ends),
        makespan_seconds=result.schedule.makespan_seconds,
        makespan_limit_seconds=lowered.problem.end_limit_seconds,
        generations=result.generations,
        planning_seconds=result.seconds,
    )


def _reporter(options: PlanOptions, tell: Progress) -> GenerationProgress:
    def report(generation: int, share: float) -> None:
        if options.generations:
            share = generation / options.generations
        tell(min(0.95, 0.1 + 0.85 * share), f"searching, generation {generation}")

    return report


def _solution(
    lowered: Lowered,
    unreserved: PlacementProblem,
    options: PlanOptions,
    start: Placement | None,
    known: Sequence[Schedule],
    tell: Progress,
) -> tuple[Result, tuple[Bound, ...]]:
    """The plan, and bounds that hold whatever room is reserved.

    A search stops at the bound. Where every plan is tried, or none is searched for, the bound comes
    second: it takes less time once good schedules are known.
    """
    runs, params = len(lowered.runs), options.params or GeneticParams()
    if options.quick or is_tiny(lowered.problem, params.exact_below):
        result = _search(lowered, options, start, options.stop(), tell)
        known = [*known, result.schedule]
        return result, _bounds(unreserved, runs, known, quick=options.quick)
    bounds = _bounds(unreserved, runs, known)
    stop = _search_stop(lowered.problem, options, bounds)
    return _search(lowered, options, start, stop, tell), bounds


def _start(lowered: Lowered, warm_start: WarmStart | Plan | None) -> Placement | None:
    if isinstance(warm_start, Plan):
        return replayed(lowered, warm_start)
    return warm_placement(lowered, warm_start) if warm_start else None


def _limited(
    problem: PlacementProblem, options: PlanOptions, start: Placement | None
) -> PlacementProblem:
    """The problem with the limit of the latest end that the options ask for, if it can decide."""
    if options.makespan_within is None:
        return problem
    if not options.quick:
        schedules = starting_schedules(problem, options.seed, start)
        return within_makespan(problem, options.makespan_within, schedules)
    placements = list_placements(problem, start) if problem.genes else ()
    listed = (simulate(problem, placement) for placement in placements)
    return within_makespan(problem, options.makespan_within, listed)


def _search(
    lowered: Lowered,
    options: PlanOptions,
    start: Placement | None,
    stop: StoppingCriterion,
    tell: Progress,
) -> Result:
    if options.quick:
        return list_schedule(lowered.problem, start)
    return solve(
        lowered.problem,
        stop,
        options.seed,
        options.params,
        warm_start=start,
        threads=options.threads,
        report=_reporter(options, tell),
    )


def _explanations(
    lowered: Lowered, cluster: Cluster, options: PlanOptions, result: Result
) -> Explanations:
    work = 0 if options.quick else WHAT_IF_WORK
    explainer = Explainer(lowered, cluster, result.placement, result.schedule, work)
    if not options.alternatives:
        return Explanations(explainer.reasons(), {})
    from kfp_placement_engine.planning.next_best import NextBest

    next_best = NextBest(lowered, result.placement, result.schedule)
    return Explanations(explainer.reasons(), next_best.alternatives())


def _search_stop(
    problem: PlacementProblem, options: PlanOptions, bounds: tuple[Bound, ...]
) -> StoppingCriterion:
    """As the options ask for, or at the bound if the objective is to complete early.

    A number of generations replays a plan wherever it is given: the bound of a solver that may not
    be installed there ends no such search.
    """
    is_replay = options.generations is not None
    anywhere = not any(bound.needs_solver for bound in bounds)
    if not problem.is_completion_first or (is_replay and not anywhere):
        return options.stop()
    return AnyOf((options.stop(), _bound_reached(problem, bounds)))


def _bound_reached(problem: PlacementProblem, bounds: tuple[Bound, ...]) -> BoundReached:
    """Where no plan of all runs together that keeps the latency rules completes earlier."""
    arrays = problem.arrays
    kept = arrays._replace(feasible=arrays.feasible & (arrays.latency_excess_ms <= 0))
    paths = critical_path_bounds(replace(problem, arrays=kept), len(bounds))
    ends = np.zeros(arrays.run_weight.size)
    # Reserved runs come behind the others; they may end later than reserved, but not earlier.
    np.maximum.at(ends, arrays.run, arrays.release_seconds + arrays.duration_seconds)
    pairs = zip(bounds, paths, strict=True)
    ends[: len(bounds)] = [max(bound.seconds, path.seconds) for bound, path in pairs]
    return BoundReached(float(arrays.run_weight @ ends))


def _ordered_makespan(
    problem: PlacementProblem, options: PlanOptions, result: Result, bounds: tuple[Bound, ...]
) -> float | None:
    """What a short search finds for the same run if its steps may wait for their node.

    It starts from the plan, and looks at no clock: a replay finds the same.
    """
    is_ready = problem.genes and problem.dispatch == "ready" and len(bounds) == 1
    is_comparable = problem.is_completion_first and not problem.unplaceable.any()
    if not (options.limits and is_ready and is_comparable) or options.quick:
        return None
    if _bound_reached(problem, bounds).is_reached(result.schedule.terms):
        return None
    ordered = replace(problem, dispatch="ordered")
    present = Placement.of_schedule(ordered, result.schedule.start, result.schedule.node)
    found = refine(ordered, present, _ORDERED_WORK, options.seed, options.params)
    return found.schedule.makespan_seconds


def _bounds(
    problem: PlacementProblem, runs: int, known: Sequence[Schedule], *, quick: bool = False
) -> tuple[Bound, ...]:
    """A bound for each run; schedules that are known already say how large it can be."""
    if runs > 1 or quick:
        return critical_path_bounds(problem, runs)
    # Schedules may hold reserved rooms as well, which come behind the run's own activities.
    ends = [
        float(each.end[: problem.activities].max(initial=0.0))
        for each in known
        if each.finished.all()
    ]
    return (lower_bound(problem, min(ends, default=math.inf), IN_A_PLAN),)
