"""One measurement of scale, in a process of its own: how much time and memory a plan takes.

`python -m benchmarks.scale_case kfp 1000 100 0 2s` prints one line of JSON.
"""

import json
import resource
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.budget import Budget, Spent, timed_budget
from benchmarks.cases import Instance, hash_of
from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from benchmarks.search_outcome import Row, SearchOutcome, by_start, find
from kfp_placement_engine import (
    Cluster,
    GeneticParams,
    LoweringOptions,
    MaxRuntime,
    PlacementProblem,
    Plan,
    PlanOptions,
    RunGraph,
    lower,
    plan_run,
    solve,
)
from kfp_placement_engine.search.genetic import seeds_of, trials_per_generation

FIRST_PLAN, WHOLE_CALL = "firstPlanSeconds", "wholeCallSeconds"
PLANS_A_SECOND, PEAK_BYTES = "plansPerSecond", "peakBytes"
"""Names of what is measured besides the plan."""


def load(shape: Shape) -> Instance:
    """Return a made-up run on a made-up cluster as a problem."""
    run, cluster = made_up_run(shape), made_up_cluster(shape)
    lowered = lower(run, cluster, LoweringOptions(dispatch=shape.dispatch))
    return Instance(
        run=run,
        problem=lowered.problem,
        activities=lowered.step_activities[0],
        nodes=lowered.problem.node_names,
        input_hash=hash_of(run, cluster),
        has_all_ties=True,
    )


def measure(shape: Shape, budget: Budget) -> SearchOutcome:
    """Plan a made-up run; the seed that draws it starts the search, too.

    With a budget of time a whole plan is made as a caller gets it, with its baselines, bound and
    explanations, all of whose CPU time counts as spent; else only the problem is made and searched.
    """
    run, cluster = made_up_run(shape), made_up_cluster(shape)
    first, problem = _first_plan(run, cluster, shape)
    started = time.perf_counter()
    if budget.wall_seconds is not None:
        outcome = _planned(run, cluster, problem, shape, budget.wall_seconds)
    else:
        instance = load(shape)
        searching = time.perf_counter()
        outcome = find(instance, budget, shape.seed)
        speed = outcome.spent.schedules / (time.perf_counter() - searching)
        outcome = replace(outcome, measured={PLANS_A_SECOND: speed})
    whole = time.perf_counter() - started
    measured = {**outcome.measured, FIRST_PLAN: first, WHOLE_CALL: whole, PEAK_BYTES: peak_bytes()}
    return replace(outcome, measured=measured)


def _planned(
    run: RunGraph, cluster: Cluster, problem: PlacementProblem, shape: Shape, seconds: float
) -> SearchOutcome:
    options = PlanOptions(budget_seconds=seconds, seed=shape.seed, dispatch=shape.dispatch)
    started = time.process_time()
    plan = plan_run(run, cluster, options)
    cpu_seconds = time.process_time() - started
    # The first generations simulate one plan each: those that the search starts from.
    starts = sum(1 for _ in seeds_of(problem, shape.seed)) - 1
    bred = max(0, plan.search.generations - starts)
    tried = starts + bred * trials_per_generation(problem) * GeneticParams().islands
    return SearchOutcome(
        spent=Spent(tried, cpu_seconds, has_begun=bred > 0),
        makespan=plan.figures.makespan_seconds,
        completions=(plan.figures.makespan_seconds,),
        unplaced=plan.figures.unplaced,
        rows=_rows(plan),
        use=plan.figures.use,
        measured={PLANS_A_SECOND: tried / plan.search.planning_seconds},
    )


def _rows(plan: Plan) -> tuple[Row, ...]:
    """Return the steps that end, by start."""
    rows = (
        (step.name, step.node or "", step.start_seconds, step.finish_seconds)
        for step in plan.steps
        if step.start_seconds is not None and step.finish_seconds is not None
    )
    return tuple(sorted(rows, key=by_start))


def _first_plan(run: RunGraph, cluster: Cluster, shape: Shape) -> tuple[float, PlacementProblem]:
    """Seconds to the first plan, and the problem."""
    started = time.perf_counter()
    problem = lower(run, cluster, LoweringOptions(dispatch=shape.dispatch)).problem
    solve(problem, MaxRuntime(0.0), shape.seed)
    return time.perf_counter() - started, problem


def peak_bytes() -> int:
    """Return the peak memory of this process.

    Linux counts what the parent held at the fork into `ru_maxrss`; its own figure is in /proc.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


if __name__ == "__main__":
    kind, *numbers, allowed = sys.argv[1:]
    steps, nodes, seed = map(int, numbers)
    asked = Shape(kind, steps, nodes, seed)
    print(json.dumps(asdict(measure(asked, timed_budget(allowed)))))
