"""The plan of one run, out of the solution for all runs that were planned together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kfp_placement_engine.lowering import Lowered
from kfp_placement_engine.lowering.tables import UNKNOWN_EXCESS_MS
from kfp_placement_engine.model.active_runs import ProgressState
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.planning.critical_path import critical_path
from kfp_placement_engine.planning.hindrances.end_limits import late_ends
from kfp_placement_engine.planning.hindrances.nodes import node_notices
from kfp_placement_engine.planning.hindrances.shared_lines import shared_lines
from kfp_placement_engine.planning.plan_notices import notices_of, used_assumptions
from kfp_placement_engine.planning.plan_rows import Explanations, driver_rows, phases_of, step_rows
from kfp_placement_engine.planning.resource_use import mean_use, resource_use
from kfp_placement_engine.plans.comparison import Bounds, Comparison, Figures, ScheduledStep
from kfp_placement_engine.plans.limits import RunLimits
from kfp_placement_engine.plans.plan import ClusterRecord, Grounds, Plan, RunRecord, SearchRecord
from kfp_placement_engine.problem.problem import Floats, PlacementProblem, owners
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.search.fitness import RELATIVE_MARGIN
from kfp_placement_engine.search.result import Result


@dataclass(frozen=True)
class PlanParts:
    """The solution for runs that were planned together, from which each run's plan is made.

    Attributes:
        cluster: cluster that was planned on.
        lowered: problem with its origin, reserved rooms included.
        result: result of the search.
        baselines: baseline -> schedules that it may lead to.
        explanations: reasons and next best nodes.
        completion_seconds: [runs] latest end of each run, in whatever outcome.
        bounds: lower bound of each run.
        limits: whether plans name the limits of their runs.
        ordered_makespan_seconds: makespan of a single run if steps could wait, see `Comparison`.
    """

    cluster: Cluster
    lowered: Lowered
    result: Result
    baselines: Mapping[str, Sequence[Schedule]]
    explanations: Explanations
    completion_seconds: Floats
    bounds: Bounds
    limits: bool
    ordered_makespan_seconds: float | None


def figures_of(
    problem: PlacementProblem, schedule: Schedule, run: int = 0, release_seconds: float = 0.0
) -> Figures:
    """Return the figures of a schedule for one of the runs, by its submission."""
    arrays, own = problem.arrays, problem.arrays.run == run
    placed = own & (schedule.node >= 0)
    ruled = placed & problem.ruled[arrays.class_of]
    latencies = problem.latency_ms[arrays.class_of[ruled], schedule.node[ruled]]
    excess = arrays.latency_excess_ms[arrays.class_of[placed], schedule.node[placed]]
    # A sum with an unknown summand is unknown; the search's charge for it means nothing to people.
    is_unknown = bool((excess >= UNKNOWN_EXCESS_MS).any())
    missing = problem.is_step & (problem.unplaceable | ~schedule.finished)
    return Figures(
        unplaced=int((own & missing).sum()),
        latency_excess_ms=math.inf if is_unknown else float(excess.sum()),
        latency_ms=math.inf if is_unknown else float(np.nansum(latencies)),
        makespan_seconds=float(schedule.end[own & schedule.awaited].max(initial=0.0)),
        moves_volumes=_moves_volumes(problem, schedule, run),
        use=mean_use(run, problem, schedule, release_seconds),
    )


def _moves_volumes(problem: PlacementProblem, schedule: Schedule, run: int) -> bool:
    """Return whether users of a claim that ties them to one node are on several nodes."""
    users = owners(problem.arrays.claims_start)
    nodes = schedule.node[users]
    placed = (nodes >= 0) & (problem.arrays.run[users] == run)
    claims = problem.arrays.claims[placed].tolist()
    return len({*zip(claims, nodes[placed].tolist(), strict=True)}) > len({*claims})


def mean_figures(
    problem: PlacementProblem, schedules: Sequence[Schedule], run: int, release_seconds: float
) -> Figures:
    """Return the mean figures of several schedules, and the range of the makespan if it differs."""
    each = [figures_of(problem, schedule, run, release_seconds) for schedule in schedules]
    ends = [figures.makespan_seconds for figures in each]
    same = max(ends) - min(ends) <= RELATIVE_MARGIN * max(ends)
    return Figures(
        unplaced=max(figures.unplaced for figures in each),
        latency_excess_ms=_mean([figures.latency_excess_ms for figures in each]),
        latency_ms=_mean([figures.latency_ms for figures in each]),
        makespan_seconds=ends[0] if same else _mean(ends),
        fastest_seconds=None if same else min(ends),
        slowest_seconds=None if same else max(ends),
        tie_breaks=len(each),
        moves_volumes=any(figures.moves_volumes for figures in each),
        # Only of resources whose use every schedule states.
        use={
            name: _mean([figures.use[name] for figures in each])
            for name in each[0].use
            if all(name in figures.use for figures in each)
        },
    )


def typical_schedule(
    run: int, lowered: Lowered, schedules: Sequence[Schedule]
) -> tuple[ScheduledStep, ...]:
    """Return the schedule of a baseline whose makespan is nearest to the mean.

    Steps without a node, and steps that have ended, are left out.
    """
    problem, graph = lowered.problem, lowered.runs[run].graph
    ends = [figures_of(problem, schedule, run).makespan_seconds for schedule in schedules]
    if not ends:
        return ()
    mean = _mean(ends)
    schedule = schedules[min(range(len(ends)), key=lambda index: abs(ends[index] - mean))]
    activities = lowered.step_activities[run]
    placed = [(step.name, activities[step.name]) for step in graph.steps if step.name in activities]
    return tuple(
        ScheduledStep(
            name,
            problem.node_names[schedule.node[activity]],
            float(schedule.start[activity]),
            float(schedule.end[activity]),
            phases_of(problem, schedule, activity),
        )
        for name, activity in placed
        if schedule.node[activity] >= 0 and schedule.finished[activity]
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def plan_of(run: int, parts: PlanParts) -> Plan:
    """Return the plan of one of the runs."""
    lowered, result, cluster = parts.lowered, parts.result, parts.cluster
    problem, active = lowered.problem, lowered.runs[run]
    graph, steps = active.graph, step_rows(run, lowered, result.schedule, parts.explanations)
    return Plan(
        run=RunRecord(
            graph.name, graph.source, active.release_seconds, is_outline=graph.is_outline
        ),
        cluster=ClusterRecord(problem.node_names, cluster.source),
        search=SearchRecord(
            seed=result.seed,
            generations=result.generations,
            planning_seconds=result.seconds,
            dispatch=problem.dispatch,
            objective=problem.objective,
            exact=result.exact,
            weights=lowered.options.weights,
            latency_tolerance=lowered.options.latency_tolerance,
        ),
        figures=replace(
            figures_of(problem, result.schedule, run, active.release_seconds),
            makespan_seconds=float(parts.completion_seconds[run]),
        ),
        comparison=_comparison(run, parts),
        steps=steps,
        drivers=driver_rows(run, lowered, result.schedule),
        unschedulable=tuple(
            (step.name, step.explanation.sentence)
            for step in steps
            if step.start_seconds is None and step.progress is ProgressState.WAITING
        ),
        notices=(
            *graph.notices,
            *cluster.notices,
            *lowered.notices,
            *notices_of(graph, cluster, lowered),
            *node_notices(graph, cluster),
            *late_ends(graph, steps),
            *shared_lines(lowered, result.schedule, run, float(parts.completion_seconds[run])),
        ),
        limits=_limits(run, parts) if parts.limits else RunLimits(),
        grounds=Grounds(
            assumptions=used_assumptions(graph, cluster, lowered),
            all_durations_assumed=all(
                step.duration_seconds is None or step.is_guessed for step in graph.steps
            ),
        ),
    )


def _comparison(run: int, parts: PlanParts) -> Comparison:
    lowered, release = parts.lowered, parts.lowered.runs[run].release_seconds
    return Comparison(
        lower_bound=parts.bounds[run],
        baselines={
            name: mean_figures(lowered.problem, schedules, run, release)
            for name, schedules in parts.baselines.items()
        },
        default_schedule=typical_schedule(run, lowered, parts.baselines.get("kube-default", ())),
        ordered_makespan_seconds=parts.ordered_makespan_seconds,
    )


def _limits(run: int, parts: PlanParts) -> RunLimits:
    lowered, schedule = parts.lowered, parts.result.schedule
    release = lowered.runs[run].release_seconds
    return RunLimits(
        critical_path=critical_path(run, lowered, schedule),
        binding_resources=resource_use(run, lowered.problem, schedule, release),
    )
