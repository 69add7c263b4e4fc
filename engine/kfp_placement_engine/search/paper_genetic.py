"""The genetic algorithm of the paper on ML tasks on Kubernetes, as published and by name.

One individual is one placement of all sub-tasks; its genes are the nodes, each holding the list of
the sub-tasks on it. Crossover exchanges the nodes behind a random cut point; gene correction then
removes the copy of a sub-task that did not come through the exchange and puts vanished ones back at
random places. Mutation exchanges the lists of two random nodes. Fitness is Eq. (1): utilisation
and image locality, higher is better; the sub-task's time T is read as its reference duration, a
constant. It sees neither time nor order; on equal nodes with equal images Eq. (1) is constant and
the search is random placement.
"""

import numpy as np

from kfp_placement_engine.plans.progress import GenerationProgress
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, Integers, PlacementProblem
from kfp_placement_engine.search.parameters import GeneticParams
from kfp_placement_engine.search.result import Candidate
from kfp_placement_engine.search.simulation import simulate_planned, slot_starts
from kfp_placement_engine.search.stop import SearchProgress, StoppingCriterion


def gene_values(problem: PlacementProblem) -> Floats:
    """Return [G, N] the gain of Eq. (1) from each gene on each node, without the constant T."""
    arrays = problem.arrays
    rows = [
        arrays.assignment_gain[arrays.class_of[list(members)]].sum(axis=0)
        for members in problem.gene_activities
    ]
    return np.array(rows).reshape(problem.genes, problem.nodes)


def exchange(first: Integers, second: Integers, cuts: Integers, lost: Integers) -> Integers:
    """Return children of pairs of parents: nodes behind the cut come from the second parent.

    Args:
        first: [P, G] node of each sub-task.
        second: [P, G] node of each sub-task in the other parents.
        cuts: [P] cut points; nodes with this index and after it are exchanged.
        lost: [P, G] random nodes for sub-tasks that vanish.

    Returns:
        [P, G] node of each sub-task: the second parent's if that is behind the cut; else the first
        parent's if that is before the cut; else, as the sub-task has vanished, the random one.
    """
    cut = cuts[:, None]
    kept = np.where(first < cut, first, lost)
    return np.where(second >= cut, second, kept)


def swap_node_lists(individuals: Integers, chosen: Integers, pairs: Integers) -> Integers:
    """Exchange the lists of sub-tasks of two nodes in each chosen individual (mutation)."""
    result = individuals.copy()
    one, other = pairs[:, 0][:, None], pairs[:, 1][:, None]
    rows = individuals[chosen]
    result[chosen] = np.where(rows == one, other, np.where(rows == other, one, rows))
    return result


class PaperSearch:
    """The paper's algorithm on one problem."""

    def __init__(self, problem: PlacementProblem, params: GeneticParams, seed: int) -> None:
        self._problem = problem
        self._params = params
        self._rng = np.random.default_rng(seed)
        self._values = gene_values(problem)
        self._genes = np.arange(problem.genes)
        # A gene's allowed nodes stand first in its row.
        self._choices = np.argsort(~problem.arrays.allowed, axis=1, kind="stable")
        self._choice_counts = problem.arrays.allowed.sum(axis=1)

    def run(self, stop: StoppingCriterion, report: GenerationProgress) -> tuple[Candidate, int]:
        """Evolve for the parameters' generations, or until the criterion holds.

        Returns:
            The fittest placement, and the number of generations that were bred.
        """
        population = self._random_nodes(self._params.population_size)
        fitness = self._fitness(population)
        best = population[fitness.argmax()].copy()
        generation = 0
        while generation < self._params.generations and not stop(SearchProgress(generation, 0)):
            population = self._next(population, fitness)
            population[0] = best
            fitness = self._fitness(population)
            # The first of the fittest, and so the same one until another is fitter.
            best = population[fitness.argmax()].copy()
            generation += 1
            report(generation, generation / self._params.generations)
        return self._decoded(best), generation

    def _next(self, population: Integers, fitness: Floats) -> Integers:
        size = len(population)
        first, second = (population[self._tournament(fitness, size)] for _ in range(2))
        cuts = self._rng.integers(1, max(2, self._problem.nodes), size)
        children = exchange(first, second, cuts, self._random_nodes(size))
        chosen = np.flatnonzero(self._rng.random(size) < self._params.mutation_rate)
        return self._repaired(swap_node_lists(children, chosen, self._node_pairs(len(chosen))))

    def _node_pairs(self, count: int) -> Integers:
        """Draw pairs of different nodes; in a cluster with one node, that node twice."""
        one = self._rng.integers(0, self._problem.nodes, count)
        further = self._rng.integers(1, max(2, self._problem.nodes), count)
        return np.stack([one, (one + further) % self._problem.nodes], axis=1)

    def _tournament(self, fitness: Floats, count: int) -> Integers:
        rivals = self._rng.integers(0, len(fitness), (count, 2))
        first_wins = fitness[rivals[:, 0]] >= fitness[rivals[:, 1]]
        return np.asarray(np.where(first_wins, rivals[:, 0], rivals[:, 1]), np.int64)

    def _random_nodes(self, count: int) -> Integers:
        draws = self._rng.random((count, self._problem.genes)) * self._choice_counts
        return np.asarray(self._choices[self._genes, draws.astype(np.int64)])

    def _repaired(self, individuals: Integers) -> Integers:
        bad = ~self._problem.arrays.allowed[self._genes, individuals]
        if not bad.any():
            return individuals
        return np.where(bad, self._random_nodes(len(individuals)), individuals)

    def _fitness(self, individuals: Integers) -> Floats:
        return np.asarray(self._values[self._genes, individuals].sum(axis=1))

    def _decoded(self, nodes: Integers) -> Candidate:
        """Decode the nodes by list scheduling in gene order; the paper leaves the decoder open."""
        order = self._problem.places.astype(np.float64)
        placement = Placement(nodes.copy(), order)
        if self._problem.dispatch == "ordered":
            schedule = simulate_planned(self._problem, nodes, order)
            placement = Placement.of_schedule(
                self._problem, slot_starts(self._problem, schedule), schedule.node
            )
        return Candidate.of(self._problem, placement)
