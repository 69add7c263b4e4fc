"""Recorded workflow runs on slots: kube-default, HEFT and our search beside the lower bound.

`python -m benchmarks.wfinstances --help`. The files are the 22 of WfCommons' WfInstances
that the data set `wfinstances` holds. A node has slots, one task a slot, and a speed; data moves
from node to node at 125 MB/s, and not at all within one.
"""

import argparse
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.budget import Budget, timed_budget
from benchmarks.cases import Case, Instance, ordered_instance
from benchmarks.command import DATA_HELP
from benchmarks.data import data_folder
from benchmarks.measuring import Benchmark, readable, run_command
from benchmarks.processes import on_one_thread
from benchmarks.wfinstances_report import parts_of, totals
from kfp_placement_engine import Cluster, Node, PlacementProblem, RunGraph, read_run_file
from kfp_placement_engine.exceptions import InputNotFoundError

FOLDER = "wfinstances"


@dataclass(frozen=True)
class SlotCluster:
    """Nodes with slots.

    Attributes:
        name: name for people.
        slots: slots of each node.
        speeds: one for each node.
    """

    name: str
    slots: tuple[int, ...]
    speeds: tuple[float, ...]

    def cluster(self) -> Cluster:
        """Return the nodes in this order."""
        # A slot is a CPU; where a node has no memory, kube-scheduler scores CPU alone.
        nodes = enumerate(zip(self.slots, self.speeds, strict=True), start=1)
        return Cluster(
            tuple(
                Node(f"node-{number}", {"cpu": 1000 * slots, "pods": 110}, speed=speed)
                for number, (slots, speed) in nodes
            )
        )


CLUSTERS = (
    SlotCluster("3x2", (2, 2, 2), (1.0, 1.0, 1.0)),
    SlotCluster("het 4x4", (4, 4, 4, 4), (0.5, 1.0, 1.0, 2.0)),
    SlotCluster("6 nodes", (1, 2, 4, 8, 4, 2), (0.8, 1.0, 1.2, 1.0, 0.6, 1.5)),
)


def instance_files(data: Path | None = None) -> list[Path]:
    """Return the instances by name.

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
    """Return an instance of which every task takes one slot."""
    run = read_run_file(path)
    return replace(run, steps=tuple(replace(s, requests={"cpu": 1000}) for s in run.steps))


def slot_problem(run: RunGraph, cluster: Cluster) -> PlacementProblem:
    """Return the run under ordered dispatch; of several best nodes kube-default takes the first.

    So do the figures that were measured before; since Kubernetes 1.35 a heap decides.
    """
    return ordered_instance(run, cluster).problem


def load(path: Path, cluster: SlotCluster, _seed: int) -> Instance:
    """Return a file on a cluster as a problem.

    Raises:
        EngineError: the file cannot be read.
    """
    return ordered_instance(
        slot_run(path),
        cluster.cluster(),
        input_hash=hashlib.sha256(path.read_bytes()).hexdigest(),
        has_all_ties=True,
    )


def cases(asked: argparse.Namespace) -> list[Case]:
    """Return a case for each cluster and file.

    Raises:
        InputNotFoundError: no instances are there.
    """
    paths = instance_files(asked.data)
    return [
        Case(f"{cluster.name} {path.stem}", partial(load, path, cluster))
        for cluster in CLUSTERS
        for path in paths
    ]


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help=f"the data folder, or that of the instances {DATA_HELP}",
    )


BENCHMARK = Benchmark(
    name="wfinstances",
    heading="Recorded workflow runs",
    summary="Recorded workflow runs on slots: kube-default, HEFT and our search beside the bound.",
    examples=[
        "",
        "--budget 1s --cases '*sarek*'",
        "--budget 6cpu --seeds 0-2 --peers wow peft 'cws-*-fair' -o json",
    ],
    cases=cases,
    parts=parts_of,
    totals=totals,
    seeds=range(1),
    budgets=(Budget(wall_seconds=2.0), Budget(wall_seconds=6.0)),
    add_options=_add_options,
    prepare=readable,
    budget_of=timed_budget,
)


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.wfinstances` and return the exit code."""
    return run_command(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(on_one_thread(BENCHMARK.name, command))
