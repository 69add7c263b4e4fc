"""One measurement of speed, in a process of its own: how fast a search is, or a first plan there.

`python -m benchmarks.speed_case children kfp 1000 100 90` prints one line of JSON. It imports the
engine that comes first on the path, which may be that of another checkout, and `made_up_runs`.
"""

import hashlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import kfp_placement_engine
from benchmarks.made_up_runs import Shape, made_up_cluster, made_up_run
from kfp_placement_engine import GeneticParams
from kfp_placement_engine.lowering import LoweringOptions, lower
from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.problem import PlacementProblem
from kfp_placement_engine.search import genetic
from kfp_placement_engine.search.genetic import GeneticSearch, seeds_of, trials_per_generation
from kfp_placement_engine.search.priorities import priority_rules
from kfp_placement_engine.search.solve import solve
from kfp_placement_engine.search.stop import MaxRuntime, SearchProgress

CHILDREN, FIRST_PLAN = "children", "first-plan"
SEED = 0

_PLAIN: dict[str, Any] = {
    "serial_share": 0.0,
    "window_share": 0.0,
    "deadline_share": 0.0,
    "crossover_rate": 0.15,
    "islands": 1,
    "restart_after": 1_000_000,
}
"""Options for children simulated once and unchanged, as in older versions of the search."""


@dataclass(frozen=True)
class SpeedCase:
    """A case that is measured.

    Attributes:
        measure: `children`, the children that a search tries in a second, or `first-plan`, the time
            until there is a plan.
        shape: shape of the run and its cluster.
        generations: generations of the search, after the plans that it starts from.
    """

    measure: str
    shape: Shape
    generations: int = 0

    @property
    def name(self) -> str:
        """Name for people, and for choosing cases."""
        return f"{self.measure}-{self.shape.kind}-{self.shape.steps}x{self.shape.nodes}"

    @property
    def words(self) -> list[str]:
        """The case as arguments of this program."""
        numbers = (self.shape.steps, self.shape.nodes, self.generations)
        return [self.measure, self.shape.kind, *map(str, numbers)]


def known_starts(problem: PlacementProblem, seed: int) -> Iterator[list[Any]]:
    """Return plans to start from that older versions have as well: up to the list schedules."""
    return islice(seeds_of(problem, seed), 2 + len(priority_rules(problem)))


class CountedSearch(GeneticSearch):
    """A search whose populations can be compared."""

    @property
    def populations(self) -> list[native.Population]:
        """Parameters of the islands; in older versions they are the islands."""
        islands: list[Any] = self.islands
        return [getattr(island, "population", island) for island in islands]


class Stopwatch:
    """Stops a search after some generations; its clock starts when the search has its first plans.

    With one thread only one thing is done at a time: the CPU time of the process is that of one
    thread, whichever of its threads searches.
    """

    def __init__(self, generations: int) -> None:
        self._generations = generations
        self._first: int | None = None
        self._started = 0.0
        self.cpu_seconds = 0.0

    def __call__(self, progress: SearchProgress) -> bool:
        """Return whether the generations are done."""
        # While a search makes its first plans it knows no terms.
        if progress.terms is None:
            return False
        if self._first is None:
            self._first, self._started = progress.generation, time.process_time()
        if progress.generation < self._first + self._generations:
            return False
        self.cpu_seconds = time.process_time() - self._started
        return True


def measure(case: SpeedCase) -> dict[str, Any]:
    """Return the figures of one process; times are CPU times in seconds."""
    figures = _children(case) if case.measure == CHILDREN else _first_plan(case.shape)
    return {**figures, "engine": str(Path(kfp_placement_engine.__file__).resolve())}


def plain_params() -> GeneticParams:
    """`_PLAIN`, as far as the engine that is measured knows such parameters."""
    names = {field.name for field in fields(GeneticParams)}
    return GeneticParams(**{name: value for name, value in _PLAIN.items() if name in names})


def _children(case: SpeedCase) -> dict[str, Any]:
    problem, params = _lowered(case.shape), plain_params()
    stopwatch = Stopwatch(case.generations)
    search = CountedSearch(problem, params, SEED, threads=1)
    with patch.object(genetic, "seeds_of", known_starts):
        search.run(stopwatch, None, lambda _generation, _share: None)
    populations = [
        array for each in search.populations for array in (each.genes, each.keys, each.terms)
    ]
    return {
        "children": trials_per_generation(problem) * params.islands * case.generations,
        "cpu_seconds": stopwatch.cpu_seconds,
        "fingerprint": fingerprint(*populations),
    }


def _first_plan(shape: Shape) -> dict[str, Any]:
    run, cluster = made_up_run(shape), made_up_cluster(shape)
    options = LoweringOptions(dispatch=shape.dispatch)
    started = time.process_time()
    problem = lower(run, cluster, options).problem
    lowered = time.process_time()
    result = solve(problem, MaxRuntime(0.0), SEED, threads=1)
    ended = time.process_time()
    placement, schedule = result.placement, result.schedule
    return {
        "lowering_seconds": lowered - started,
        "cpu_seconds": ended - started,
        "fingerprint": fingerprint(
            placement.gene_nodes,
            placement.priority,
            placement.not_before,
            schedule.start,
            schedule.end,
            schedule.node,
            schedule.terms,
        ),
    }


def _lowered(shape: Shape) -> PlacementProblem:
    options = LoweringOptions(dispatch=shape.dispatch)
    return lower(made_up_run(shape), made_up_cluster(shape), options).problem


def fingerprint(*arrays: np.ndarray[Any, Any]) -> str:
    """Return a hash of all bytes of the arrays; it is equal for results equal to the last bit."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    kind_of_measure, kind_of_run, *numbers = sys.argv[1:]
    steps, nodes, generations = map(int, numbers)
    asked = SpeedCase(kind_of_measure, Shape(kind_of_run, steps, nodes), generations)
    print(json.dumps(measure(asked)))
