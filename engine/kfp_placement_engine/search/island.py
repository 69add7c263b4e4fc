"""One population of the search; it starts again once it has found nothing better for long."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, PlacementProblem
from kfp_placement_engine.search.fitness import better
from kfp_placement_engine.search.parameters import GeneticParams
from kfp_placement_engine.search.result import Candidate

_SCHEDULES_A_CHILD = 4
"""More are not decoded for one child, as far as a budget of schedules is concerned."""


@dataclass(frozen=True)
class Individual:
    """A plan of a population.

    Attributes:
        placement: without held starts.
        terms: [5] of the objective.
    """

    placement: Placement
    terms: Floats


class Island:
    """A population, the plans that it starts from, and the best plan from before it started again.

    Restarts are decided by counts of schedules, so that generations mean the same everywhere.

    Attributes:
        population: what the kernel works on.
    """

    def __init__(
        self,
        problem: PlacementProblem,
        params: GeneticParams,
        number: int,
        random_state: native.Array,
    ) -> None:
        """Begin with no plan.

        Args:
            problem: to be solved.
            params: of the search.
            number: of the island; each has other plans to start from next to the best.
            random_state: [4] where its random generator begins.
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
        """How many were decoded, those that were given up included."""
        return self.population.schedules

    @property
    def best(self) -> Individual:
        """The best plan that was ever here."""
        unbeaten = self._unbeaten
        if unbeaten is not None:
            return unbeaten
        return self._at(0)

    def _at(self, slot: int) -> Individual:
        genes, keys = self.population.genes[slot].copy(), self.population.keys[slot].copy()
        return Individual(Placement(genes, keys, np.empty(0)), self.population.terms[slot].copy())

    @property
    def best_terms(self) -> Floats:
        """[5] those of `best`, whose placement, which may be large, is not copied."""
        unbeaten = self._unbeaten
        return self.population.terms[0].copy() if unbeaten is None else unbeaten.terms

    @property
    def _unbeaten(self) -> Individual | None:
        """The best plan from before the last start, unless the population has a better one."""
        earlier = self._earlier
        is_beaten = earlier is None or better(self.population.terms[0], earlier.terms)
        return None if is_beaten else earlier

    def improve(self, trials: int, schedules: float = math.inf) -> None:
        """Try this many children, fewer if this many schedules were decoded before."""
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
