"""What pods want of other pods: topology spread and affinity between pods."""

import math

import pytest

from benchmarks.kube_scheduler.model import KubeScheduler
from benchmarks.kube_scheduler.state import SchedulerState
from kfp_placement_engine.model.pod import (
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
    SpreadConstraint,
    WeightedTerm,
)
from kfp_placement_engine.model.run_graph import NodeAffinity, NodeSelectorTerm, Requirement
from tests.support.kubernetes import a_node, a_pod, a_taint, plugin_scores

SCHEDULER = KubeScheduler()
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
WEB = LabelSelector((Requirement("app", "In", ("web",)),))


def web(name, node_name="", **changes):
    return a_pod(name, labels={"app": "web"}, node_name=node_name, **changes)


def near(selector=WEB, key=ZONE, namespaces=("default",), by_labels=None):
    return PodAffinityTerm(key, selector, frozenset(namespaces), by_labels)


def zones(*letters):
    return [a_node(f"n{index}", labels={ZONE: letter}) for index, letter in enumerate(letters)]


def decide(pod, nodes, bound=(), namespaces=None):
    return SCHEDULER.decide(pod, SchedulerState(nodes, bound, namespaces))


def test_spread_prefers_the_emptier_zone():
    """round(count * ln(domains + 2) + skew - 1), reversed against the largest."""
    bound = [web("a", "n0"), web("b", "n0"), web("c", "n2")]
    pod = web("new", spread=(SpreadConstraint(ZONE, selector=WEB),))
    scores = plugin_scores(decide(pod, zones("a", "a", "b", "c"), bound), "PodTopologySpread")
    high, low = round(2 * math.log(5)), round(1 * math.log(5))
    middle = 2 * (100 * (high + 0 - low) // high)
    assert scores == {"n0": 0, "n1": 0, "n2": middle, "n3": 200}


def test_spread_over_hosts_counts_feasible_nodes():
    """The weight of the hostname key is ln(feasible nodes + 2), its count the node's own."""
    bound = [web("a", "n0"), web("b", "n0"), web("c", "n1")]
    pod = web("new", spread=(SpreadConstraint(HOSTNAME, max_skew=3, selector=WEB),))
    scores = plugin_scores(decide(pod, zones("a", "a", "a"), bound), "PodTopologySpread")
    raw = [round(count * math.log(5) + 2) for count in (2, 1, 0)]
    assert scores == {
        f"n{index}": 2 * (100 * (raw[0] + raw[2] - each) // raw[0])
        for index, each in enumerate(raw)
    }


def test_nodes_without_the_key_get_nothing():
    nodes = [*zones("a", "b"), a_node("bare")]
    pod = web("new", spread=(SpreadConstraint(ZONE, selector=WEB),))
    assert plugin_scores(decide(pod, nodes), "PodTopologySpread") == {
        "n0": 200,
        "n1": 200,
        "bare": 0,
    }


def test_spread_is_skipped_without_soft_constraints():
    assert plugin_scores(decide(web("new"), zones("a", "b")), "PodTopologySpread") == {}


@pytest.mark.parametrize(
    "bystander",
    [
        web("x", "n0", namespace="other"),
        web("x", "n0", terminating=True),
        a_pod("x", node_name="n0", labels={"app": "db"}),
    ],
)
def test_only_matching_living_pods_of_the_namespace_count(bystander):
    pod = web("new", spread=(SpreadConstraint(ZONE, selector=WEB),))
    scores = plugin_scores(decide(pod, zones("a", "b"), [bystander]), "PodTopologySpread")
    assert scores == {"n0": 200, "n1": 200}


@pytest.mark.parametrize("selector", [None, LabelSelector()])
def test_selectors_without_requirements_count_nothing(selector):
    pod = web("new", spread=(SpreadConstraint(ZONE, selector=selector),))
    scores = plugin_scores(decide(pod, zones("a", "b"), [web("a", "n0")]), "PodTopologySpread")
    assert scores == {"n0": 200, "n1": 200}


def test_hard_spread_filters():
    """Matching pods in the domain, the pod itself, less the emptiest domain, within the skew."""
    bound = [web("a", "n0")]
    pod = web("new", spread=(SpreadConstraint(ZONE, required=True, selector=WEB),))
    decision = decide(pod, [*zones("a", "b"), a_node("bare")], bound)
    assert decision.feasible == ("n1",)
    assert "missing required label" in decision.refused["bare"]
    stranger = a_pod("new", spread=pod.spread)
    assert decide(stranger, zones("a", "b"), bound).feasible == ("n0", "n1")


def test_too_few_domains_count_as_an_empty_one():
    bound = [web("a", "n0"), web("b", "n1")]
    spread = SpreadConstraint(ZONE, required=True, selector=WEB, min_domains=3)
    assert decide(web("new", spread=(spread,)), zones("a", "b"), bound).feasible == ()
    spread = SpreadConstraint(ZONE, required=True, selector=WEB, min_domains=2)
    assert decide(web("new", spread=(spread,)), zones("a", "b"), bound).feasible == ("n0", "n1")


def test_which_nodes_count_for_spread():
    """Nodes that affinity forbids do not count, tainted ones do, unless told otherwise."""
    nodes = [a_node("n0", labels={ZONE: "a"}), a_node("n1", labels={ZONE: "b", "disk": "hdd"})]
    not_hdd = NodeSelectorTerm((Requirement("disk", "NotIn", ("hdd",)),))
    affinity = NodeAffinity(required=(not_hdd,))
    bound = [web("a", "n0")]

    def fits(nodes, affinity, **policy):
        spread = SpreadConstraint(ZONE, required=True, selector=WEB, **policy)
        return (
            "n0" in decide(web("new", spread=(spread,), affinity=affinity), nodes, bound).feasible
        )

    assert fits(nodes, affinity)
    assert not fits(nodes, affinity, honours_affinity=False)
    tainted = [nodes[0], a_node("n1", labels={ZONE: "b"}, taints=(a_taint("x:NoSchedule"),))]
    assert not fits(tainted, NodeAffinity())
    assert fits(tainted, NodeAffinity(), honours_taints=True)


def test_required_affinity():
    """All terms must be met in the node's domains."""
    pod = a_pod("new", pod_affinity=PodAffinity(required=(near(),)))
    assert decide(pod, zones("a", "a", "b"), [web("a", "n0")]).feasible == ("n0", "n1")
    db = LabelSelector((Requirement("app", "In", ("db",)),))
    both = a_pod("new", pod_affinity=PodAffinity(required=(near(), near(db))))
    assert decide(both, zones("a", "b"), [web("a", "n0")]).feasible == ()


def test_the_first_of_a_group_may_go_anywhere_with_the_key():
    pod = web("new", pod_affinity=PodAffinity(required=(near(),)))
    decision = decide(pod, [*zones("a"), a_node("bare")])
    assert decision.feasible == ("n0",)
    assert decision.refused == {"bare": "node(s) didn't match pod affinity rules"}
    stranger = a_pod("new", pod_affinity=PodAffinity(required=(near(),)))
    assert decide(stranger, zones("a")).feasible == ()


def test_required_anti_affinity_works_both_ways():
    apart = PodAffinity(required=(near(),))
    nodes = zones("a", "a", "b")
    decision = decide(a_pod("new", pod_anti_affinity=apart), nodes, [web("a", "n0")])
    assert decision.feasible == ("n2",)
    assert decision.refused["n1"] == "node(s) didn't match pod anti-affinity rules"
    theirs = a_pod("a", node_name="n0", pod_anti_affinity=apart)
    decision = decide(web("new"), nodes, [theirs])
    assert decision.feasible == ("n2",)
    assert decision.refused["n1"] == "node(s) didn't satisfy existing pods anti-affinity rules"


def test_namespaces_of_a_term():
    """Named ones, or by label; an empty selector means all, and none given means the pod's own."""
    bound = [web("a", "n0", namespace="other")]

    def fits(term, namespaces=None):
        pod = a_pod("new", pod_affinity=PodAffinity(required=(term,)))
        return decide(pod, zones("a"), bound, namespaces).feasible == ("n0",)

    assert not fits(near())
    assert fits(near(namespaces=("other",)))
    assert fits(near(namespaces=(), by_labels=LabelSelector()))
    red = LabelSelector((Requirement("team", "In", ("red",)),))
    assert fits(near(namespaces=(), by_labels=red), {"other": {"team": "red"}})
    assert not fits(near(namespaces=(), by_labels=red), {"other": {"team": "blue"}})
    assert not fits(near(selector=None, namespaces=("other",)))


def test_preferences_add_up_and_are_spread_over_100():
    """Own and others' preferences, positive and negative, and 1 for others' required affinity."""
    wants = PodAffinity(preferred=(WeightedTerm(40, near()),))
    avoids = PodAffinity(preferred=(WeightedTerm(10, near()),))
    bound = [
        web("a", "n0"),
        a_pod("b", node_name="n1", pod_affinity=PodAffinity(required=(near(),))),
        a_pod("c", node_name="n2", pod_anti_affinity=avoids),
    ]
    pod = web("new", pod_affinity=wants)
    scores = plugin_scores(decide(pod, zones("a", "b", "c", "d"), bound), "InterPodAffinity")
    raw = {"n0": 40, "n1": 1, "n2": -10, "n3": 0}
    assert scores == {name: 2 * int(100 * ((each + 10) / 50)) for name, each in raw.items()}


def test_affinity_scores_are_skipped_if_nothing_matches_and_0_if_all_are_equal():
    wants = PodAffinity(preferred=(WeightedTerm(40, near()),))
    assert (
        plugin_scores(decide(web("new", pod_affinity=wants), zones("a", "b")), "InterPodAffinity")
        == {}
    )
    equal = decide(web("new", pod_affinity=wants), zones("a", "a"), [web("a", "n0")])
    assert plugin_scores(equal, "InterPodAffinity") == {"n0": 0, "n1": 0}
