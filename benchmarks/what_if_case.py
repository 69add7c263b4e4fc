"""Made-up cases of what-if: 100 steps on 50 nodes, and something scarce on them."""

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.made_up_runs import IMAGES, Shape, made_up_run
from kfp_placement_engine import Cluster, Node, RunGraph
from kfp_placement_engine.model.run_graph import RunClaim

STEPS, NODES = 100, 50

_GIBIBYTE = 2**30
_CLAIM_USERS = range(20, 40, 2)
"""Steps that mount one ReadWriteOnce volume, in the case with one."""


@dataclass(frozen=True)
class Kind:
    """Equal nodes: how many there are, and the cores, GiB and speed of each."""

    name: str
    count: int
    cores: int
    gibibytes: int
    speed: float = 1.0


@dataclass(frozen=True)
class Case:
    """A case: what is scarce, the run's kind as in `made_up_runs`, and the nodes."""

    scarce: str
    run: str
    nodes: tuple[Kind, ...]
    has_volume: bool = False


_MIXED = (Kind("small", 30, 2, 8), Kind("medium", 14, 8, 32), Kind("large", 6, 16, 64, 1.5))
CASES = (
    Case("iterations at once", "kfp", _MIXED),
    Case("large nodes", "workflow", (Kind("small", 48, 1, 2), Kind("large", 2, 9, 36))),
    Case("memory", "kfp", (Kind("small", 40, 4, 4), Kind("large", 10, 16, 16))),
    Case("fast nodes", "workflow", (Kind("slow", 49, 10, 32, 0.5), Kind("fast", 1, 10, 32, 2.0))),
    Case("a volume", "kfp", _MIXED, has_volume=True),
)


def made_up_case(number: int) -> tuple[RunGraph, Cluster]:
    """Make the run and the cluster of a case; nodes hold a third of the images, and other pods."""
    case, rng = CASES[number], np.random.default_rng([number, NODES])
    run = made_up_run(Shape(case.run, STEPS, NODES, seed=number))
    if case.has_volume:
        steps = list(run.steps)
        for index in _CLAIM_USERS:
            steps[index] = replace(steps[index], claims=("shared",))
        claim = RunClaim("shared", ("ReadWriteOnce",))
        run = replace(run, steps=tuple(steps), claims=(claim,))
    nodes = [_node(rng, kind, n + 1) for kind in case.nodes for n in range(kind.count)]
    return run, Cluster(tuple(nodes))


def _node(rng: np.random.Generator, kind: Kind, number: int) -> Node:
    held = np.flatnonzero(rng.random(IMAGES) < 1 / 3)
    used = {"cpu": int(rng.choice((0, 0, 500))), "memory": int(rng.integers(0, 2)) * _GIBIBYTE}
    size = {"cpu": 1000 * kind.cores, "memory": kind.gibibytes * _GIBIBYTE, "pods": 110}
    return Node(
        name=f"{kind.name}-{number}",
        allocatable=size,
        used={**used, "pods": 3},
        speed=kind.speed,
        images={f"image-{image}": 10**8 * (5 + int(image)) for image in held},
    )
