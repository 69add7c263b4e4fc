"""100 runs planned together: how much earlier they complete, under a limit of the latest end.

`python -m benchmarks.many_runs --help`. The cases are those of `suite`, but each task is a run of
its own, and plans are better the earlier the runs complete on average (objective `completion`). A
limit (`makespanWithin`) keeps the last run from paying for the others.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, product
from statistics import fmean
from typing import Any

from benchmarks.budget import Budget
from benchmarks.cases import Case, Instance, hash_of
from benchmarks.command import add_makespan_within
from benchmarks.measuring import Benchmark, Parts, run_command, searched
from benchmarks.outcomes import MARGIN, Outcome, by_budget
from benchmarks.processes import on_one_thread
from benchmarks.search_outcome import SearchOutcome, find
from benchmarks.seed_experiment import MIXES
from benchmarks.suite import CLUSTERS, DURATIONS, SuiteCluster, suite_run
from benchmarks.tables import Table, percent
from kfp_placement_engine import BASELINES, LoweringOptions
from kfp_placement_engine.lowering import lower_runs
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.objective import MakespanWithin
from kfp_placement_engine.planning.plan_options import within_makespan
from kfp_placement_engine.problem.schedule import completions
from kfp_placement_engine.search.genetic import starting_schedules

LIMITS = tuple(MakespanWithin(percent=each) for each in (0.0, 1.0, 3.0, 5.0, 10.0, 15.0))

KUBE_DEFAULT, SHORTEST = "kube-default", "shortest"
"""Names of the plans of whose makespan a limit is a percentage."""

_COMPARED = (KUBE_DEFAULT, "heft")


def load(
    suite_cluster: SuiteCluster,
    mix: str,
    durations: str,
    within: MakespanWithin,
    percent_of: str,
    seed: int,
) -> Instance:
    """Return a case as a problem, drawn by the seed."""
    run, cluster = suite_run(mix, durations, seed), suite_cluster.cluster()
    tasks = groupby(run.steps, key=lambda step: step.name.split(".")[0])
    runs = [ActiveRun(name, replace(run, name=name, steps=tuple(steps))) for name, steps in tasks]
    lowered = lower_runs(runs, cluster, LoweringOptions(dispatch="ordered"))
    problem = replace(lowered.problem, ties="first")
    schedules = (
        [BASELINES[KUBE_DEFAULT](problem, seed)]
        if percent_of == KUBE_DEFAULT
        else starting_schedules(problem, seed)
    )
    return Instance(
        run=run,
        problem=within_makespan(problem, within, schedules),
        activities={name: at for each in lowered.step_activities for name, at in each.items()},
        nodes=tuple(node.name for node in cluster.nodes),
        input_hash=hash_of(run, cluster),
    )


def all_cases(asked: argparse.Namespace) -> list[Case]:
    """Return the cases of a seed, limit by limit."""
    return [
        Case(
            f"{cluster.name} {durations} {mix} {within.text}",
            partial(load, cluster, mix, durations, within, asked.percent_of),
        )
        for within, cluster, durations, mix in product(
            asked.makespan_within, CLUSTERS, DURATIONS, MIXES
        )
    ]


def find_runs(_case: str, instance: Instance, budget: Budget, seed: int) -> SearchOutcome:
    """Search a case; what is measured beside are the limit and the mean completions of others."""
    problem = instance.problem
    means = {
        f"{name}MeanCompletionSeconds": float(
            completions(problem, BASELINES[name](problem, seed)).mean()
        )
        for name in _COMPARED
    }
    limit = {"makespanLimitSeconds": problem.makespan_limit_seconds}
    return replace(find(instance, budget, seed), measured={**means, **limit})


def gain(outcome: Outcome, name: str = "ours") -> float:
    """Return the gain in mean completion over kube-default, as a share of kube-default's."""
    own = fmean(outcome.completions)
    if name != "ours":
        own = outcome.measured[f"{name}MeanCompletionSeconds"]
    return 1 - own / outcome.measured[f"{KUBE_DEFAULT}MeanCompletionSeconds"]


def longer(outcome: Outcome) -> float:
    """Return the delay of the last end over kube-default, as a share of kube-default's."""
    return outcome.makespan / outcome.references.baselines[KUBE_DEFAULT] - 1


