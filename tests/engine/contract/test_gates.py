"""The patch that takes our gate off a pod."""

import pytest

from kfp_placement_engine.contract.gates import Pin
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.kubernetes.gates import is_gated, opening_patch
from tests.support.kubernetes import pod_object

OURS = {"name": "kfp-placement.dev/plan"}
KUEUE = {"name": "kueue.x-k8s.io/admission"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ON_N1 = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
HOSTS = ("h1", "h2")
ON_HOSTS = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["h1", "h2"]}
IN_ZONE = {"key": "zone", "operator": "In", "values": ["a"]}


def gated(*gates, **node_affinity):
    pod = pod_object(schedulingGates=list(gates), affinity={"nodeAffinity": node_affinity})
    pod["metadata"]["resourceVersion"] = "7"
    return pod


def affinity_after(pod, pin):
    patch = opening_patch(pod, None, pin)
    assert patch is not None
    return patch["spec"]["affinity"]["nodeAffinity"]


def test_only_our_gate_goes():
    patch = opening_patch(gated(KUEUE, OURS), None, None)
    assert patch == {"metadata": {"resourceVersion": "7"}, "spec": {"schedulingGates": [KUEUE]}}


def test_a_pod_without_our_gate_needs_nothing():
    assert not is_gated(gated(KUEUE))
    assert opening_patch(gated(KUEUE), None, Pin("n1")) is None
    assert opening_patch(pod_object(), None, Pin("n1")) is None


def test_a_later_pod_of_the_same_name_is_left_alone():
    pod = gated(OURS)
    pod["metadata"]["uid"] = "second"
    assert opening_patch(pod, "first") is None
    assert opening_patch(None, "first") is None
    assert opening_patch(pod, "second") == {
        "metadata": {"resourceVersion": "7", "uid": "second"},
        "spec": {"schedulingGates": []},
    }


def test_our_preference_comes_after_the_user_s():
    theirs = {"weight": 3, "preference": {"matchExpressions": [IN_ZONE]}}
    affinity = affinity_after(gated(OURS, **{PREFERRED: [theirs]}), Pin("n1"))
    assert affinity == {PREFERRED: [theirs, {"weight": 100, "preference": ON_N1}]}


def test_required_hosts_go_into_every_term_of_the_user_after_what_it_says():
    terms = [
        {"matchExpressions": [IN_ZONE]},
        {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}]},
    ]
    pod = gated(OURS, **{REQUIRED: {"nodeSelectorTerms": terms}})
    assert affinity_after(pod, Pin(hosts=HOSTS)) == {
        REQUIRED: {
            "nodeSelectorTerms": [
                {"matchExpressions": [IN_ZONE, ON_HOSTS]},
                {"matchFields": terms[1]["matchFields"], "matchExpressions": [ON_HOSTS]},
            ]
        }
    }


def test_an_empty_term_of_the_user_stays_empty():
    pod = gated(OURS, **{REQUIRED: {"nodeSelectorTerms": [{}, {"matchExpressions": [IN_ZONE]}]}})
    terms = affinity_after(pod, Pin(hosts=HOSTS))[REQUIRED]["nodeSelectorTerms"]
    assert terms == [{}, {"matchExpressions": [IN_ZONE, ON_HOSTS]}]


@pytest.mark.parametrize("required", [None, {"nodeSelectorTerms": []}])
def test_required_hosts_and_a_preferred_node_where_the_user_says_nothing(required):
    pod = gated(OURS, **({} if required is None else {REQUIRED: required}))
    assert affinity_after(pod, Pin("n1", HOSTS)) == {
        REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [ON_HOSTS]}]},
        PREFERRED: [{"weight": 100, "preference": ON_N1}],
    }


def test_a_pod_of_another_form_is_refused_with_the_place():
    pod = gated(OURS)
    pod["spec"]["affinity"] = ["wrong"]
    with pytest.raises(InputError, match="affinity"):
        opening_patch(pod, None, Pin("n1"))
