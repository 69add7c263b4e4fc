"""What pods want of other pods, as far as the recordings do not show it."""

import pytest

from benchmarks.kube_scheduler.model import KubeScheduler
from benchmarks.kube_scheduler.pod import (
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
    SpreadConstraint,
)
from benchmarks.kube_scheduler.state import SchedulerState
from kfp_placement_engine.model.pod_constraints import Requirement
from tests.support.kubernetes import a_node, a_pod, a_taint, plugin_scores

ZONE = "topology.kubernetes.io/zone"
WEB = LabelSelector((Requirement("app", "In", ("web",)),))
NODES = [a_node(f"n-{letter}", labels={ZONE: letter}) for letter in "ab"]


def decide(pod, bound, namespaces=None, nodes=NODES):
    return KubeScheduler().decide(pod, SchedulerState(nodes, bound, namespaces))


def web(name, node_name="", **fields):
    return a_pod(name, labels={"app": "web"}, node_name=node_name, **fields)


def test_pods_that_end_do_not_count_for_spread():
    pod = web("new", spread=(SpreadConstraint(ZONE, selector=WEB),))
    ending = web("x", "n-a", terminating=True)
    scores = plugin_scores(decide(pod, [ending]), "PodTopologySpread")
    assert scores == {"n-a": 200, "n-b": 200}


@pytest.mark.parametrize(("domains", "fits"), [(2, ("n-a", "n-b")), (3, ())])
def test_too_few_domains_count_as_an_empty_one(domains, fits):
    spread = SpreadConstraint(ZONE, required=True, selector=WEB, min_domains=domains)
    bound = [web("a", "n-a"), web("b", "n-b")]
    assert decide(web("new", spread=(spread,)), bound).feasible == fits


@pytest.mark.parametrize(("honours", "fits"), [(False, ()), (True, ("n-a",))])
def test_tainted_nodes_count_for_spread_unless_told_otherwise(honours, fits):
    tainted = a_node("n-b", labels={ZONE: "b"}, taints=(a_taint("x:NoSchedule"),))
    spread = SpreadConstraint(ZONE, required=True, selector=WEB, honours_taints=honours)
    choice = decide(web("new", spread=(spread,)), [web("a", "n-a")], nodes=[NODES[0], tainted])
    assert choice.feasible == fits


@pytest.mark.parametrize(("team", "fits"), [("red", ("n-a",)), ("blue", ())])
def test_namespaces_are_selected_by_their_labels(team, fits):
    red = LabelSelector((Requirement("team", "In", ("red",)),))
    term = PodAffinityTerm(ZONE, WEB, frozenset(), red)
    pod = a_pod("new", pod_affinity=PodAffinity(required=(term,)))
    theirs = web("a", "n-a", namespace="other")
    assert decide(pod, [theirs], {"other": {"team": team}}).feasible == fits
