"""Taints and tolerations, rule by rule of `ToleratesTaint` (k8s.io/api core/v1/toleration.go)."""

import pytest

from kfp_placement_engine.model.node_rules.constraints import (
    taint_text,
    tolerates,
    untolerated_preferred_taints,
    untolerated_taint,
)
from kfp_placement_engine.model.pod_constraints import NodeAffinity, Toleration
from tests.support.kubernetes import a_node, a_taint, why_not


def tainted(*taints):
    """A node with these taints."""
    return a_node(taints=tuple(map(a_taint, taints)))


def objection(node, *tolerations):
    """Why the node does not take a pod that asks for nothing else."""
    return why_not({}, NodeAffinity(), tolerations, node)


@pytest.mark.parametrize(
    ("toleration", "taint", "tolerated"),
    [
        (Toleration("gpu", "Equal", "true", "NoSchedule"), "gpu=true:NoSchedule", True),
        (Toleration("gpu", "Equal", "true", "NoSchedule"), "gpu=false:NoSchedule", False),
        (Toleration("gpu", "Equal", "true", "NoSchedule"), "gpu=true:NoExecute", False),
        (Toleration("gpu", "Equal", "true"), "gpu=true:NoExecute", True),
        (Toleration("gpu", "Equal"), "gpu:NoSchedule", True),
        (Toleration("gpu", "Equal"), "gpu=true:NoSchedule", False),
        (Toleration("gpu", "Exists"), "gpu=true:NoSchedule", True),
        (Toleration("gpu", "Exists"), "other:NoSchedule", False),
        (Toleration("", "Exists"), "anything=x:NoExecute", True),
        (Toleration("", "Exists", "", "NoSchedule"), "anything=x:NoExecute", False),
        (Toleration("", "Equal", "x"), "anything=x:NoSchedule", True),
        (Toleration("gpu", "", "true"), "gpu=true:NoSchedule", True),
        (Toleration("memory", "Gt", "4"), "memory=8:NoSchedule", False),
        (Toleration("gpu", "Matches", "true"), "gpu=true:NoSchedule", False),
    ],
)
def test_one_toleration(toleration, taint, tolerated):
    """Empty keys and effects match all; an empty operator is Equal; unknown ones match nothing."""
    assert tolerates([toleration], a_taint(taint)) is tolerated


def test_every_filtering_taint_needs_a_toleration():
    """Of several taints the first untolerated one is named, in the node's order."""
    node = tainted("a:NoSchedule", "b:NoExecute", "c=1:NoExecute")
    both = [Toleration("a", "Exists"), Toleration("b", "Exists")]
    assert untolerated_taint(both, node.taints) == a_taint("c=1:NoExecute")
    assert untolerated_taint(both[:1], node.taints) == a_taint("b:NoExecute")
    assert untolerated_taint([*both, Toleration("c", "Equal", "1")], node.taints) is None


def test_preferred_taints_do_not_filter():
    """PreferNoSchedule keeps no pod away."""
    node = tainted("a:PreferNoSchedule")
    assert objection(node) is None


def test_preferred_taints_are_counted_one_by_one():
    """Each untolerated PreferNoSchedule taint counts; others never do."""
    node = tainted(
        "a:PreferNoSchedule", "a=1:PreferNoSchedule", "b:PreferNoSchedule", "c:NoSchedule"
    )
    assert untolerated_preferred_taints([], node) == 3
    assert untolerated_preferred_taints([Toleration("a", "Exists")], node) == 1


def test_only_tolerations_of_that_effect_count_for_preferred_taints():
    """A toleration for NoSchedule does not help."""
    node = tainted("a:PreferNoSchedule")
    assert untolerated_preferred_taints([Toleration("a", "Exists", "", "NoSchedule")], node) == 1
    assert (
        untolerated_preferred_taints([Toleration("a", "Exists", "", "PreferNoSchedule")], node) == 0
    )


def test_a_cordoned_node_takes_who_tolerates_the_cordon():
    """NodeUnschedulable lets through what tolerates its taint, however that is written."""
    node = a_node(unschedulable=True)
    cordon = "node.kubernetes.io/unschedulable"
    assert objection(node) == "node is cordoned"
    assert objection(node, Toleration(cordon, "Exists")) is None
    assert objection(node, Toleration("", "Exists")) is None
    only_evict = Toleration(cordon, "Exists", "", "NoExecute")
    assert objection(node, only_evict) == "node is cordoned"


def test_the_reason_names_the_taint():
    """People see the taint as kubectl writes it."""
    node = tainted("gpu=true:NoSchedule")
    assert objection(node) == "untolerated taint gpu=true:NoSchedule"
    assert taint_text(a_taint("dedicated:NoExecute")) == "dedicated:NoExecute"
