"""Draws of a series by seed: runs, their arrivals, and the true times of their steps."""

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.cases import hash_of
from benchmarks.made_up_runs import Shape, made_up_run
from benchmarks.wfinstances import slot_run
from kfp_placement_engine import Cluster, Node, RunGraph

RUNS = 8
MEAN_GAP_SECONDS = 60.0
SPEEDS = (0.5, 1.0, 1.0, 2.0)
LARGEST = 8
"""Cores of the largest steps, where they differ."""

_STEPS = (10, 30)
"""Smallest and largest number of steps of a made-up run."""


@dataclass(frozen=True)
class Series:
    """Runs on a cluster.

    Attributes:
        runs: runs in the order in which they arrive.
        arrivals: seconds.
        factors: true run time over planned one, of each run by step name.
        cluster: cluster of the runs.
    """

    runs: tuple[RunGraph, ...]
    arrivals: tuple[float, ...]
    factors: tuple[dict[str, float], ...]
    cluster: Cluster

    def true_runs(self) -> tuple[RunGraph, ...]:
        """Return the runs with their true times."""
        return tuple(
            replace(
                run,
                steps=tuple(
                    replace(
                        step, duration_seconds=(step.duration_seconds or 0.0) * factor[step.name]
                    )
                    for step in run.steps
                ),
            )
            for run, factor in zip(self.runs, self.factors, strict=True)
        )


@dataclass(frozen=True)
class Kind:
    """A kind of series.

    Attributes:
        name: name for people and for `--cases`.
        files: files of recorded runs to draw from; empty = runs are made up.
        most_cores: largest number of cores of a step; 1 = every step takes one.
    """

    name: str
    files: tuple[Path, ...] = ()
    most_cores: int = 1


def draw(kind: Kind, noise: float, seed: int) -> Series:
    """Draw runs, arrivals and true times; runs and arrivals are the same whatever the noise."""
    rng = np.random.default_rng([seed, kind.most_cores])
    gaps = rng.exponential(MEAN_GAP_SECONDS, RUNS)
    arrivals = np.cumsum(gaps) - gaps[0]
    if kind.files:
        runs = [slot_run(kind.files[at]) for at in rng.integers(0, len(kind.files), RUNS)]
    else:
        counts = rng.integers(_STEPS[0], _STEPS[1] + 1, RUNS)
        runs = [_made_up(int(count), seed * RUNS + at) for at, count in enumerate(counts)]
    runs = [_sized(run, kind.most_cores, rng) for run in runs]
    factors = tuple(
        dict(
            zip(
                (step.name for step in run.steps),
                np.exp(noise * rng.standard_normal(len(run.steps))).tolist(),
                strict=True,
            )
        )
        for run in runs
    )
    return Series(tuple(runs), tuple(arrivals.tolist()), factors, _cluster(kind.most_cores))


def _made_up(count: int, seed: int) -> RunGraph:
    return made_up_run(Shape("workflow", count, len(SPEEDS), seed))


def _sized(run: RunGraph, most_cores: int, rng: np.random.Generator) -> RunGraph:
    cores = rng.integers(1, most_cores + 1, len(run.steps)).tolist()
    return replace(
        run,
        steps=tuple(
            replace(step, requests={"cpu": 1000 * count})
            for step, count in zip(run.steps, cores, strict=True)
        ),
    )


def _cluster(most_cores: int) -> Cluster:
    """Nodes on which about four steps run at a time."""
    cores = 4 if most_cores == 1 else 2 * most_cores
    room = {"cpu": 1000 * cores, "pods": 110}
    return Cluster(
        tuple(
            Node(f"node-{number}", room, speed=speed)
            for number, speed in enumerate(SPEEDS, start=1)
        )
    )


def hash_of_series(series: Series) -> str:
    """SHA-256 of what is drawn of a series."""
    runs = [hash_of(run, series.cluster) for run in series.true_runs()]
    text = json.dumps([runs, series.arrivals], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
