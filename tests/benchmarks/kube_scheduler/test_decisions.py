"""Decisions of the model that the recordings do not show: nodes that are named, ties, sampling."""

import random

import pytest

from benchmarks.kube_scheduler.model import KubeScheduler, heap_top
from benchmarks.kube_scheduler.state import SchedulerState, zone_interleaved
from kfp_placement_engine.model.pod_constraints import NodeAffinity, NodeSelectorTerm, Requirement
from tests.support.kubernetes import GIBIBYTE, a_node, a_pod

SCHEDULER = KubeScheduler()


def decide(pod, *nodes, bound=(), scheduler=SCHEDULER):
    return scheduler.decide(pod, SchedulerState(nodes, bound))


def test_one_feasible_node_is_not_scored():
    decision = decide(
        a_pod(requests={"cpu": 9_000}),
        a_node("small"),
        a_node("large", allocatable={"cpu": 10_000}),
    )
    assert decision.node == "large"
    assert decision.scores == {}
    assert decision.refused == {"small": "Insufficient cpu"}


def test_no_feasible_node():
    decision = decide(a_pod(requests={"cpu": 9_000, "memory": 99 * GIBIBYTE}), a_node())
    assert decision.node is None
    assert decision.refused == {"n1": "Insufficient cpu, Insufficient memory"}


def test_no_nodes_at_all():
    assert decide(a_pod()).node is None


def test_a_named_node_is_the_only_one_looked_at():
    """Required affinity by metadata.name narrows the search before the filters."""
    by_name = Requirement("metadata.name", "In", ("n2",), is_field=True)
    pod = a_pod(affinity=NodeAffinity(required=(NodeSelectorTerm((by_name,)),)))
    decision = decide(pod, a_node("n1"), a_node("n2"), a_node("n3"))
    assert (decision.node, decision.refused) == ("n2", {})
    other = Requirement("metadata.name", "In", ("n3",), is_field=True)
    contradiction = NodeAffinity(required=(NodeSelectorTerm((by_name, other)),))
    refused = decide(a_pod(affinity=contradiction), a_node("n1"), a_node("n2")).refused
    assert set(refused.values()) == {"pod affinity terms conflict"}


def test_a_pod_that_names_its_node_fits_no_other():
    decision = decide(a_pod(node_name="n2"), a_node("n1"), a_node("n2"))
    assert decision.node == "n2"
    assert decision.refused == {"n1": "node(s) didn't match the requested node name"}


def test_bound_pods_on_unknown_nodes_are_left_out():
    lost = a_pod("lost", requests={"cpu": 8_000}, node_name="gone")
    assert decide(a_pod(), a_node(), bound=[lost]).node == "n1"


def test_scheduling_binds_and_moves_on():
    """`schedule` takes the room that `decide` only looks at."""
    state = SchedulerState([a_node("n1"), a_node("n2")])
    chosen = [SCHEDULER.schedule(a_pod(f"p{index}"), state).node for index in range(4)]
    assert (chosen.count("n1"), chosen.count("n2")) == (2, 2)
    assert state.on("n1").free()["cpu"] == 6_000


def test_ties():
    """`first` in the list, any with `random`, the top of Go's heap otherwise."""
    nodes = [a_node(f"n{index}") for index in range(5)]
    state = SchedulerState(nodes)
    assert KubeScheduler(ties="first").decide(a_pod(), state).node == "n0"
    rng = random.Random(1)
    drawn = {KubeScheduler(ties="random").decide(a_pod(), state, rng).node for _ in range(100)}
    assert drawn == {node.name for node in nodes}
    assert SCHEDULER.decide(a_pod(), state).node == "n0"
    with pytest.raises(ValueError, match="random generator"):
        KubeScheduler(ties="random").decide(a_pod(), state)
    with pytest.raises(ValueError, match="'last'"):
        KubeScheduler(ties="last")


@pytest.mark.parametrize(
    ("totals", "top"),
    [
        ([5], 0),
        ([5, 5], 0),
        ([1, 5, 5], 1),
        # The last parent is settled first: index 4 rises to 1 and then, past an equal 2, to 0.
        ([1, 1, 5, 1, 5], 4),
        ([1, 5, 5, 5, 5, 5, 5], 1),
        ([0, 0, 9, 0, 0, 9, 9], 2),
        ([0, 0, 0, 0, 0, 9, 9], 5),
    ],
)
def test_heap_order(totals, top):
    """Worked through by hand with container/heap's Init: last parent first, left child on a tie."""
    assert heap_top(totals) == top


def test_nodes_go_zone_by_zone():
    """One node of each zone in turn; nodes without a zone are a zone of their own."""
    zone = "topology.kubernetes.io/zone"
    nodes = [
        a_node("a1", labels={zone: "a"}),
        a_node("a2", labels={zone: "a"}),
        a_node("a3", labels={zone: "a"}),
        a_node("b1", labels={zone: "b"}),
        a_node("none"),
        a_node("b2", labels={zone: "b"}),
    ]
    names = [node.name for node in zone_interleaved(nodes)]
    assert names == ["a1", "b1", "none", "a2", "b2", "a3"]


@pytest.mark.parametrize(
    ("nodes", "sampled"),
    [
        (0, 0),
        (50, 50),
        (99, 99),
        (100, 100),
        (125, 100),
        (250, 120),
        (1_000, 420),
        (5_000, 500),
        (20_000, 1_000),
    ],
)
def test_large_clusters_are_sampled(nodes, sampled):
    """50 % less one per 125 nodes, at least 5 % and at least 100 nodes."""
    assert SCHEDULER.nodes_to_find(nodes) == sampled


def test_the_search_rotates():
    """From 100 nodes on each search starts where the one before ended."""
    state = SchedulerState([a_node(f"n{index:03}") for index in range(250)])
    first = SCHEDULER.schedule(a_pod("a"), state)
    assert first.feasible == tuple(f"n{index:03}" for index in range(120))
    second = SCHEDULER.schedule(a_pod("b"), state)
    assert second.feasible[0] == "n120"
    third = SCHEDULER.schedule(a_pod("c"), state)
    assert third.feasible[:10] == tuple(f"n{index:03}" for index in range(240, 250))
    assert third.feasible[10] == "n000"
    every = KubeScheduler(percentage_of_nodes_to_score=100)
    assert len(every.decide(a_pod("d"), state).feasible) == 250
    assert len(SCHEDULER.fitting(a_pod("d"), state)) == 250
