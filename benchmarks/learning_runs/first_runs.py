"""Promises of the first runs of made-up pipelines, before they start: how few runs are enough.

Pipelines that are alone in their namespace, of six, twelve and thirty steps, and twenty steps side
by side, of which the slowest decides. Each run is forecast from all runs before it.
"""

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.learning_runs.experiments import Case, promised_case, seen_text
from benchmarks.learning_runs.live import (
    KEY,
    MIXTURES,
    Mixture,
    begin,
    options_of,
    with_iteration_keys,
)
from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from kfp_placement_engine import Cluster, Node, RunGraph, Step
from kfp_placement_engine.history import Past

SEEDS, RUNS = 20, 10

_STEPS, _NODES = (6, 12, 30), 2
_WIDTH, _STEP_SECONDS = 20, 100.0
_FAR_APART = Mixture("20 side by side, far apart", 0.0, 0.4, 0.0)


def first_runs(progress: Callable[[str], None], seeds: int = SEEDS) -> Iterator[Case]:
    """A case for each run but the first; groups are how times vary, and how many runs were seen."""
    for mixture in (*MIXTURES[:2], _FAR_APART):
        progress(f"first runs: {mixture.name}")
        for seed in range(seeds):
            for graph, cluster in _pipelines(mixture, seed):
                yield from runs_of(graph, cluster, mixture, seed)


def runs_of(
    graph: RunGraph, cluster: Cluster, mixture: Mixture, seed: int, runs: int = RUNS
) -> Iterator[Case]:
    """Of one pipeline, the second of its runs first."""
    random, past, ends = np.random.default_rng(seed), Past(), list[float]()
    options = options_of(seed)
    for number in range(runs):
        begun = begin(graph, cluster, options, past, mixture, random)
        promise = begun.first
        if ends:
            group = f"{mixture.name}: {seen_text(number)}"
            yield promised_case(KEY, group, begun.end, ends, promise)
        past.observe(begun.past_run(number))
        ends.append(begun.end)


def _pipelines(mixture: Mixture, seed: int) -> Iterator[tuple[RunGraph, Cluster]]:
    if mixture is _FAR_APART:
        yield side_by_side(), wide_cluster()
        return
    for steps in _STEPS:
        shape = Shape("kfp", steps, _NODES, seed)
        yield with_iteration_keys(made_up_run(shape)), made_up_cluster(shape)


def side_by_side() -> RunGraph:
    """A step, many that need its output, and one that needs theirs."""
    names = tuple(f"part-{number}" for number in range(_WIDTH))
    first = Step("load", "load", duration_seconds=_STEP_SECONDS)
    middle = (
        Step(each, each, depends_on=("load",), duration_seconds=_STEP_SECONDS) for each in names
    )
    last = Step("join", "join", depends_on=names, duration_seconds=_STEP_SECONDS)
    return RunGraph("side by side", "argo-workflow", (first, *middle, last))


def wide_cluster() -> Cluster:
    """A node with room for all steps at a time."""
    return Cluster((Node("node-0", {"cpu": 64_000, "memory": 2**38, "pods": 110}),))
