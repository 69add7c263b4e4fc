"""Runs and clusters made up for measurements: any size, a bit of everything, by seed."""

from dataclasses import dataclass, replace

import numpy as np

from kfp_placement_engine import Cluster, Node, RunGraph, Step
from kfp_placement_engine.model.run_graph import DataInput, Group, GroupKind

IMAGES = 20
LATEST_SHARE, LATEST_LEAST = 0.25, 20
"""A step depends on some of the steps just before it: this share of the run, at least this many."""

_GIBIBYTE = 2**30
_BLOCK = 50
_ITERATIONS, _CHAIN, _PARALLELISM = 10, 3, 5

_CPU_MILLI = (500, 1000, 2000, 4000, 8000)
_MEMORY_GIBIBYTES = (1, 2, 4, 8, 16)
_NODES = ((8, 32, 0.8), (12, 48, 1.0), (16, 64, 1.5))
"""Cores, GiB and speed of the kinds of nodes, in turn."""


@dataclass(frozen=True)
class Shape:
    """Shape of a made-up run.

    Attributes:
        kind: `kfp` (driver pods, loops with a limit, data through the object store) or `workflow`
            (tasks alone, data from node to node).
        steps: number of steps.
        nodes: number of nodes.
        seed: seed of the draws; the same seed gives the same run and cluster.
    """

    kind: str
    steps: int
    nodes: int
    seed: int = 0

    @property
    def dispatch(self) -> str:
        """Dispatch of such runs."""
        return "ready" if self.kind == "kfp" else "ordered"


def made_up_run(shape: Shape) -> RunGraph:
    """Make a run of the shape, mostly wide, with joins; in a KFP run most steps are in loops."""
    rng = np.random.default_rng([shape.seed, shape.steps])
    if shape.kind == "kfp":
        return _kfp_run(rng, shape.steps)
    steps: list[Step] = []
    sources: list[list[Step]] = []
    for number in range(shape.steps):
        steps.append(_after(_step(rng, f"task-{number}", number), _some(rng, sources, shape.steps)))
        sources.append(steps[-1:])
    return RunGraph("made-up workflow", "wfformat", tuple(steps), direct_transfers=True)


def made_up_cluster(shape: Shape) -> Cluster:
    """Nodes of three sizes and speeds in turn; each holds a third of the images."""
    rng = np.random.default_rng([shape.seed, shape.nodes, 1])
    nodes = []
    for number in range(shape.nodes):
        cores, memory, speed = _NODES[number % len(_NODES)]
        held = np.flatnonzero(rng.random(IMAGES) < 1 / 3)
        nodes.append(
            Node(
                name=f"node-{number}",
                allocatable={"cpu": 1000 * cores, "memory": memory * _GIBIBYTE, "pods": 110},
                speed=speed,
                images={f"image-{image}": 10**8 * (5 + int(image)) for image in held},
            )
        )
    return Cluster(tuple(nodes))


def _step(rng: np.random.Generator, name: str, number: int) -> Step:
    seconds = 60.0 * rng.lognormal(0.0, 0.8)
    return Step(
        name=name,
        task=name,
        image=f"image-{number % IMAGES}",
        requests={
            "cpu": int(rng.choice(_CPU_MILLI)),
            "memory": int(rng.choice(_MEMORY_GIBIBYTES) * _GIBIBYTE),
        },
        duration_seconds=float(seconds),
        output_bytes={"out": int(1e8 * rng.lognormal(0.0, 1.0))},
    )


def _some(
    rng: np.random.Generator, sources: list[list[Step]], total: int, most: int = 3
) -> list[Step]:
    """Return up to `most` of the latest sources: steps, or last steps of loops."""
    latest = sources[-max(LATEST_LEAST, int(LATEST_SHARE * total)) :]
    wanted = min(int(rng.integers(0, most + 1)), len(latest))
    chosen = sorted(rng.choice(len(latest), wanted, replace=False)) if wanted else []
    return [step for index in chosen for step in latest[index]]


def _after(step: Step, before: list[Step]) -> Step:
    return replace(
        step,
        depends_on=tuple(sorted(each.name for each in before)),
        inputs=tuple(DataInput(each.name, "out", each.output_bytes["out"]) for each in before),
    )


def _kfp_run(rng: np.random.Generator, count: int) -> RunGraph:
    """Blocks of some steps in the root and a loop of short chains."""
    steps: list[Step] = []
    sources: list[list[Step]] = []
    groups = [Group("", GroupKind.ROOT)]
    looped = _ITERATIONS * _CHAIN
    while len(steps) < count:
        start = len(steps)
        for number in range(start, min(start + _BLOCK - looped, count)):
            steps.append(_after(_step(rng, f"step-{number}", number), _some(rng, sources, count)))
            sources.append(steps[-1:])
        if count - len(steps) >= looped:
            more, inside = _loop(rng, f"loop-{start}", _some(rng, sources, count), start)
            groups += more
            steps += inside
            sources.append(inside[_CHAIN - 1 :: _CHAIN])
    driven = tuple(replace(step, has_driver=True) for step in steps)
    return RunGraph("made-up pipeline", "kfp-package", driven, tuple(groups))


def _loop(
    rng: np.random.Generator, name: str, before: list[Step], number: int
) -> tuple[list[Group], list[Step]]:
    """Make a loop and its steps, iteration by iteration."""
    waits = tuple(sorted(step.name for step in before))
    loop = Group(
        name, GroupKind.LOOP, depends_on=waits, parallelism=_PARALLELISM, width=_ITERATIONS
    )
    groups = [loop]
    steps: list[Step] = []
    links = [_step(rng, "", number + link) for link in range(_CHAIN)]
    for iteration in range(_ITERATIONS):
        inside = f"{name}[{iteration}]"
        groups.append(Group(inside, GroupKind.ITERATION, parent=name))
        for position, link in enumerate(links):
            step = replace(
                link,
                name=f"{inside}.work-{position}",
                task=f"{name}[*].work-{position}",
                group=inside,
                iteration=(iteration,),
            )
            steps.append(_after(step, steps[-1:] if position else before))
    return groups, steps
