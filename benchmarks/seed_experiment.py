"""The seed experiment: the runs and the cluster of the paper on ML tasks on Kubernetes.

100 ML tasks of 6 subtasks each, all submitted at once. A subtask asks for 8 vCPU and 8 GB (level
H), 6 and 6 (M) or 4 and 4 (L); a mix says how many tasks are of which level. The paper leaves open
the cluster, the order and the durations; what is taken here fits its figures best: 3 nodes of
8 vCPU and 16 GB, the subtasks of a task a chain, its level drawn once (exact shares, shuffled). No
driver pods and no image pulls.
"""

from dataclasses import dataclass

import numpy as np

from kfp_placement_engine import (
    Cluster,
    LoweringOptions,
    Node,
    PlacementProblem,
    RunGraph,
    Step,
    lower,
)
from kfp_placement_engine.problem.problem import Floats, Integers

TASKS = 100
SUBTASKS = 6

LEVELS = {"H": 8, "M": 6, "L": 4}
"""vCPU, and GB, of a subtask of each level."""

MIXES = {"high": (50, 25, 25), "medium": (25, 50, 25), "low": (25, 25, 50)}
"""Tasks of level H, M and L in each mix."""

DURATIONS = ("equal", "proportional", "lognormal")
"""100 s each; 100 s for 6 vCPU; 100 s x lognormal(0, 0.6)."""

DRAWS = ("task", "subtask")
"""Ways to draw a level: for each task, or for each subtask."""

_SECONDS = 100.0
_SPREAD = 0.6
_GIBIBYTE = 2**30
_NODES = 3


@dataclass(frozen=True)
class Draw:
    """One draw of the experiment.

    Attributes:
        mix: key of `MIXES`.
        durations: one of `DURATIONS`.
        seed: draws of the same seed have the same levels, whatever the durations.
        levels: one of `DRAWS`.
    """

    mix: str
    durations: str
    seed: int
    levels: str = "task"


def draw_run(draw: Draw) -> RunGraph:
    """Return the run of one draw: 600 steps named `task-TASK.SUBTASK`, task by task."""
    rng = np.random.default_rng([draw.seed, list(MIXES).index(draw.mix), DRAWS.index(draw.levels)])
    cores = _cores(draw, rng)
    seconds = _seconds(draw, cores, rng)
    steps = [
        Step(
            name=f"task-{task}.{subtask}",
            task=f"task-{task}.{subtask}",
            requests={"cpu": 1000 * int(size), "memory": int(size) * _GIBIBYTE},
            duration_seconds=float(seconds[task, subtask]),
            depends_on=(f"task-{task}.{subtask - 1}",) if subtask else (),
        )
        for task in range(TASKS)
        for subtask, size in enumerate(cores[task])
    ]
    # As in a workflow format, pods have one container and no driver.
    return RunGraph(name=f"seed experiment, {draw.mix}", source="wfformat", steps=tuple(steps))


def experiment_cluster() -> Cluster:
    """3 nodes of 8 vCPU and 16 GB."""
    room = {"cpu": 8000, "memory": 16 * _GIBIBYTE, "pods": 110}
    return Cluster(tuple(Node(f"node-{number}", room) for number in range(1, _NODES + 1)))


def draw_problem(draw: Draw) -> PlacementProblem:
    """Return the draw as a problem under ordered dispatch."""
    return lower(draw_run(draw), experiment_cluster(), LoweringOptions(dispatch="ordered")).problem


def _cores(draw: Draw, rng: np.random.Generator) -> Integers:
    """[task, subtask] vCPU."""
    each = 1 if draw.levels == "task" else SUBTASKS
    levels = np.repeat(list(LEVELS.values()), [each * share for share in MIXES[draw.mix]])
    rng.shuffle(levels)
    return np.broadcast_to(levels.reshape(TASKS, each), (TASKS, SUBTASKS)).astype(np.int64)


def _seconds(draw: Draw, cores: Integers, rng: np.random.Generator) -> Floats:
    if draw.durations == "equal":
        return np.full(cores.shape, _SECONDS)
    if draw.durations == "proportional":
        return np.asarray(_SECONDS * cores / LEVELS["M"])
    return np.asarray(_SECONDS * rng.lognormal(0.0, _SPREAD, cores.shape))
