"""Random projects of any size on one or more nodes, drawn as ProGen draws those of PSPLIB.

Kolisch, Sprecher, Drexl (1995), "Characterization and generation of a general class of
resource-constrained project scheduling problems", Management Science 41. The three measures that
decide how hard a project is are drawn: network complexity (precedences a job), resource factor
(share of the resources that a job takes) and resource strength (how much room there is between the
least and the most that is of use). What the paper does not have is ours: nodes of several speeds,
and data that takes seconds from node to node.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from benchmarks.j30 import project_run
from benchmarks.psplib import Job, Project
from kfp_placement_engine import Cluster, Node, RunGraph, Step
from kfp_placement_engine.model.run_graph import DataInput

RESOURCES = 4
COMPLEXITIES = (1.5, 1.8, 2.1)
FACTORS = (0.25, 0.5, 0.75, 1.0)
STRENGTHS = (0.1, 0.2, 0.3, 0.5)
"""ProGen's 0.7 and 1 leave little to search for."""

MOST_SECONDS, MOST_AMOUNT = 10, 10
"""A job lasts 1 to 10 s and takes 1 to 10 units of a resource."""

SPEEDS = (0.8, 1.0, 1.0, 1.5)
LAGS = (0, 0, 1, 3)
"""Seconds that a job's output takes to another node."""

_FIRST_JOBS, _NEAR = 3, 20
"""Jobs that wait for none, and how far back a job's predecessors may be."""

_BYTES_PER_SECOND = 125_000_000
"""Bandwidth from node to node, as the planner assumes."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ProjectSize:
    """Size of a project."""

    jobs: int
    nodes: int


def drawn_project(jobs: int, rng: np.random.Generator) -> Project:
    """Make a project on one node."""
    before = _precedences(jobs, float(rng.choice(COMPLEXITIES)), rng)
    seconds = rng.integers(1, MOST_SECONDS, jobs, endpoint=True)
    requests = _requests(jobs, float(rng.choice(FACTORS)), rng)
    least, most = requests.max(axis=0), _peaks(before, seconds, requests)
    room = np.maximum(1, least + np.rint(float(rng.choice(STRENGTHS)) * (most - least)))
    after: list[list[int]] = [[] for _ in range(jobs)]
    for job, earlier in enumerate(before):
        for each in sorted(earlier):
            after[each].append(job + 1)
    return Project(
        name="random project",
        jobs=tuple(
            Job(job + 1, int(seconds[job]), tuple(requests[job].tolist()), tuple(after[job]))
            for job in range(jobs)
        ),
        capacities=tuple(int(each) for each in room),
    )


def _precedences(jobs: int, complexity: float, rng: np.random.Generator) -> list[set[int]]:
    """Draw, by job from 0, the jobs that it waits for: `complexity` a job on average."""
    before: list[set[int]] = [set() for _ in range(jobs)]
    for job in range(_FIRST_JOBS, jobs):
        before[job].add(_earlier(job, rng))
    missing = round(complexity * jobs) - sum(map(len, before))
    for job in rng.integers(_FIRST_JOBS, jobs, max(0, missing)).tolist():
        before[job].add(_earlier(job, rng))
    return before


def _earlier(job: int, rng: np.random.Generator) -> int:
    return int(rng.integers(max(0, job - _NEAR), job))


def _requests(jobs: int, factor: float, rng: np.random.Generator) -> Integers:
    """[jobs, resources] amounts; every job takes something."""
    amounts = rng.integers(1, MOST_AMOUNT, (jobs, RESOURCES), endpoint=True)
    is_taken = rng.random((jobs, RESOURCES)) < factor
    is_taken[np.arange(jobs), rng.integers(0, RESOURCES, jobs)] = True
    return np.where(is_taken, amounts, 0)


def _peaks(before: list[set[int]], seconds: Integers, requests: Integers) -> Integers:
    """[resources] the most that is taken at once if every job starts as early as it may."""
    ends: list[int] = []
    used = np.zeros((int(seconds.sum()), RESOURCES), np.int64)
    for job, earlier in enumerate(before):
        start = max((ends[each] for each in earlier), default=0)
        ends.append(start + int(seconds[job]))
        used[start : ends[job]] += requests[job]
    peaks: Integers = used.max(axis=0)
    return peaks


def random_project(size: ProjectSize, rng: np.random.Generator) -> tuple[RunGraph, Cluster]:
    """Return a project as a run, and nodes with its total room, each enough for every job."""
    project = drawn_project(size.jobs, rng)
    run = project_run(project)
    largest = np.max([job.requests for job in project.jobs], axis=0)
    room = np.maximum(largest, np.rint(np.divide(project.capacities, size.nodes)))
    allocatable = {f"psplib.org/r{at}": int(each) for at, each in enumerate(room, start=1)}
    nodes = tuple(
        Node(
            f"node-{number}",
            {**allocatable, "pods": size.jobs},
            speed=float(rng.choice(SPEEDS)) if size.nodes > 1 else 1.0,
        )
        for number in range(size.nodes)
    )
    lags = dict(zip((step.name for step in run.steps), rng.choice(LAGS, size.jobs), strict=True))
    steps = tuple(_with_data(step, lags) for step in run.steps)
    return replace(run, steps=steps, direct_transfers=True), Cluster(nodes)


def _with_data(step: Step, lags: dict[str, int]) -> Step:
    """Return the step with its downloads from earlier steps."""
    inputs = tuple(
        DataInput(name, "out", int(lags[name]) * _BYTES_PER_SECOND)
        for name in step.depends_on
        if lags[name]
    )
    return replace(step, inputs=inputs)
