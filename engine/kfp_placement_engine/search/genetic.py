"""The default search: a memetic genetic algorithm over nodes and order together.

Individuals are plans: the node of every gene and the order of starts. They are seeded with the
baselines and with list schedules, improved by mutations and mixed by crossover; every child is
rewritten as the plan its simulated schedule shows (Lamarckian), so all individuals stay feasible.
The inner loop is the kernel's (`engine/kernel/search.h`); this module seeds it and runs the
islands (`search/island.py`).
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain

import numpy as np

from kfp_placement_engine.plans.progress import GenerationProgress
from kfp_placement_engine.problem.kernel import Policy
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.problem import Floats, PlacementProblem
from kfp_placement_engine.problem.schedule import Schedule
from kfp_placement_engine.search.baselines.default_scheduler import simulate_ties
from kfp_placement_engine.search.baselines.heft import heft_placement
from kfp_placement_engine.search.baselines.random_placement import random_placement
from kfp_placement_engine.search.fitness import better
from kfp_placement_engine.search.island import Island
from kfp_placement_engine.search.parameters import GeneticParams
from kfp_placement_engine.search.priorities import priority_rules, run_orders
from kfp_placement_engine.search.result import Candidate, best_of
from kfp_placement_engine.search.simulation import (
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


def trials_per_generation(problem: PlacementProblem) -> int:
    """Return how many children each island tries in one generation.

    They are fewer where one simulation takes long. The number depends on the problem alone, so that
    a number of generations always means the same search.
    """
    return int(min(512, max(1, 2_000_000 // problem.simulation_work)))


def seeds_of(problem: PlacementProblem, seed: int = 0) -> Iterator[list[Candidate]]:
    """Yield the plans that the search starts from and never falls behind, as they are made.

    They are the baselines (the random one with the same seed) and list schedules by simple rules,
    for several runs also in orders of whole runs. The first two come together: kube-default does
    not know latency rules, the list schedule does. Where a schedule is better than the plan with
    its nodes and order, a second plan that holds its starts comes too.
    """
    rules = priority_rules(problem)
    first, *others = rules.values()
    yield [
        *_plans_of(problem, simulate_policy(problem, Policy.KUBE_DEFAULT)),
        *_plans_of(problem, simulate_list(problem, first)),
    ]
    for placement in (heft_placement(problem), random_placement(problem, seed)):
        yield [Candidate.of(problem, placement)]
    for priority in (*others, *run_orders(problem, rules["longest-path"])):
        yield _plans_of(problem, simulate_list(problem, priority))
    if problem.dispatch == "ordered":
        yield _plans_of(problem, simulate_fullest(problem, first))
    yield _plans_of(problem, simulate_policy(problem, Policy.STRICT_FIFO))
    for policy in (Policy.KUBE_DEFAULT, Policy.STRICT_FIFO):
        # Figures of the default scheduler are means over tie-breaks. The best tie-break is not
        # worse than the mean, so the search never falls behind the figure that people see.
        schedules = simulate_ties(problem, policy, seed)
        yield _plans_of(problem, min(schedules, key=lambda schedule: tuple(schedule.terms)))


def _plans_of(problem: PlacementProblem, schedule: Schedule) -> list[Candidate]:
    """Return a schedule as a plan; if that is worse, also as one with held starts (`ordered`)."""
    start = slot_starts(problem, schedule)
    free = Candidate.of(problem, Placement.of_schedule(problem, start, schedule.node))
    if problem.dispatch == "ready" or not better(schedule.terms, free.schedule.terms):
        return [free]
    held = Placement.of_schedule(problem, start, schedule.node, hold=True)
    return [free, Candidate.of(problem, held)]


def candidates_of(problem: PlacementProblem, warm_start: Placement | None) -> list[Candidate]:
    """Return the plans of a warm start, with held starts and without; none without a warm start."""
    placements = () if warm_start is None else warm_start.variants
    return [Candidate.of(problem, placement) for placement in placements]


def starting_schedules(
    problem: PlacementProblem, seed: int, warm_start: Placement | None = None
) -> Iterator[Schedule]:
    """Yield the schedules of all plans that a search with this seed and warm start begins with."""
    for candidates in chain([candidates_of(problem, warm_start)], seeds_of(problem, seed)):
        yield from (candidate.schedule for candidate in candidates)


class GeneticSearch:
    """The genetic search of one problem, on islands that search separately."""

    def __init__(
        self, problem: PlacementProblem, params: GeneticParams, seed: int, threads: int
    ) -> None:
        self._problem = problem
        self._seed_number = seed
        self._threads = max(1, min(threads, params.islands))
        states = np.random.SeedSequence(seed).generate_state(4 * params.islands, np.uint64)
        self._seed_schedules = 0
        self.islands = [
            Island(problem, params, number, states[4 * number : 4 * number + 4])
            for number in range(params.islands)
        ]

    def run(
        self, stop: StoppingCriterion, warm_start: Placement | None, report: GenerationProgress
    ) -> tuple[Candidate, int]:
        """Search until the criterion holds, and return the best plan and the number of generations.

        The first plan is there after a few simulations. Every plan that the search starts from but
        the first two counts as a generation, so a search that ends among them can be repeated too.
        `report` is called after every generation.
        """
        best, held, generation = self._seed(stop, warm_start, report)
        trials = trials_per_generation(self._problem)
        allowed = schedules_allowed(stop)
        since, terms = 0, self._best_island().best_terms
        # Small runs are planned without a search, and need not import it.
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self._threads) as pool:
            while not stop(
                SearchProgress(generation, since, _best_terms(terms, held), self._schedules())
            ):
                share = (allowed - self._schedules()) / len(self.islands)
                improve = partial(Island.improve, trials=trials, schedules=share)
                list(pool.map(improve, self.islands))
                generation += 1
                before, terms = terms, self._best_island().best_terms
                since = 0 if better(terms, before) else since + 1
                report(generation, share_done(stop))
        searched = Candidate.of(self._problem, self._best_island().best.placement)
        return best_of([best, searched, *([held] if held else [])]), generation

    def _seed(
        self, stop: StoppingCriterion, warm_start: Placement | None, report: GenerationProgress
    ) -> tuple[Candidate, Candidate | None, int]:
        """Fill the islands with the seeds, best first, and keep plans with held starts aside.

        Returns:
            The best plan without held starts; the best one with held starts, or None if there is
            none; and the number of generations.
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
        for island in self.islands:
            island.start(free)
        return free[0], held[0] if held else None, generation

    def _schedules(self) -> int:
        """Return the number of schedules decoded so far, including the plans to start from."""
        return self._seed_schedules + sum(island.schedules for island in self.islands)

    def _best_island(self) -> Island:
        """Return the island with the best plan, the first of several."""
        best, *others = self.islands
        for other in others:
            if better(other.best_terms, best.best_terms):
                best = other
        return best


def _best_terms(terms: Floats, held: Candidate | None) -> Floats:
    """Return the better terms: those of the islands' best plan, or of the one that holds starts."""
    if held is not None and better(held.schedule.terms, terms):
        return held.schedule.terms
    return terms
