"""Small random cases: how often our search finds the optimum that CP-SAT proves.

`python -m benchmarks.exact --help`. 8 to 24 pods on 1 to 3 nodes, case k by `random.Random(k)`; CPU
and memory, nodes of speed 1 or 2, data from node to node; ordered dispatch. CP-SAT proves each in a
tenth of a second on average.
"""

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

from benchmarks import cp_sat
from benchmarks.budget import Budget
from benchmarks.cases import Case, Instance, ordered_instance
from benchmarks.measuring import Benchmark, Parts, run_command, searched
from benchmarks.outcomes import Outcome, by_budget
from benchmarks.processes import on_one_thread
from benchmarks.tables import Table, percent
from kfp_placement_engine import Cluster, Node, RunGraph, Step
from kfp_placement_engine.model.run_graph import DataInput
from kfp_placement_engine.plans.progress import Progress

CASES = 200

FEWEST_PODS, MOST_PODS = 8, 24
FEWEST_NODES, MOST_NODES = 1, 3

MOST_ALONE = 16
"""Pods on a cluster of one node: of more, CP-SAT does not prove some within minutes."""

_LAGS = (0, 0, 2, 5)
"""Seconds that data takes to another node; two of four steps have none to move."""

_NEAR, _AFTER = 12, 0.25
"""Numbers of earlier pods that a pod may wait for, and the probability of each."""

_BYTES_PER_SECOND = 125_000_000
"""Bandwidth from node to node, as the planner assumes."""

_PREFIX = "case-"


@dataclass(frozen=True)
class DrawnPod:
    """A pod of a case.

    Attributes:
        requests: CPU cores, and GiB of memory.
        seconds: run time on a node of speed 1.
        after: pods that it waits for, and the seconds that their data takes to another node.
    """

    requests: tuple[int, int]
    seconds: int
    after: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class DrawnCase:
    """A case.

    Attributes:
        speeds: speeds of the nodes.
        capacities: CPU cores and GiB of memory of the nodes.
        pods: pods of the run; all numbers stay integers on all nodes.
    """

    speeds: tuple[int, ...]
    capacities: tuple[tuple[int, int], ...]
    pods: tuple[DrawnPod, ...]


def drawn(number: int) -> DrawnCase:
    """Return the case of a number; every pod fits on every node."""
    rng = random.Random(number)
    nodes = rng.randint(FEWEST_NODES, MOST_NODES)
    pods = rng.randint(FEWEST_PODS, MOST_PODS if nodes > 1 else MOST_ALONE)
    return DrawnCase(
        speeds=tuple(rng.choice((1, 1, 2)) for _ in range(nodes)),
        capacities=tuple((rng.randint(4, 8), rng.randint(4, 8)) for _ in range(nodes)),
        pods=tuple(_pod(rng, index) for index in range(pods)),
    )


def _pod(rng: random.Random, index: int) -> DrawnPod:
    requests, seconds = (rng.randint(1, 4), rng.randint(1, 4)), 2 * rng.randint(1, 10)
    before = [each for each in range(max(0, index - _NEAR), index) if rng.random() < _AFTER]
    return DrawnPod(requests, seconds, tuple((each, rng.choice(_LAGS)) for each in before))


