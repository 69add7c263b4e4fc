"""Recorded workflow runs on slots: kube-default, HEFT and our search beside the lower bound.

`python -m benchmarks.wfinstances --help`. The files are the 22 of WfCommons' WfInstances
that the data set `wfinstances` holds. A node has slots, one task a slot, and a speed; data moves
from node to node at 125 MB/s, and not at all within one.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from benchmarks.command import (
    DATA_HELP,
    Echo,
    add_output,
    exit_code_of,
    parser_of,
    seconds,
    show,
)
from benchmarks.data import data_folder
from benchmarks.tables import Page, machine
from benchmarks.wfinstances_report import Outcome, figures_of, parts_of
from kfp_placement.cli.output import check_target
from kfp_placement_engine import (
    BASELINES,
    Cluster,
    LoweringOptions,
    MaxRuntime,
    Node,
    PlacementProblem,
    RunGraph,
    lower,
    lower_bound,
    read_run_file,
    solve,
)
from kfp_placement_engine.exceptions import InputNotFoundError
from kfp_placement_engine.search.baselines import schedules_of

FOLDER = "wfinstances"


@dataclass(frozen=True)
class SlotCluster:
    """Nodes with slots.

    Attributes:
        name: for people.
        slots: of each node.
        speeds: one for each node.
    """

    name: str
    slots: int
    speeds: tuple[float, ...]

    def cluster(self) -> Cluster:
        """The nodes in the order of their speeds."""
        # A slot is a CPU; where a node has no memory, kube-scheduler scores CPU alone.
        room = {"cpu": 1000 * self.slots, "pods": 110}
        return Cluster(
            tuple(
                Node(f"node-{number}", room, speed=speed)
                for number, speed in enumerate(self.speeds, start=1)
            )
        )


CLUSTERS = (SlotCluster("3x2", 2, (1.0, 1.0, 1.0)), SlotCluster("het 4x4", 4, (0.5, 1.0, 1.0, 2.0)))


def instance_files(data: Path | None = None) -> list[Path]:
    """The instances, by name.

    Raises:
        InputNotFoundError: there are none.
    """
    folder = data_folder(data)
    inside = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    files = sorted(inside.glob("*.json"))
    if not files:
        raise InputNotFoundError(f"{inside}: holds no workflow instances (*.json)")
    return files


def slot_run(path: Path) -> RunGraph:
    """An instance of which every task takes one slot."""
    run = read_run_file(path)
    return replace(run, steps=tuple(replace(s, requests={"cpu": 1000}) for s in run.steps))


def slot_problem(run: RunGraph, cluster: Cluster) -> PlacementProblem:
    """The run under ordered dispatch; of several best nodes kube-default takes the first.

    So do the figures that were measured before; since Kubernetes 1.35 a heap decides.
    """
    problem = lower(run, cluster, LoweringOptions(dispatch="ordered")).problem
    return replace(problem, ties="first")


def measure(path: Path, cluster: SlotCluster, budgets: Sequence[float], seed: int = 0) -> Outcome:
    """One file on one cluster."""
    run = slot_run(path)
    problem = slot_problem(run, cluster.cluster())
    return Outcome(
        cluster=cluster.name,
        name=path.stem,
        tasks=len(run.steps),
        bound=lower_bound(problem),
        kube=fmean(each.makespan_seconds for each in schedules_of("kube-default", problem)),
        heft=BASELINES["heft"](problem, 0).makespan_seconds,
        ours={
            budget: solve(problem, MaxRuntime(budget), seed).schedule.makespan_seconds
            for budget in budgets
        },
    )


def main(
    echo: Echo,
    *,
    budgets: Sequence[float] = (2.0, 6.0),
    data: Path | None = None,
    form: str = "table",
    output: Path | None = None,
    files: Sequence[str] = (),
    progress: Callable[[str], None] = lambda text: None,
) -> int:
    """Measure and print the tables.

    Args:
        echo: prints a line.
        budgets: seconds of search, shortest first.
        data: the data folder, or that of the instances; None looks for it.
        form: one of `FORMATS`.
        output: also write the tables as Markdown to this file.
        files: names (without `.json`) of the only files to take; none = all.
        progress: told what is being done.

    Returns:
        The exit code: 1 if a plan is worse than HEFT or beats its bound, else 0.

    Raises:
        InputNotFoundError: no instances are there.
        RunError: the output cannot be written.
    """
    paths = [path for path in instance_files(data) if not files or path.stem in files]
    outcomes = []
    for cluster in CLUSTERS:
        for path in paths:
            progress(f"{cluster.name}: {path.stem}")
            outcomes.append(measure(path, cluster, budgets))
    figures = {"machine": machine(), "outcomes": figures_of(outcomes)}
    page = Page("Recorded workflow runs", parts_of(outcomes, budgets), figures)
    show(page, echo, form, output)
    return 0 if all(outcome.is_possible for outcome in outcomes) else 1


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "wfinstances",
        "Recorded workflow runs on slots: kube-default, HEFT and our search beside the bound.",
        examples=["", "--budgets 1s --files sarek-dirt02-001", "--data path/to/data -o json"],
        exit_codes="0 done, 1 a plan is worse than HEFT or beats its bound, 3 no data.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help=f"the data folder, or that of the instances {DATA_HELP}",
    )
    parser.add_argument(
        "--budgets",
        type=seconds,
        nargs="+",
        default=[2.0, 6.0],
        metavar="TIME",
        help="times for the search, the shortest first [default: 2s 6s]",
    )
    parser.add_argument(
        "--files", nargs="*", default=(), metavar="NAME", help="the only files to take"
    )
    add_output(parser)
    return parser


def command(arguments: Sequence[str] | None = None) -> int:
    """What `python -m benchmarks.wfinstances` does; returns the exit code."""
    asked = _parser().parse_args(arguments)

    def measured() -> int:
        check_target(asked.output)
        return main(
            print,
            budgets=asked.budgets,
            data=asked.data,
            form=asked.form,
            output=asked.output,
            files=asked.files,
            progress=lambda text: print(text, file=sys.stderr),
        )

    return exit_code_of(measured)


if __name__ == "__main__":
    sys.exit(command())
