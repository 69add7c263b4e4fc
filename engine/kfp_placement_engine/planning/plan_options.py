"""The options of the planner, and the settings that follow from them for a cluster and runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kfp_placement_engine.contract.keys import LATENCY_RULED_TYPES
from kfp_placement_engine.exceptions import PlanningError
from kfp_placement_engine.lowering import LoweringOptions
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.cluster import Cluster
from kfp_placement_engine.model.node_rules.latency import LatencyTolerance
from kfp_placement_engine.model.objective import MakespanWithin, ResourceWeights
from kfp_placement_engine.plans.assumptions import Assumptions
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.search.baselines import BASELINES
from kfp_placement_engine.search.fitness import OBJECTIVES
from kfp_placement_engine.search.parameters import GeneticParams
from kfp_placement_engine.search.stop import MaxGenerations, MaxRuntime, StoppingCriterion

DISPATCHES = ("auto", "ready", "ordered")


@dataclass(frozen=True)
class PlanOptions:
    """The options of the planner.

    Attributes:
        budget_seconds: time for the search; reading and comparing are not counted.
        generations: number of generations after which to stop instead, which gives the same plan
            each time; None = stop by time.
        seed: seed of the random generator.
        dispatch: `ready`, `ordered`, or `auto`: `ready` for KFP and Argo runs (what the scheduler
            extender does), `ordered` for workflow formats, which no cluster dispatches.
        objective: `completion`, `makespan`, `packing` or `paper`.
        makespan_within: limit of the end of the last of several runs, with `completion`; plans
            within it are better, whatever their completions. None = no limit.
        weights: weights of the resources in the objective `paper`, and in the use of all of them.
        kube_version: (major, minor) of the kube-scheduler that the baseline imitates.
        compare: names of the baselines to simulate as well.
        marked_only: whether only steps with a scheduler mark are planned; the default scheduler
            places the others.
        latency_ruled_types: step types that follow the latency rule, in lower case.
        latency_tolerance: band of round trips within which nodes count as nearest to a location.
        assumptions: values for what is unknown; None = the defaults, with those that the cluster's
            source sets.
        params: parameters of the search; None = the defaults.
        threads: number of threads of the search, at most one per island; it does not change the
            plan. 0 = as many as there are cores.
        quick: whether to use list scheduling only: a plan at once, without a search, in which other
            nodes are not tried for explanations and bounds are critical paths.
        alternatives: whether to name the next best nodes of every step, see `next_best`.
        limits: whether to find the limits of each run for people: its critical path, the scarcest
            resource over time, and the gain of a single run if steps could wait (`ordered`).
    """

    budget_seconds: float = 2.0
    generations: int | None = None
    seed: int = 0
    dispatch: str = "auto"
    objective: str = "completion"
    makespan_within: MakespanWithin | None = None
    weights: ResourceWeights = field(default_factory=ResourceWeights)
    kube_version: tuple[int, int] = (1, 36)
    compare: tuple[str, ...] = ("kube-default", "heft")
    marked_only: bool = False
    latency_ruled_types: tuple[str, ...] = LATENCY_RULED_TYPES
    latency_tolerance: LatencyTolerance = field(default_factory=LatencyTolerance)
    assumptions: Assumptions | None = None
    params: GeneticParams | None = None
    threads: int = 0
    quick: bool = False
    alternatives: bool = False
    limits: bool = False

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
        """Return the stopping criterion of the search."""
        if self.generations is not None:
            return MaxGenerations(self.generations)
        return MaxRuntime(self.budget_seconds)


def assumptions_of(cluster: Cluster, options: PlanOptions) -> Assumptions:
    """Return the assumptions in force: given ones, else the cluster's, its policy's, the usual."""
    if options.assumptions is not None:
        return options.assumptions
    of_policy = {} if cluster.policy is None else cluster.policy.assumed_values()
    return replace(Assumptions(), **{**of_policy, **cluster.defaults})  # type: ignore[arg-type]


def lowering_options_of(
    runs: Sequence[ActiveRun], cluster: Cluster, options: PlanOptions
) -> LoweringOptions:
    """Return the options for the lowering of these runs."""
    dispatch = options.dispatch
    if dispatch == "auto":
        direct = any(run.graph.direct_transfers for run in runs)
        dispatch = "ordered" if direct else "ready"
    return LoweringOptions(
        assumptions=assumptions_of(cluster, options),
        dispatch=dispatch,
        objective=options.objective,
        weights=options.weights,
        kube_version=options.kube_version,
        marked_only=options.marked_only,
        latency_ruled_types=options.latency_ruled_types,
        latency_tolerance=options.latency_tolerance,
    )


def within_makespan(
    problem: PlacementProblem, within: MakespanWithin | None, schedules: Iterable[Schedule]
) -> PlacementProblem:
    """Return the problem with a limit, in seconds, of the time at which the last run ends.

    Where no plan is within the limit, the plan that is nearest to it is best.

    Args:
        problem: problem; it is returned as it is where no limit can decide, which takes several
            runs that are to complete early.
        within: limit, or None for no limit.
        schedules: schedules of the plans that the search starts from. A percentage is of the
            shortest of those that leave the fewest steps without a node; an absolute limit does not
            need them.

    Raises:
        PlanningError: a percentage, and no schedule.
    """
    is_limitable = problem.objective == "completion" and problem.arrays.run_weight.size > 1
    if within is None or not is_limitable:
        return problem
    seconds = within.seconds
    if seconds is None:
        ends = [(float(each.terms[0]), each.makespan_seconds) for each in schedules]
        if not ends:
            raise PlanningError(f"makespanWithin {within.text} of no plan; give at least one plan")
        seconds = min(ends)[1] * (1 + (within.percent or 0.0) / 100)
    return replace(problem, makespan_limit_seconds=seconds)
