"""Plan one run on one cluster: the façade used by SDK, command line and controller."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from kfp_placement_engine.assumptions import Assumptions
from kfp_placement_engine.baselines import BASELINES, schedules_of
from kfp_placement_engine.cluster import Cluster
from kfp_placement_engine.contract.keys import LATENCY_RULED_TYPES
from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.explanation import Explainer
from kfp_placement_engine.fitness import OBJECTIVES, RELATIVE_MARGIN
from kfp_placement_engine.genetic import GeneticParams
from kfp_placement_engine.lower_bound import lower_bound
from kfp_placement_engine.lowering import Lowered, LoweringOptions, lower
from kfp_placement_engine.plan import Figures, Plan
from kfp_placement_engine.plan_rows import driver_rows, notices_of, step_rows, used_assumptions
from kfp_placement_engine.problem import PlacementProblem
from kfp_placement_engine.result import Result
from kfp_placement_engine.run_graph import RunGraph
from kfp_placement_engine.simulation import Schedule
from kfp_placement_engine.solve import solve
from kfp_placement_engine.stop import MaxGenerations, MaxRuntime, StoppingCriterion

Progress = Callable[[float, str], None]
"""Called with the share done (0 to 1) and a short text."""

DISPATCHES = ("auto", "ready", "ordered")


@dataclass(frozen=True)
class PlanOptions:
    """How to plan.

    Attributes:
        budget_seconds: time for the search; reading and simulating are not counted.
        generations: stop after so many generations instead (replays a plan exactly).
        seed: of the random generator.
        dispatch: `ready`, `ordered`, or `auto`: `ready` for KFP and Argo runs (what the scheduler
            extender does), `ordered` for workflow formats, which no cluster dispatches.
        objective: `completion`, `paper` or `packing`.
        kube_version: (major, minor) of the kube-scheduler that the baseline imitates.
        compare: names of the baselines to simulate as well.
        marked_only: only steps with a scheduler mark are planned; the others go where the default
            scheduler puts them.
        latency_ruled_types: step types that follow the latency rule, lower case.
        assumptions: stand-ins for what is unknown; None = the defaults, with what the cluster's
            source sets.
        params: of the search.
        threads: of the search; does not change the plan. 0 = one per core.
    """

    budget_seconds: float = 2.0
    generations: int | None = None
    seed: int = 0
    dispatch: str = "auto"
    objective: str = "completion"
    kube_version: tuple[int, int] = (1, 36)
    compare: tuple[str, ...] = ("kube-default", "heft")
    marked_only: bool = False
    latency_ruled_types: tuple[str, ...] = LATENCY_RULED_TYPES
    assumptions: Assumptions | None = None
    params: GeneticParams | None = None
    threads: int = 0

    def __post_init__(self) -> None:
        """Refuse values that cannot be planned with; the message names the choices."""
        if self.dispatch not in DISPATCHES:
            raise PlanningError(
                f"dispatch {self.dispatch!r}; choose one of {', '.join(DISPATCHES)}"
            )
        if self.objective not in OBJECTIVES:
            raise PlanningError(
                f"objective {self.objective!r}; choose one of {', '.join(OBJECTIVES)}"
            )
        for name in self.compare:
            if name not in BASELINES:
                raise PlanningError(f"baseline {name!r}; choose from {', '.join(BASELINES)}")

    def stop(self) -> StoppingCriterion:
        """The stopping criterion these options ask for."""
        if self.generations is not None:
            return MaxGenerations(self.generations)
        return MaxRuntime(self.budget_seconds)


def _silent(share: float, text: str) -> None:
    """Report nothing."""


def plan_run(
    graph: RunGraph,
    cluster: Cluster,
    options: PlanOptions | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Plan `graph` on `cluster`.

    Args:
        graph: the run.
        cluster: the cluster.
        options: how to plan.
        progress: told how far planning is.

    Raises:
        PlanningError: an option, a run without steps or a cluster without nodes, which cannot be
            planned with.
    """
    options, tell = options or PlanOptions(), progress or _silent
    tell(0.0, "reading the problem")
    lowered = lower(graph, cluster, _lowering_options(graph, cluster, options))
    tell(0.05, "searching")
    result = solve(
        lowered.problem,
        options.stop(),
        options.seed,
        options.params,
        threads=options.threads,
        report=_reporter(options, tell),
    )
    tell(0.85, "comparing with " + ", ".join(options.compare) if options.compare else "explaining")
    baselines = {
        name: mean_figures(lowered.problem, schedules_of(name, lowered.problem, options.seed))
        for name in options.compare
    }
    tell(0.95, "explaining")
    plan = _plan(graph, cluster, options, lowered, result, baselines)
    tell(1.0, "done")
    return plan


