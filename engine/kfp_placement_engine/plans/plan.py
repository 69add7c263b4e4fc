"""The plan of one run, or of several that were planned together.

Times are seconds on the plan's own clock; `RunRecord.release_seconds` is the time of the run's
submission on that clock. All figures of a plan come from one simulation of it. The figures of a
baseline come from the same kind of simulation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_engine.model.active_runs import ReservedRoom, ReservedRun
from kfp_placement_engine.model.node_rules.latency import LatencyTolerance
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.objective import ResourceWeights
from kfp_placement_engine.model.promise import Promise
from kfp_placement_engine.plans.comparison import Comparison, Figures
from kfp_placement_engine.plans.limits import RunLimits
from kfp_placement_engine.plans.planned_step import PlannedDriver, PlannedStep


@dataclass(frozen=True)
class RunRecord:
    """The run that a plan is for.

    Attributes:
        name, source: name and source of the `RunGraph`.
        release_seconds: time of the submission on the plan's own clock; a time of the plan minus
            this value is the time since the submission.
        submitted_at: time of day of the submission; the plan's times are then shown as times of
            day. None = they are shown as seconds since the submission.
        is_outline: whether the run does not say requests and images, as in `RunGraph`.
    """

    name: str
    source: str
    release_seconds: float = 0.0
    submitted_at: datetime | None = None
    is_outline: bool = False


@dataclass(frozen=True)
class ClusterRecord:
    """The cluster that a plan is for.

    Attributes:
        nodes: names of all nodes, in the cluster's order.
        source: origin of the cluster's description, such as a file.
    """

    nodes: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class SearchRecord:
    """Record of the search for a plan: the same seed and generations give the same plan again.

    Attributes:
        seed, generations: seed of the random generator, and number of generations.
        planning_seconds: wall time of the search.
        dispatch: `ready` or `ordered`.
        objective: `completion`, `makespan`, `packing` or `paper`.
        exact: whether every assignment was tried instead of a search, under `ordered` dispatch in
            every order; see `Result.exact`.
        weights: weights that combine the use of CPU and of memory in one figure.
        latency_tolerance: band within which nodes count as nearest to a place.
    """

    seed: int
    generations: int
    planning_seconds: float
    dispatch: str
    objective: str
    exact: bool
    weights: ResourceWeights
    latency_tolerance: LatencyTolerance


@dataclass(frozen=True)
class Grounds:
    """Texts on what a plan rests on besides the run and the cluster.

    Attributes:
        assumptions: the assumed values that were used (`duration 60 s for 3 of 7 steps`).
        all_durations_assumed: whether every run time is a guess; no percentages are shown then.
        policy: values of the cluster's PlacementPolicy that differ from the defaults
            (`objective: packing`).
    """

    assumptions: tuple[str, ...]
    all_durations_assumed: bool
    policy: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The plan of one run on one cluster.

    Attributes:
        run: the run.
        cluster: the cluster.
        search: record of the search for the plan.
        figures: figures of the plan.
        comparison: schedules and bounds that the figures are measured against.
        steps: the steps, in the run graph's order.
        drivers: the driver pods, for the time line.
        unschedulable: name and reason of steps without a node.
        limits: causes of the run's length; empty unless requested.
        grounds: assumptions and policy of the plan, in words.
        notices: warnings.
        promise: ranges of the start and end of the run and its steps, by past runs; None = not
            requested.
    """

    run: RunRecord
    cluster: ClusterRecord
    search: SearchRecord
    figures: Figures
    comparison: Comparison
    steps: tuple[PlannedStep, ...]
    drivers: tuple[PlannedDriver, ...]
    unschedulable: tuple[tuple[str, str], ...]
    limits: RunLimits
    grounds: Grounds
    notices: tuple[Notice, ...]
    promise: Promise | None = None
    _by_name: dict[str, PlannedStep] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the steps by name."""
        object.__setattr__(self, "_by_name", {step.name: step for step in self.steps})

    @property
    def leaves_out(self) -> bool:
        """True if something that may change nodes or times is unknown or not used."""
        return self.run.is_outline or any(notice.is_beyond_plans for notice in self.notices)

    def step(self, name: str) -> PlannedStep:
        """Return the step of that name.

        Raises:
            KeyError: there is no such step.
        """
        return self._by_name[name]


@dataclass(frozen=True)
class RunsPlan:
    """The plans of runs that were planned together; time zero is the moment of planning.

    Attributes:
        plans: plan of each run by the run's key, in the given order. All its figures, also those of
            baselines, are of that run alone. If there are several runs, the bound of each is its
            critical path.
        terms: terms of the objective, over all plans and the reserved runs; compared as in
            `fitness`.
        completion_seconds: weighted sum of the completions, reserved runs included.
        makespan_seconds: latest end of all runs, reserved runs included.
        makespan_limit_seconds: limit of `makespan_seconds`; the time beyond it counts before
            completions. 0 for the objective `makespan`; infinite without a limit.
        generations: number of generations; with the same seed they give the same plans again.
        planning_seconds: wall time of the search.
    """

    plans: Mapping[str, Plan]
    terms: tuple[float, ...]
    completion_seconds: float
    generations: int
    planning_seconds: float
    makespan_seconds: float
    makespan_limit_seconds: float


def reserved_run(
    key: str, plan: Plan, *, elapsed_seconds: float = 0.0, weight: float = 1.0
) -> ReservedRun:
    """Return the room that a plan's steps take, so that other runs are planned beside them.

    Driver pods are left out: they are small, and the default scheduler places them.

    Args:
        key: key of the run.
        plan: plan of the run.
        elapsed_seconds: time since the plan's time zero.
        weight: weight of the run's completion.
    """
    rooms = tuple(
        ReservedRoom(
            step.node,
            step.start_seconds - elapsed_seconds,
            step.finish_seconds - elapsed_seconds,
            step.requests,
        )
        for step in plan.steps
        if step.node is not None
        and step.start_seconds is not None
        and step.finish_seconds is not None
        and step.finish_seconds > elapsed_seconds
    )
    return ReservedRun(key, rooms, weight)