def fault(outcome: Outcome) -> str:
    """Return a fault or ""; a plan may end later than a baseline, but within the limit."""
    limit = outcome.measured["makespanLimitSeconds"]
    reachable = max(limit, min(outcome.references.baselines.values()))
    if outcome.makespan > reachable * (1 + MARGIN):
        return f"{outcome.makespan:g} s is beyond the limit of {limit:g} s"
    return outcome.contradiction


def totals(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Means for each budget, limit and kind of durations, and for all kinds; ratios."""
    rows = []
    for budget, group in by_budget(outcomes).items():
        for limit in dict.fromkeys(map(_limit_of, group)):
            limited = [each for each in group if _limit_of(each) == limit]
            for durations in [*dict.fromkeys(map(_durations_of, limited)), "all"]:
                some = [each for each in limited if durations in ("all", _durations_of(each))]
                key = {"budget": budget.figures, "limit": limit, "durations": durations}
                rows.append({**key, **_means(some)})
    return rows


def _limit_of(outcome: Outcome) -> str:
    return outcome.case.rsplit(" ", 1)[1]


def _durations_of(outcome: Outcome) -> str:
    return outcome.case.split(" ")[1]


def _means(group: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "cases": len(group),
        "meanSchedules": fmean(each.spent.schedules for each in group),
        "heftGain": fmean(gain(each, "heft") for each in group),
        "gain": fmean(map(gain, group)),
        "leastGain": min(map(gain, group)),
        "longer": fmean(map(longer, group)),
        "mostLonger": max(map(longer, group)),
        "aboveBound": fmean(each.makespan / each.bound - 1 for each in group),
    }


def parts(outcomes: Sequence[Outcome]) -> Parts:
    """Return the paragraphs about the measurement, and a table for each budget."""
    tables = []
    for budget, group in by_budget(outcomes).items():
        rows = [
            [
                row["limit"],
                row["durations"],
                str(row["cases"]),
                f"{row['meanSchedules']:,.0f}",
                *(percent(row[key]) for key in ("heftGain", "gain", "leastGain")),
                *(percent(row[key]) for key in ("longer", "mostLonger", "aboveBound")),
            ]
            for row in totals(group)
        ]
        headings = [
            "limit",
            "durations",
            "cases",
            "schedules",
            "HEFT earlier, %",
            "ours earlier, %",
            "least, %",
            "longer, %",
            "most, %",
            "above bound, %",
        ]
        title = f"Mean completion and latest end against kube-default, {budget.text} each"
        tables.append(Table(title, headings, rows, words=2))
    return [_about(outcomes), *tables]


def _about(outcomes: Sequence[Outcome]) -> list[str]:
    return [
        "The cases of `suite`, each of the 100 tasks a run of its own, planned together to",
        "complete early on average (objective `completion`), ordered dispatch. The limit",
        "(`makespanWithin`) is one of the latest end, in percent beyond kube-default's unless",
        "asked for otherwise. Earlier: the mean completion against kube-default's. Longer: the",
        "latest end against kube-default's. Above bound: the latest end. The seed draws the case,",
        f"too: {searched(outcomes)}.",
    ]


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_makespan_within(parser, LIMITS)
    parser.add_argument(
        "--percent-of",
        choices=(KUBE_DEFAULT, SHORTEST),
        default=KUBE_DEFAULT,
        help="what a percentage is of: kube-default's latest end, or as in a policy that of the"
        f" shortest plan that the search starts from [default: {KUBE_DEFAULT}]",
    )


BENCHMARK = Benchmark(
    name="many_runs",
    heading="100 runs planned together",
    summary="100 runs planned together: how much earlier they complete under a limit of the end.",
    examples=[
        "",
        "--makespan-within 3% --cases '3x(8,16)*' --budget 5000schedules",
        "--makespan-within 0% 3% 15% --limit 36 -o json",
    ],
    cases=all_cases,
    parts=parts,
    totals=totals,
    seeds=range(1),
    budgets=(Budget(cpu_seconds=2.0),),
    find=find_runs,
    fault=fault,
    add_options=_add_options,
)


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.many_runs` and return the exit code."""
    return run_command(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(on_one_thread(BENCHMARK.name, command))
