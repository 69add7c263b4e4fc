"""What-if: how long the best single changes take, and how near they are to what can be found.

`python -m benchmarks.what_if --help`. Every case is 100 steps on 50 nodes, made up by seed. Beside
the suggestions every single change there is, not only those that the suggestions try, is searched
for a second from the same plan.
"""

import argparse
import itertools
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import Echo, add_output, exit_code_of, parser_of, seconds, show
from benchmarks.made_up_runs import IMAGES, Shape, made_up_run
from benchmarks.tables import Page, Table, machine, percent
from kfp_placement.cli.output import check_target
from kfp_placement_engine import Cluster, MaxRuntime, Node, PlanOptions, RunGraph, plan_run, solve
from kfp_placement_engine.lowering import lower_runs
from kfp_placement_engine.model.active_runs import ActiveRun
from kfp_placement_engine.model.run_graph import ClaimUse, RunClaim
from kfp_placement_engine.planning.plan_options import lowering_options_of
from kfp_placement_engine.planning.warm_start import replayed
from kfp_placement_engine.planning.what_if.applied_changes import with_changes
from kfp_placement_engine.planning.what_if.best_changes import best_changes
from kfp_placement_engine.planning.what_if.single_changes import SuggestionParams, single_changes
from kfp_placement_engine.plans.changes import Change
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.plans.what_if import Suggestions

STEPS, NODES = 100, 50
DISPATCHES = ("ready", "ordered")

LIMIT_SECONDS = 3.0
"""Suggestions must be there within this, on two cores with nothing else to do."""

LEAST_SHARE = 0.9
"""The first suggestion must gain this share of the best gain that is found."""

REPEATS = 3
"""Times that suggestions are asked for; they are the same each time."""

UNCHANGED_SEEDS = 5
"""Searches of the plan without a change: of a hundred searches with changes some are lucky."""

EVERYTHING = SuggestionParams(busiest=NODES)

_GIBIBYTE = 2**30
_CLAIM_USERS = range(20, 40, 2)
"""Steps that mount one ReadWriteOnce volume, in the case with one."""


@dataclass(frozen=True)
class Kind:
    """Some equal machines: how many, their cores, GiB and speed."""

    name: str
    count: int
    cores: int
    gibibytes: int
    speed: float = 1.0


@dataclass(frozen=True)
class Case:
    """What is scarce, the run's kind as in `made_up_runs`, and the nodes."""

    scarce: str
    run: str
    nodes: tuple[Kind, ...]
    has_volume: bool = False


_MIXED = (Kind("small", 30, 2, 8), Kind("medium", 14, 8, 32), Kind("large", 6, 16, 64, 1.5))
CASES = (
    Case("iterations at once", "kfp", _MIXED),
    Case("large nodes", "workflow", (Kind("small", 48, 1, 2), Kind("large", 2, 9, 36))),
    Case("memory", "kfp", (Kind("small", 40, 4, 4), Kind("large", 10, 16, 16))),
    Case("fast nodes", "workflow", (Kind("slow", 49, 10, 32, 0.5), Kind("fast", 1, 10, 32, 2.0))),
    Case("a volume", "kfp", _MIXED, has_volume=True),
)


@dataclass(frozen=True)
class Asked:
    """The suggestions for one case, and what they took.

    Attributes:
        number: of the case.
        run, cluster, options, plan: what was planned, and how.
        suggestions: the answer.
        wall_seconds, cpu_seconds: what it took, the least of all times.
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
class Found:
    """What one case came to; gains count from the best plan without a change that anybody found.

    Attributes:
        case, dispatch: what was planned.
        present_seconds: makespan of the plan.
        tried, every: how many changes the suggestions try, and how many there are.
        wall_seconds, cpu_seconds: what the suggestions took.
        first: text of the first suggestion, or "".
        first_gain, best_gain: share of the run that it gains, and that the best change gains.
        best: text of that.
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
        """Of the best gain; 1 where nothing gains 1% of the run and nothing is suggested."""
        if self.best_gain < SuggestionParams().least and not self.first:
            return 1.0
        return self.first_gain / self.best_gain


