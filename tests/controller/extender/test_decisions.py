"""What the extender answers, rule by rule, and in which order the rules count."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_controller.extender.decisions import CANDIDATES, DecisionReason
from kfp_placement_controller.extender.knowledge import Knowledge
from kfp_placement_controller.sources import DEFAULT_SOURCES
from tests.controller.extender.known import (
    WORKFLOW,
    Cluster,
    asked,
    filter_nodes,
    predict,
    prioritize_nodes,
)

NODES = ["a", "b", "c", "d", "e"]
PLANNED_ON_B = ["train", 1, 0, 100, ["chosen", 5], [[3, 10], [2, 30], [0, 60]]]


def scores(cluster, pod, names=NODES):
    return prioritize_nodes(cluster.known, pod, names)


def test_the_planned_node_remains_alone():
    cluster = Cluster(*NODES)
    cluster.plan(PLANNED_ON_B)
    found = filter_nodes(cluster.known, asked("train"), NODES)
    assert (found.nodes, found.reason, found.planned) == (("b",), DecisionReason.PLAN, "b")


def test_the_planned_node_counts_even_where_it_is_tight():
    cluster = Cluster(*NODES)
    cluster.plan(PLANNED_ON_B)
    assert filter_nodes(cluster.known, asked("train", requests={"cpu": "8"}), NODES).nodes == ("b",)


def test_without_the_planned_node_those_of_least_loss_remain():
    cluster = Cluster(*NODES, "f")
    cluster.plan(PLANNED_ON_B)
    offered = ["a", "c", "d", "e", "f"]
    found = filter_nodes(cluster.known, asked("train"), offered)
    assert found.reason is DecisionReason.NEXT_BEST
    assert found.nodes == ("d", "c", "a", "e")
    points = scores(cluster, asked("train"), list(found.nodes))
    # A node that the plan does not name loses no less than those it names.
    assert points == {"d": 10, "c": 9, "a": 8, "e": 8}


def test_nodes_that_the_plan_does_not_name_are_ordered_by_speed():
    cluster = Cluster("b", "c")
    cluster.node("quick", {"kfp-placement.dev/speed": "2"})
    cluster.node("slow", {"kfp-placement.dev/speed": "0.5"})
    cluster.plan(["train", 1, 0, 100])
    found = filter_nodes(cluster.known, asked("train"), ["slow", "c", "quick"])
    assert found.nodes == ("c", "quick", "slow")
    assert scores(cluster, asked("train"), list(found.nodes)) == {"c": 10, "quick": 10, "slow": 9}


def test_of_equal_nodes_the_emptier_are_kept():
    cluster = Cluster("b", *"vwxyz")
    cluster.plan(["train", 1, 0, 100])
    cluster.pod(name="other", node="v", requests={"cpu": "4"})
    found = filter_nodes(cluster.known, asked("train"), list("vwxyz"))
    assert found.nodes == ("w", "x", "y", "z")


def test_headroom_is_left_where_there_is_a_choice():
    """Node d is next best, but a full node is where two schedulers book the same room."""
    cluster = Cluster(*NODES)
    cluster.plan(PLANNED_ON_B)
    cluster.pod(name="other", node="d", requests={"cpu": "6900m"})
    tight = asked("train", requests={"cpu": "1"})
    assert filter_nodes(cluster.known, tight, ["c", "d"]).nodes == ("c", "d")
    assert scores(cluster, tight, ["c", "d"]) == {"c": 10, "d": 9}
    cluster.policy(headroom={"cpu": "100m", "memory": "0"})
    assert filter_nodes(cluster.known, tight, ["c", "d"]).nodes == ("d", "c")
    assert filter_nodes(cluster.known, tight, ["d"]).nodes == ("d",)


def test_headroom_of_memory_counts_too():
    cluster = Cluster("c", "d")
    cluster.pod(name="other", node="c", requests={"memory": "15Gi"})
    found = scores(cluster, asked("x", requests={"memory": "1000Mi"}), ["c", "d"])
    assert found == {"c": 9, "d": 10}


@pytest.mark.parametrize(
    "pod",
    [
        asked("unknown"),
        asked("train", workflow="another"),
        asked("train", namespace="another"),
        asked("train", labels={"typeOfComponent": "Predict"}),
        asked("train", labels={"typeOfComponent": "Predict", "OurLocation": "MOON"}),
        asked("train", labels={"OurLocation": "HOME-EDGE"}, workflow="another"),
    ],
    ids=str,
)
def test_who_is_not_known_keeps_every_node(pod):
    cluster = Cluster("a")
    cluster.node("b", {"HOME-EDGE": "1"})
    cluster.plan(["train-other", 0])
    found = filter_nodes(cluster.known, pod, ["b", "a", "new"])
    assert (found.nodes, found.reason) == (("b", "a", "new"), DecisionReason.NOTHING_KNOWN)
    assert set(scores(cluster, pod, ["b", "a", "new"]).values()) == {10}


def test_a_plan_of_an_earlier_workflow_of_that_name_does_not_count():
    cluster = Cluster(*NODES)
    cluster.plan(PLANNED_ON_B, uid="another")
    assert filter_nodes(cluster.known, asked("train"), NODES).reason is DecisionReason.NOTHING_KNOWN


def test_a_pod_that_does_not_say_who_owns_it_has_the_plan_of_its_workflow():
    cluster = Cluster(*NODES)
    cluster.plan(PLANNED_ON_B)
    pod = dataclasses.replace(asked("train"), owners=())
    assert filter_nodes(cluster.known, pod, NODES).nodes == ("b",)


def test_a_step_that_the_plan_puts_nowhere_keeps_every_node():
    cluster = Cluster(*NODES)
    cluster.plan(["train", -1])
    assert filter_nodes(cluster.known, asked("train"), NODES).nodes == tuple(NODES)


def test_no_nodes_are_answered_with_no_nodes():
    cluster = Cluster(*NODES)
    cluster.plan(PLANNED_ON_B)
    found = filter_nodes(cluster.known, asked("train"), [])
    assert (found.nodes, dict(found.reasons)) == ((), {})
    assert prioritize_nodes(cluster.known, asked("train"), []) == {}


# Latency.


def edge_cluster(**latencies: str) -> Cluster:
    cluster = Cluster()
    for name, latency in latencies.items():
        cluster.node(name, {"HOME-EDGE": latency} if latency else {})
    return cluster


def test_a_ruled_step_without_a_plan_goes_to_the_nearest():
    cluster = edge_cluster(a="9.8", b="0.8ms", c="1.2", d="")
    found = filter_nodes(cluster.known, predict(), list("abcd"))
    # Within half a millisecond counts as equal.
    assert (found.nodes, found.reason) == (("b", "c"), DecisionReason.LATENCY)


def test_a_moved_label_moves_the_next_pod_at_once():
    cluster = edge_cluster(a="0.3", b="9.8", c="42")
    cluster.plan(["predict", 0, 0, 60])
    assert filter_nodes(cluster.known, predict(), list("abc")).nodes == ("a",)
    cluster.node("a", {"HOME-EDGE": "50"})
    cluster.node("c", {"HOME-EDGE": "0.3"})
    found = filter_nodes(cluster.known, predict(), list("abc"))
    assert (found.nodes, found.reason, found.planned) == (("c",), DecisionReason.LATENCY, "a")


def test_within_the_tolerance_the_plan_chooses():
    cluster = edge_cluster(a="1", b="1.4", c="9")
    cluster.plan(["predict", 1, 0, 60])
    assert filter_nodes(cluster.known, predict(), list("abc")).nodes == ("b",)
    cluster.policy(latencyRules={"tolerance": "0.1ms", "tolerancePercent": 0})
    assert filter_nodes(cluster.known, predict(), list("abc")).nodes == ("a",)
    cluster.policy(latencyRules={"tolerance": "0ms", "tolerancePercent": 1000})
    assert filter_nodes(cluster.known, predict(), list("abc")).nodes == ("b",)


def test_a_zero_round_trip_without_tolerance_is_a_rule_too():
    cluster = edge_cluster(a="0", b="0.1")
    cluster.policy(latencyRules={"tolerance": "0ms", "tolerancePercent": 0})
    assert filter_nodes(cluster.known, predict(), ["a", "b"]).nodes == ("a",)


def test_the_policy_says_which_types_are_ruled():
    cluster = edge_cluster(a="0.3", b="9.8")
    cluster.policy(latencyRules={"stepTypes": []})
    assert filter_nodes(cluster.known, predict(), ["a", "b"]).nodes == ("a", "b")
    cluster.policy(latencyRules={"stepTypes": ["PREDICT"]})
    assert filter_nodes(cluster.known, predict(), ["a", "b"]).nodes == ("a",)


def test_a_rule_does_not_wait_for_a_node_that_is_full():
    cluster = edge_cluster(a="0.3", b="9.8", c="42")
    cluster.plan(["predict", 0, 0, 60])
    found = filter_nodes(cluster.known, predict(), ["c", "b"])
    assert (found.nodes, found.reason) == (("b",), DecisionReason.NEXT_BEST)


def test_where_no_offered_node_states_a_latency_the_plan_counts():
    cluster = edge_cluster(a="0.3", b="", c="")
    cluster.plan(["predict", 2, 0, 60])
    assert filter_nodes(cluster.known, predict(), ["b", "c"]).nodes == ("c",)


def test_points_follow_the_round_trip():
    cluster = edge_cluster(a="9.8", b="0.3", c="42", d="")
    assert scores(cluster, predict(), list("abcd")) == {"a": 9, "b": 10, "c": 8, "d": 7}


LIMIT = '{"v": 1, "maxLatency": "20ms"}'


def test_a_hard_limit_excludes_nodes_even_planned_ones():
    cluster = edge_cluster(a="0.3", b="30", c="")
    cluster.plan(["work", 1, 0, 60])
    pod = asked("work", labels={"OurLocation": "home-edge"}, hints=LIMIT)
    found = filter_nodes(cluster.known, pod, list("abc"))
    assert (found.nodes, found.reason, found.planned) == (("a",), DecisionReason.LIMIT, "b")


def test_where_no_node_is_within_the_limit_every_node_gets_a_reason(golden):
    cluster = edge_cluster(a="20.1", b="30", c="")
    found = filter_nodes(cluster.known, predict(hints=LIMIT), list("abc"))
    assert (found.nodes, found.reason) == ((), DecisionReason.REFUSED)
    golden(f"{node}: {reason}" for node, reason in found.reasons.items())
    assert ["over 20ms" in found.reasons[node] for node in "abc"] == [True, True, False]


def test_a_node_that_we_have_not_seen_yet_is_not_refused():
    cluster = edge_cluster(a="30")
    found = filter_nodes(cluster.known, predict(hints=LIMIT), ["a", "new"])
    assert found.nodes == ("new",)


def test_a_limit_to_a_place_that_nobody_knows_does_not_hold():
    cluster = edge_cluster(a="30", b="1")
    pod = predict(hints=LIMIT, location="MOON")
    assert filter_nodes(cluster.known, pod, ["a", "b"]).nodes == ("a", "b")


def test_a_limit_may_be_the_policy_s():
    cluster = edge_cluster(a="30", b="10")
    cluster.policy(
        latencyRules={"stepTypes": []},
        defaults={"byType": [{"type": "PREDICT", "maxLatency": "20ms"}]},
    )
    assert filter_nodes(cluster.known, predict(), ["a", "b"]).nodes == ("b",)
    generous = '{"v": 1, "maxLatency": "40ms"}'
    assert filter_nodes(cluster.known, predict(hints=generous), ["a", "b"]).nodes == ("a", "b")


@pytest.mark.parametrize("hints", ["", "{", '{"maxLatency": "soon"}', '{"v": 1}', "[]"])
def test_hints_that_cannot_be_read_limit_nothing(hints):
    cluster = edge_cluster(a="30")
    assert filter_nodes(cluster.known, predict(hints=hints), ["a"]).nodes == ("a",)


# Volumes.


def test_a_running_user_of_the_claim_pins_the_pod():
    cluster = Cluster(*NODES)
    cluster.plan(PLANNED_ON_B)
    cluster.claim("data", "ReadWriteOnce")
    cluster.pod(name="user", node="c", claims=["data"], phase="Running")
    found = filter_nodes(cluster.known, asked("train", claims=["data"]), NODES)
    assert (found.nodes, found.reason, found.planned) == (("c",), DecisionReason.VOLUME, "b")
    unplanned = filter_nodes(cluster.known, asked("x", claims=["data"]), NODES)
    assert (unplanned.nodes, unplanned.reason) == (("c",), DecisionReason.VOLUME)
    assert scores(cluster, asked("train", claims=["data"]))["c"] > 0
    assert scores(cluster, asked("train", claims=["data"]))["b"] == 0


def test_the_volume_counts_before_the_latency_rule_and_after_the_hard_limit():
    cluster = edge_cluster(a="0.3", b="30")
    cluster.pod(name="user", node="b", claims=["data"], phase="Running")
    assert filter_nodes(cluster.known, predict(claims=["data"]), ["a", "b"]).nodes == ("b",)
    limited = predict(claims=["data"], hints=LIMIT)
    assert filter_nodes(cluster.known, limited, ["a", "b"]).nodes == ("a",)


def test_a_volume_on_a_full_node_does_not_keep_the_pod_from_others():
    """The pod waits there for the volume; a rejection would not make it wait any better."""
    cluster = Cluster(*NODES)
    cluster.pod(name="user", node="c", claims=["data"], phase="Running")
    found = filter_nodes(cluster.known, asked("x", claims=["data"]), ["a", "b"])
    assert found.nodes == ("a", "b")


def test_a_claim_for_many_nodes_pins_nothing():
    cluster = Cluster(*NODES)
    cluster.claim("data", "ReadWriteMany")
    cluster.pod(name="user", node="c", claims=["data"], phase="Running")
    pod = asked("x", claims=["data"])
    assert filter_nodes(cluster.known, pod, NODES).nodes == tuple(NODES)
    cluster.claim("data", "ReadWriteOnce")
    assert filter_nodes(cluster.known, pod, NODES).nodes == ("c",)


def test_a_claim_of_another_namespace_is_another_claim():
    cluster = Cluster(*NODES)
    cluster.pod(name="user", node="c", claims=["data"], phase="Running", namespace="another")
    found = filter_nodes(cluster.known, asked("x", claims=["data"]), NODES)
    assert found.nodes == tuple(NODES)


def test_between_two_nodes_of_the_volume_the_plan_chooses():
    cluster = Cluster(*NODES)
    cluster.plan(PLANNED_ON_B)
    for name in ("b", "c"):
        cluster.pod(name=f"user-{name}", node=name, claims=["data"], phase="Running")
    assert filter_nodes(cluster.known, asked("train", claims=["data"]), NODES).nodes == ("b",)


# Whatever is known and asked.

names = st.sampled_from(["a", "b", "c", "d", "e", "f", "new", "strange"])
labels = st.dictionaries(
    st.sampled_from(["HOME-EDGE", "home-edge", "kfp-placement.dev/speed", "zone"]),
    st.sampled_from(["0", "0.3", "9.8ms", "1s", "x", "-1", "1000", ""]),
)
rows = st.lists(
    st.tuples(
        st.sampled_from(["train", "predict", "for-loop-1[0].work"]),
        st.integers(-1, 4),
        st.floats(0, 1e6),
        st.floats(0, 1e6),
        st.just([]),
        st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1e6)).map(list), max_size=3),
    ),
    max_size=3,
)


@st.composite
def clusters(draw):
    cluster = Cluster()
    for name in "abcdef":
        cluster.node(name, draw(labels), unschedulable=draw(st.booleans()))
    cluster.plan(*draw(rows))
    for number, name in enumerate(draw(st.lists(names, max_size=3))):
        cluster.pod(name=f"p{number}", node=name, claims=["data"], requests={"cpu": "7"})
    return cluster


pods = st.builds(
    asked,
    st.sampled_from(["train", "predict", "for-loop-1", "executor"]),
    labels=st.fixed_dictionaries(
        {},
        optional={
            "OurLocation": st.sampled_from(["HOME-EDGE", "home-edge", "", "ZONE"]),
            "typeOfComponent": st.sampled_from(["Predict", "serving", "Training", ""]),
        },
    ),
    hints=st.sampled_from(["", LIMIT, '{"maxLatency": 0}', "{"]),
    requests=st.just({"cpu": "1", "memory": "1Gi"}),
    claims=st.sampled_from([(), ("data",), ("data", "other")]),
)


@given(clusters(), pods, st.lists(names, unique=True))
def test_answers_are_sound_whatever_is_known(cluster, pod, offered):
    found = filter_nodes(cluster.known, pod, offered)
    assert set(found.nodes) <= set(offered)
    assert len(set(found.nodes)) == len(found.nodes)
    if found.nodes or not offered:
        assert not found.reasons
    else:
        assert found.reason is DecisionReason.REFUSED
        assert set(found.reasons) == set(offered)
        assert all(found.reasons.values())
    if found.reason not in (DecisionReason.NOTHING_KNOWN, DecisionReason.REFUSED):
        assert len(found.nodes) <= CANDIDATES
    points = prioritize_nodes(cluster.known, pod, offered)
    assert list(points) == list(offered)
    assert all(0 <= score <= 10 for score in points.values())
    if found.nodes:
        assert max(points.values()) > 0
    if found.reason is DecisionReason.PLAN:
        assert max(points, key=points.__getitem__) == found.planned


@given(pods, st.lists(names, unique=True))
def test_who_knows_nothing_changes_nothing(pod, offered):
    assert filter_nodes(Knowledge(DEFAULT_SOURCES), pod, offered).nodes == tuple(offered)


def test_a_bound_pod_is_found_by_the_same_names():
    cluster = Cluster(*NODES)
    cluster.plan(PLANNED_ON_B)
    step = cluster.known.planned_step(asked("train", node="b"))
    assert step is not None
    assert step.node == "b"
    assert cluster.known.plans.keys() == {("team-a", WORKFLOW)}
