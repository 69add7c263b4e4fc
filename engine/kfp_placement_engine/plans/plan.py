"""A finished plan, for people and programs: what SDK and command line show and tests read.

Time zero is the submission of the run; where several runs are planned together it is the moment of
planning, and `Plan.release_seconds` says when the run was submitted. All figures come from one
simulation of the plan; the baselines' figures from the same simulation of theirs.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kfp_placement_engine.model.active_runs import ProgressState, ReservedRoom, ReservedRun
from kfp_placement_engine.model.forecast import Basis
from kfp_placement_engine.model.latency import LatencyTolerance
from kfp_placement_engine.model.objective import ResourceWeights
from kfp_placement_engine.model.promise import Promise
from kfp_placement_engine.model.reasons import Reason
from kfp_placement_engine.model.run_graph import DurationSource, Notice, StepKind, is_guess
from kfp_placement_engine.plans.limits import CriticalPiece, ResourceUse, ScheduledStep
from kfp_placement_engine.units.resources import Resources


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another node.

    Attributes:
        node: its index.
        loss_seconds: how much later the run would end with the step there.
        latency_ms: round trip there; None = unknown, or no rule asks for it.
    """

    node: int
    loss_seconds: float
    latency_ms: float | None = None


@dataclass(frozen=True)
class PlannedStep:
    """One step of the plan.

    Attributes:
        name, task, kind, iteration, assumed, conditional, type, location: as in `run_graph.Step`.
        node: name of the node, or None if it is unschedulable.
        start_seconds: when its pod is bound (negative if it runs already); None if unschedulable or
            ended.
        finish_seconds: when its outputs are uploaded; None if unschedulable or ended.
        image_pull_seconds: time spent on pulling missing image bytes.
        transfer_seconds: time spent on downloading inputs and uploading outputs.
        duration_seconds: run time on that node.
        duration_source: where the run time comes from.
        duration_basis: which past runs it rests on; None = none.
        latency_ms: round trip between its location and the node; None = no rule or unknown.
        requests: what the planner reserves for it.
        image, labels, attempt_limit, depends_on: as in `run_graph.Step`.
        reason: why there, in one sentence.
        type_guessed: the type was guessed from the name.
        is_latency_ruled: steps of its type go to the node of least round trip to their location.
        requests_nothing: nobody said what it needs; `requests` is what KFP's launcher reserves.
        cached: taken to come from the cache; it has times but no node.
        progress: whether it waits, runs or has ended.
        why: the reason; its nodes are positions in `Plan.cluster_nodes`.
        alternatives: the next best nodes, if they were asked for; node as in `why`.
        display_name: the name that its author gave to the task, or "".
        node_speed: of its node; run times are divided by it.
        sized_input: the name of its only input, where the run time depends on its size; "" = there
            is no such input.
    """

    name: str
    task: str
    kind: StepKind
    iteration: tuple[int, ...]
    assumed: bool
    conditional: bool
    type: str
    location: str
    node: str | None
    start_seconds: float | None
    finish_seconds: float | None
    image_pull_seconds: float
    transfer_seconds: float
    duration_seconds: float
    duration_source: DurationSource
    latency_ms: float | None
    requests: Resources
    image: str
    labels: Mapping[str, str]
    attempt_limit: int
    depends_on: tuple[str, ...]
    reason: str
    type_guessed: bool = False
    is_latency_ruled: bool = False
    requests_nothing: bool = False
    cached: bool = False
    progress: ProgressState = ProgressState.WAITING
    why: Reason | None = None
    alternatives: tuple[Alternative, ...] = ()
    display_name: str = ""
    node_speed: float = 1.0
    duration_basis: Basis | None = None
    sized_input: str = ""

    @property
    def is_guessed(self) -> bool:
        """Whether its run time is assumed, or rests on steps that have little in common with it."""
        return is_guess(self.duration_source, self.duration_basis)


@dataclass(frozen=True)
class PlannedDriver:
    """A KFP driver pod on the plan's time line; `name` is the step or group it belongs to."""

    name: str
    node: str
    start_seconds: float
    finish_seconds: float


@dataclass(frozen=True)
class Figures:
    """What one schedule achieves, in the order in which plans are compared.

    Attributes:
        unplaced: steps that no node can take.
        latency_excess_ms: sum over steps of the round trip beyond the tolerance band of their rule
            or their hard limit; infinite if a step is on a node of unknown round trip.
        latency_ms: sum of the round trips of latency-ruled steps; infinite likewise.
        makespan_seconds: end of the last step; a mean where ties of the default scheduler decide.
        fastest_seconds, slowest_seconds: the range of that mean; None = always the same.
        tie_breaks: how many ways to break ties the figures are means over.
        moves_volumes: users of one ReadWriteOnce claim run on different nodes, one after another;
            the simulation moves the volume in no time.
        use: by resource, requests x seconds of all pods from the run's submission to its end, over
            what is free at time zero on the nodes that the run may use x that time.
    """

    unplaced: int
    latency_excess_ms: float
    latency_ms: float
    makespan_seconds: float
    fastest_seconds: float | None = None
    slowest_seconds: float | None = None
    tie_breaks: int = 1
    moves_volumes: bool = False
    use: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Bound:
    """A makespan no schedule can beat.

    Attributes:
        seconds: the makespan.
        kind: how it was found: `critical-path`, `area`, `windows`, `kinds-lp` or `pattern-lp`; with
            `-rounded` behind it where it was rounded up to the common divisor of all times.
    """

    seconds: float
    kind: str

    @property
    def needs_solver(self) -> bool:
        """Whether it is missing where the extra `bounds` is not installed."""
        return self.kind.startswith(("kinds-lp", "pattern-lp"))


