"""What the planner computes of 60 problems, to the last bit: schedules, searches, populations.

The file beside this one has a hash of each. A change that only makes planning quicker changes none
of them. One that means to change plans records them again (`make regenerate`), and says what got
better and what worse.

Nothing here depends on time or on the machine: floats are what IEEE 754 says, searches have a
number of generations, and all draws are from generators with a seed.
"""

import hashlib
from functools import cache
from random import Random

import numpy as np
import pytest

from kfp_placement_engine import GeneticParams
from kfp_placement_engine.problem import native
from kfp_placement_engine.problem.kernel import Policy
from kfp_placement_engine.problem.placement import Placement
from kfp_placement_engine.problem.schedule import AS_LISTED, TieBreak
from kfp_placement_engine.search.baselines.brute_force import count_plans, try_all
from kfp_placement_engine.search.genetic import GeneticSearch, seeds_of
from tests.engine.planning.pinned_cases import all_cases

PARAMS = GeneticParams(islands=2)
FEW_PLANS = 2_000
SCHEDULE = ("start", "begin", "end", "node", "pull_seconds", "cause", "terms")
CASES = {case.name: case for case in all_cases()}


@cache
def problem_of(name: str):
    return CASES[name].problem()


def fingerprint(*arrays) -> str:
    """A hash of the arrays' shapes and elements, the same on every platform."""
    digest = hashlib.sha256()
    for array in map(np.asarray, arrays):
        elements = {"f": "<f8", "u": "<u8"}.get(array.dtype.kind, "<i8")
        stored = np.ascontiguousarray(array, elements)
        if elements == "<f8":
            # There are many of them.
            stored = np.where(np.isnan(stored), np.nan, stored)
        digest.update(f"{elements}{stored.shape}".encode())
        digest.update(stored.tobytes())
    return digest.hexdigest()[:16]


class Recorded:
    """Stops a search after some generations; keeps what it was told of each."""

    def __init__(self, generations: int) -> None:
        self._generations = generations
        self.seen_terms: list[list[float]] = []

    def __call__(self, progress) -> bool:
        terms = [] if progress.terms is None else progress.terms.tolist()
        self.seen_terms.append([progress.generation, progress.since_improvement, *terms])
        return progress.generation >= self._generations


def problem_fingerprint(problem) -> str:
    """Of all arrays; images are numbered in the order in which activities need them.

    Lowering numbers them in an order that changes from process to process, which decides nothing.
    """
    arrays = problem.arrays
    order = list(dict.fromkeys(arrays.image[arrays.image >= 0].tolist()))
    number_of = {image: number for number, image in enumerate([-1, *order], start=-1)}
    renumbered = arrays._replace(
        image=np.array([number_of[image] for image in arrays.image.tolist()], np.int64),
        image_bytes=arrays.image_bytes[order],
        image_present=arrays.image_present[order],
    )
    return fingerprint(*renumbered, problem.topological)


def a_plan(problem, random: Random) -> Placement:
    """Random allowed nodes, an order that respects the precedences, and starts to wait for."""
    nodes = [random.choice(np.flatnonzero(row).tolist()) for row in problem.arrays.allowed]
    keys = np.array([random.random() for _ in range(problem.activities)])
    starts, arrays = problem.arrays.predecessors_start, problem.arrays
    for activity in problem.topological.tolist():
        before = arrays.predecessors[starts[activity] : starts[activity + 1]]
        keys[activity] = max([keys[activity], *keys[before]])
    held = np.array([float(random.randrange(60)) for _ in range(problem.activities)])
    return Placement(np.array(nodes, np.int64), keys, held)


def a_tie_break(problem, random: Random) -> TieBreak:
    listed = list(range(problem.nodes))
    random.shuffle(listed)
    return TieBreak(np.array(listed, np.int64), random.randrange(1, 1000))


def simulated(problem, policy: Policy, plan: Placement, ties: TieBreak) -> tuple[str, float]:
    """The fingerprint of a schedule, and its makespan."""
    schedule = native.simulate(problem, policy, plan, ties)
    return fingerprint(*(getattr(schedule, name) for name in SCHEDULE)), schedule.makespan_seconds


