"""Scaling of planning: time to the first plan and to the end, memory, distance to the bound.

`python -m benchmarks.scale --help`. Runs and clusters are made up (`made_up_runs`); every
case is measured in a fresh process, so that its memory is its own.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any

from benchmarks.budget import Budget, timed_budget
from benchmarks.cases import Case, Instance
from benchmarks.made_up_runs import Shape
from benchmarks.measuring import Benchmark, Parts, run_command, searched
from benchmarks.outcomes import Outcome, by_budget
from benchmarks.processes import on_one_thread, run_apart
from benchmarks.scale_case import FIRST_PLAN, PEAK_BYTES, PLANS_A_SECOND, WHOLE_CALL, load
from benchmarks.search_outcome import SearchOutcome
from benchmarks.tables import Table, percent

SIZES = ((100, 50), (1000, 20), (1000, 100), (1000, 1000), (10_000, 100), (10_000, 1000))
"""Steps and nodes."""

KINDS = ("kfp", "workflow")

LIMIT_SECONDS = 10.0
"""A run of 1,000 steps on 1,000 nodes must be planned within this, everything counted; longer
budgets come on top."""

_USUAL_SECONDS = 2.0
"""Budget that the limit includes."""

_LIMITED = 1000
_SIZE = re.compile(r"([1-9]\d{0,5})x([1-9]\d{0,5})", re.ASCII)

_IMPORT = (
    "import time; started = time.perf_counter(); import kfp_placement_engine.planning.plan_runs; "
    "print(time.perf_counter() - started)"
)


def shape_of(case: str, seed: int = 0) -> Shape:
    """Return the shape in the name of a case."""
    kind, size = case.split(" ")
    steps, nodes = _size(size)
    return Shape(kind, steps, nodes, seed)


def name_of(shape: Shape) -> str:
    """Return the name of a shape's case."""
    return f"{shape.kind} {shape.steps}x{shape.nodes}"


def all_cases(asked: argparse.Namespace) -> list[Case]:
    """Return a case for each size and kind of run."""
    names = [
        name_of(Shape(kind, steps, nodes))
        for (steps, nodes), kind in product(dict.fromkeys(asked.sizes), KINDS)
    ]
    return [Case(name, partial(_load, name)) for name in names]


def _load(name: str, seed: int) -> Instance:
    return load(shape_of(name, seed))


def measure_apart(case: str, _instance: Instance, budget: Budget, seed: int) -> SearchOutcome:
    """`scale_case.measure` in a process of its own.

    Raises:
        BenchmarkError: it fails.
    """
    shape = shape_of(case, seed)
    numbers = map(str, (shape.steps, shape.nodes, seed))
    words = ["benchmarks.scale_case", shape.kind, *numbers, budget.word]
    return SearchOutcome.of_fields(json.loads(run_apart(case, words)))


def import_seconds() -> float:
    """Measure the import of the planner in a fresh process, with files in the cache."""
    times = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", _IMPORT], check=True, stdout=subprocess.PIPE, text=True
        )
        times.append(float(done.stdout))
    return min(times)


def fault(outcome: Outcome) -> str:
    """Return a fault: as of all searches, or a small run took longer than promised; "" = none."""
    shape, whole = shape_of(outcome.case), outcome.measured[WHOLE_CALL]
    is_small = shape.steps <= _LIMITED and shape.nodes <= _LIMITED
    longer = max(0.0, (outcome.budget.wall_seconds or 0.0) - _USUAL_SECONDS)
    is_promised = is_small and outcome.budget.wall_seconds is not None
    if is_promised and whole > LIMIT_SECONDS + longer:
        return f"the whole call takes {whole:.1f} s; at most {LIMIT_SECONDS:g} s are promised"
    return outcome.fault


def parts(outcomes: Sequence[Outcome]) -> Parts:
    """Return the paragraphs about the measurement, and two tables for each budget."""
    groups = by_budget(outcomes)
    tables = []
    for budget, group in groups.items():
        behind = f", {budget.text}" if len(groups) > 1 else ""
        tables += [time_table(group, behind), quality_table(group, behind)]
    return [_about(outcomes), *tables]


