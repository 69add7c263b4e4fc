"""Ways of choosing a node, on cases that are worked out by hand."""

import numpy as np

from benchmarks.peers import peer_schedules
from benchmarks.peers.list_scheduling import Room, schedule_of
from benchmarks.peers.node_choices import RandomNode, RoundRobin, missing_bytes
from benchmarks.peers.orders import order_of
from tests.benchmarks.peers.instances import an_instance, placed
from tests.support.builders import a_cluster, a_node, a_step, a_workflow, cluster_of

ALL = np.array([True, True, True, True])


def a_room(instance) -> Room:
    problem = instance.problem
    return Room(problem, problem.arrays.free, np.full(problem.activities, -1, np.int64))


def room_of_nothing() -> Room:
    return a_room(an_instance(a_workflow(a_step("s")), a_cluster(a_node())))


def test_round_robin_goes_on_after_the_last_node_tried():
    choose, room = RoundRobin(), room_of_nothing()
    assert [choose(0, ALL, room) for _ in range(5)] == [0, 1, 2, 3, 0]
    # Node 1 has no room, so it was tried and node 2 was the last.
    assert choose(0, np.array([True, False, True, True]), room) == 2
    assert choose(0, np.array([True, True, False, False]), room) == 0
    assert choose(0, ALL, room) == 1


def test_a_step_that_fits_nowhere_leaves_the_turn_as_it_is():
    """`large` needs an empty node: it was tried on all, and `three` goes on where it began."""
    names = ("one", "two", "large", "three")
    sizes = {"large": 2}
    run = a_workflow(*(a_step(name, cpu=sizes.get(name, 1), seconds=9) for name in names))
    instance = an_instance(run, cluster_of(2, cpu=2))
    schedule = schedule_of(instance.problem, order_of("fifo", instance), RoundRobin())
    starts = placed(instance, schedule)
    assert starts == {"one": (0, "n1"), "two": (0, "n2"), "three": (0, "n1"), "large": (9, "n2")}


def test_fair_takes_the_largest_share_that_is_left():
    """5 of 8 CPUs are more than 2 of 4 and than 1 of 2; then n1 and n3 tie, and n1 is first."""
    run = a_workflow(*(a_step(name, cpu=1, seconds=9) for name in ("a", "b", "c", "d", "e")))
    cluster = a_cluster(a_node("n1", cpu=4), a_node("n2", cpu=8), a_node("n3", cpu=4))
    instance = an_instance(run, cluster)
    schedule = peer_schedules(instance, ["cws-fifo-fair"], 0)["cws-fifo-fair"]
    where = [node for _, node in placed(instance, schedule).values()]
    # Left if taken: 3/4 7/8 3/4; 3/4 6/8 3/4; 2/4 6/8 3/4; 2/4 5/8 3/4; 2/4 5/8 2/4.
    assert where == ["n2", "n1", "n2", "n3", "n2"]


def test_random_nodes_have_room_and_follow_the_seed():
    room, fitting = room_of_nothing(), np.array([False, True, True, False])
    drawn = [RandomNode(seed)(0, fitting, room) for seed in range(40)]
    assert set(drawn) == {1, 2}
    assert drawn == [RandomNode(seed)(0, fitting, room) for seed in range(40)]


def test_missing_bytes_are_those_that_were_made_elsewhere():
    run = a_workflow(
        a_step("a"), a_step("b"), a_step("c", "a", "b", reads=[("a", 100), ("b", 300)])
    )
    instance = an_instance(run, cluster_of(3))
    room, at = a_room(instance), instance.activities
    room.node[at["a"]], room.node[at["b"]] = 0, 2
    assert missing_bytes(at["c"], room).tolist() == [300.0, 400.0, 100.0]
    assert missing_bytes(at["a"], room).tolist() == [0.0, 0.0, 0.0]


def test_wow_starts_where_the_bytes_are():
    """On the node of `b`, although another is emptier; where that is full, where fewest miss."""
    run = a_workflow(
        a_step("a", cpu=1, seconds=2),
        a_step("b", cpu=1, seconds=2),
        a_step("long", cpu=1, seconds=50),
        a_step("c", "a", "b", cpu=2, reads=[("a", 100), ("b", 300)]),
        a_step("d", "a", "b", cpu=2, reads=[("a", 100), ("b", 300)]),
    )
    instance = an_instance(run, cluster_of(3, cpu=2))
    starts = placed(instance, peer_schedules(instance, ["wow"], 0)["wow"])
    assert [starts[name][1] for name in ("a", "b", "long")] == ["n1", "n2", "n3"]
    assert starts["c"] == (2.0, "n2")
    assert starts["d"] == (2.0, "n1")
