"""Times learned from the runs before: errors beside simpler rules, and what intervals hold.

`python -m benchmarks.learning --help`. The traces are of five pipelines that ran 60 times each on a
real Kubernetes cluster (the data set `cws-runs`), or others of the same form.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.command import DATA_HELP, Echo, add_output, exit_code_of, parser_of, show
from benchmarks.learning_memory_report import memory_figures, memory_table
from benchmarks.learning_plans_report import (
    changed_table,
    first_runs_table,
    planning_table,
    retries_table,
)
from benchmarks.learning_report import Results
from benchmarks.learning_runs.changed import changed_ends
from benchmarks.learning_runs.experiments import (
    Case,
    after_two_runs,
    first_sight,
    in_order,
    new_iterations,
    same_inputs,
)
from benchmarks.learning_runs.first_runs import first_runs
from benchmarks.learning_runs.live import promises
from benchmarks.learning_runs.memory import memory_cases
from benchmarks.learning_runs.planning import planned_cases
from benchmarks.learning_runs.retries import retried_runs
from benchmarks.learning_runs.run_ends import run_ends
from benchmarks.learning_runs.samples import sample_costs
from benchmarks.learning_runs.traces import Trace, left_out_text, read_trace, trace_files
from benchmarks.tables import Page, Table, machine
from kfp_placement.cli.output import check_target

HALVES = range(3)
"""Seeds of the halves of iterations that are known."""


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
        echo: prints a line.
        data: the data folder, that of the traces, or one of them; None looks for the first.
        form: one of `FORMATS`.
        output: also write the tables as Markdown to this file.
        only: measure and print one table alone, one of `ONE_TABLE`; "" = all.
        progress: told what is being done.

    Raises:
        InputNotFoundError: no traces are there.
        BenchmarkError: one cannot be read, or two are of one pipeline.
        RunError: the output cannot be written.
    """
    if only:
        show(ONE_TABLE[only](data, progress), echo, form, output)
        return
    traces = _traces(data, progress)
    results = Results(
        same_inputs=_each("same inputs", traces, same_inputs, progress),
        first_sight=[
            *_first_sights(traces, progress),
            *_each("new iterations", traces, _halves, progress),
        ],
        after_two_runs=_each("two runs", traces, after_two_runs, progress),
        in_order=_each("in order", traces, in_order, progress),
        run_ends=list(run_ends(traces, progress)),
        promises=list(promises(progress)),
        samples=sample_costs(progress),
        memory=list(memory_cases(traces, progress)),
        planning=list(planned_cases(progress, data)),
        changed=list(changed_ends(progress)),
        first_runs=list(first_runs(progress)),
        retries=list(retried_runs(progress)),
    )
    left_out = {trace.pipeline: trace.left_out for trace in traces if trace.left_out}
    notes = [f"{name}: {left_out_text(rows)}." for name, rows in left_out.items()]
    about, *tables = results.parts()
    figures = {"machine": machine(), "left_out": left_out, **results.figures()}
    parts = [about, *([notes] if notes else []), *tables]
    show(Page("Learned run times", parts, figures), echo, form, output)


def _traces(data: Path | None, progress: Callable[[str], None]) -> list[Trace]:
    traces = []
    for path in trace_files(data):
        progress(f"reading {path.name}")
        trace = read_trace(path)
        if trace.left_out:
            progress(f"{path.name}: {left_out_text(trace.left_out)}")
        traces.append(trace)
    return traces


def _memory_page(data: Path | None, progress: Callable[[str], None]) -> Page:
    cases = list(memory_cases(_traces(data, progress), progress))
    return Page("Learned memory", [memory_table(cases)], memory_figures(cases))


def _planning_page(data: Path | None, progress: Callable[[str], None]) -> Page:
    cases = list(planned_cases(progress, data))
    figures = {"planning": [asdict(each) for each in cases]}
    return Page("Plans with history", [planning_table(cases)], figures)


def _cases_page(
    title: str, name: str, found: Iterable[Case], table: Callable[[Sequence[Case]], Table]
) -> Page:
    cases = list(found)
    return Page(title, [table(cases)], {name: [asdict(each) for each in cases]})


def _changed_page(_data: Path | None, progress: Callable[[str], None]) -> Page:
    return _cases_page("Runs after a change", "changed", changed_ends(progress), changed_table)


def _first_runs_page(_data: Path | None, progress: Callable[[str], None]) -> Page:
    return _cases_page("The first runs", "first_runs", first_runs(progress), first_runs_table)


def _retries_page(_data: Path | None, progress: Callable[[str], None]) -> Page:
    return _cases_page("Runs with retries", "retries", retried_runs(progress), retries_table)


ONE_TABLE: Mapping[str, Callable[[Path | None, Callable[[str], None]], Page]] = {
    "memory": _memory_page,
    "planning": _planning_page,
    "changed": _changed_page,
    "first-runs": _first_runs_page,
    "retries": _retries_page,
}
"""Tables that can be made alone, by name."""


def _each(
    name: str,
    traces: Sequence[Trace],
    experiment: Callable[[Trace], Iterator[Case]],
    progress: Callable[[str], None],
) -> list[Case]:
    cases: list[Case] = []
    for trace in traces:
        progress(f"{name}: {trace.pipeline}")
        cases += experiment(trace)
    return cases


def _halves(trace: Trace) -> Iterator[Case]:
    for seed in HALVES:
        yield from new_iterations(trace, seed)


def _first_sights(traces: Sequence[Trace], progress: Callable[[str], None]) -> list[Case]:
    cases: list[Case] = []
    for number, trace in enumerate(traces):
        progress(f"first sight: {trace.pipeline}")
        cases += first_sight(traces, number)
    return cases


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "learning",
        "Run times learned from the runs before: errors beside simpler rules, and intervals.",
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
        "--only", choices=ONE_TABLE, default="", help="one table alone (half a minute to two)"
    )
    add_output(parser)
    return parser


def command(arguments: Sequence[str] | None = None) -> int:
    """What `python -m benchmarks.learning` does; returns the exit code."""
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
