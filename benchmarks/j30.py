"""Projects of PSPLIB: how far our search is above the proven optimum, and above the critical path.

`python -m benchmarks.j30 --help`. A project is a run on one node: its renewable resources are the
node's, its jobs are steps under ordered dispatch. That is the resource-constrained project
scheduling problem (RCPSP). Any files with one mode a job will do; j30 has a proof for each.
"""

import argparse
import hashlib
import math
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.budget import Budget
from benchmarks.cases import Case, Instance, ordered_instance
from benchmarks.command import DATA_HELP
from benchmarks.data import data_files
from benchmarks.measuring import Benchmark, Parts, readable, run_command, searched
from benchmarks.outcomes import Outcome, baseline_gaps, by_budget
from benchmarks.processes import on_one_thread
from benchmarks.psplib import Project, problem_name, read_optima, read_project, without_instants
from benchmarks.tables import Table, percent
from kfp_placement_engine import Cluster, Node, RunGraph, Step
from kfp_placement_engine.exceptions import InputError

FOLDER = "psplib-j30"
OPTIMA = "optimum.csv"

_NUMBERS = re.compile(r"([0-9]+)")


def project_files(data: Path | None = None) -> list[Path]:
    """Return the projects in the order of the numbers in their names.

    Args:
        data: the data folder, a folder of projects, one project, or None to look for the first.

    Raises:
        InputNotFoundError: there are none.
    """
    files = data_files(
        data, FOLDER, lambda path: path.suffix.lower() == ".sm", "PSPLIB projects (*.sm)"
    )
    return sorted(files, key=lambda path: _key(path.name))


def _key(name: str) -> list[tuple[int, str]]:
    """Numbers in a name count as numbers: j301_2 comes before j301_10."""
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in _NUMBERS.split(name) if part
    ]


def project_run(project: Project) -> RunGraph:
    """Return the jobs of any duration as steps `job-NUMBER`."""
    before = without_instants(project)
    steps = [
        Step(
            name=_step(job.number),
            task=_step(job.number),
            requests={_resource(at): need for at, need in enumerate(job.requests, 1) if need},
            duration_seconds=float(job.seconds),
            depends_on=tuple(_step(each) for each in before[job.number]),
        )
        for job in project.jobs
        if job.seconds
    ]
    # As in a workflow format, pods have one container and no driver.
    return RunGraph(project.name, "wfformat", tuple(steps))


def project_cluster(project: Project) -> Cluster:
    """One node that has the project's resources, and room for all its pods."""
    room = {_resource(at): amount for at, amount in enumerate(project.capacities, start=1)}
    return Cluster((Node("project", {**room, "pods": len(project.jobs)}),))


def _step(number: int) -> str:
    return f"job-{number}"


def _resource(number: int) -> str:
    return f"psplib.org/r{number}"


def load(path: Path, optimum_seconds: float | None, _seed: int) -> Instance:
    """Return a project as a problem.

    Raises:
        EngineError: the file cannot be read, see `read_project`.
    """
    project = read_project(path)
    before = without_instants(project)
    return ordered_instance(
        project_run(project),
        project_cluster(project),
        input_hash=hashlib.sha256(path.read_bytes()).hexdigest(),
        optimum_seconds=optimum_seconds,
        instants={
            _step(job.number): tuple(_step(each) for each in before[job.number])
            for job in project.jobs
            if not job.seconds
        },
    )


def cases(asked: argparse.Namespace) -> list[Case]:
    """Return a case for each file.

    Raises:
        EngineError: no project is there, or its optima cannot be read or are of other projects.
    """
    files = project_files(asked.data)
    beside = files[0].parent / OPTIMA
    given = asked.optima or (beside if beside.is_file() else None)
    optima = {} if given is None else read_optima(given)
    if optima and not any(problem_name(path.name) in optima for path in files):
        raise InputError(
            f"{given}: names none of the {len(files):,} projects, such as {files[0].stem}"
        )
    return [
        Case(path.stem, partial(load, path, optima.get(problem_name(path.name)))) for path in files
    ]