def made_up_case(number: int) -> tuple[RunGraph, Cluster]:
    """The run and the cluster of a case; a third of the images on each node, some room taken."""
    case, rng = CASES[number], np.random.default_rng([number, NODES])
    run = made_up_run(Shape(case.run, STEPS, NODES, seed=number))
    if case.has_volume:
        steps = list(run.steps)
        for index in _CLAIM_USERS:
            steps[index] = replace(steps[index], claims=(ClaimUse("shared"),))
        claim = RunClaim("shared", ("ReadWriteOnce",))
        run = replace(run, steps=tuple(steps), claims=(claim,))
    nodes = [_node(rng, kind, n + 1) for kind in case.nodes for n in range(kind.count)]
    return run, Cluster(tuple(nodes))


def _node(rng: np.random.Generator, kind: Kind, number: int) -> Node:
    held = np.flatnonzero(rng.random(IMAGES) < 1 / 3)
    used = {"cpu": int(rng.choice((0, 0, 500))), "memory": int(rng.integers(0, 2)) * _GIBIBYTE}
    size = {"cpu": 1000 * kind.cores, "memory": kind.gibibytes * _GIBIBYTE, "pods": 110}
    return Node(
        name=f"{kind.name}-{number}",
        allocatable=size,
        used={**used, "pods": 3},
        speed=kind.speed,
        images={f"image-{image}": 10**8 * (5 + int(image)) for image in held},
    )


def ask(number: int, dispatch: str, budget_seconds: float) -> Asked:
    """Plan a case and ask for suggestions, as often as times are measured."""
    run, cluster = made_up_case(number)
    options = PlanOptions(budget_seconds=budget_seconds, dispatch=dispatch, compare=())
    plan = plan_run(run, cluster, options)
    took = []
    for _ in range(REPEATS):
        wall, cpu = time.perf_counter(), _cpu_seconds()
        found = best_changes(run, cluster, plan, options)
        took.append((time.perf_counter() - wall, _cpu_seconds() - cpu))
    wall, cpu = min(took)
    return Asked(number, run, cluster, options, plan, found, wall, cpu)


def search_every(asked: Asked, each_seconds: float) -> Found:
    """Search every single change on its own, and put the suggestions beside the best of them."""
    run, cluster, plan, options = asked.run, asked.cluster, asked.plan, asked.options
    every = single_changes(run, cluster, plan, EVERYTHING)
    ends = {each: _end(run, cluster, plan, each, options, each_seconds) for each in every}
    seeds = (replace(options, seed=seed) for seed in range(UNCHANGED_SEEDS))
    unchanged = min(_end(run, cluster, plan, None, each, each_seconds) for each in seeds)
    return _found(asked, ends, unchanged)