def assumptions_of(cluster: Cluster, options: PlanOptions) -> Assumptions:
    """The assumptions in force: given ones, else the defaults with the cluster's own."""
    if options.assumptions is not None:
        return options.assumptions
    return replace(Assumptions(), **cluster.defaults)  # type: ignore[arg-type]


def figures_of(problem: PlacementProblem, schedule: Schedule) -> Figures:
    """What a schedule achieves."""
    arrays = problem.arrays
    ruled = problem.ruled[arrays.class_of] & (schedule.node >= 0)
    latencies = problem.latency_ms[arrays.class_of[ruled], schedule.node[ruled]]
    unplaced = int((problem.is_step & (problem.unplaceable | ~schedule.finished)).sum())
    return Figures(
        unplaced=unplaced,
        latency_excess_ms=float(schedule.terms[1]),
        latency_ms=float(np.nansum(latencies)),
        makespan_seconds=schedule.makespan_seconds,
        moves_volumes=_moves_volumes(problem, schedule),
    )


def _moves_volumes(problem: PlacementProblem, schedule: Schedule) -> bool:
    """Whether users of a claim that ties them to one node are on several."""
    users = np.repeat(np.arange(problem.activities), np.diff(problem.arrays.claims_start))
    nodes = schedule.node[users]
    places = np.stack([problem.arrays.claims, nodes])[:, nodes >= 0]
    return bool(np.unique(places, axis=1).shape[1] > np.unique(places[0]).size)


def mean_figures(problem: PlacementProblem, schedules: Sequence[Schedule]) -> Figures:
    """What the same run achieves on average, and the range of its makespan if that differs."""
    each = [figures_of(problem, schedule) for schedule in schedules]
    ends = [figures.makespan_seconds for figures in each]
    same = max(ends) - min(ends) <= RELATIVE_MARGIN * max(ends)
    return Figures(
        unplaced=max(figures.unplaced for figures in each),
        latency_excess_ms=fmean(figures.latency_excess_ms for figures in each),
        latency_ms=fmean(figures.latency_ms for figures in each),
        makespan_seconds=ends[0] if same else fmean(ends),
        fastest_seconds=None if same else min(ends),
        slowest_seconds=None if same else max(ends),
        tie_breaks=len(each),
        moves_volumes=any(figures.moves_volumes for figures in each),
    )


def _lowering_options(graph: RunGraph, cluster: Cluster, options: PlanOptions) -> LoweringOptions:
    dispatch = options.dispatch
    if dispatch == "auto":
        dispatch = "ordered" if graph.direct_transfers else "ready"
    return LoweringOptions(
        assumptions=assumptions_of(cluster, options),
        dispatch=dispatch,
        objective=options.objective,
        kube_version=options.kube_version,
        marked_only=options.marked_only,
        latency_ruled_types=options.latency_ruled_types,
    )


def _reporter(options: PlanOptions, tell: Progress) -> Callable[[int, float], None]:
    def report(generation: int, share: float) -> None:
        if options.generations:
            share = generation / options.generations
        tell(min(0.85, 0.05 + 0.8 * share), f"searching, generation {generation}")

    return report


def _plan(
    graph: RunGraph,
    cluster: Cluster,
    options: PlanOptions,
    lowered: Lowered,
    result: Result,
    baselines: dict[str, Figures],
) -> Plan:
    problem, assumptions = lowered.problem, assumptions_of(cluster, options)
    reasons = Explainer(lowered, cluster, result.placement, result.schedule).reasons()
    steps = step_rows(graph, lowered, result.schedule, reasons, assumptions)
    return Plan(
        run_name=graph.name,
        run_source=graph.source,
        cluster_nodes=problem.node_names,
        cluster_source=cluster.source,
        seed=options.seed,
        generations=result.generations,
        exact=result.exact,
        planning_seconds=result.seconds,
        dispatch=problem.dispatch,
        objective=problem.objective,
        figures=figures_of(problem, result.schedule),
        lower_bound=lower_bound(problem),
        baselines=baselines,
        steps=steps,
        drivers=driver_rows(lowered, result.schedule),
        unschedulable=tuple(
            (step.name, step.reason) for step in steps if step.node is None and not step.cached
        ),
        notices=(
            *graph.notices,
            *cluster.notices,
            *lowered.notices,
            *notices_of(graph, options.marked_only),
        ),
        assumptions=used_assumptions(graph, cluster, assumptions),
        all_durations_assumed=all(step.duration_seconds is None for step in graph.steps),
    )
