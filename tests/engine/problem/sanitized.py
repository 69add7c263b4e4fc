"""Runs a bit of everything with a kernel built for finding memory errors, as a program of its own.

    python -m tests.engine.problem.sanitized FOLDER

FOLDER holds a copy of the engine with that kernel; it must come first on the path. The sanitizers
end the process at the first error.
"""

import sys
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings

from benchmarks.kube_scheduler.kube_scores import (
    balanced_allocation,
    image_locality,
    least_allocated,
)
from kfp_placement_engine import (
    BASELINES,
    ActiveRun,
    GeneticParams,
    LoweringOptions,
    PlacementProblem,
)
from kfp_placement_engine.lowering import lower_runs, with_reservations
from kfp_placement_engine.problem import native
from kfp_placement_engine.search.baselines.brute_force import count_plans
from kfp_placement_engine.search.genetic import seeds_of
from kfp_placement_engine.search.simulation import simulate_planned
from tests.engine.planning.begun_runs import begun_cases
from tests.engine.planning.mixed_runs import room_of_another
from tests.engine.planning.random_runs import DISPATCHES, Case, cases
from tests.support.builders import (
    a_chain,
    a_cluster,
    a_node,
    a_problem,
    a_run,
    a_step,
    equal_steps,
    nodes,
    searched,
)

EXABYTE_GIB = 2.0**30
PARAMS = GeneticParams(exact_below=0, population_size=3, islands=1)


def run_everything(problem: PlacementProblem) -> None:
    """Every policy, every search."""
    for name, baseline in BASELINES.items():
        if name != "brute-force" or count_plans(problem) < 500:
            baseline(problem, 0)
    generations = len(list(seeds_of(problem))) + 1
    searched(problem, generations, 0, PARAMS)
    searched(problem, 2, 0, GeneticParams.paper())
    if problem.genes:
        first = problem.arrays.allowed.argmax(axis=1).astype(np.int64)
        simulate_planned(problem, first, np.zeros(problem.activities))


always_the_same = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
"""Settings under sanitizers, where everything is slow and an error must appear again."""


@always_the_same
@given(case=cases(), dispatch=DISPATCHES)
def random_cases(case: Case, dispatch: str) -> None:
    """Drivers, loops, volumes, devices, latencies, transfers."""
    run_everything(case.lowered(dispatch=dispatch).problem)


@always_the_same
@given(drawn=begun_cases(), dispatch=DISPATCHES)
def begun_runs(drawn: tuple[Case, ActiveRun], dispatch: str) -> None:
    """Running pods, loops under way, rooms reserved by others."""
    case, run = drawn
    problem = lower_runs([run], case.cluster, LoweringOptions(dispatch=dispatch)).problem
    run_everything(with_reservations(problem, [room_of_another(case.cluster)]))


def edges() -> None:
    """No time, one node, many classes of pods, amounts at the end of what fits."""
    nothing = a_run(*a_chain(*[0] * 9))
    many = a_run(*(a_step(f"s{n}", cpu=0.5 + n / 1000) for n in range(300)))
    huge = a_run(*equal_steps(4, memory=EXABYTE_GIB * 6, cpu=1e12))
    roomy = a_node(cpu=8e15, memory=EXABYTE_GIB * 7.5)
    for run, members in (
        (nothing, nodes(1)),
        (many, nodes(3)),
        (huge, (roomy, a_node("n2"))),
        (many, nodes(120)),
    ):
        for dispatch in ("ready", "ordered"):
            run_everything(a_problem(run, a_cluster(*members), dispatch=dispatch))
    largest = 2**63 - 1
    for amount in (0, 1, 2**60, largest):
        least_allocated(amount, amount, largest, largest)
        balanced_allocation(amount, 0, 0, amount, largest, 1, True)
        image_locality(amount, 1)


if __name__ == "__main__":
    engine = Path(native.__file__).resolve()
    assert engine.is_relative_to(Path(sys.argv[1]).resolve()), f"{engine} is not the one to try"
    random_cases()
    begun_runs()
    edges()
    sys.stdout.write("no error found\n")