def schedule_lines(problem) -> list[str]:
    """Each policy on a random plan, with the nodes as numbered and as a shuffled list has them."""
    random = Random(17)
    holding = a_plan(problem, random)
    free = Placement(holding.gene_nodes, holding.priority)
    shuffled = a_tie_break(problem, random)
    lines = []
    for policy in Policy:
        first, makespan = simulated(problem, policy, free, AS_LISTED)
        second, _ = simulated(problem, policy, free, shuffled)
        label = policy.name.lower().replace("_", " ")
        lines.append(f"{label}: {makespan:.10g} s {first}, of a shuffled list {second}")
    waiting, makespan = simulated(problem, Policy.ORDERED, holding, AS_LISTED)
    lines.append(f"ordered, with starts held: {makespan:.10g} s {waiting}")
    lines.append(f"heft: {fingerprint(*native.heft(problem))}")
    return lines


def all_plans_line(problem) -> str:
    """The best of all plans, where there are few."""
    if problem.genes == 0 or count_plans(problem) > FEW_PLANS:
        return "all plans: too many"
    best = try_all(problem)
    plan_print = fingerprint(best.placement.gene_nodes, best.placement.priority, best.terms)
    return f"all plans: {best.plans}, the best {plan_print}"


def search_lines(problem, generations: int) -> list[str]:
    """A search, and all that is on its islands in the end."""
    if problem.genes == 0:
        return ["no search: nothing to decide"]
    seeds = len(list(seeds_of(problem, 3))) - 1
    stop = Recorded(seeds + generations)
    search = GeneticSearch(problem, PARAMS, 3, 1)
    best, done = search.run(stop, None, lambda _generation, _share: None)
    placement, schedule = best.placement, best.schedule
    plan = fingerprint(placement.gene_nodes, placement.priority, placement.not_before)
    terms = ", ".join(f"{term:.10g}" for term in schedule.terms)
    lines = [
        f"search: {done} generations, {schedule.makespan_seconds:.10g} s, terms {terms}",
        f"  plan {plan}, schedule {fingerprint(*(getattr(schedule, n) for n in SCHEDULE))}, "
        f"generations {fingerprint(*stop.seen_terms)}",
    ]
    for number, island in enumerate(search.islands):
        population = island.population
        plans = fingerprint(population.genes, population.keys, population.terms)
        lines.append(f"  island {number}: {plans}, random {fingerprint(population.random_state)}")
    return lines


@pytest.mark.parametrize("name", CASES)
def test_what_is_computed_stays_the_same(name, golden):
    """Lowered arrays, schedules of every policy, the search and its populations."""
    problem = problem_of(name)
    sizes = f"{problem.activities} activities, {problem.genes} genes, {problem.nodes} nodes"
    rules = f"{problem.dispatch}, {problem.objective}, ties by {problem.tie_rule}"
    golden(
        [
            f"problem: {sizes}, {rules}: {problem_fingerprint(problem)}",
            *schedule_lines(problem),
            all_plans_line(problem),
            *search_lines(problem, CASES[name].generations),
        ]
    )


def test_the_cases_have_all_that_the_kernel_tells_apart():
    """What no case has could change unnoticed."""
    problems = [problem_of(name) for name, case in CASES.items() if not case.is_stored]
    assert len(problems) == 60
    assert {(each.dispatch, each.objective) for each in problems} == {
        (dispatch, objective)
        for dispatch in ("ready", "ordered")
        for objective in ("completion", "packing", "paper")
    }
    assert {each.tie_rule for each in problems} == {"heap", "random", "first"}
    assert {each.direct_transfers for each in problems} == {False, True}
    for name in (
        *("virtual", "is_running", "exclusive", "sticky", "latency_excess_ms"),
        *("preferred_taints", "preferred_weight", "image_present", "transfer_bytes"),
    ):
        assert sum(bool(getattr(each.arrays, name).any()) for each in problems) >= 2, name
    arrays = [each.arrays for each in problems]
    assert sum(each.run_weight.size > 1 for each in arrays) >= 3
    assert sum(each.feasible.shape[0] > 256 for each in arrays) >= 1
    assert sum((np.diff(each.holders_start) > 1).any() for each in arrays) >= 3
    assert sum(each.holder_started.any() for each in arrays) >= 1
    assert sum(((each.fixed_node >= 0) & ~each.is_running).any() for each in arrays) >= 2
    assert sum(each.nodes > 100 for each in problems) >= 4
    assert sum(each.nodes > 64 and each.nodes % 64 > 0 for each in problems) >= 4
