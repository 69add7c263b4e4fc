"""Demand of whole runs at once: the peak of a plan beside coarser measures of it.

`python -m benchmarks.demand --help`. Runs are made up (`made_up_runs`), recorded (WfInstances), or
packages of KFP's own tests. Each demand is compared with a reference for the whole run and for what
is left of it later, and its podSets against the demand.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import geometric_mean

from benchmarks.command import DATA_HELP, Echo, add_output, exit_code_of, parser_of, show
from benchmarks.data import data_folder
from benchmarks.demand_case import Outcome, made_up, recorded
from benchmarks.made_up_runs import Shape
from benchmarks.tables import Page, Table, machine, percent
from kfp_placement.cli.output import check_target
from kfp_placement_engine.exceptions import InputNotFoundError

SHAPES = (
    (Shape("kfp", 20, 5), False),
    (Shape("kfp", 100, 20), False),
    (Shape("kfp", 1000, 20), False),
    (Shape("kfp", 1000, 100), False),
    (Shape("kfp", 5000, 200), False),
    (Shape("workflow", 100, 20), False),
    (Shape("workflow", 1000, 100), False),
    (Shape("kfp", 100, 20), True),
    (Shape("kfp", 1000, 100), True),
)
"""Made-up runs, and whether some of their steps make workers."""

PACKAGES, RECORDED = Path("kfp-2.17.0", "pipelines"), Path("wfinstances")


def files(folder: Path, pattern: str) -> list[Path]:
    """Return the runs in a folder of the data by name.

    Raises:
        InputNotFoundError: there are none.
    """
    paths = sorted(folder.glob(pattern))
    if not paths:
        raise InputNotFoundError(f"{folder}: holds no runs ({pattern})")
    return paths


def main(
    echo: Echo,
    *,
    data: Path | None = None,
    form: str = "table",
    output: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> int:
    """Measure and print the tables.

    Args:
        echo: function that prints a line.
        data: the data folder; None looks for it.
        form: one of `FORMATS`.
        output: file for the tables as Markdown, beside printing them; None = no file.
        progress: callback for the progress of the benchmark.

    Returns:
        The exit code: 1 if a demand is not the reference's, or podSets do not cover it, else 0.

    Raises:
        InputNotFoundError: no data are there.
        RunError: the output cannot be written.
    """
    folder = data_folder(data)
    paths = files(folder / PACKAGES, "*.yaml"), files(folder / RECORDED, "*.json")
    outcomes = []
    for shape, with_workers in SHAPES:
        progress(f"{shape.kind}: {shape.steps:,} steps on {shape.nodes:,} nodes")
        outcomes.append(made_up(shape, with_workers=with_workers))
    packages, runs = ([_progressed(path, progress) for path in each] for each in paths)
    figures = {
        "machine": machine(),
        "madeUp": [asdict(each) for each in outcomes],
        "packages": [asdict(each) for each in packages],
        "recorded": [asdict(each) for each in runs],
    }
    show(Page("Demand", parts_of(outcomes, packages, runs), figures), echo, form, output)
    return 0 if all(is_good(each) for each in (*outcomes, *packages, *runs)) else 1


def _progressed(path: Path, progress: Callable[[str], None]) -> Outcome:
    progress(path.stem)
    return recorded(path)


def is_good(outcome: Outcome) -> bool:
    """Return whether the demand equals the reference's, and podSets are within a unit of it."""
    return outcome.is_as_reference and outcome.is_covered


def parts_of(
    outcomes: Sequence[Outcome], packages: Sequence[Outcome], runs: Sequence[Outcome]
) -> list[Table | Sequence[str]]:
    """Return the page: the method, the runs one by one, and all packages together."""
    return [
        _about(),
        _table("Made-up runs", outcomes),
        _table("Recorded runs", runs),
        _summary(packages),
    ]


def _about() -> list[str]:
    return [
        f"{machine()}. Plans without a search, seed 0; CPU time, of five the shortest.",
        "Recorded runs on ten nodes of 64 cores, 512 GiB and 8 GPUs. `sum`: all steps at once.",
        "`per shape`: each of `shapes` different requests at its own peak, as podSets of pods",
        "would reserve it. Both are multiples of the peak, of CPU and of memory. `podSets above`:",
        "what Kueue's podSets of units request beyond the peak. With workers every twentieth step",
        "makes three pods of 4 CPU, 16 GiB and a GPU, a gang together with the step's own pod.",
        "`profile` is made once from a plan, `demand` each time that a step begins or ends.",
        "`as reference`: the whole run, and what is left at 25, 50 and 75% of the steps.",
    ]


def _table(title: str, outcomes: Sequence[Outcome]) -> Table:
    rows = [
        [
            each.name,
            f"{each.steps:,}",
            f"{each.peak[0] / 1000:,.1f}",
            f"{each.peak[1] / 2**30:,.1f}",
            str(each.gang_pods),
            _multiples(each.sums),
            str(each.shapes),
            _multiples(each.per_shape),
            str(each.pod_sets),
            " / ".join(percent(share - 1, 2) if share else "-" for share in each.units),
            f"{1000 * each.plan_seconds:,.0f}",
            f"{1000 * each.profile_seconds:.1f}",
            f"{1000 * each.demand_seconds:.1f}",
            "yes" if is_good(each) else "NO",
        ]
        for each in outcomes
    ]
    headings = [
        "run", "steps", "CPU", "GiB", "gang pods", "sum, x", "shapes", "per shape, x", "podSets",
        "podSets above, %", "plan, ms", "profile, ms", "demand, ms", "as reference",
    ]  # fmt: skip
    return Table(title, headings, rows)


def _multiples(shares: Sequence[float]) -> str:
    """Return an amount as text, or a dash for a resource that the run does not request."""
    return " / ".join(f"{share:.2f}" if share else "-" for share in shares)


def _summary(packages: Sequence[Outcome]) -> list[str]:
    sums, shapes = ([each.sums[0] for each in packages], [each.per_shape[0] for each in packages])
    units = [share for each in packages for share in each.units if share]
    good = sum(is_good(each) for each in packages)
    return [
        f"Packages of KFP's tests, {len(packages)} on the same ten nodes, drivers included:",
        "",
        f"- As reference, and podSets within a unit: {good} of {len(packages)}; podSets request"
        f" {percent(max(units) - 1, 2)}% more than the peak at most.",
        f"- CPU of all steps together: {geometric_mean(sums):.2f} times the peak on average"
        f" (geometric mean), {max(sums):.2f} at most; per shape {geometric_mean(shapes):.2f} and"
        f" {max(shapes):.2f}.",
        f"- Profile: {1000 * max(each.profile_seconds for each in packages):.1f} ms at most;"
        f" demand: {1000 * max(each.demand_seconds for each in packages):.1f} ms.",
    ]


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "demand",
        "What whole runs need at once: the peak of a plan beside coarser measures of it.",
        examples=["", "--data path/to/data -o json"],
        exit_codes="0 done, 1 a demand is not that of the reference or not covered, 3 no data.",
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help=f"the data folder {DATA_HELP}")
    add_output(parser)
    return parser


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.demand` and return the exit code."""
    asked = _parser().parse_args(arguments)

    def measured() -> int:
        check_target(asked.output)
        return main(
            print,
            data=asked.data,
            form=asked.form,
            output=asked.output,
            progress=lambda text: print(text, file=sys.stderr),
        )

    return exit_code_of(measured)


if __name__ == "__main__":
    sys.exit(command())
