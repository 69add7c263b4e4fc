"""What the extender answers, rule by rule, and in which order the rules count."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_controller.extender.decisions import (
    CANDIDATES,
    DecisionReason,
    filter_nodes,
    prioritize_nodes,
)
from kfp_placement_controller.extender.knowledge import Knowledge
from kfp_placement_controller.extender.preferences import room_beside
from kfp_placement_controller.sources import DEFAULT_SOURCES
from tests.controller.extender.cluster import Cluster, asked, predict

NODES = "abcde"
PLANNED_ON_B = ["train", 1, 0, 100, ["chosen", 5], [[3, 10], [2, 30], [0, 60]]]
LIMIT = '{"v": 1, "maxLatency": "20ms"}'


def a_cluster(row=PLANNED_ON_B, nodes=NODES, **plan) -> Cluster:
    """Nodes and a plan of one step."""
    cluster = Cluster(*nodes)
    cluster.plan(row, **plan)
    return cluster


def edge_cluster(*row, **latencies: str) -> Cluster:
    """Nodes by their round trips to HOME-EDGE, and where a step is planned."""
    cluster = Cluster()
    for name, latency in latencies.items():
        cluster.node(name, {"HOME-EDGE": latency} if latency else {})
    if row:
        cluster.plan([*row, 0, 60])
    return cluster


def answer(cluster, pod, offered=NODES) -> tuple[str, DecisionReason]:
    """The nodes that remain, by their letters, and why."""
    choice = filter_nodes(cluster.knowledge, pod, list(offered))
    return "".join(choice.nodes), choice.reason


def left(cluster, pod, offered=NODES) -> str:
    return answer(cluster, pod, offered)[0]


def scores(cluster, pod, names=NODES):
    return prioritize_nodes(cluster.knowledge, pod, list(names))


def test_the_planned_node_remains_alone_even_where_it_is_tight():
    for pod in (asked("train"), asked("train", cpu="8")):
        choice = filter_nodes(a_cluster().knowledge, pod, NODES)
        assert (choice.nodes, choice.reason, choice.planned) == (("b",), DecisionReason.PLAN, "b")


def test_without_the_planned_node_those_of_least_loss_remain():
    cluster = a_cluster(nodes="abcdef")
    assert answer(cluster, asked("train"), "acdef") == ("dcae", DecisionReason.NEXT_BEST)
    # A node that the plan does not name loses no less than those it names.
    assert scores(cluster, asked("train"), "dcae") == {"d": 10, "c": 9, "a": 8, "e": 8}


def test_nodes_that_the_plan_does_not_name_are_ordered_by_speed():
    cluster = a_cluster(["train", 1, 0, 100], "bc")
    cluster.node("q", {"kfp-placement.dev/speed": "2"})
    cluster.node("s", {"kfp-placement.dev/speed": "0.5"})
    assert left(cluster, asked("train"), "scq") == "cqs"
    assert scores(cluster, asked("train"), "cqs") == {"c": 10, "q": 10, "s": 9}


def test_of_equal_nodes_the_emptier_are_kept():
    cluster = a_cluster(["train", 1, 0, 100], "bvwxyz")
    cluster.pod(name="other", node="v", cpu="4")
    assert left(cluster, asked("train"), "vwxyz") == "wxyz"


def test_headroom_is_left_where_there_is_a_choice():
    """Node d is next best, but a full node is where two schedulers book the same room."""
    cluster = a_cluster()
    cluster.pod(name="other", node="d", cpu="6900m")
    tight = asked("train", cpu="1")
    assert left(cluster, tight, "cd") == "cd"
    assert scores(cluster, tight, "cd") == {"c": 10, "d": 9}
    cluster.policy(headroom={"cpu": "100m", "memory": "0"})
    assert left(cluster, tight, "cd") == "dc"
    assert left(cluster, tight, "d") == "d"


def test_headroom_of_memory_counts_too():
    cluster = Cluster("c", "d")
    cluster.pod(name="other", node="c", requests={"memory": "15Gi"})
    assert scores(cluster, asked("x", requests={"memory": "1000Mi"}), "cd") == {"c": 9, "d": 10}


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
    cluster = a_cluster(["train-other", 0], "a")
    cluster.node("b", {"HOME-EDGE": "1"})
    assert answer(cluster, pod, "ban") == ("ban", DecisionReason.NOTHING_KNOWN)
    assert set(scores(cluster, pod, "ban").values()) == {10}


def test_a_plan_of_an_earlier_workflow_of_that_name_does_not_count():
    assert left(a_cluster(uid="another"), asked("train")) == NODES


def test_a_pod_that_no_workflow_owns_has_no_plan_whatever_its_label_says():
    assert left(a_cluster(), dataclasses.replace(asked("train"), owner=None)) == NODES


def test_a_step_that_the_plan_puts_nowhere_keeps_every_node():
    assert left(a_cluster(["train", -1]), asked("train")) == NODES


def test_no_nodes_are_answered_with_no_nodes():
    choice = filter_nodes(a_cluster().knowledge, asked("train"), [])
    assert (choice.nodes, dict(choice.reasons)) == ((), {})
    assert scores(a_cluster(), asked("train"), []) == {}


# Latency.


@pytest.mark.parametrize(
    ("cluster", "offered", "expected"),
    [
        pytest.param(
            # Within half a millisecond counts as equal.
            edge_cluster(a="9.8", b="0.8ms", c="1.2", d=""),
            "abcd",
            ("bc", DecisionReason.LATENCY),
            id="without a plan to the nearest",
        ),
        pytest.param(
            edge_cluster("predict", 0, a="0.3", b="9.8", c="42"),
            "cb",
            ("b", DecisionReason.NEXT_BEST),
            id="a full node is not waited for",
        ),
        pytest.param(
            edge_cluster("predict", 2, a="0.3", b="", c=""),
            "bc",
            ("c", DecisionReason.PLAN),
            id="where no offered node states a latency the plan counts",
        ),
    ],
)
def test_a_ruled_step(cluster, offered, expected):
    assert answer(cluster, predict(), offered) == expected


def test_a_moved_label_moves_the_next_pod_at_once():
    cluster = edge_cluster("predict", 0, a="0.3", b="9.8", c="42")
    assert left(cluster, predict(), "abc") == "a"
    cluster.node("a", {"HOME-EDGE": "50"})
    cluster.node("c", {"HOME-EDGE": "0.3"})
    choice = filter_nodes(cluster.knowledge, predict(), "abc")
    assert (choice.nodes, choice.reason, choice.planned) == (("c",), DecisionReason.LATENCY, "a")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, "b"),
        ({"tolerance": "0.1ms", "tolerancePercent": 0}, "a"),
        ({"tolerance": "0ms", "tolerancePercent": 1000}, "b"),
        ({"stepTypes": []}, "b"),
        ({"stepTypes": ["PREDICT"], "tolerance": "0.1ms", "tolerancePercent": 0}, "a"),
    ],
    ids=str,
)
def test_the_policy_says_what_is_ruled_and_within_the_tolerance_the_plan_chooses(rules, expected):
    cluster = edge_cluster("predict", 1, a="1", b="1.4", c="9")
    cluster.policy(latencyRules=rules)
    assert left(cluster, predict(), "abc") == expected


def test_a_zero_round_trip_without_tolerance_is_a_rule_too():
    cluster = edge_cluster(a="0", b="0.1")
    cluster.policy(latencyRules={"tolerance": "0ms", "tolerancePercent": 0})
    assert left(cluster, predict(), "ab") == "a"


def test_points_follow_the_round_trip():
    cluster = edge_cluster(a="9.8", b="0.3", c="42", d="")
    assert scores(cluster, predict(), "abcd") == {"a": 9, "b": 10, "c": 8, "d": 7}


def test_a_hard_limit_excludes_nodes_even_planned_ones():
    cluster = edge_cluster("work", 1, a="0.3", b="30", c="")
    pod = asked("work", labels={"OurLocation": "home-edge"}, hints=LIMIT)
    choice = filter_nodes(cluster.knowledge, pod, "abc")
    assert (choice.nodes, choice.reason, choice.planned) == (("a",), DecisionReason.LIMIT, "b")


def test_where_no_node_is_within_the_limit_every_node_gets_a_reason(golden):
    cluster = edge_cluster(a="20.1", b="30", c="")
    choice = filter_nodes(cluster.knowledge, predict(hints=LIMIT), "abc")
    assert (choice.nodes, choice.reason) == ((), DecisionReason.REFUSED)
    golden(f"{node}: {reason}" for node, reason in choice.reasons.items())
    assert ["over 20ms" in choice.reasons[node] for node in "abc"] == [True, True, False]


def test_a_node_that_we_have_not_seen_yet_is_not_refused():
    assert left(edge_cluster(a="30"), predict(hints=LIMIT), "an") == "n"


def test_a_limit_to_a_place_that_nobody_knows_does_not_hold():
    assert left(edge_cluster(a="30", b="1"), predict(hints=LIMIT, location="MOON"), "ab") == "ab"


def test_a_limit_may_be_the_policy_s():
    cluster = edge_cluster(a="30", b="10")
    cluster.policy(
        latencyRules={"stepTypes": []},
        defaults={"byType": [{"type": "PREDICT", "maxLatency": "20ms"}]},
    )
    assert left(cluster, predict(), "ab") == "b"
    assert left(cluster, predict(hints='{"v": 1, "maxLatency": "40ms"}'), "ab") == "ab"


@pytest.mark.parametrize("hints", ["", "{", '{"maxLatency": "soon"}', '{"v": 1}', "[]"])
def test_hints_that_cannot_be_read_limit_nothing(hints):
    assert left(edge_cluster(a="30"), predict(hints=hints), "a") == "a"


# Volumes.


def with_users(cluster: Cluster, *nodes: str, **given) -> Cluster:
    """Pods on these nodes mount the claim `data`."""
    for node in nodes:
        cluster.pod(name=f"user-{node}", node=node, claims=["data"], phase="Running", **given)
    return cluster


def test_a_running_user_of_the_claim_pins_the_pod():
    cluster = with_users(a_cluster(), "c")
    cluster.claim("data", "ReadWriteOnce")
    pod = asked("train", claims=["data"])
    choice = filter_nodes(cluster.knowledge, pod, NODES)
    assert (choice.nodes, choice.reason, choice.planned) == (("c",), DecisionReason.VOLUME, "b")
    assert answer(cluster, asked("x", claims=["data"])) == ("c", DecisionReason.VOLUME)
    assert scores(cluster, pod)["c"] > scores(cluster, pod)["b"] == 0


def test_the_volume_counts_before_the_latency_rule_and_after_the_hard_limit():
    cluster = with_users(edge_cluster(a="0.3", b="30"), "b")
    assert left(cluster, predict(claims=["data"]), "ab") == "b"
    assert left(cluster, predict(claims=["data"], hints=LIMIT), "ab") == "a"


def test_a_volume_on_a_full_node_does_not_keep_the_pod_from_others():
    """The pod waits there for the volume; a rejection would not make it wait any better."""
    assert left(with_users(Cluster(*NODES), "c"), asked("x", claims=["data"]), "ab") == "ab"


def test_a_claim_for_many_nodes_pins_nothing():
    cluster = with_users(Cluster(*NODES), "c")
    pod = asked("x", claims=["data"])
    cluster.claim("data", "ReadWriteMany")
    assert left(cluster, pod) == NODES
    cluster.claim("data", "ReadWriteOnce")
    assert left(cluster, pod) == "c"


def test_a_claim_of_another_namespace_is_another_claim():
    cluster = with_users(Cluster(*NODES), "c", namespace="another")
    assert left(cluster, asked("x", claims=["data"])) == NODES


def test_between_two_nodes_of_the_volume_the_plan_chooses():
    assert left(with_users(a_cluster(), "b", "c"), asked("train", claims=["data"])) == "b"


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
        cluster.pod(name=f"p{number}", node=name, claims=["data"], cpu="7")
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
    choice = filter_nodes(cluster.knowledge, pod, offered)
    assert set(choice.nodes) <= set(offered)
    assert len(set(choice.nodes)) == len(choice.nodes)
    if choice.nodes or not offered:
        assert not choice.reasons
    else:
        assert choice.reason is DecisionReason.REFUSED
        assert set(choice.reasons) == set(offered)
        assert all(choice.reasons.values())
    if choice.reason not in (DecisionReason.NOTHING_KNOWN, DecisionReason.REFUSED):
        assert len(choice.nodes) <= CANDIDATES
    points = prioritize_nodes(cluster.knowledge, pod, offered)
    assert list(points) == list(offered)
    assert all(0 <= score <= 10 for score in points.values())
    if choice.nodes:
        assert max(points.values()) > 0
    if choice.reason is DecisionReason.PLAN:
        assert max(points, key=points.__getitem__) == choice.planned


@given(pods, st.lists(names, unique=True))
def test_who_knows_nothing_changes_nothing(pod, offered):
    assert filter_nodes(Knowledge(DEFAULT_SOURCES), pod, offered).nodes == tuple(offered)


def test_how_a_node_would_stand_with_one_more_pod():
    """The fuller of CPU and memory counts; headroom is what must be left of both."""
    rate = room_beside({"cpu": 250, "memory": 10}, {"cpu": 500, "memory": 20})
    assert rate({"cpu": 1_000, "memory": 100}, {}) == (False, 0.25)
    assert rate({"cpu": 1_000, "memory": 100}, {"cpu": 250, "memory": 60}) == (False, 0.7)
    assert rate({"cpu": 1_000, "memory": 100}, {"cpu": 251}) == (True, 0.501)
    assert rate({"cpu": 1_000, "memory": 100}, {"memory": 71})[0]
    assert rate({"cpu": 1_000}, {}) == (True, 1.0)
