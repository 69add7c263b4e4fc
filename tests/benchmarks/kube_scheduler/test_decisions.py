"""Whole decisions of the model: filters, scores, skips, ties, sampling."""

import random

import pytest

from benchmarks.kube_scheduler.model import KubeScheduler, heap_top
from benchmarks.kube_scheduler.state import SchedulerState, zone_interleaved
from kfp_placement_engine.model.pod import HostPort
from kfp_placement_engine.model.run_graph import (
    NodeAffinity,
    NodeSelectorTerm,
    PreferredTerm,
    Requirement,
    Toleration,
)
from tests.support.kubernetes import GIBIBYTE, MEBIBYTE, a_node, a_pod, a_taint, plugin_scores

SCHEDULER = KubeScheduler()


def decide(pod, *nodes, bound=(), scheduler=SCHEDULER):
    return scheduler.decide(pod, SchedulerState(nodes, bound))


def test_the_least_used_node_wins():
    decision = decide(
        a_pod(), a_node("busy", used={"cpu": 4_000}, scored_used={"cpu": 4_000}), a_node("idle")
    )
    assert decision.node == "idle"
    assert decision.feasible == ("busy", "idle")


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


def test_the_number_of_pods_limits():
    node = a_node(allocatable={"pods": 1})
    assert decide(a_pod("a", requests={}), node).node == "n1"
    full = decide(a_pod("b", requests={}), node, bound=[a_pod("a", requests={}, node_name="n1")])
    assert full.refused == {"n1": "Too many pods"}
    assert (
        decide(a_pod("b", requests={}), a_node(allocatable={"pods": 1}, used={"pods": 1})).node
        is None
    )


def test_ephemeral_storage_and_extended_resources_limit():
    node = a_node(allocatable={"ephemeral-storage": 10, "nvidia.com/gpu": 1})
    wanted = {"ephemeral-storage": 11, "nvidia.com/gpu": 1}
    assert decide(a_pod(requests=wanted), node).refused == {"n1": "Insufficient ephemeral-storage"}
    bound = a_pod("a", requests={"nvidia.com/gpu": 1}, node_name="n1")
    assert decide(a_pod(requests={"nvidia.com/gpu": 1}), node, bound=[bound]).node is None


def test_filters_count_real_requests_and_scores_the_defaults():
    """Eight pods without requests fill nothing, but count 100m and 200Mi each in the scores."""
    defaults = {"cpu": 100, "memory": 200 * MEBIBYTE}
    idle = [
        a_pod(f"p{index}", requests={}, scored_requests=defaults, node_name="n1")
        for index in range(8)
    ]
    node = a_node("n1", allocatable={"cpu": 800})
    decision = decide(
        a_pod(requests={"cpu": 800}), node, a_node("n2", allocatable={"cpu": 800}), bound=idle
    )
    assert decision.feasible == ("n1", "n2")
    assert (
        plugin_scores(decision, "NodeResourcesFit")["n1"]
        < plugin_scores(decision, "NodeResourcesFit")["n2"]
    )


def test_balanced_allocation_is_skipped_without_cpu_and_memory():
    """A pod that asks for a GPU only is not scored by it (kubernetes issue 129138)."""
    nodes = [a_node(name, allocatable={"nvidia.com/gpu": 2}) for name in ("n1", "n2")]
    decision = decide(a_pod(requests={"nvidia.com/gpu": 1}), *nodes)
    assert plugin_scores(decision, "NodeResourcesBalancedAllocation") == {}
    assert plugin_scores(
        decide(a_pod(requests={"memory": 1}), *nodes), "NodeResourcesBalancedAllocation"
    )


def test_the_version_decides_how_balance_scores():
    """On empty nodes a lopsided pod gets its balance in 1.35, and half the loss from 75 in 1.36."""
    nodes = [a_node(name, allocatable={"cpu": 1_000}) for name in ("n1", "n2")]
    pod = a_pod(requests={"cpu": 200})
    for version, score in (((1, 35), 90), ((1, 36), 70), ((1, 37), 70)):
        decision = decide(pod, *nodes, scheduler=KubeScheduler(version))
        assert plugin_scores(decision, "NodeResourcesBalancedAllocation")["n1"] == score


