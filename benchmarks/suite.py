"""The paper's runs on seven clusters: the share of what can be gained that our search gains.

`python -m benchmarks.suite --help`. 100 tasks of 6 subtasks in three mixes (`seed_experiment`; a
chain, level drawn for each subtask), four kinds of durations, seven clusters: 84 cases a seed. What
can be gained is the room between kube-default and the lower bound.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any

from benchmarks.budget import Budget
from benchmarks.cases import Case, Instance, ordered_instance
from benchmarks.measuring import Benchmark, Parts, run_command, searched
from benchmarks.outcomes import MARGIN, Outcome, by_budget
from benchmarks.processes import on_one_thread
from benchmarks.seed_experiment import MIXES, Draw, draw_run
from benchmarks.tables import Table, percent
from kfp_placement_engine import Cluster, Node, RunGraph

DURATIONS = ("equal", "proportional", "lognormal", "both")
"""100 s each; 17 s a vCPU; 100 s x lognormal(0, 0.6); 17 s a vCPU x lognormal(0, 0.6)."""

GOOD_SHARE, GOOD_ABOVE_BOUND = 0.85, 0.01
"""A plan is good if it gains this share of the limit, or is at most this far above the bound."""

_SECONDS, _SECONDS_PER_CPU = 100.0, 17.0
_GIBIBYTE = 2**30


@dataclass(frozen=True)
class SuiteCluster:
    """Nodes, each with vCPU and GB.

    Attributes:
        name: name for people.
        nodes: vCPU and GB of each.
    """

    name: str
    nodes: tuple[tuple[int, int], ...]

    def cluster(self) -> Cluster:
        """Return the nodes in this order."""
        return Cluster(
            tuple(
                Node(
                    f"node-{number}",
                    {"cpu": 1000 * cpu, "memory": memory * _GIBIBYTE, "pods": 110},
                )
                for number, (cpu, memory) in enumerate(self.nodes, start=1)
            )
        )


CLUSTERS = (
    SuiteCluster("3x(8,16)", ((8, 16),) * 3),
    SuiteCluster("3x(16,32)", ((16, 32),) * 3),
    SuiteCluster("3x(20,40)", ((20, 40),) * 3),
    SuiteCluster("4x(12,24)", ((12, 24),) * 4),
    SuiteCluster("10x(16,64)", ((16, 64),) * 10),
    SuiteCluster("8+16+32", ((8, 16), (16, 32), (32, 64))),
    SuiteCluster("20x(16,64)", ((16, 64),) * 20),
)


def suite_run(mix: str, durations: str, seed: int) -> RunGraph:
    """Return a run; levels are the same for all durations, both lognormal kinds draw alike."""
    is_drawn = durations in ("lognormal", "both")
    run = draw_run(Draw(mix, "lognormal" if is_drawn else "equal", seed, "subtask"))
    if durations in ("equal", "lognormal"):
        return run
    steps = []
    for step in run.steps:
        factor = (step.duration_seconds or 0.0) / _SECONDS
        cores = step.requests["cpu"] // 1000
        steps.append(replace(step, duration_seconds=_SECONDS_PER_CPU * cores * factor))
    return replace(run, steps=tuple(steps))


def load(cluster: SuiteCluster, mix: str, durations: str, seed: int) -> Instance:
    """Return a case as a problem, drawn by the seed."""
    return ordered_instance(suite_run(mix, durations, seed), cluster.cluster())


def all_cases(_asked: object = None) -> list[Case]:
    """Return the cases of a seed, cluster by cluster."""
    return [
        Case(f"{cluster.name} {durations} {mix}", partial(load, cluster, mix, durations))
        for cluster, durations, mix in product(CLUSTERS, DURATIONS, MIXES)
    ]


def gain(outcome: Outcome) -> float:
    """Return the plan's gain over kube-default, as a share of kube-default's makespan."""
    return 1 - outcome.makespan / outcome.references.baselines["kube-default"]


def limit(outcome: Outcome) -> float:
    """Return the largest gain of any plan."""
    return 1 - outcome.bound / outcome.references.baselines["kube-default"]


def is_good(outcome: Outcome) -> bool:
    """Return whether little is left to gain."""
    is_near = outcome.makespan <= outcome.bound * (1 + GOOD_ABOVE_BOUND)
    return is_near or gain(outcome) >= GOOD_SHARE * limit(outcome)


def totals(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Means for each budget and cluster, and for all clusters; gains as ratios."""
    rows = []
    for budget, group in by_budget(outcomes).items():
        for cluster in [*dict.fromkeys(map(_cluster_of, group)), "all"]:
            some = [each for each in group if cluster in ("all", _cluster_of(each))]
            rows.append({"budget": budget.figures, "cluster": cluster, **_means(some)})
    return rows


def _cluster_of(outcome: Outcome) -> str:
    return outcome.case.split(" ", 1)[0]


def _means(group: Sequence[Outcome]) -> dict[str, Any]:
    gained, most = fmean(map(gain, group)), fmean(map(limit, group))
    heft = fmean(
        1 - each.references.baselines["heft"] / each.references.baselines["kube-default"]
        for each in group
    )
    return {
        "cases": len(group),
        "meanSchedules": fmean(each.spent.schedules for each in group),
        "meanCpuSeconds": fmean(each.spent.cpu_seconds for each in group),
        "heftGain": heft,
        "gain": gained,
        "limit": most,
        "share": gained / most if most > MARGIN else 1.0,
        "aboveBound": fmean(each.makespan / each.bound - 1 for each in group),
        "good": sum(map(is_good, group)),
    }


def parts(outcomes: Sequence[Outcome]) -> Parts:
    """Return the paragraphs about the measurement, and a table for each budget."""
    tables = []
    for budget, group in by_budget(outcomes).items():
        rows = [
            [
                row["cluster"],
                str(row["cases"]),
                f"{row['meanSchedules']:,.0f}",
                *(percent(row[key], 2) for key in ("heftGain", "gain", "limit")),
                percent(row["share"]),
                percent(row["aboveBound"], 2),
                str(row["good"]),
            ]
            for row in totals(group)
        ]
        headings = [
            "cluster",
            "cases",
            "schedules",
            "HEFT gains, %",
            "ours gains, %",
            "limit, %",
            "share of limit, %",
            "above bound, %",
            "good",
        ]
        tables.append(Table(f"Gain over kube-default, {budget.text} each", headings, rows))
    return [_about(outcomes), *tables]


def _about(outcomes: Sequence[Outcome]) -> list[str]:
    return [
        "100 tasks x 6 subtasks of 8, 6 or 4 vCPU (a chain; level drawn for each subtask), all at",
        f"t=0; three mixes; durations {', '.join(DURATIONS)}; ordered dispatch. The limit is what",
        "the lower bound leaves. Good: at least 85% of the limit, or at most 1% above the bound.",
        f"The seed draws the case, too: {searched(outcomes)}.",
    ]


BENCHMARK = Benchmark(
    name="suite",
    heading="The paper's runs on seven clusters",
    summary="The paper's runs on seven clusters: the share of the possible gain that is gained.",
    examples=[
        "",
        "--cases '10x*' --seeds 0 --budget 5000schedules",
        "--limit 14 --budget 1cpu -o json",
    ],
    cases=all_cases,
    parts=parts,
    totals=totals,
    seeds=range(3),
    budgets=(Budget(cpu_seconds=5.0),),
)


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.suite` and return the exit code."""
    return run_command(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(on_one_thread(BENCHMARK.name, command))