@dataclass(frozen=True)
class Plan:
    """The plan of one run on one cluster.

    Attributes:
        run_name, run_source: from the run graph.
        cluster_nodes: names of all nodes, in the cluster's order.
        cluster_source: what the cluster was read from.
        seed, generations: replay the same plan.
        planning_seconds: wall time of the search.
        dispatch: `ready` or `ordered`.
        objective: `completion`, `makespan`, `packing` or `paper`.
        figures: what the plan achieves.
        lower_bound: what no plan can beat.
        baselines: the same figures for each baseline asked for, by name.
        steps: in the run graph's order.
        drivers: the driver pods, for the time line.
        unschedulable: name and reason of steps without a node.
        notices: warnings.
        assumptions: the assumed values that were used, in words (`duration 60 s for 3 of 7 steps`).
        all_durations_assumed: no percentages are shown then.
        exact: instead of a search every assignment was tried, under `ordered` with every order; see
            `Result.exact`.
        latency_tolerance: which nodes counted as nearest to a place.
        policy: what the plan takes from the cluster's PlacementPolicy and is not usual, in words
            (`objective: packing`).
        release_seconds: when the run was submitted, on the plan's own clock; times since then are
            the plan's times less this.
        critical_path: what the end of the run waits for, from its submission to its end without a
            gap; empty where the run does not end or nobody asked.
        binding_resources: the resource that is scarcest, over time.
        default_schedule: what kube-default does, where it was compared; of several tie-breaks the
            one whose makespan is nearest to their mean.
        ordered_makespan_seconds: what a plan whose steps may wait (`ordered`, gates) reaches in a
            short search, where this one may not (`ready`) and does not reach the bound; else None.
        weights: by which the use of CPU and memory is one figure.
        promise: when the run and its steps start and end, by past runs; None = nobody asked.
        submitted_at: when the run is submitted, so that its times are shown as times of day; None =
            they are shown since then.
    """

    run_name: str
    run_source: str
    cluster_nodes: tuple[str, ...]
    cluster_source: str
    seed: int
    generations: int
    planning_seconds: float
    dispatch: str
    objective: str
    figures: Figures
    lower_bound: Bound
    baselines: Mapping[str, Figures]
    steps: tuple[PlannedStep, ...]
    drivers: tuple[PlannedDriver, ...] = ()
    unschedulable: tuple[tuple[str, str], ...] = ()
    notices: tuple[Notice, ...] = ()
    assumptions: tuple[str, ...] = ()
    all_durations_assumed: bool = False
    exact: bool = False
    release_seconds: float = 0.0
    latency_tolerance: LatencyTolerance = field(default_factory=LatencyTolerance)
    policy: tuple[str, ...] = ()
    critical_path: tuple[CriticalPiece, ...] = ()
    binding_resources: tuple[ResourceUse, ...] = ()
    default_schedule: tuple[ScheduledStep, ...] = ()
    ordered_makespan_seconds: float | None = None
    weights: ResourceWeights = field(default_factory=ResourceWeights)
    promise: Promise | None = None
    submitted_at: datetime | None = None
    _by_name: dict[str, PlannedStep] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the steps by name."""
        object.__setattr__(self, "_by_name", {step.name: step for step in self.steps})

    def step(self, name: str) -> PlannedStep:
        """The step of that name.

        Raises:
            KeyError: there is none.
        """
        return self._by_name[name]


@dataclass(frozen=True)
class RunsPlan:
    """The plans of runs that were planned together; time zero is the moment of planning.

    Attributes:
        plans: by the runs' keys, in the order given. Their figures are each run's own, baselines'
            included; the bound of one of several is its critical path.
        terms: of the objective, over all of them and the reserved runs; compared as in `fitness`.
        completion_seconds: weighted sum of the completions, reserved runs included.
        makespan_seconds: the latest end of all, likewise.
        makespan_limit_seconds: what of that end is beyond it counts before completions: 0 for the
            objective `makespan`, infinite without a limit.
        generations: replays the plans with the seed.
        planning_seconds: wall time of the search.
    """

    plans: Mapping[str, Plan]
    terms: tuple[float, ...]
    completion_seconds: float
    generations: int
    planning_seconds: float
    makespan_seconds: float = 0.0
    makespan_limit_seconds: float = math.inf


def reserved_run(
    key: str, plan: Plan, *, elapsed_seconds: float = 0.0, weight: float = 1.0
) -> ReservedRun:
    """The room that a plan's steps take, to plan other runs beside it.

    Driver pods are left out: they are small, and the default scheduler places them.

    Args:
        key: the run's.
        plan: its plan.
        elapsed_seconds: how long ago the plan's time zero was.
        weight: of its completion.
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
