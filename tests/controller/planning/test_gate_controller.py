"""Hard latency limits when gates come off: held where a node lacks, and required of the pod."""

from dataclasses import replace

from kfp_placement_controller.planning.cluster_state import ClusterState
from kfp_placement_controller.planning.gate_controller import GateController
from kfp_placement_controller.planning.gates import Cause
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.sources.load import Load
from kfp_placement_engine.contract.custom_resources import Location
from kfp_placement_engine.contract.keys import PLAN_GATE
from kfp_placement_engine.model.run_graph import StartLimit
from tests.controller.planning.builders import a_pod, a_policy, after, pod_change
from tests.support.kubernetes import a_node

POLICY = a_policy()


def a_gate_controller(limit_ms=20.0, **round_trips):
    """No run is known, so that no pod has a planned node; one pod is gated."""
    nodes = {name: a_node(name, labels={"HOME-EDGE": trip}) for name, trip in round_trips.items()}
    registry = RunRegistry(lambda: POLICY, DEFAULT_SOURCES)
    cluster = ClusterState(Load(DEFAULT_SOURCES), nodes=nodes)
    keeper = GateController(registry, cluster)
    limited = a_pod("limited", location="home-edge", max_latency_ms=limit_ms, gates=(PLAN_GATE,))
    take_in(keeper, limited, POLICY)
    return keeper


def take_in(keeper, pod, policy):
    """A pod is new."""
    keeper.deviations.pod_changed(pod_change(pod), policy, after(0), leads=True)
    keeper.pod_changed(pod_change(pod))


def opened(keeper, seconds, policy=POLICY):
    return [(each.cause, each.hosts) for each in keeper.due(policy, after(seconds), seconds)]


def test_a_pod_without_a_planned_node_may_go_where_its_limit_holds():
    keeper = a_gate_controller(near="12ms", nearer="2ms", far="90ms")
    # Its run may be about to be planned.
    assert opened(keeper, 1.9) == []
    assert opened(keeper, 2) == [(Cause.NOT_PLANNED, ("nearer", "near"))]


def test_a_pod_that_no_node_is_left_for_waits_until_its_deadline():
    keeper = a_gate_controller(far="90ms")
    assert opened(keeper, 59) == []
    assert opened(keeper, 60) == [(Cause.OVERDUE, ("no-node-within-20ms",))]


def test_a_pod_that_waits_goes_to_a_node_that_comes():
    keeper = a_gate_controller(far="90ms")
    assert opened(keeper, 2) == []
    keeper.cluster.nodes["new"] = a_node("new", labels={"HOME-EDGE": "5ms"})
    assert opened(keeper, 3) == [(Cause.NOT_PLANNED, ("new",))]


def test_a_pod_that_waits_goes_to_a_node_that_is_said_to_be_nearer():
    keeper = a_gate_controller(far="90ms")
    assert opened(keeper, 2) == []
    keeper.cluster.nodes["far"] = a_node("far", labels={"HOME-EDGE": "9ms"})
    assert opened(keeper, 3) == [(Cause.NOT_PLANNED, ("far",))]
    entry = {"topologyKey": "kubernetes.io/hostname", "value": "far", "rtt": "90ms"}
    keeper.cluster.locations["home"] = Location.model_validate(
        {"metadata": {"name": "home-edge"}, "spec": {"static": [entry]}}
    ).stated()
    assert opened(keeper, 58) == []


def test_who_does_not_lead_keeps_the_limit_past_the_deadline():
    for trips, hosts in (({"near": "9ms"}, ("near",)), ({"a": "90ms"}, ("no-node-within-20ms",))):
        (release,) = a_gate_controller(**trips).overdue(POLICY, after(60), 60)
        assert (release.cause, release.hosts) == (Cause.OVERDUE, hosts)


def test_a_pod_that_must_run_soon_is_looked_at_in_time_whoever_leads():
    keeper = a_gate_controller(far="90ms")
    limit = StartLimit(20.0, "pendingTimeout")
    hurried = a_pod("hurried", location="home-edge", max_latency_ms=20.0, start_limit=limit)
    take_in(keeper, replace(hurried, gates=(PLAN_GATE,)), POLICY)
    assert keeper.next_at(POLICY, after(1)) == after(10)
    assert keeper.overdue(POLICY, after(9.9), 9.9) == opened(keeper, 9.9) == []
    (release,) = keeper.overdue(POLICY, after(10), 10)
    assert (release.pod.name, release.cause) == ("hurried", Cause.OVERDUE)


def test_a_pod_that_is_being_deleted_is_left_alone():
    keeper = a_gate_controller(near="9ms")
    keeper.pod_changed(pod_change(a_pod("limited", gates=(PLAN_GATE,), deleting=True)))
    assert keeper.next_at(POLICY, after(60)) is None
    assert opened(keeper, 60) == keeper.overdue(POLICY, after(60), 60) == []


def test_no_limit_holds_while_placement_is_paused():
    assert opened(a_gate_controller(far="90ms"), 1, a_policy(paused=True)) == [(Cause.PAUSED, ())]


def test_no_limit_holds_to_a_place_that_no_node_knows():
    assert opened(a_gate_controller(), 2) == [(Cause.NOT_PLANNED, ())]


def test_the_limit_of_a_type_holds_as_the_pod_s_own():
    policy = a_policy(defaults={"byType": [{"type": "x", "maxLatency": "20ms"}]})
    keeper = a_gate_controller(None, far="90ms", near="9ms")
    typed = a_pod("typed", location="HOME-EDGE", step_type="X", gates=(PLAN_GATE,))
    take_in(keeper, typed, policy)
    assert opened(keeper, 2, policy) == [(Cause.NOT_PLANNED, ()), (Cause.NOT_PLANNED, ("near",))]
