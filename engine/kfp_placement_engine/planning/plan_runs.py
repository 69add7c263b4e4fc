"""Plan runs on a cluster: the façade used by SDK, command line and controller.

`plan_run` plans one run before it starts; `plan_runs` plans all active runs together, with what has
already happened to each.
"""

from collections.abc import Sequence
from dataclasses import replace

from kfp_placement_engine.bounds.lower_bound import critical_path_bounds, lower_bound
from kfp_placement_engine.lowering import (
    Lowered,
    lower_runs,
    with_reservations,
)
from kfp_placement_engine.model.active_runs import ActiveRun, ReservedRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.plan import Bound, Plan, RunsPlan
from kfp_placement_engine.model.progress import GenerationProgress, Progress, no_progress
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.planning.alternatives import WHAT_IF_WORK, completions
from kfp_placement_engine.planning.explanation import Explainer
from kfp_placement_engine.planning.next_best import NextBest
from kfp_placement_engine.planning.plan_options import (
    PlanOptions,
    lowering_options_of,
)
from kfp_placement_engine.planning.plan_parts import PlanParts, plan_of
from kfp_placement_engine.planning.plan_rows import Explanations
from kfp_placement_engine.planning.warm_start import WarmStart, replayed, warm_placement
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search.baselines import schedules_of
from kfp_placement_engine.search.list_scheduling import list_schedule
from kfp_placement_engine.search.result import Result
from kfp_placement_engine.search.solve import solve


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
    return planned.plans[""]


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
        reserved: runs that keep their plans; their keys are no keys of `runs`.
        progress: told how far planning is.

    Raises:
        PlanningError: an option, runs or a cluster which cannot be planned with.
    """
    options, tell = options or PlanOptions(), progress
    tell(0.0, "reading the problem")
    bare = lower_runs(runs, cluster, lowering_options_of(runs, cluster, options))
    lowered = replace(bare, problem=with_reservations(bare.problem, reserved))
    tell(0.05, "searching")
    result = _search(lowered, options, warm_start, tell)
    tell(0.85, "comparing with " + ", ".join(options.compare) if options.compare else "explaining")
    baselines = {
        name: schedules_of(name, lowered.problem, options.seed) for name in options.compare
    }
    tell(0.95, "explaining")
    parts = PlanParts(
        cluster=cluster,
        lowered=lowered,
        result=result,
        baselines=baselines,
        explanations=_explanations(lowered, cluster, options, result),
        bounds=_bounds(bare.problem, len(runs), quick=options.quick),
        limits=options.limits,
    )
    plans = {run.key: plan_of(number, parts) for number, run in enumerate(runs)}
    tell(1.0, "done")
    ends = completions(lowered.problem, result.schedule)
    return RunsPlan(
        plans=plans,
        terms=tuple(result.schedule.terms.tolist()),
        completion_seconds=float(lowered.problem.arrays.run_weight @ ends),
        generations=result.generations,
        planning_seconds=result.seconds,
    )


def _reporter(options: PlanOptions, tell: Progress) -> GenerationProgress:
    def report(generation: int, share: float) -> None:
        if options.generations:
            share = generation / options.generations
        tell(min(0.85, 0.05 + 0.8 * share), f"searching, generation {generation}")

    return report


def _search(
    lowered: Lowered, options: PlanOptions, warm_start: WarmStart | Plan | None, tell: Progress
) -> Result:
    start = None
    if isinstance(warm_start, Plan):
        start = replayed(lowered, warm_start)
    elif warm_start:
        start = warm_placement(lowered, warm_start)
    if options.quick:
        return list_schedule(lowered.problem, start)
    return solve(
        lowered.problem,
        options.stop(),
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
    next_best = NextBest(lowered, result.placement, result.schedule)
    return Explanations(
        explainer.reasons(), next_best.alternatives() if options.alternatives else {}
    )


def _bounds(problem: PlacementProblem, runs: int, *, quick: bool) -> tuple[Bound, ...]:
    """A bound for each run."""
    if runs == 1 and not quick:
        return (lower_bound(problem),)
    return critical_path_bounds(problem, runs)