def as_integers(case: DrawnCase) -> dict[str, Any]:
    """Return the case for `cp_sat.optimum`."""
    return {
        "capacities": case.capacities,
        "steps": [
            {
                "requests": pod.requests,
                "seconds": [pod.seconds // speed for speed in case.speeds],
                "after": pod.after,
            }
            for pod in case.pods
        ],
    }


def load(number: int, optimum_seconds: float | None, _seed: int) -> Instance:
    """Return the case as a problem."""
    case = drawn(number)
    steps = tuple(
        Step(
            name=_pod_name(index),
            task=_pod_name(index),
            requests=_amounts(*pod.requests),
            duration_seconds=float(pod.seconds),
            depends_on=tuple(_pod_name(before) for before, _ in pod.after),
            inputs=tuple(
                DataInput(_pod_name(before), "out", lag * _BYTES_PER_SECOND)
                for before, lag in pod.after
                if lag
            ),
        )
        for index, pod in enumerate(case.pods)
    )
    nodes = tuple(
        Node(f"node-{index}", {**_amounts(*capacity), "pods": MOST_PODS}, speed=speed)
        for index, (capacity, speed) in enumerate(
            zip(case.capacities, case.speeds, strict=True), start=1
        )
    )
    run = RunGraph(f"case {number}", "wfformat", steps, direct_transfers=True)
    return ordered_instance(run, Cluster(nodes), optimum_seconds=optimum_seconds)


def _amounts(cores: int, gibibytes: int) -> dict[str, int]:
    return {"cpu": 1000 * cores, "memory": gibibytes * 2**30}


def _pod_name(index: int) -> str:
    return f"pod-{index}"


def all_cases(_asked: object = None) -> list[Case]:
    """Return the cases without their optima."""
    return [Case(f"{_PREFIX}{number:03}", partial(load, number, None)) for number in range(CASES)]


def with_optima(cases: Sequence[Case], progress: Progress) -> list[Case]:
    """Return the cases with their optima.

    Raises:
        BenchmarkError: the solver is not installed.
    """
    progress(0.0, f"optima of {len(cases)} cases by CP-SAT")
    numbers = [int(case.name.removeprefix(_PREFIX)) for case in cases]
    optima = cp_sat.optima([as_integers(drawn(number)) for number in numbers])
    return [
        Case(case.name, partial(load, number, float(optimum)))
        for case, number, optimum in zip(cases, numbers, optima, strict=True)
    ]


def totals(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Means for each budget; gaps as ratios."""
    return [
        {
            "budget": budget.figures,
            "cases": len({each.case for each in group}),
            "runs": len(group),
            "meanSchedules": fmean(each.spent.schedules for each in group),
            "meanCpuSeconds": fmean(each.spent.cpu_seconds for each in group),
            "optimal": fmean(each.is_optimal for each in group),
            "gap": fmean(each.gap for each in group),
            "largestGap": max(each.gap for each in group),
            "baselineGaps": {
                name: fmean(
                    each.references.baselines[name] / (each.optimum or 1) - 1 for each in group
                )
                for name in group[0].references.baselines
            },
        }
        for budget, group in by_budget(outcomes).items()
    ]


def parts(outcomes: Sequence[Outcome]) -> Parts:
    """Return the paragraphs about the measurement, and the table."""
    rows = [
        [
            budget.text,
            str(row["cases"]),
            f"{row['meanSchedules']:,.0f}",
            f"{row['meanCpuSeconds']:.2f}",
            percent(row["optimal"]),
            percent(row["gap"], 3),
            percent(row["largestGap"], 2),
            percent(row["baselineGaps"]["heft"], 2),
            percent(row["baselineGaps"]["kube-default"], 2),
        ]
        for budget, row in zip(by_budget(outcomes), totals(outcomes), strict=True)
    ]
    headings = [
        "budget",
        "cases",
        "schedules",
        "CPU, s",
        "optimal, %",
        "mean gap, %",
        "at most, %",
        "HEFT's gap, %",
        "kube-default's gap, %",
    ]
    return [_about(outcomes), Table("Gap to the optimum that CP-SAT proves", headings, rows)]


def _about(outcomes: Sequence[Outcome]) -> list[str]:
    return [
        f"Random cases of {FEWEST_PODS} to {MOST_PODS} pods on up to {MOST_NODES} nodes of speed",
        "1 or 2, with data from node to node; ordered dispatch. Means over cases and seeds;",
        f"{searched(outcomes)}.",
    ]


BENCHMARK = Benchmark(
    name="exact",
    heading="Small cases with a proven optimum",
    summary="Small random cases: how often our search finds the optimum that CP-SAT proves.",
    examples=["", "--limit 20 --budget 5000schedules", "--cases 'case-01*' --schedules plans"],
    cases=all_cases,
    parts=parts,
    totals=totals,
    seeds=range(1),
    budgets=(Budget(cpu_seconds=2.0),),
    prepare=with_optima,
)


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.exact` and return the exit code."""
    return run_command(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(on_one_thread(BENCHMARK.name, command))