def test_preferred_taints_cost_score():
    """Reversed share of the node with most, times the weight of 3."""
    two = a_node("two", taints=(a_taint("a:PreferNoSchedule"), a_taint("b:PreferNoSchedule")))
    one = a_node("one", taints=(a_taint("a:PreferNoSchedule"),))
    decision = decide(a_pod(), two, one, a_node("none"))
    assert plugin_scores(decision, "TaintToleration") == {"two": 0, "one": 150, "none": 300}
    tolerant = a_pod(tolerations=(Toleration("a", "Exists", "", "PreferNoSchedule"),))
    assert plugin_scores(decide(tolerant, two, one), "TaintToleration") == {"two": 0, "one": 300}


def test_an_infeasible_node_does_not_count_in_normalising():
    """Shares are of the largest count among the feasible nodes only."""
    away = a_node(
        "away",
        unschedulable=True,
        taints=tuple(a_taint(f"{key}:PreferNoSchedule") for key in "abc"),
    )
    one = a_node("one", taints=(a_taint("a:PreferNoSchedule"),))
    assert plugin_scores(decide(a_pod(), away, one, a_node("none")), "TaintToleration")["one"] == 0


def test_node_affinity_scores_or_is_skipped():
    ssd = NodeSelectorTerm((Requirement("disk", "In", ("ssd",)),))
    zone = NodeSelectorTerm((Requirement("zone", "In", ("a",)),))
    nodes = [
        a_node("both", labels={"disk": "ssd", "zone": "a"}),
        a_node("ssd", labels={"disk": "ssd"}),
        a_node("none"),
    ]
    pod = a_pod(affinity=NodeAffinity(preferred=(PreferredTerm(20, ssd), PreferredTerm(10, zone))))
    assert plugin_scores(decide(pod, *nodes), "NodeAffinity") == {
        "both": 200,
        "ssd": 132,
        "none": 0,
    }
    assert plugin_scores(decide(a_pod(), *nodes), "NodeAffinity") == {}


def test_host_ports_conflict():
    """By port and protocol, on the same address or if either takes all addresses."""
    taken = a_pod("a", node_name="n1", host_ports=(HostPort(80, "TCP", "10.0.0.1"),))

    def fits(*ports):
        return decide(a_pod(host_ports=ports), a_node(), bound=[taken]).node == "n1"

    assert not fits(HostPort(80, "TCP", "10.0.0.1"))
    assert not fits(HostPort(80))
    assert fits(HostPort(80, "TCP", "10.0.0.2"))
    assert fits(HostPort(80, "UDP", "10.0.0.1"))
    assert fits(HostPort(81, "TCP", "10.0.0.1"))


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
    ("nodes", "found"),
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
def test_large_clusters_are_sampled(nodes, found):
    """50 % less one per 125 nodes, at least 5 % and at least 100 nodes."""
    assert SCHEDULER.nodes_to_find(nodes) == found


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


def test_images_are_worth_their_size_times_their_spread():
    """The first node's size holds for all; each container counts; `:latest` is understood."""
    big, small = 900 * MEBIBYTE, 100 * MEBIBYTE
    nodes = [
        a_node("n1", images={"python:latest": big}),
        a_node("n2", images={"python:latest": small}),
        a_node("n3", images={"python": big}),
        a_node("n4"),
    ]
    scored = big * 2 // 4
    one = plugin_scores(decide(a_pod(images=("python",)), *nodes), "ImageLocality")
    expected = 100 * (scored - 23 * MEBIBYTE) // (977 * MEBIBYTE)
    assert one == {"n1": expected, "n2": expected, "n3": 0, "n4": 0}
    two = plugin_scores(
        decide(a_pod(images=("python", "python:latest"), containers=2), *nodes), "ImageLocality"
    )
    assert two["n1"] == 100 * (2 * scored - 23 * MEBIBYTE) // (1_977 * MEBIBYTE)


def test_image_volumes_score_since_136():
    nodes = [a_node("n1", images={"data:1": 500 * MEBIBYTE}), a_node("n2")]
    pod = a_pod(image_volumes=("data:1",))
    assert plugin_scores(decide(pod, *nodes), "ImageLocality")["n1"] > 0
    until = decide(pod, *nodes, scheduler=KubeScheduler((1, 35)))
    assert plugin_scores(until, "ImageLocality")["n1"] == 0
