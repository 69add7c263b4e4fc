"""Results of a case of what-if: suggestions with their times, and a search of every change."""

import resource
import time
from dataclasses import dataclass, replace

from benchmarks.what_if_case import CASES, NODES, Case, made_up_case
from kfp_placement_engine import Cluster, MaxRuntime, PlanOptions, RunGraph, plan_run, solve
from kfp_placement_engine.lowering import lower_runs
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.planning.plan_options import lowering_options_of
from kfp_placement_engine.planning.warm_start import placement_by_plan
from kfp_placement_engine.planning.what_if.applied_changes import with_changes
from kfp_placement_engine.planning.what_if.best_changes import best_changes
from kfp_placement_engine.planning.what_if.single_changes import single_changes
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.what_if import LEAST_GAIN, Suggestions
from kfp_placement_engine.plans.what_if_changes import Change

REPEATS = 3
"""Number of times that suggestions are asked for; they are the same each time."""

UNCHANGED_SEEDS = 5
"""Number of searches without a change: of a hundred searches with changes some are lucky."""


@dataclass(frozen=True)
class SuggestedCase:
    """The suggestions for one case, and what they took.

    Attributes:
        number: index of the case in `CASES`.
        run, cluster, options, plan: run, its cluster, how it was planned, and its plan.
        suggestions: best single changes.
        wall_seconds, cpu_seconds: shortest times of the suggestions.
    """

    number: int
    run: RunGraph
    cluster: Cluster
    options: PlanOptions
    plan: Plan
    suggestions: Suggestions
    wall_seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class SearchedCase:
    """Result of one case; gains count from the best plan without a change that any search found.

    Attributes:
        case, dispatch: planned case, and the dispatch of its plan.
        present_seconds: makespan of the plan.
        tried, every: numbers of changes: those that the suggestions try, and all.
        wall_seconds, cpu_seconds: shortest times of the suggestions.
        first: text of the first suggestion; "" where nothing is suggested.
        first_gain, best_gain: shares of the run that the first suggestion and the best change gain.
        best: text of the best change.
    """

    case: Case
    dispatch: str
    present_seconds: float
    tried: int
    every: int
    wall_seconds: float
    cpu_seconds: float
    first: str
    first_gain: float
    best_gain: float
    best: str

    @property
    def share(self) -> float:
        """Share of the best gain; 1 where nothing gains 1% of the run and nothing is suggested."""
        if self.best_gain < LEAST_GAIN and not self.first:
            return 1.0
        return self.first_gain / self.best_gain


def ask(number: int, dispatch: str, budget_seconds: float) -> SuggestedCase:
    """Plan a case and ask for suggestions; repeats give the least times."""
    run, cluster = made_up_case(number)
    options = PlanOptions(budget_seconds=budget_seconds, dispatch=dispatch, compare=())
    plan = plan_run(run, cluster, options)
    took = []
    for _ in range(REPEATS):
        wall, cpu = time.perf_counter(), _cpu_seconds()
        suggestions = best_changes(run, cluster, plan, options)
        took.append((time.perf_counter() - wall, _cpu_seconds() - cpu))
    wall, cpu = min(took)
    return SuggestedCase(number, run, cluster, options, plan, suggestions, wall, cpu)


def search_every(suggested: SuggestedCase, each_seconds: float) -> SearchedCase:
    """Search every single change on its own, and put the suggestions beside the best of them."""
    run, cluster, plan, options = (
        suggested.run,
        suggested.cluster,
        suggested.plan,
        suggested.options,
    )
    every = single_changes(run, cluster, plan, options, NODES)
    ends = {each: _end(run, cluster, plan, each, options, each_seconds) for each in every}
    seeds = (replace(options, seed=seed) for seed in range(UNCHANGED_SEEDS))
    unchanged = min(_end(run, cluster, plan, None, each, each_seconds) for each in seeds)
    return _searched_case(suggested, ends, unchanged)


def _searched_case(
    suggested: SuggestedCase, ends: dict[Change, float], unchanged: float
) -> SearchedCase:
    present, suggestions = suggested.plan.figures.makespan_seconds, suggested.suggestions
    reachable = min(unchanged, present - suggestions.unchanged_gain_seconds)
    first = suggestions.best[0] if suggestions.best else None
    best = min(ends, key=lambda change: ends[change])
    return SearchedCase(
        case=CASES[suggested.number],
        dispatch=suggested.plan.search.dispatch,
        present_seconds=present,
        tried=suggestions.tried,
        every=len(ends),
        wall_seconds=suggested.wall_seconds,
        cpu_seconds=suggested.cpu_seconds,
        first="" if first is None else first.change.text,
        first_gain=0.0 if first is None else (reachable - first.makespan_seconds) / present,
        best_gain=max(0.0, reachable - ends[best]) / present,
        best=best.text,
    )


def _end(
    run: RunGraph,
    cluster: Cluster,
    plan: Plan,
    change: Change | None,
    options: PlanOptions,
    budget_seconds: float,
) -> float:
    """Return the end of the run with a change, in seconds, searched from the same plan."""
    run, cluster = with_changes(run, cluster, () if change is None else (change,))
    runs = (ActiveRun("", run),)
    lowered = lower_runs(runs, cluster, lowering_options_of(runs, cluster, options))
    start = placement_by_plan(lowered, plan)
    result = solve(lowered.problem, MaxRuntime(budget_seconds), options.seed, warm_start=start)
    return result.schedule.makespan_seconds


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
