"""PEFT: the example of its paper, gaps, and nodes that do not take a task."""

import numpy as np
import pytest

from benchmarks.peers.peft import TaskGraph, optimistic_costs, peft, peft_starts
from benchmarks.peers.room_over_time import RoomOverTime
from tests.benchmarks.peers.instances import an_instance, placed
from tests.support.builders import a_cluster, a_node, a_step, a_workflow, cluster_of

SECONDS = (
    (22, 21, 36),
    (22, 18, 18),
    (32, 27, 43),
    (7, 10, 4),
    (29, 27, 35),
    (26, 17, 24),
    (14, 25, 30),
    (29, 23, 36),
    (15, 21, 8),
    (13, 16, 33),
)
"""Ten tasks on three processors: the example of Arabnejad and Barbosa, Fig. 1."""

EDGES = {
    (1, 2): 17,
    (1, 3): 31,
    (1, 4): 29,
    (1, 5): 13,
    (1, 6): 7,
    (2, 8): 3,
    (2, 9): 30,
    (3, 7): 16,
    (4, 8): 11,
    (4, 9): 7,
    (5, 9): 57,
    (6, 8): 5,
    (7, 10): 9,
    (8, 10): 42,
    (9, 10): 7,
}


def a_graph(seconds, edges) -> TaskGraph:
    """Processors that run one task at a time; tasks count from 1 in the edges."""
    times = np.array(seconds, np.float64)
    tasks, processors = times.shape
    before: list[list[tuple[int, float]]] = [[] for _ in range(tasks)]
    for (producer, task), moving in edges.items():
        before[task - 1].append((producer - 1, float(moving)))
    return TaskGraph(
        seconds=times,
        before=before,
        requests=np.ones((tasks, 1), np.int64),
        room=np.ones((processors, 1), np.int64),
        image=np.full(tasks, -1),
        pull_seconds=np.empty((0, processors)),
    )


def test_the_papers_example():
    """Its table of optimistic costs and ranks, and its schedule of length 122 (HEFT: 133)."""
    graph = a_graph(SECONDS, EDGES)
    costs = optimistic_costs(graph, graph.after())
    assert costs[0].tolist() == [64, 68, 86]
    assert costs[7].tolist() == [13, 16, 33]
    ranks = [72.7, 41.0, 37.0, 43.7, 31.0, 41.7, 17.0, 20.7, 16.3, 0.0]
    assert costs.mean(axis=1).round(1).tolist() == ranks
    start, node = peft_starts(graph)
    assert (start + graph.seconds[np.arange(10), node]).max() == 122


def test_optimistic_costs_by_hand():
    """A task, then one that takes 10 s here or 4 s there, with 3 s or 9 s for the data."""
    for moving, wanted in ((3, [7, 4]), (9, [10, 4])):
        graph = a_graph([(1, 1), (10, 4)], {(1, 2): moving})
        assert optimistic_costs(graph, graph.after()).tolist() == [wanted, [0, 0]]


def test_a_processor_that_does_not_take_a_task_is_left_out():
    graph = a_graph([(1, 5), (np.inf, 4)], {(1, 2): 3})
    assert optimistic_costs(graph, graph.after())[0].tolist() == [7, 4]
    start, node = peft_starts(graph)
    assert (start.tolist(), node.tolist()) == ([0, 4], [0, 1])


def test_the_earliest_gap_with_room_for_the_whole_time():
    room = RoomOverTime([4, 8])
    room.take([3, 1], 0.0, 10.0)
    room.take([3, 1], 14.0, 20.0)
    assert room.earliest([1, 1], 2.0, 100.0) == 2.0
    assert room.earliest([2, 0], 2.0, 4.0) == 10.0
    assert room.earliest([2, 0], 2.0, 5.0) == 20.0
    assert room.earliest([2, 0], 11.0, 3.0) == 11.0
    assert room.earliest([0, 6], 0.0, 1.0) == 0.0
    assert room.earliest([5, 0], 0.0, 1.0) == np.inf


def test_a_plan_is_simulated_by_the_engine():
    """The fast node for both although the slow one is free: the data would take 5 s."""
    run = a_workflow(a_step("a", seconds=8), a_step("b", "a", seconds=8, reads=[("a", 500)]))
    instance = an_instance(run, a_cluster(a_node("slow"), a_node("fast", speed=2.0)))
    assert placed(instance, peft(instance.problem)) == {"a": (0.0, "fast"), "b": (4.0, "fast")}


@pytest.mark.parametrize(("held", "wanted"), [({}, 12.0), ({"tool:1": 100}, 10.0)])
def test_a_missing_image_is_pulled_first(held, wanted):
    """100 bytes at 50 a second."""
    run = a_workflow(a_step("a", image="tool:1"))
    instance = an_instance(run, cluster_of(1, images=held))
    assert peft(instance.problem).makespan_seconds == wanted
