"""What is remembered: room, volumes, latencies, plans, and what bad objects do to others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_controller.extender.knowledge import read_plan
from kfp_placement_controller.planning.cluster_state import latencies
from kfp_placement_engine.contract.custom_resources import Location, read_resource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.cluster import Node
from kfp_placement_kube.change import Change
from tests.controller.extender.cluster import NAMESPACE, WORKFLOW, Cluster, plan_object

GIB = 2**30


@pytest.fixture
def cluster():
    return Cluster()


def test_bound_pods_take_room_until_they_have_ended():
    cluster = Cluster("a", "b")
    requests = {"cpu": "2", "memory": "1Gi"}
    cluster.pod(name="waiting", requests=requests)
    assert cluster.knowledge.used == {}
    cluster.pod(name="one", node="a", requests=requests, phase="Running")
    cluster.pod(name="two", node="a", requests=requests, phase="Pending")
    assert cluster.knowledge.used["a"] == {"cpu": 4000, "memory": 2 * GIB, "pods": 2}
    cluster.pod(name="one", node="a", requests=requests, phase="Succeeded")
    assert cluster.knowledge.used["a"] == {"cpu": 2000, "memory": GIB, "pods": 1}
    cluster.remove_pod("two")
    assert cluster.knowledge.used == {}


@given(
    st.lists(
        st.tuples(
            st.sampled_from("pqrst"),
            st.sampled_from(["", "a", "b"]),
            st.sampled_from(["Pending", "Running", "Failed", "gone"]),
            st.sampled_from(["1", "2"]),
            st.lists(st.sampled_from(["x", "y"]), unique=True),
        ),
        max_size=30,
    )
)
def test_room_is_what_the_pods_of_the_moment_take(changes):
    cluster = Cluster("a", "b")
    alive: dict[str, tuple[str, int, list[str]]] = {}
    for name, node, phase, cpu, claims in changes:
        if phase != "gone":
            cluster.pod(name=name, node=node, phase=phase, cpu=cpu, claims=claims)
            alive[name] = ("" if phase == "Failed" else node, 1000 * int(cpu), claims)
        elif name in alive:
            cluster.remove_pod(name)
            del alive[name]
    for node in ("a", "b"):
        used, here = (
            cluster.knowledge.used.get(node, {}),
            [x for x in alive.values() if x[0] == node],
        )
        assert used.get("cpu", 0) == sum(cpu for _, cpu, _ in here)
        assert used.get("pods", 0) == len(here)
    mounted: dict[tuple[str, str], set[str]] = {}
    for node, _, claims in alive.values():
        for claim in claims if node else ():
            mounted.setdefault((NAMESPACE, claim), set()).add(node)
    claim_nodes = {claim: set(nodes) for claim, nodes in cluster.knowledge.claim_nodes.items()}
    assert claim_nodes == mounted


def test_what_was_taken_as_known_does_not_change_any_more():
    cluster = Cluster("a")
    before = cluster.knowledge
    cluster.pod(name="one", node="a", cpu="2")
    cluster.node("b", {"HOME-EDGE": "1"})
    cluster.plan(["train", 0])
    assert (dict(before.used), set(before.nodes), dict(before.plans)) == ({}, {"a"}, {})
    assert before.places == frozenset()


def test_a_node_that_is_only_reported_again_changes_nothing(cluster):
    cluster.node("a", {"HOME-EDGE": "1"})
    before = cluster.knowledge
    cluster.node("a", {"HOME-EDGE": "1"})
    assert cluster.knowledge is before


def test_labels_state_round_trips_in_any_case(cluster):
    cluster.node("a", {"HOME-EDGE": "9.8", "zone": "3", "example.com/x": "1", "rack": "x"})
    assert cluster.knowledge.nodes["a"].latencies_ms == {"home-edge": 9.8}
    assert cluster.knowledge.places == {"home-edge"}
    cluster.node("a", {})
    assert cluster.knowledge.places == frozenset()
    cluster.node("b", {"HOME-EDGE": "1"})
    cluster.lose("b")
    assert cluster.knowledge.places == frozenset()


def test_a_location_goes_before_labels_of_its_name(cluster):
    cluster.node("a", {"HOME-EDGE": "9.8", "site": "home"})
    cluster.node("b", {"HOME-EDGE": "5", "MOON": "7"})
    static = [{"topologyKey": "site", "value": "home", "rtt": "1ms"}]
    cluster.location("edge", name="Home-Edge", static=static)
    nodes = cluster.knowledge.nodes
    assert nodes["a"].latencies_ms == {"home-edge": 1.0}
    assert nodes["b"].latencies_ms == {"moon": 7.0}
    # A node that comes later, and one that moves.
    cluster.node("c", {"site": "home"})
    cluster.node("a", {"HOME-EDGE": "9.8"})
    assert cluster.knowledge.nodes["c"].latencies_ms == {"home-edge": 1.0}
    assert cluster.knowledge.nodes["a"].latencies_ms == {}
    assert cluster.knowledge.places == {"home-edge", "moon"}
    cluster.store.location_changed(Change(("", "edge"), None, None))
    assert cluster.knowledge.nodes["a"].latencies_ms == {"home-edge": 9.8}
    assert cluster.knowledge.nodes["c"].latencies_ms == {}


def test_of_two_locations_of_one_place_the_first_by_object_name_counts(cluster):
    cluster.node("a", {"site": "home"})
    near = [{"topologyKey": "site", "value": "home", "rtt": "1ms"}]
    far = [{"topologyKey": "site", "value": "home", "rtt": "50ms"}]
    cluster.location("edge", static=far)
    cluster.location("another", name="EDGE", static=near)
    assert cluster.knowledge.nodes["a"].latencies_ms == {"edge": 1.0}


def test_only_the_policy_called_default_counts(cluster):
    cluster.policy(paused=True)
    store = cluster.store
    store.policy_changed(Change(("", "other"), None, None))
    assert store.knowledge.rules.paused
    store.policy_changed(Change(("", "default"), store.knowledge.policy, None))
    assert not store.knowledge.rules.paused


def test_plans_of_later_revisions_are_read_as_far_as_known():
    raw = plan_object(["train", 0, 0, 9, [], [[1, 5]], "more"], ["x", 1])
    raw["spec"]["revision"] = 77
    raw["spec"]["newField"] = {"a": 1}
    raw["status"] = {"unknown": []}
    plan = read_plan(raw)
    assert plan.steps["train"].node == "a"
    assert plan.steps["train"].losses == {"b": 5.0}
    assert plan.steps["x"].node == "b"


@pytest.mark.parametrize(
    "row", [[], ["", 0], [3, 0], ["x", 99], ["x", "a"], ["x", 0, 0, 0, 0, 0], "x", None]
)
def test_a_row_that_cannot_be_read_does_not_harm_the_others(row):
    raw = plan_object(["train", 0])
    raw["spec"]["steps"].append(row)
    if isinstance(row, list):
        assert set(read_plan(raw).steps) == {"train"}
    else:
        with pytest.raises(InputError):
            read_plan(raw)


def test_a_plan_goes_with_its_object():
    cluster = Cluster("a")
    plan = cluster.plan(["train", 0])
    assert cluster.knowledge.plans == {(NAMESPACE, WORKFLOW): plan}
    cluster.store.plan_changed(Change((NAMESPACE, WORKFLOW), plan, None))
    assert cluster.knowledge.plans == {}


places = st.sampled_from(["HOME-EDGE", "MOON", "zone", "edge"])
trips = st.sampled_from(["0.3", "9.8ms", "1s", "x"])
static_values = st.lists(
    st.fixed_dictionaries(
        {
            "topologyKey": st.just("site"),
            "value": st.sampled_from(["home", "lab"]),
            "rtt": st.sampled_from(["1ms", "50ms"]),
        }
    ),
    max_size=2,
)


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.dictionaries(places, trips)
        | st.fixed_dictionaries({"site": st.sampled_from(["home", "lab"]), "HOME-EDGE": trips}),
        min_size=1,
    ),
    st.dictionaries(
        st.sampled_from(["edge", "one", "two"]),
        st.fixed_dictionaries({"name": places | st.none(), "static": static_values}),
    ),
)
def test_planner_and_extender_know_the_same_round_trips(nodes, locations):
    cluster = Cluster()
    for name, labels in nodes.items():
        cluster.node(name, labels)
    for named, spec in locations.items():
        cluster.location(named, **{key: value for key, value in spec.items() if value is not None})
    read = {
        named: read_resource(Location, {"metadata": {"name": named}, "spec": spec}).stated()
        for named, spec in locations.items()
    }
    planned = latencies(
        read, tuple(Node(name, {}, labels=labels) for name, labels in nodes.items())
    )
    expected = {
        (place.lower(), node): latency
        for place, each in planned.items()
        for node, latency in each.items()
    }
    knowledge = {
        (place, node): latency
        for node, each in cluster.knowledge.nodes.items()
        for place, latency in each.latencies_ms.items()
    }
    assert knowledge == expected
