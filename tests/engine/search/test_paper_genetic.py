"""The paper's genetic algorithm: its operators by hand, its fitness, what it is blind to."""

import tracemalloc

import numpy as np
import pytest

from benchmarks.paper import is_constant
from kfp_placement_engine import GeneticParams, MaxGenerations, solve
from kfp_placement_engine.search.paper_genetic import exchange, gene_values, swap_node_lists
from tests.support.builders import (
    GIBIBYTE,
    PAPER,
    a_cluster,
    a_node,
    a_problem,
    a_run,
    a_step,
    cluster_of,
    equal_steps,
    nodes,
    searched,
)


def lists(row, count):
    """Node by node the sub-tasks on it, as the paper writes a chromosome."""
    return [[task for task, node in enumerate(row) if node == gene] for gene in range(count)]


def test_crossover_exchanges_the_nodes_behind_the_cut_and_corrects():
    """Worked by hand: four nodes, cut behind the second.

    First parent [0 1] [2 3] [4] [5], second [4] [0] [1 2] [3 5]. The child takes [1 2] [3 5] for
    its last two nodes. 1, 2 and 3 now appear twice: the copies in the first two nodes go. 4 has
    vanished (the second parent has it before the cut) and goes to a random node, here the first.
    """
    first = np.array([[0, 0, 1, 1, 2, 3]])
    second = np.array([[1, 2, 2, 3, 0, 3]])
    lost = np.array([[3, 3, 3, 3, 0, 3]])
    child = exchange(first, second, np.array([2]), lost)
    assert lists(child[0], 4) == [[0, 4], [], [1, 2], [3, 5]]


def test_every_child_is_cut_at_its_own_place():
    """Row by row."""
    zeros = np.zeros((2, 2), np.int64)
    children = exchange(zeros, np.array([[1, 2], [1, 2]]), np.array([1, 2]), zeros)
    assert children.tolist() == [[1, 2], [0, 2]]


def test_mutation_exchanges_the_lists_of_two_nodes():
    """Of the chosen individuals alone; parents stay as they were."""
    parents = [[0, 1, 2, 0], [0, 1, 2, 0], [2, 2, 1, 0]]
    individuals = np.array(parents)
    mutated = swap_node_lists(individuals, np.array([0, 2]), np.array([[0, 2], [1, 0]]))
    assert mutated.tolist() == [[2, 1, 0, 2], [0, 1, 2, 0], [2, 2, 0, 1]]
    assert individuals.tolist() == parents


def test_fitness_is_utilisation_and_image_locality():
    """Eq. (1) by hand, its weights 1: CPU share + memory share + 1 where the image is."""
    run = a_run(a_step("a", cpu=2, memory=8, image="tool:1"))
    cluster = a_cluster(
        a_node("n1", cpu=8, memory=16), a_node("n2", cpu=4, memory=64, images={"tool:1": 5})
    )
    assert gene_values(a_problem(run, cluster)).tolist() == [
        pytest.approx([2 / 8 + 8 / 16, 2 / 4 + 8 / 64 + 1])
    ]


def test_fitness_of_steps_that_share_a_volume_is_their_sum():
    """They are one gene."""
    run = a_run(a_step("a", cpu=1, claims=["disk"]), a_step("b", cpu=2, claims=["disk"]))
    values = gene_values(a_problem(run, a_cluster(a_node(cpu=4))))
    assert values.tolist() == [[pytest.approx(3 / 4)]]


def test_on_equal_nodes_the_fitness_is_constant_and_says_so():
    """Then the paper's search is random placement."""
    steps = [a_step(f"s{n}", cpu=1 + n % 3, image="tool:1") for n in range(9)]
    equal = a_problem(a_run(*steps), cluster_of(3))
    assert is_constant(equal)
    everywhere = cluster_of(3, images={"tool:1": 7})
    assert is_constant(a_problem(a_run(*steps), everywhere))
    uneven = a_cluster(*nodes(2), a_node("big", cpu=8))
    assert not is_constant(a_problem(a_run(*steps), uneven))
    held = a_cluster(*nodes(2), a_node("held", images={"tool:1": 7}))
    assert not is_constant(a_problem(a_run(*steps), held))


def test_nodes_that_a_step_may_not_take_do_not_make_the_fitness_vary():
    """Only the choices that there are count."""
    run = a_run(a_step("a", node_selector={"zone": "x"}))
    cluster = a_cluster(a_node("n1", labels={"zone": "x"}), a_node("n2", cpu=8))
    assert is_constant(a_problem(run, cluster))


def test_it_finds_the_placement_of_highest_fitness():
    """Images are on the second node and utilisation is higher there: all go there."""
    steps = equal_steps(12, image="tool:1")
    cluster = a_cluster(a_node("n1", cpu=16), a_node("n2", cpu=4, images={"tool:1": 1}))
    # All of its generations, however slow the machine.
    stop = MaxGenerations(10_000)
    result = solve(a_problem(a_run(*steps), cluster), stop, 0, PAPER)
    assert result.placement.gene_nodes.tolist() == [1] * 12
    assert result.generations == 1000


def test_it_sees_no_time():
    """Overloading a small slow node is fine by Eq. (1); our search is three times as fast."""
    steps = equal_steps(12, cpu=1, seconds=10)
    cluster = a_cluster(a_node("n1", cpu=16), a_node("n2", cpu=4))
    problem = a_problem(a_run(*steps), cluster, dispatch="ordered")
    paper = searched(problem, 200, 0, PAPER).schedule
    ours = searched(problem, 20, 0, GeneticParams(exact_below=0)).schedule
    assert paper.makespan_seconds == 30
    assert ours.makespan_seconds == 10


def test_the_same_seed_gives_the_same_plan_and_another_one_another():
    """On equal nodes every seed is another random placement."""
    problem = a_problem(a_run(*equal_steps(20)), cluster_of(3))
    plans = [searched(problem, 5, seed, PAPER).placement.gene_nodes.tolist() for seed in (0, 0, 1)]
    assert plans[0] == plans[1] != plans[2]


def test_its_memory_does_not_grow_with_individuals_times_steps_times_nodes():
    """50 individuals of 600 steps on 400 nodes: 96 MB at a time if they were drawn that way."""
    problem = a_problem(
        a_run(*equal_steps(600, cpu=0.01)), cluster_of(400, memory=GIBIBYTE / 2**30)
    )
    tracemalloc.start()
    searched(problem, 2, 0, PAPER)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * 2**20