def totals(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Means for each budget and number of steps; deviations as ratios."""
    rows = []
    for budget, group in by_budget(outcomes).items():
        for steps in sorted({each.steps for each in group}):
            rows.append(
                {
                    "budget": budget.figures,
                    "steps": steps,
                    **_means([each for each in group if each.steps == steps]),
                }
            )
    return rows


def _means(group: Sequence[Outcome]) -> dict[str, Any]:
    solved = [each for each in group if each.optimum is not None]
    paths = [each.makespan / each.references.bounds["critical-path"] - 1 for each in group]
    seeds = sorted({each.seed for each in group})
    return {
        "files": len({each.case for each in group}),
        "optimaKnown": len({each.case for each in solved}),
        "runs": len(group),
        "meanSchedules": fmean(each.spent.schedules for each in group),
        "meanCpuSeconds": fmean(each.spent.cpu_seconds for each in group),
        "aboveOptimum": _mean([each.gap for each in solved]),
        "aboveOptimumBySeed": {
            str(seed): _mean([each.gap for each in solved if each.seed == seed]) for seed in seeds
        },
        "largestAboveOptimum": max((each.gap for each in solved), default=None),
        "optimal": _mean([float(each.is_optimal) for each in solved]),
        "aboveCriticalPath": fmean(paths),
        "baselinesAboveOptimum": baseline_gaps(solved),
    }


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def parts(outcomes: Sequence[Outcome]) -> Parts:
    """Return the paragraphs about the measurement, and the table."""
    rows = []
    for row, budget in zip(totals(outcomes), _budgets(outcomes), strict=True):
        rows.append(
            [
                str(row["steps"]),
                budget.text,
                str(row["files"]),
                str(row["optimaKnown"]),
                f"{row['meanCpuSeconds']:.3f}",
                _percent(row["aboveOptimum"], 3),
                _percent(row["largestAboveOptimum"], 1),
                _percent(row["optimal"], 1),
                _percent(row["aboveCriticalPath"], 2),
                _percent(row["baselinesAboveOptimum"].get("heft"), 2),
            ]
        )
    headings = [
        "jobs",
        "budget",
        "files",
        "optima known",
        "CPU, s",
        "above optimum, %",
        "at most, %",
        "optimal, %",
        "above critical path, %",
        "HEFT above optimum, %",
    ]
    return [_about(outcomes), Table("Projects", headings, rows, words=2)]


def _budgets(outcomes: Sequence[Outcome]) -> list[Budget]:
    """Return the budget of each row of `totals`."""
    return [
        budget
        for budget, group in by_budget(outcomes).items()
        for _ in {each.steps for each in group}
    ]


def _percent(ratio: float | None, digits: int) -> str:
    return "-" if ratio is None or math.isnan(ratio) else percent(ratio, digits)


def _about(outcomes: Sequence[Outcome]) -> list[str]:
    return [
        "Projects with one mode a job, as a run on one node under ordered dispatch; jobs of no",
        "duration are not counted. Schedules are decodings, plans to start from included. Means",
        f"over files and seeds; {searched(outcomes)}.",
    ]


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        type=Path,
        metavar="PATH",
        help=f"the data folder, a folder of projects (*.sm), or one project {DATA_HELP}",
    )
    parser.add_argument(
        "--optima",
        type=Path,
        metavar="FILE",
        help="CSV with the columns problem,optimum; a blank optimum is not known "
        f"[default: {OPTIMA} beside the projects, if it is there]",
    )


BENCHMARK = Benchmark(
    name="j30",
    heading="Projects of PSPLIB",
    summary="Projects of PSPLIB on one node: our search above the proven optimum.",
    examples=[
        "",
        "--limit 48 --budget 1000schedules 5000schedules",
        "--data path/to/j60 --optima j60.csv --seeds 0-9 -o json",
    ],
    cases=cases,
    parts=parts,
    totals=totals,
    seeds=range(3),
    budgets=(Budget(schedules=5000),),
    add_options=_add_options,
    prepare=readable,
)


def command(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m benchmarks.j30` and return the exit code."""
    return run_command(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(on_one_thread(BENCHMARK.name, command))
