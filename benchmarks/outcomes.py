"""Outcome of one search of a case, beside its baselines, peers, bounds and optimum."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from benchmarks.budget import Budget, Spent
from benchmarks.cases import Instance
from benchmarks.peers import peer_schedules
from benchmarks.search_outcome import SearchOutcome, use_figures
from kfp_placement_engine import BASELINES, PlacementProblem
from kfp_placement_engine.bounds.lower_bound import lower_bounds
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.search.baselines import schedules_of

MARGIN = 1e-6
"""Relative difference that rounding may make."""

_NOT_COMPARED = ("brute-force",)
"""Baselines that are left out: brute force never ends on all but tiny runs."""

Noted = Callable[[str, Schedule], None]
"""Callback that takes the name and the schedule of each simulated reference."""


@dataclass(frozen=True)
class References:
    """Makespans for comparison with those of a problem, by name and in seconds.

    Attributes:
        baselines: baselines of the engine, from which a search starts.
        bounds: lower bounds of any schedule.
        peers: schedulers of others.
        out_of_reach: baselines that no plan may be able to follow.
    """

    baselines: Mapping[str, float]
    bounds: Mapping[str, float]
    peers: Mapping[str, float] = field(default_factory=dict)
    out_of_reach: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """One case, one seed, one budget; times in seconds.

    Attributes:
        case: name of the case.
        seed: seed of the search, and of the case where it is drawn.
        input_hash: hash of the planned input.
        steps: number of steps of any duration.
        budget, spent: budget of the search, and the resources that it spent.
        makespan: the latest end.
        completions: completion of each run.
        unplaced: steps that never end.
        references: baselines, peers and bounds.
        optimum: the least makespan, if known.
        use: mean use of each resource until the latest end, by name.
        measured: further figures by the names that they have in JSON.
        base: result of another checkout's search; None without another checkout.
    """

    case: str
    seed: int
    input_hash: str
    steps: int
    budget: Budget
    spent: Spent
    makespan: float
    completions: tuple[float, ...]
    unplaced: int
    references: References
    optimum: float | None = None
    use: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)
    base: SearchOutcome | None = None

    @property
    def bound(self) -> float:
        """The largest of the bounds."""
        return max(self.references.bounds.values())

    @property
    def bound_kind(self) -> str:
        """The name of the largest of the bounds."""
        return max(self.references.bounds, key=lambda name: self.references.bounds[name])

    @property
    def gap(self) -> float:
        """Relative gap of the makespan to the optimum; NaN if the optimum is not known."""
        if self.optimum is None:
            return math.nan
        return self.makespan / self.optimum - 1

    @property
    def is_optimal(self) -> bool:
        """True if the makespan is the optimum."""
        return self.optimum is not None and self.makespan <= self.optimum * (1 + MARGIN)

    @property
    def contradiction(self) -> str:
        """Return a fault that is one under any objective; "" = none."""
        least = max(self.bound, self.optimum or 0.0)
        if self.optimum is not None and self.bound > self.optimum * (1 + MARGIN):
            return (
                f"the bound {self.bound_kind} of {self.bound:g} s is above the optimum of "
                f"{self.optimum:g} s"
            )
        if self.unplaced:
            return f"{self.unplaced} steps are left out"
        if self.makespan < least * (1 - MARGIN):
            return f"{self.makespan:g} s is below the bound or optimum of {least:g} s"
        for name, seconds in {**self.references.baselines, **self.references.peers}.items():
            if seconds < least * (1 - MARGIN):
                return f"{name}'s {seconds:g} s is below the bound or optimum of {least:g} s"
        return ""

    @property
    def fault(self) -> str:
        """Return a fault where the shorter plan is the better one; "" = none."""
        if self.contradiction:
            return self.contradiction
        for name, seconds in self.references.baselines.items():
            is_start = self.spent.has_begun and name not in self.references.out_of_reach
            if is_start and self.makespan > seconds * (1 + MARGIN):
                return f"{self.makespan:g} s is worse than {name}'s {seconds:g} s"
        return ""

    @property
    def figures(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "case": self.case,
            "seed": self.seed,
            "input": self.input_hash,
            "steps": self.steps,
            "budget": self.budget.figures,
            "spent": self.spent.figures,
            "makespanSeconds": self.makespan,
            "completionSeconds": list(self.completions),
            "unplaced": self.unplaced,
            "baselineSeconds": {**self.references.baselines, **self.references.peers},
            "boundSeconds": dict(self.references.bounds),
            "optimumSeconds": self.optimum,
            **use_figures(self.use),
            **self.measured,
            **({} if self.base is None else {"base": self.base.figures}),
        }


def outcome_of(
    case: str,
    seed: int,
    budget: Budget,
    instance: Instance,
    references: References,
    search_result: SearchOutcome,
) -> Outcome:
    """Return the outcome that reports show of a search.

    Args:
        case: name of the case.
        seed: seed of the search.
        budget: budget of the search.
        instance: planned instance.
        references: makespans and bounds to compare with.
        search_result: best plan of the search, and what the search took.
    """
    return Outcome(
        case=case,
        seed=seed,
        input_hash=instance.input_hash,
        steps=len(instance.activities),
        budget=budget,
        spent=search_result.spent,
        makespan=search_result.makespan,
        completions=search_result.completions,
        unplaced=search_result.unplaced,
        references=references,
        optimum=instance.optimum_seconds,
        use=search_result.use,
        measured=search_result.measured,
    )


def references_of(
    instance: Instance,
    seed: int,
    peers: Sequence[str] = (),
    bounds: Mapping[str, float] | None = None,
    note: Noted = lambda name, schedule: None,
) -> References:
    """Return every baseline but brute force, the bounds, and the chosen peers.

    Args:
        instance: planned instance.
        seed: seed of baselines and peers that draw.
        peers: names of the peers.
        bounds: bounds of the same problem; None = they are computed.
        note: callback for each schedule; of several of one name, each name ends with a number.

    Raises:
        BenchmarkError: a peer's schedule cannot be simulated.
    """
    problem = instance.problem
    baselines = {}
    for name in BASELINES:
        if name in _NOT_COMPARED:
            continue
        schedules = [BASELINES[name](problem, seed)]
        if instance.has_all_ties:
            schedules = schedules_of(name, problem, seed)
        baselines[name] = fmean(each.makespan_seconds for each in schedules)
        for number, each in enumerate(schedules, start=1):
            note(name if len(schedules) == 1 else f"{name}-{number}", each)
    by_peer = peer_schedules(instance, peers, seed)
    for name, schedule in by_peer.items():
        note(name, schedule)
    return References(
        baselines=baselines,
        bounds=bounds or bounds_of(problem),
        peers={name: schedule.makespan_seconds for name, schedule in by_peer.items()},
        # Strict FIFO may let steps wait, which a plan under `ready` dispatch cannot.
        out_of_reach=("fifo",) if problem.dispatch == "ready" else (),
    )


def bounds_of(problem: PlacementProblem) -> dict[str, float]:
    """Return every bound by name."""
    return {bound.kind: bound.seconds for bound in lower_bounds(problem)}


def by_budget(outcomes: Sequence[Outcome]) -> dict[Budget, list[Outcome]]:
    """Return the outcomes of each budget, in the order of the budgets."""
    groups: dict[Budget, list[Outcome]] = {}
    for each in outcomes:
        groups.setdefault(each.budget, []).append(each)
    return groups


def baseline_gaps(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return baselines' relative gaps to the optimum: means over outcomes that have one."""
    pairs = [(each.references.baselines, each.optimum) for each in outcomes if each.optimum]
    names = pairs[0][0] if pairs else ()
    return {name: fmean(ends[name] / optimum - 1 for ends, optimum in pairs) for name in names}
