"""Our gate on pods of a real API server, which checks what may change."""

import pytest

from kfp_placement_controller.actuators.gates import open_gate
from kfp_placement_controller.observed.latency_limits import MAX_HOSTS, HardLimit
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.gates import Pin
from kfp_placement_kube.kinds import NODES, PODS
from tests.controlplane import housekeeping, objects
from tests.controlplane.waiting import wait_until

OURS = {"name": "kfp-placement.dev/plan"}
KUEUE = {"name": "kueue.x-k8s.io/admission"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LINUX = {"key": "kubernetes.io/hostname", "operator": "Exists"}


@pytest.fixture
def gated(client, namespace):
    def create(name="p", gates=(OURS,), **node_affinity):
        affinity = {"nodeAffinity": node_affinity} if node_affinity else {}
        pod = objects.pod(name, namespace, schedulingGates=list(gates), affinity=affinity)
        return client.create(PODS, pod)["metadata"]["uid"]

    return create


@pytest.fixture
def spec_of(client, namespace):
    return lambda name="p": client.get(PODS, name, namespace)["spec"]


def wait_bound(spec_of, name="p"):
    return wait_until(lambda: spec_of(name).get("nodeName"), f"{name} to be bound")


def test_a_pod_goes_to_the_node_it_is_pinned_to(client, api, namespace, add_nodes, gated, spec_of):
    add_nodes(objects.node("pin-1"), objects.node("pin-2"), objects.node("pin-3"))
    housekeeping.wait_until_seen(api, namespace)
    for name, pin in (("preferred", Pin("pin-2")), ("required", Pin(hosts=("pin-2",)))):
        uid = gated(name)
        assert open_gate(client, namespace, name, uid, pin)
        assert wait_bound(spec_of, name) == "pin-2"


def test_a_node_that_is_lost_after_the_gate_is_replaced_by_another_within_the_limit(
    client, api, namespace, add_nodes, gated, spec_of
):
    add_nodes(*(objects.node(f"near-{number}") for number in (1, 2)), objects.node("far"))
    uid = gated(gates=(KUEUE, OURS))
    assert open_gate(client, namespace, "p", uid, Pin("near-1", ("near-1", "near-2")))
    # Gates of others stay and hold the pod.
    assert spec_of()["schedulingGates"] == [KUEUE]
    assert not open_gate(client, namespace, "p", uid, Pin("near-1"))
    client.delete(NODES, "near-1", "")
    housekeeping.wait_until_seen(api, namespace)
    client.patch(PODS, "p", namespace, {"spec": {"schedulingGates": []}})
    assert wait_bound(spec_of) == "near-2"


@pytest.mark.parametrize("terms", [[], [{"matchExpressions": [LINUX]}]])
def test_a_limit_that_no_node_keeps_makes_a_pod_unschedulable(
    client, namespace, add_nodes, gated, spec_of, terms
):
    """In the words of the API server, which must admit it, and of kube-scheduler."""
    add_nodes(objects.node("far"))
    uid = gated(**({REQUIRED: {"nodeSelectorTerms": terms}} if terms else {}))
    pin = Pin(hosts=HardLimit(20.0, ()).required)
    assert open_gate(client, namespace, "p", uid, pin)
    (term,) = spec_of()["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert term["matchExpressions"][-1]["values"] == ["no-node-within-20ms"]

    def unscheduled():
        return DEFAULT_SOURCES.observe_pod(client.get(PODS, "p", namespace)).unscheduled

    reason = wait_until(
        lambda: (notice := unscheduled()) and notice.reason == "Unschedulable" and notice,
        "the pod to be unschedulable",
    )
    assert "node affinity" in reason.message
    assert "nodeName" not in spec_of()


def test_as_many_hosts_as_there_may_be_are_admitted(client, namespace, gated, spec_of):
    hosts = tuple(f"{number:03}-{'x' * 59}" for number in range(MAX_HOSTS))
    assert open_gate(client, namespace, "p", gated(), Pin("n1", hosts))
    (term,) = spec_of()["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == [*hosts]


def test_a_pin_that_the_server_refuses_does_not_keep_the_gate(client, namespace, gated, spec_of):
    uid = gated()
    # No name of a node.
    assert open_gate(client, namespace, "p", uid, Pin("No Node!"))
    assert "schedulingGates" not in spec_of()
    assert "affinity" not in spec_of() or not spec_of()["affinity"].get("nodeAffinity")


def test_a_write_in_between_is_taken_into_account(client, namespace, gated, spec_of):
    uid = gated(gates=(KUEUE, OURS))
    patch = client.patch
    first: list[int] = []

    def after_another(*arguments, **options):
        if not first:
            first.append(1)
            patch(PODS, "p", namespace, {"spec": {"schedulingGates": [OURS]}})
        return patch(*arguments, **options)

    client.patch = after_another
    assert open_gate(client, namespace, "p", uid, None)
    assert "schedulingGates" not in spec_of()