def totals(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Means over seeds for each budget and case."""
    return [
        {
            "budget": budget.figures,
            "case": case,
            **{name: _mean(some, name) for name in some[0].measured},
            "aboveBound": fmean(each.makespan / each.bound - 1 for each in some),
        }
        for budget, group in by_budget(outcomes).items()
        for case, some in _by_case(group).items()
    ]


def _by_case(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    names = dict.fromkeys(each.case for each in outcomes)
    return {name: [each for each in outcomes if each.case == name] for name in names}


def _mean(outcomes: Sequence[Outcome], name: str) -> float:
    return fmean(each.measured[name] for each in outcomes)


def _about(outcomes: Sequence[Outcome]) -> list[str]:
    budgets = " and ".join(budget.text for budget in by_budget(outcomes))
    return [
        "Made-up runs. kfp: driver pods, three steps of five in loops that run 5 of 10",
        "iterations at once, data through the object store, images to pull; ready dispatch.",
        "workflow: tasks alone, data from node to node; ordered dispatch. Nodes of 8, 12 and 16",
        f"cores and speeds 0.8, 1 and 1.5. {budgets} of search; {searched(outcomes)}.",
        f"Import of the planner: {import_seconds():.2f} s, not counted below.",
    ]


def _named(case: str) -> list[str]:
    shape = shape_of(case)
    return [shape.kind, f"{shape.steps:,}", f"{shape.nodes:,}"]


def time_table(outcomes: Sequence[Outcome], behind: str = "") -> Table:
    """Return a table of times and memory, means over seeds."""
    rows = [
        [
            *_named(case),
            f"{_mean(some, FIRST_PLAN):.2f}",
            f"{_mean(some, WHOLE_CALL):.2f}",
            f"{_mean(some, PLANS_A_SECOND):,.0f}",
            f"{_mean(some, PEAK_BYTES) / 1e6:.0f}",
        ]
        for case, some in _by_case(outcomes).items()
    ]
    headings = ["run", "steps", "nodes", "first plan, s", "whole call, s", "plans/s", "peak MB"]
    title = f"Time from the call on, and memory of the whole process{behind}"
    return Table(title, headings, rows)


def quality_table(outcomes: Sequence[Outcome], behind: str = "") -> Table:
    """Return a table of the plan beside bound and baselines, means over seeds."""
    rows = [
        [
            *_named(case),
            f"{fmean(each.makespan for each in some):,.0f}",
            some[0].bound_kind,
            percent(fmean(each.makespan / each.bound - 1 for each in some)),
            *(
                percent(fmean(1 - each.makespan / each.references.baselines[name] for each in some))
                for name in ("kube-default", "heft")
            ),
        ]
        for case, some in _by_case(outcomes).items()
    ]
    headings = [
        "run",
        "steps",
        "nodes",
        "makespan, s",
        "bound by",
        "above bound, %",
        "shorter than kube-default, %",
        "than HEFT, %",
    ]
    return Table(f"The plan{behind}", headings, rows)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sizes",
        nargs="+",
        default=SIZES,
        type=_size,
        metavar="STEPSxNODES",
        help="sizes of runs and clusters [default: those of the committed table]",
    )


def _size(text: str) -> tuple[int, int]:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r:.40}: write steps and nodes as in 1000x100")
    return int(match[1]), int(match[2])


BENCHMARK = Benchmark(
    name="scale",
    heading="Scale",
    summary="How planning scales: time to the first plan, to the end, memory, distance to the "
    "bound.",
    examples=[
        "",
        "--cases 'workflow 1000x*' --budget 1s",
        "--sizes 100x50 --budget 5000schedules --seeds 0-4 --peers all -o json",
    ],
    cases=all_cases,
    parts=parts,
    totals=totals,
    seeds=range(1),
    budgets=(Budget(wall_seconds=2.0),),
    add_options=_add_options,
    find=measure_apart,
    budget_of=timed_budget,
    fault=fault,
)


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.scale` and return the exit code."""
    return run_command(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(on_one_thread(BENCHMARK.name, command))
