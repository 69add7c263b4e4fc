"""Times learned from the runs before: errors beside simpler rules, and what ranges hold.

`python -m benchmarks.learning --help`. The traces are of five pipelines that ran 60 times each on a
real Kubernetes cluster (the data set `cws-runs`), or others of the same form.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.command import DATA_HELP, Echo, add_output, exit_code_of, parser_of, show
from benchmarks.learning_report import (
    ABOUT,
    cases_table,
    figures_of,
    memory_of,
    memory_table,
    planning_table,
)
from benchmarks.learning_runs.cases import Case
from benchmarks.learning_runs.changed import changed_ends
from benchmarks.learning_runs.made_up import first_runs, runs_under_way
from benchmarks.learning_runs.memory import memory_cases
from benchmarks.learning_runs.planning import planned_cases
from benchmarks.learning_runs.recorded import run_ends
from benchmarks.learning_runs.steps import first_sight, new_iterations, same_inputs
from benchmarks.learning_runs.traces import Trace, left_out_text, read_trace, trace_files
from benchmarks.tables import Page, Table, machine
from kfp_placement.cli.output import check_target

CASES: Mapping[str, tuple[str, Callable[[Sequence[Trace]], Iterable[Case]]]] = {
    "same-inputs": ("Steps by how often they were seen", same_inputs),
    "first-sight": ("Steps of a new pipeline", first_sight),
    "new-iterations": ("New iterations of steps", new_iterations),
    "run-ends": ("Ends of recorded runs, before and while they run", run_ends),
    "first-runs": ("Ends of the first made-up runs", lambda _: first_runs()),
    "under-way": ("Ends of made-up runs while they run", lambda _: runs_under_way()),
    "changed": ("Ends of made-up runs after a change", lambda _: changed_ends()),
}
"""Title and forecasts of these tables, by name."""

TABLES = (*CASES, "memory", "planning")
_NEED_NO_TRACES = ("first-runs", "under-way", "changed", "planning")


def main(
    echo: Echo,
    *,
    data: Path | None = None,
    form: str = "table",
    output: Path | None = None,
    only: str = "",
    progress: Callable[[str], None] = lambda text: None,
) -> None:
    """Measure and print the tables.

    Args:
        echo: function that prints a line.
        data: the data folder, that of the traces, or one of them; None looks for the first.
        form: one of `FORMATS`.
        output: file for the tables as Markdown, beside printing them; None = no file.
        only: measure and print one of `TABLES` alone; "" = all.
        progress: callback for the progress of the benchmark.

    Raises:
        InputNotFoundError: no traces are there.
        BenchmarkError: one cannot be read, or two are of one pipeline.
        RunError: the output cannot be written.
    """
    traces = [] if only in _NEED_NO_TRACES else _traces(data, progress)
    tables, figures = list[Table](), dict[str, Any]()
    for name in [only] if only else TABLES:
        progress(name)
        table, figures[name] = _measured(name, traces, data)
        tables.append(table)
    left_out = {trace.pipeline: trace.left_out for trace in traces if trace.left_out}
    notes = [f"{name}: {left_out_text(rows)}." for name, rows in left_out.items()]
    about = [*ABOUT, f"{machine()}."]
    parts: list[Table | Sequence[str]] = [about, *([notes] if notes else []), *tables]
    page = {"machine": machine(), "left_out": left_out, **figures}
    show(Page("Learned run times", parts, page), echo, form, output)


def _traces(data: Path | None, progress: Callable[[str], None]) -> list[Trace]:
    traces = []
    for path in trace_files(data):
        progress(f"reading {path.name}")
        trace = read_trace(path)
        if trace.left_out:
            progress(f"{path.name}: {left_out_text(trace.left_out)}")
        traces.append(trace)
    return traces


def _measured(name: str, traces: Sequence[Trace], data: Path | None) -> tuple[Table, Any]:
    """One of `TABLES`, and its figures for JSON."""
    if name == "memory":
        memory = memory_of(memory_cases(traces))
        return memory_table(memory), {", ".join(key): each for key, each in memory.items()}
    if name == "planning":
        planned = list(planned_cases(data))
        return planning_table(planned), [asdict(each) for each in planned]
    title, experiment = CASES[name]
    figures = figures_of(experiment(traces))
    by_name = {", ".join(key): asdict(each) for key, each in figures.items()}
    return cases_table(title, figures), by_name


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "learning",
        "Run times learned from the runs before: errors beside simpler rules, and ranges.",
        examples=["", "--only planning", "--data path/to/data -o json", "--data sarek.csv.gz"],
        exit_codes="0 done, 1 a trace cannot be read, 2 usage, 3 no traces.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="PATH",
        help=f"the data folder, that of the traces, or one of them {DATA_HELP}",
    )
    parser.add_argument(
        "--only", choices=TABLES, default="", help="one table alone (half a minute to two)"
    )
    add_output(parser)
    return parser


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.learning` and return the exit code."""
    asked = _parser().parse_args(arguments)

    def measured() -> int:
        check_target(asked.output)
        main(
            print,
            data=asked.data,
            form=asked.form,
            output=asked.output,
            only=asked.only,
            progress=lambda text: print(text, file=sys.stderr),
        )
        return 0

    return exit_code_of(measured)


if __name__ == "__main__":
    sys.exit(command())
