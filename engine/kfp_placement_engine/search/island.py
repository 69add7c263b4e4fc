"""One population of the search, which starts again after a long time without an improvement."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.kernel_tables import Array
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, PlacementProblem
from kfp_placement_engine.search.fitness import better
from kfp_placement_engine.search.parameters import GeneticParams
from kfp_placement_engine.search.result import Candidate

_SCHEDULES_A_CHILD = 4
"""Largest number of schedules that one child is expected to take from a budget of schedules."""


@dataclass(frozen=True)
class Individual:
    """A plan of a population.

    Attributes:
        placement: placement without held starts.
        terms: [5] terms of the objective.
    """

    placement: Placement
    terms: Floats


class Island:
    """A population, the plans that it starts from, and the best plan from before it started again.

    Restarts are decided by counts of schedules, so that generations mean the same everywhere.

    Attributes:
        population: plans that the kernel works on.
    """

    def __init__(
        self, problem: PlacementProblem, params: GeneticParams, number: int, random_state: Array
    ) -> None:
        """Create an island without a plan.

        Args:
            problem: problem to solve.
            params: parameters of the search.
            number: number of the island; beside the best plan each island starts from other plans.
            random_state: [4] first state of its random generator.
        """
        self._number = number
        self._size = params.population_size
        self._parameters = params.kernel_parameters(problem)
        self._patience = params.restart_after * problem.genes
        self.population = native.Population(problem, self._size, random_state)
        self._starts: Sequence[Candidate] = ()
        self._earlier: Individual | None = None
        self._improved_at = 0

    def start(self, candidates: Sequence[Candidate]) -> None:
        """Fill the population with plans, best first, as often as needed."""
        self._starts = candidates
        for slot in range(self._size):
            offset = 0 if slot == 0 else slot + self._number
            self._store(slot, candidates[offset % len(candidates)])
        self._improved_at = self.schedules

    def _store(self, slot: int, candidate: Candidate) -> None:
        population, schedule = self.population, candidate.schedule
        population.genes[slot] = candidate.placement.gene_nodes
        population.keys[slot] = np.where(
            np.isfinite(schedule.start), schedule.start, candidate.placement.priority
        )
        population.terms[slot] = schedule.terms

    @property
    def schedules(self) -> int:
        """Number of schedules decoded so far, including those that were given up."""
        return self.population.schedules

    @property
    def best(self) -> Individual:
        """The best plan that the island has had, restarts included."""
        unbeaten = self._unbeaten
        if unbeaten is not None:
            return unbeaten
        genes, keys = self.population.genes[0].copy(), self.population.keys[0].copy()
        return Individual(Placement(genes, keys), self.population.terms[0].copy())

    @property
    def best_terms(self) -> Floats:
        """[5] terms of `best`, without a copy of its placement, which may be large."""
        unbeaten = self._unbeaten
        return self.population.terms[0].copy() if unbeaten is None else unbeaten.terms

    @property
    def _unbeaten(self) -> Individual | None:
        """Best plan from before the last restart, or None if the population is no worse."""
        earlier = self._earlier
        is_beaten = earlier is None or better(self.population.terms[0], earlier.terms)
        return None if is_beaten else earlier

    def improve(self, trials: int, schedules: float = math.inf) -> None:
        """Try this many children, and fewer once this many schedules are decoded."""
        last = self.schedules + schedules
        while trials > 0 and self.schedules < last:
            left = (last - self.schedules) / _SCHEDULES_A_CHILD
            batch = int(min(trials, max(1, left)))
            if self.population.improve(self._parameters, batch):
                self._improved_at = self.schedules
            trials -= batch
        if self.schedules - self._improved_at > self._patience:
            self._earlier = self.best
            self.start(self._starts)
