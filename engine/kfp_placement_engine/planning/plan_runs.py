"""The entry point of planning, for SDK, command line and controller.

`plan_run` plans one run before it starts; `plan_runs` plans all active runs together, from their
present progress on.
"""

from collections.abc import Sequence
from dataclasses import replace

from kfp_placement_engine.lowering import Lowered, lower_runs, with_reservations
from kfp_placement_engine.model.active_runs import ActiveRun, ReservedRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.alternatives import ALTERNATIVES_WORK
from kfp_placement_engine.planning.explanation import Explainer
from kfp_placement_engine.planning.plan_bounds import bounds_of, ordered_makespan, search_stop
from kfp_placement_engine.planning.plan_options import (
    PlanOptions,
    lowering_options_of,
    within_makespan,
)
from kfp_placement_engine.planning.plan_parts import PlanParts, plan_of
from kfp_placement_engine.planning.plan_rows import Explanations
from kfp_placement_engine.planning.warm_start import WarmStart, placement_by_plan, warm_placement
from kfp_placement_engine.plans.comparison import Bounds
from kfp_placement_engine.plans.plan import Plan, RunsPlan
from kfp_placement_engine.plans.progress import GenerationProgress, Progress, no_progress
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.search.baselines import schedules_of
from kfp_placement_engine.search.genetic import starting_schedules
from kfp_placement_engine.search.list_scheduling import list_placements, list_schedule
from kfp_placement_engine.search.parameters import GeneticParams
from kfp_placement_engine.search.replays import latest_completions
from kfp_placement_engine.search.result import Result
from kfp_placement_engine.search.simulation import simulate
from kfp_placement_engine.search.solve import is_tiny, solve
from kfp_placement_engine.search.stop import StoppingCriterion


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
        graph: run to plan.
        cluster: cluster to plan on.
        options: options of the planner, or None for the defaults.
        progress: callback with the progress of planning.
        warm_start: plan of the run to start from, made before something about the run or its
            cluster changed.

    Raises:
        PlanningError: an option that cannot be used, a run without steps, or a cluster without
            nodes.
    """
    runs = (ActiveRun("", graph),)
    planned = plan_runs(runs, cluster, options, warm_start=warm_start, progress=progress)
    plan = planned.plans[""]
    if options is None or options.makespan_within is None:
        return plan
    undecided = Notice(
        "makespan-within-unused",
        f"makespanWithin {options.makespan_within.text} decides nothing here: it limits the latest"
        " end of several runs, and this plan is of one",
    )
    return replace(plan, notices=(*plan.notices, undecided))


def plan_runs(
    runs: Sequence[ActiveRun],
    cluster: Cluster,
    options: PlanOptions | None = None,
    *,
    warm_start: WarmStart | Plan | None = None,
    reserved: Sequence[ReservedRun] = (),
    progress: Progress = no_progress,
) -> RunsPlan:
    """Plan runs together; steps that have started stay, the others may move.

    Args:
        runs: runs with their progress.
        cluster: cluster to plan on; its load must not count pods of `runs` or of `reserved`.
        options: options of the planner, or None for the defaults.
        warm_start: (run key, step name) -> node name of a plan to start from; a step is free if it
            is missing, or its node is None or not allowed. For a single run it may also be a plan,
            whose order is kept too.
        reserved: runs that keep their plans; their keys are not keys of `runs`.
        progress: callback with the progress of planning.

    Raises:
        PlanningError: options, runs or a cluster that cannot be planned with.
    """
    options = options or PlanOptions()
    progress(0.0, "reading the problem")
    bare = lower_runs(runs, cluster, lowering_options_of(runs, cluster, options))
    lowered = replace(bare, problem=with_reservations(bare.problem, reserved))
    start = _start(lowered, warm_start)
    lowered = replace(lowered, problem=_limited(lowered.problem, options, start))
    comparing = "comparing with " + ", ".join(options.compare)
    progress(0.05, comparing if options.compare else "searching")
    baselines = {
        name: schedules_of(name, lowered.problem, options.seed) for name in options.compare
    }
    progress(0.1, "searching")
    schedules = [schedule for each in baselines.values() for schedule in each]
    result, bounds = _solution(lowered, bare.problem, options, start, schedules, progress)
    progress(0.95, "explaining")
    ends = latest_completions(lowered.problem, result.placement, result.schedule)
    parts = PlanParts(
        cluster=cluster,
        lowered=lowered,
        result=result,
        baselines=baselines,
        explanations=_explanations(lowered, cluster, options, result),
        completion_seconds=ends,
        bounds=bounds,
        limits=options.limits,
        ordered_makespan_seconds=ordered_makespan(lowered.problem, options, result, bounds),
    )
    plans = {run.key: plan_of(number, parts) for number, run in enumerate(runs)}
    progress(1.0, "done")
    return RunsPlan(
        plans=plans,
        terms=tuple(result.schedule.terms.tolist()),
        completion_seconds=float(lowered.problem.arrays.run_weight @ ends),
        makespan_seconds=float(ends.max()),
        makespan_limit_seconds=lowered.problem.end_limit_seconds,
        generations=result.generations,
        planning_seconds=result.seconds,
    )


def _reporter(options: PlanOptions, progress: Progress) -> GenerationProgress:
    def report(generation: int, share: float) -> None:
        if options.generations:
            share = generation / options.generations
        progress(min(0.95, 0.1 + 0.85 * share), f"searching, generation {generation}")

    return report


def _solution(
    lowered: Lowered,
    unreserved: PlacementProblem,
    options: PlanOptions,
    start: Placement | None,
    schedules: Sequence[Schedule],
    progress: Progress,
) -> tuple[Result, Bounds]:
    """Return the best plan, and bounds that hold whatever room is reserved.

    A search stops at the bound, which therefore comes first. Where all plans are tried, or list
    scheduling is enough, it comes second: with good schedules it takes less time.
    """
    runs, params = len(lowered.runs), options.params or GeneticParams()
    if options.quick or is_tiny(lowered.problem, params.exact_below):
        result = _search(lowered, options, start, options.stop(), progress)
        schedules = [*schedules, result.schedule]
        return result, bounds_of(unreserved, runs, schedules, quick=options.quick)
    bounds = bounds_of(unreserved, runs, schedules)
    stop = search_stop(lowered.problem, options, bounds)
    return _search(lowered, options, start, stop, progress), bounds


def _start(lowered: Lowered, warm_start: WarmStart | Plan | None) -> Placement | None:
    if isinstance(warm_start, Plan):
        return placement_by_plan(lowered, warm_start)
    return warm_placement(lowered, warm_start) if warm_start else None


def _limited(
    problem: PlacementProblem, options: PlanOptions, start: Placement | None
) -> PlacementProblem:
    """Return the problem with the options' limit of the latest end, if it can decide anything."""
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
    progress: Progress,
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
        report=_reporter(options, progress),
    )


def _explanations(
    lowered: Lowered, cluster: Cluster, options: PlanOptions, result: Result
) -> Explanations:
    work = 0 if options.quick else ALTERNATIVES_WORK
    explainer = Explainer(lowered, cluster, result.placement, result.schedule, work)
    if not options.alternatives:
        return Explanations(explainer.reasons(), {})
    from kfp_placement_engine.planning.next_best import NextBest

    next_best = NextBest(lowered, result.placement, result.schedule)
    return Explanations(explainer.reasons(), next_best.alternatives())
