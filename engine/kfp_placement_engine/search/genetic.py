"""The default search: a memetic genetic algorithm over nodes and order together.

Individuals are plans: the node of every gene and the order of starts. They are seeded with the
baselines and with list schedules, improved by mutations that look first at the chain of steps that
decides the completion time, and mixed by crossover; every child is rewritten as the plan
its simulated schedule shows (Lamarckian), so all individuals stay feasible. The inner loop is the
kernel's (`engine/kernel/search.h`); this module seeds it, runs the islands and keeps the best.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from kfp_placement_engine.model.progress import GenerationProgress
from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, PlacementProblem
from kfp_placement_engine.search.baselines.heft import heft_placement
from kfp_placement_engine.search.baselines.random_placement import random_nodes
from kfp_placement_engine.search.baselines.tie_breaks import simulate_ties
from kfp_placement_engine.search.fitness import better
from kfp_placement_engine.search.parameters import GeneticParams
from kfp_placement_engine.search.priorities import priority_rules, run_orders
from kfp_placement_engine.search.simulation import (
    Schedule,
    simulate,
    simulate_fullest,
    simulate_list,
    simulate_policy,
    slot_starts,
)
from kfp_placement_engine.search.stop import (
    SearchProgress,
    StoppingCriterion,
    schedules_allowed,
    share_done,
)

_SCHEDULES_A_CHILD = 4
"""More are not decoded for one child, as far as a budget of schedules is concerned."""


@dataclass(frozen=True)
class Candidate:
    """A placement with its schedule."""

    placement: Placement
    schedule: Schedule


def trials_per_generation(problem: PlacementProblem) -> int:
    """Children each island tries in one generation: fewer where one simulation takes long.

    A function of the problem alone, so that a number of generations always means the same search.
    """
    return int(min(512, max(1, 2_000_000 // problem.simulation_work)))


def seeds_of(problem: PlacementProblem, seed: int = 0) -> Iterator[list[Candidate]]:
    """The plans the search starts from and never falls behind, in the order they are made.

    They are the baselines (the random one with the same seed) and list schedules by simple rules,
    for several runs also in orders of whole runs. The first two come together: kube-default knows
    no latency rules, the list schedule does. Each has a twin that holds its starts where its order
    alone does not reproduce it.
    """
    rules = priority_rules(problem)
    first, *others = rules.values()
    yield [
        *_replays(problem, simulate_policy(problem, native.KUBE_DEFAULT)),
        *_replays(problem, simulate_list(problem, first)),
    ]
    for placement in (heft_placement(problem), random_nodes(problem, seed)):
        yield [Candidate(placement, simulate(problem, placement))]
    for priority in (*others, *run_orders(problem, rules["longest-path"])):
        yield _replays(problem, simulate_list(problem, priority))
    if problem.dispatch == "ordered":
        yield _replays(problem, simulate_fullest(problem, first))
    yield _replays(problem, simulate_policy(problem, native.STRICT_FIFO))
    for policy in (native.KUBE_DEFAULT, native.STRICT_FIFO):
        # Figures of the default scheduler are means over tie-breaks; the best of them is no worse.
        schedules = simulate_ties(problem, policy, seed)
        yield _replays(problem, min(schedules, key=lambda schedule: tuple(schedule.terms)))


def _replays(problem: PlacementProblem, schedule: Schedule) -> list[Candidate]:
    """A schedule as a plan, and if that is worse, as one with held starts (`ordered`)."""
    start = slot_starts(problem, schedule)
    placement = Placement.of_schedule(problem, start, schedule.node)
    played = Candidate(placement, simulate(problem, placement))
    if problem.dispatch == "ready" or not better(schedule.terms, played.schedule.terms):
        return [played]
    held = Placement.of_schedule(problem, start, schedule.node, hold=True)
    return [played, Candidate(held, simulate(problem, held))]


def candidates_of(problem: PlacementProblem, warm_start: Placement | None) -> list[Candidate]:
    """The plans that a warm start stands for, none without one."""
    placements = () if warm_start is None else warm_start.variants
    return [Candidate(placement, simulate(problem, placement)) for placement in placements]


def store(island: native.Population, slot: int, candidate: Candidate) -> None:
    """Put a plan into a slot of a population."""
    schedule = candidate.schedule
    island.genes[slot] = candidate.placement.gene_nodes
    island.keys[slot] = np.where(
        np.isfinite(schedule.start), schedule.start, candidate.placement.priority
    )
    island.terms[slot] = schedule.terms
    island.cause[slot] = schedule.cause
    island.last[slot] = int(np.where(schedule.finished, schedule.end, -1.0).argmax())


class GeneticSearch:
    """One search of one problem."""

    def __init__(
        self, problem: PlacementProblem, params: GeneticParams, seed: int, threads: int
    ) -> None:
        self._problem = problem
        self._params = params
        self._seed_number = seed
        self._threads = max(1, min(threads, params.islands))
        states = np.random.SeedSequence(seed).generate_state(4 * params.islands, np.uint64)
        self._seed_schedules = 0
        self._islands = [
            native.Population(problem, params.population_size, states[4 * index : 4 * index + 4])
            for index in range(params.islands)
        ]

    def run(
        self,
        stop: StoppingCriterion,
        warm_start: Placement | None,
        report: GenerationProgress,
    ) -> tuple[Candidate, int]:
        """Search until the criterion says so; returns the best plan and the generations done.

        The first plan is there after a few simulations. Every plan that the search starts from but
        the first two counts as a generation: a search that ends among them is replayed as well.
        `report` is called after every generation.
        """
        best, held, generation = self._seed(stop, warm_start, report)
        parameters = self._params.kernel_parameters(self._problem)
        allowed = schedules_allowed(stop)
        since = 0
        # Small runs are planned without a search, and need not import it.
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self._threads) as pool:
            while not stop(
                SearchProgress(generation, since, self._best_terms(held), self._schedules())
            ):
                share = (allowed - self._schedules()) / len(self._islands)
                improve = partial(self._improve, parameters=parameters, schedules=share)
                improved = list(pool.map(improve, self._islands))
                generation += 1
                since = 0 if any(improved) else since + 1
                if generation % self._params.migration_interval == 0:
                    self._migrate()
                report(generation, share_done(stop))
        best_of_islands = self._best_of_islands()
        for candidate in (best_of_islands, held):
            if candidate is not None and better(candidate.schedule.terms, best.schedule.terms):
                best = candidate
        return best, generation

    def _seed(
        self,
        stop: StoppingCriterion,
        warm_start: Placement | None,
        report: GenerationProgress,
    ) -> tuple[Candidate, Candidate | None, int]:
        """Fill the islands with the seeds, best first; plans with held starts are kept aside.

        Returns the best of either kind and the generations done.
        """
        free: list[Candidate] = []
        held: list[Candidate] = []
        warm = candidates_of(self._problem, warm_start)
        generation = 0
        for generation, candidates in enumerate(seeds_of(self._problem, self._seed_number)):
            for candidate in [*warm, *candidates]:
                (held if candidate.placement.not_before.size else free).append(candidate)
            warm = []
            report(generation, share_done(stop))
            self._seed_schedules = len(free) + len(held)
            if stop(SearchProgress(generation, 0, schedules=self._seed_schedules)):
                break
        for kind in (free, held):
            kind.sort(key=lambda candidate: tuple(candidate.schedule.terms))
        for number, island in enumerate(self._islands):
            for slot in range(self._params.population_size):
                offset = 0 if slot == 0 else slot + number
                store(island, slot, free[offset % len(free)])
        return free[0], held[0] if held else None, generation

    def _schedules(self) -> int:
        """How many were decoded, plans to start from included."""
        return self._seed_schedules + sum(island.schedules for island in self._islands)

    def _improve(
        self, island: native.Population, parameters: native.SearchParameters, schedules: float
    ) -> int:
        """Let an island try children, fewer than in other generations once schedules run out."""
        trials, last = trials_per_generation(self._problem), island.schedules + schedules
        improved = 0
        while trials > 0 and island.schedules < last:
            left = (last - island.schedules) / _SCHEDULES_A_CHILD
            batch = int(min(trials, max(1, left)))
            improved += island.improve(parameters, batch)
            trials -= batch
        return improved

    def _migrate(self) -> None:
        """Give each island's best to the next one's last slot, and to its first if better."""
        bests = [
            (
                island.genes[0].copy(),
                island.keys[0].copy(),
                island.terms[0].copy(),
                island.cause[0].copy(),
                island.last[0],
            )
            for island in self._islands
        ]
        for number, best in enumerate(bests):
            other = self._islands[(number + 1) % len(self._islands)]
            slots = [len(other.last) - 1] + ([0] if better(best[2], other.terms[0]) else [])
            for slot in slots:
                (
                    other.genes[slot],
                    other.keys[slot],
                    other.terms[slot],
                    other.cause[slot],
                    other.last[slot],
                ) = best

    def _best_terms(self, held: Candidate | None) -> Floats:
        """Of the best plan so far, on the islands or with held starts."""
        best: Floats = self._best_island().terms[0]
        if held is not None and better(held.schedule.terms, best):
            return held.schedule.terms
        return best

    def _best_island(self) -> native.Population:
        best = self._islands[0]
        for island in self._islands[1:]:
            if better(island.terms[0], best.terms[0]):
                best = island
        return best

    def _best_of_islands(self) -> Candidate:
        best = self._best_island()
        placement = Placement(best.genes[0].copy(), best.keys[0].copy(), np.empty(0))
        return Candidate(placement, simulate(self._problem, placement))
