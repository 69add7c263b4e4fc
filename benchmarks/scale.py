"""How planning scales: time to the first plan, time to the end, memory, distance to the bound.

`python -m benchmarks.scale --help`. Runs and clusters are made up (`made_up_runs`); every
case is measured in a fresh process, so that its memory is its own.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import Echo, add_output, exit_code_of, parser_of, seconds, show
from benchmarks.made_up_runs import Shape
from benchmarks.tables import Page, Table, machine, percent
from kfp_placement.cli.output import check_target

SIZES = ((100, 50), (1000, 20), (1000, 100), (1000, 1000), (10_000, 100), (10_000, 1000))
"""Steps and nodes."""

KINDS = ("kfp", "workflow")

LIMIT_SECONDS = 10.0
"""A run of 1,000 steps on 1,000 nodes must be planned within this, everything counted."""

_LIMITED = 1000
_SIZE = re.compile(r"([1-9]\d{0,5})x([1-9]\d{0,5})", re.ASCII)
_ROOT = Path(__file__).resolve().parents[1]

_IMPORT = (
    "import time; started = time.perf_counter(); import kfp_placement_engine.planning; "
    "print(time.perf_counter() - started)"
)


def main(
    echo: Echo,
    *,
    sizes: Sequence[tuple[int, int]] = SIZES,
    budget_seconds: float = 2.0,
    form: str = "table",
    output: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> int:
    """Measure and print the tables.

    Args:
        echo: prints a line.
        sizes: steps and nodes of each case.
        budget_seconds: of each search.
        form: one of `FORMATS`.
        output: also write the tables as Markdown to this file.
        progress: told what is being done.

    Returns:
        The exit code: 1 if a plan took too long, left a step out or beats its bound, else 0.

    Raises:
        RunError: the output cannot be written.
    """
    cases = []
    for steps, nodes in sizes:
        for kind in KINDS:
            progress(f"{kind}: {steps:,} steps on {nodes:,} nodes")
            cases.append(measure_apart(Shape(kind, steps, nodes), budget_seconds))
    parts: list[Table | Sequence[str]] = [
        _about(budget_seconds),
        time_table(cases),
        quality_table(cases),
    ]
    figures = {
        "machine": machine(),
        "budgetSeconds": budget_seconds,
        "cases": [_figures(case) for case in cases],
    }
    show(Page("Scale", parts, figures), echo, form, output)
    return 0 if all(is_good(case) for case in cases) else 1


def measure_apart(shape: Shape, budget_seconds: float) -> dict[str, Any]:
    """`scale_case.measure` in a process of its own."""
    words = [shape.kind, str(shape.steps), str(shape.nodes), str(budget_seconds)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale_case", *words],
        cwd=_ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def import_seconds() -> float:
    """What the import of the planner takes in a fresh process, files in the cache."""
    times = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", _IMPORT], check=True, stdout=subprocess.PIPE, text=True
        )
        times.append(float(done.stdout))
    return min(times)


def is_good(case: Mapping[str, Any]) -> bool:
    """Whether a case was planned whole, honestly and, if not larger than promised, in time."""
    small = case["steps"] <= _LIMITED and case["nodes"] <= _LIMITED
    in_time = not small or case["total_seconds"] <= LIMIT_SECONDS
    honest = case["makespan_seconds"] >= case["bound_seconds"] * (1 - 1e-6)
    return bool(in_time and honest and case["unplaced"] == 0)


def _figures(case: Mapping[str, Any]) -> dict[str, Any]:
    """A case with its keys as JSON has them elsewhere."""
    figures = {}
    for key, value in case.items():
        first, *others = key.split("_")
        figures[first + "".join(word.title() for word in others)] = value
    return figures


def _about(budget_seconds: float) -> list[str]:
    return [
        "Made-up runs, seed 0. kfp: driver pods, three steps of five in loops that run 5 of 10",
        "iterations at once, data through the object store, images to pull; ready dispatch.",
        "workflow: tasks alone, data from node to node; ordered dispatch. Nodes of 8, 12 and 16",
        f"cores and speeds 0.8, 1 and 1.5. {budget_seconds:g} s of search; {machine()}.",
        f"Import of the planner: {import_seconds():.2f} s, not counted below.",
    ]


def time_table(cases: Sequence[Mapping[str, Any]]) -> Table:
    """Times and memory."""
    rows = [
        [
            case["kind"],
            f"{case['steps']:,}",
            f"{case['nodes']:,}",
            f"{case['first_seconds']:.2f}",
            f"{case['total_seconds']:.2f}",
            f"{case['plans_per_second']:,.0f}",
            f"{case['peak_bytes'] / 1e6:.0f}",
        ]
        for case in cases
    ]
    headings = ["run", "steps", "nodes", "first plan, s", "whole call, s", "plans/s", "peak MB"]
    return Table("Time from the call on, and memory of the whole process", headings, rows)


def quality_table(cases: Sequence[Mapping[str, Any]]) -> Table:
    """The plan beside the bound and the baselines."""
    rows = []
    for case in cases:
        made = case["makespan_seconds"]
        rows.append(
            [
                case["kind"],
                f"{case['steps']:,}",
                f"{case['nodes']:,}",
                f"{made:,.0f}",
                case["bound_kind"],
                percent(made / case["bound_seconds"] - 1),
                *(percent(1 - made / case["baselines"][name]) for name in ("kube-default", "heft")),
            ]
        )
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
    return Table("The plan", headings, rows)


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "scale",
        "How planning scales: time to the first plan, to the end, memory, distance to the bound.",
        examples=["", "--sizes 100x50 1000x100 --budget 1s", "--sizes 100x50 -o json"],
        exit_codes="0 done, 1 a plan took too long, left a step out or beats its bound.",
    )
    parser.add_argument(
        "--budget",
        type=seconds,
        default=2.0,
        metavar="TIME",
        help="time for each search [default: 2s]",
    )
    parser.add_argument(
        "--sizes",
        nargs="+",
        default=SIZES,
        type=_size,
        metavar="STEPSxNODES",
        help="sizes of runs and clusters [default: those of the committed table]",
    )
    add_output(parser)
    return parser


def _size(text: str) -> tuple[int, int]:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r:.40}: write steps and nodes as in 1000x100")
    return int(match[1]), int(match[2])


def command(arguments: Sequence[str] | None = None) -> int:
    """What `python -m benchmarks.scale` does; returns the exit code."""
    asked = _parser().parse_args(arguments)

    def measured() -> int:
        check_target(asked.output)
        return main(
            print,
            sizes=asked.sizes,
            budget_seconds=asked.budget,
            form=asked.form,
            output=asked.output,
            progress=lambda text: print(text, file=sys.stderr),
        )

    return exit_code_of(measured)


if __name__ == "__main__":
    sys.exit(command())