def _found(asked: Asked, ends: dict[Change, float], unchanged: float) -> Found:
    present, found = asked.plan.figures.makespan_seconds, asked.suggestions
    reachable = min(unchanged, present - found.unchanged_gain_seconds)
    first = found.best[0] if found.best else None
    best = min(ends, key=lambda change: ends[change])
    return Found(
        case=CASES[asked.number],
        dispatch=asked.plan.dispatch,
        present_seconds=present,
        tried=found.tried,
        every=len(ends),
        wall_seconds=asked.wall_seconds,
        cpu_seconds=asked.cpu_seconds,
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
    """When the run ends with a change that is searched for that time, from the same plan."""
    run, cluster = with_changes(run, cluster, () if change is None else (change,))
    runs = (ActiveRun("", run),)
    lowered = lower_runs(runs, cluster, lowering_options_of(runs, cluster, options))
    start = replayed(lowered, plan)
    result = solve(lowered.problem, MaxRuntime(budget_seconds), options.seed, warm_start=start)
    return result.schedule.makespan_seconds


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(
    echo: Echo,
    *,
    cases: int = len(CASES),
    budget_seconds: float = 2.0,
    each_seconds: float = 1.0,
    form: str = "table",
    output: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> int:
    """Measure and print the table.

    Args:
        echo: prints a line.
        cases: how many of `CASES`.
        budget_seconds: of the search of each plan.
        each_seconds: of the search for each change.
        form: one of `FORMATS`.
        output: also write the table as Markdown to this file.
        progress: told what is being done.

    Returns:
        The exit code: 1 if suggestions took too long or are too far from the best, else 0.

    Raises:
        RunError: the output cannot be written.
    """
    load, asked, found = os.getloadavg()[0], [], []
    # Times first: the long searches behind them need no quiet machine.
    for number, dispatch in itertools.product(range(cases), DISPATCHES):
        progress(f"{CASES[number].scarce} is scarce, {dispatch}: asking for suggestions")
        asked.append(ask(number, dispatch, budget_seconds))
    for each in asked:
        scarce = f"{CASES[each.number].scarce} is scarce, {each.plan.dispatch}"
        progress(f"{scarce}: searching every change")
        found.append(search_every(each, each_seconds))
    parts: list[Table | Sequence[str]] = [_about(budget_seconds, each_seconds, load), table(found)]
    figures = {"machine": machine(), "load": load, "cases": [_figures(each) for each in found]}
    show(Page("What-if", parts, figures), echo, form, output)
    return 0 if all(map(is_good, found)) else 1


def is_good(found: Found) -> bool:
    """Whether the suggestions were there in time, and the first is near the best there is."""
    return found.wall_seconds <= LIMIT_SECONDS and found.share >= LEAST_SHARE


def _about(budget_seconds: float, each_seconds: float, load: float) -> list[str]:
    return [
        f"Made-up runs of {STEPS} steps on {NODES} nodes, seed 0 of each case; a plan by"
        f" {budget_seconds:g} s of search, then",
        "the best single changes. Beside them every single change there is, searched for"
        f" {each_seconds:g} s from the same plan.",
        "Gains are shares of the run, and count from the best plan without a change, of"
        f" {UNCHANGED_SEEDS} searches as long.",
        f"Times are the least of {REPEATS}; {machine()}; load {load:.1f} before the start.",
    ]


def table(found: Sequence[Found]) -> Table:
    """Times, and gains beside what can be found."""
    rows = [
        [
            each.case.scarce,
            each.case.run,
            each.dispatch,
            each.first or "nothing",
            each.best if each.best_gain >= SuggestionParams().least else "nothing",
            f"{each.present_seconds:,.0f}",
            f"{each.tried} of {each.every}",
            f"{each.wall_seconds:.2f}",
            f"{each.cpu_seconds:.2f}",
            percent(each.first_gain),
            percent(each.best_gain),
            percent(each.share, 0),
        ]
        for each in found
    ]
    headings = [
        "scarce",
        "run",
        "dispatch",
        "first suggestion",
        "best found",
        "makespan, s",
        "changes tried",
        "wall, s",
        "CPU, s",
        "it gains, %",
        "best gains, %",
        "share, %",
    ]
    return Table("The first suggestion and the best change", headings, rows, words=5)


def _figures(found: Found) -> dict[str, Any]:
    return {
        "scarce": found.case.scarce,
        "run": found.case.run,
        "dispatch": found.dispatch,
        "presentSeconds": found.present_seconds,
        "tried": found.tried,
        "every": found.every,
        "wallSeconds": found.wall_seconds,
        "cpuSeconds": found.cpu_seconds,
        "first": found.first,
        "firstGain": found.first_gain,
        "best": found.best,
        "bestGain": found.best_gain,
    }


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "what_if",
        "How long the best single changes take, and how near they are to the best there is.",
        examples=["", "--cases 1 --each 100ms", "-o json"],
        exit_codes="0 done, 1 suggestions took too long or gain too little.",
    )
    parser.add_argument(
        "--cases",
        type=int,
        choices=range(1, len(CASES) + 1),
        default=len(CASES),
        help=f"how many cases [default: {len(CASES)}]",
    )
    parser.add_argument(
        "--budget",
        type=seconds,
        default=2.0,
        metavar="TIME",
        help="time for the search of each plan [default: 2s]",
    )
    parser.add_argument(
        "--each",
        type=seconds,
        default=1.0,
        metavar="TIME",
        help="time for the search for each change [default: 1s]",
    )
    add_output(parser)
    return parser


def command(arguments: Sequence[str] | None = None) -> int:
    """What `python -m benchmarks.what_if` does; returns the exit code."""
    asked = _parser().parse_args(arguments)

    def measured() -> int:
        check_target(asked.output)
        return main(
            print,
            cases=asked.cases,
            budget_seconds=asked.budget,
            each_seconds=asked.each,
            form=asked.form,
            output=asked.output,
            progress=lambda text: print(text, file=sys.stderr),
        )

    return exit_code_of(measured)


if __name__ == "__main__":
    sys.exit(command())
