"""Promises of made-up runs: from the second run of a pipeline on, and while the eleventh runs.

A run time is the usual one times a factor that all steps of the run share, times one of its own,
and three times as long now and then; all lognormal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.learning_runs.cases import Case, seen_text
from benchmarks.learning_runs.simulated_run import PASSED, SimulatedRun, simulate_run
from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from kfp_placement_engine import Cluster, Node, RunGraph, Step
from kfp_placement_engine.history import Past

RUNS_SEEN, SEEDS, FIRST_SEEDS = 10, 100, 20
TAIL = 3.0
_STEPS, _NODES = (6, 12, 30), 2
_WIDTH, _STEP_SECONDS = 20, 100.0


@dataclass(frozen=True)
class Mixture:
    """Variation of run times.

    Attributes:
        name: name for people.
        common, own: standard deviations of the logarithms of a run's factor and of a step's.
        tail: share of steps that take `TAIL` times as long.
    """

    name: str
    common: float
    own: float
    tail: float = 0.0

    def drawn(self, graph: RunGraph, random: np.random.Generator) -> list[float]:
        """Run times of the steps of one run."""
        count = len(graph.steps)
        usual = np.array([step.duration_seconds for step in graph.steps], np.float64)
        factors = np.exp(random.normal(0, self.common) + random.normal(0, self.own, count))
        tails = np.where(random.random(count) < self.tail, TAIL, 1.0)
        times: list[float] = (usual * factors * tails).tolist()
        return times


MIXTURES = (
    Mixture("own", 0.0, 0.2),
    Mixture("own and common", 0.1, 0.2),
    Mixture("own, common and tail", 0.1, 0.2, 0.02),
)
_FAR_APART = Mixture("20 side by side, far apart", 0.0, 0.4)


def runs_under_way(seeds: int = SEEDS) -> Iterator[Case]:
    """Yield cases of each pipeline's eleventh run, for each share of its time that has passed."""
    for mixture in MIXTURES:
        for seed in range(seeds):
            yield from run_under_way(mixture, seed)


def run_under_way(mixture: Mixture, seed: int) -> Iterator[Case]:
    """Yield the cases of one run."""
    shape = Shape("kfp", 60, 6, seed)
    *before, last = _runs(_made_up(shape), made_up_cluster(shape), mixture, seed, RUNS_SEEN + 1)
    ends = [run.seconds for run in before]
    for passed in PASSED:
        case = last.case(f"{passed:.0%} passed", ends, passed, mixture.name)
        assert case is not None, last.first.unknown
        yield case


def first_runs(seeds: int = FIRST_SEEDS) -> Iterator[Case]:
    """Yield a case of each run but the first, before it begins; groups are numbers of seen runs.

    Pipelines of six, twelve and thirty steps; and twenty steps side by side, the slowest decides.
    """
    for seed in range(seeds):
        pipelines = [
            (_made_up(shape), made_up_cluster(shape), mixture)
            for mixture in MIXTURES[:2]
            for shape in (Shape("kfp", steps, _NODES, seed) for steps in _STEPS)
        ]
        for graph, cluster, mixture in (*pipelines, (_side_by_side(), _wide(), _FAR_APART)):
            ends: list[float] = []
            for run in _runs(graph, cluster, mixture, seed, RUNS_SEEN):
                case = run.case(seen_text(len(ends)), ends, pipeline=mixture.name)
                if ends and case is not None:
                    yield case
                ends.append(run.seconds)


def _runs(
    graph: RunGraph, cluster: Cluster, mixture: Mixture, seed: int, count: int
) -> Iterator[SimulatedRun]:
    """Yield runs of one pipeline that is alone in its namespace; every second one is `ordered`."""
    random, past = np.random.default_rng(seed), Past()
    for number in range(count):
        seconds = mixture.drawn(graph, random)
        run = simulate_run(graph, seconds, cluster, past, "ordered" if seed % 2 else "ready")
        past.observe(run.past_run(number))
        yield run


def _made_up(shape: Shape) -> RunGraph:
    """Return a run whose loops have the same items in each run."""
    graph = made_up_run(shape)
    steps = (replace(each, iteration_key=str(each.iteration or "")) for each in graph.steps)
    return replace(graph, steps=tuple(steps))


def _side_by_side() -> RunGraph:
    """Return a step, many that need its output, and one that needs theirs."""
    names = [f"part-{number}" for number in range(_WIDTH)]
    waits: Sequence[tuple[str, tuple[str, ...]]] = (
        ("load", ()),
        *((each, ("load",)) for each in names),
        ("join", tuple(names)),
    )
    steps = (Step(name, name, depends_on=before, duration_seconds=_STEP_SECONDS)
             for name, before in waits)  # fmt: skip
    return RunGraph("side by side", "argo-workflow", tuple(steps))


def _wide() -> Cluster:
    """Return a node with room for all steps at a time."""
    return Cluster((Node("node-0", {"cpu": 64_000, "memory": 2**38, "pods": 110}),))
