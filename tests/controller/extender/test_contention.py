"""Whether others may be about to take the room that is to be given away."""

import pytest

from kfp_placement_controller.extender.contention import (
    MAX_SAVED_SECONDS,
    SETTLE_SECONDS,
    PauseBudget,
    settling_seconds,
    without_taken,
)
from kfp_placement_controller.extender.knowledge_store import MAX_WAITING, MOMENT_SECONDS
from tests.controller.extender.cluster import Cluster, asked

OTHERS = "default-scheduler"
FULL = "0/1 nodes are available: 1 Insufficient cpu."
LONG_AGO, JUST_NOW = 100.0, 0.05


def waiting(cluster: Cluster, name: str, cpu: str, *, since: float = LONG_AGO, **given) -> None:
    """A pod of another scheduler that has waited so many seconds."""
    now, cluster.now = cluster.now, cluster.now - since
    cluster.pod(name=name, cpu=cpu, **{"scheduler": OTHERS, **given})
    cluster.now = now


def refused(cluster: Cluster, name: str, cpu: str) -> None:
    """The same, and its scheduler has found no room."""
    waiting(cluster, name, cpu, refused=FULL)


def freed(cluster: Cluster, cpu: str, *, since: float = JUST_NOW) -> None:
    """A pod has left node `a`, which is full but for that."""
    taken = {"cpu": str(8 - int(cpu))}
    cluster.pod(name="stays", node="a", requests=taken, phase="Running")
    cluster.pod(name="left", node="a", cpu=cpu, phase="Running")
    now, cluster.now = cluster.now, cluster.now - since
    cluster.remove_pod("left")
    cluster.now = now


def unsettled(cluster: Cluster, cpu: str = "2") -> dict[str, float]:
    pod = asked(cpu=cpu)
    return settling_seconds(cluster.knowledge, pod, ["a", "b"], cluster.now)


@pytest.fixture
def cluster():
    """Two nodes, and another scheduler that has placed a pod before."""
    two_nodes = Cluster("a", "b")
    two_nodes.seen_to_bind(OTHERS)
    return two_nodes


def test_room_that_nobody_else_waits_for_is_given_at_once(cluster):
    freed(cluster, "2")
    assert unsettled(cluster) == {}


def test_room_that_another_waits_for_settles_for_a_moment(cluster):
    freed(cluster, "2")
    refused(cluster, "theirs", "1")
    assert unsettled(cluster) == {"a": pytest.approx(SETTLE_SECONDS - JUST_NOW)}
    cluster.now += SETTLE_SECONDS
    assert unsettled(cluster) == {}


def test_a_name_that_never_placed_a_pod_is_waited_for_by_nobody(cluster):
    freed(cluster, "2")
    waiting(cluster, "theirs", "1", refused=FULL, scheduler="made-up")
    # A pod may be created with a node: that is no scheduler's doing.
    cluster.pod(name="bound-by-hand", node="b", scheduler="made-up", phase="Running")
    assert unsettled(cluster) == {}


def test_pauses_take_half_of_the_time_at_most():
    now, paused = 0.0, 0.0
    budget = PauseBudget()
    while now < 100:
        pause = budget.take(0.15, now)
        paused += pause
        now += pause + 0.01
    assert 50 <= paused <= 50 + MAX_SAVED_SECONDS
    assert budget.take(0.15, now + 10) == 0.15


def test_pods_that_our_scheduler_places_are_no_others(cluster):
    freed(cluster, "2")
    cluster.pod(name="ours", cpu="1", refused=FULL)
    assert unsettled(cluster) == {}


@pytest.mark.parametrize(
    "given",
    [{"gates": ["kueue.x-k8s.io/admission"]}, {"node": "b"}, {"phase": "Failed"}],
    ids=["gated", "placed", "ended"],
)
def test_pods_that_are_not_to_be_placed_want_no_room(cluster, given):
    freed(cluster, "2")
    waiting(cluster, "theirs", "1", refused=FULL, **given)
    assert unsettled(cluster) == {}


def test_who_has_been_placed_or_has_gone_is_waited_for_no_more(cluster):
    freed(cluster, "2")
    refused(cluster, "theirs", "1")
    cluster.pod(name="theirs", cpu="1", scheduler=OTHERS, node="b")
    assert unsettled(cluster) == {}
    refused(cluster, "more", "1")
    cluster.remove_pod("more")
    assert unsettled(cluster) == {}


def test_who_fits_beside_our_pod_or_not_at_all_crowds_nobody_out(cluster):
    freed(cluster, "4")
    refused(cluster, "small", "2")
    refused(cluster, "huge", "5")
    assert unsettled(cluster) == {}


def test_several_that_would_fit_one_by_one_do_together(cluster):
    """All of them have been waiting for room, and all will be tried on the node that has some."""
    freed(cluster, "4")
    refused(cluster, "one", "2")
    refused(cluster, "two", "1")
    assert list(unsettled(cluster)) == ["a"]


def test_who_is_merely_next_in_the_queue_counts_alone_and_only_while_new(cluster):
    freed(cluster, "4", since=LONG_AGO)
    for number in range(5):
        waiting(cluster, f"small-{number}", "1", since=JUST_NOW)
    assert unsettled(cluster) == {}
    waiting(cluster, "large", "3", since=JUST_NOW)
    assert unsettled(cluster) == {"a": pytest.approx(SETTLE_SECONDS - JUST_NOW)}
    cluster.now += SETTLE_SECONDS
    assert unsettled(cluster) == {}


def test_a_room_that_kube_scheduler_saw_become_free_before_us_settles_too(cluster):
    cluster.pod(name="on-a", node="a", cpu="8", phase="Running")
    cluster.now += LONG_AGO
    assert unsettled(cluster) == {}
    refused(cluster, "theirs", "1")
    assert unsettled(cluster) == {"a": pytest.approx(SETTLE_SECONDS)}


def test_what_we_have_just_given_away_is_counted(cluster):
    """Two of ours in a row: the first is not seen on its node before the second is placed."""
    freed(cluster, "4")
    refused(cluster, "theirs", "2")
    assert unsettled(cluster, "2") == {}
    cluster.pod(name="before", cpu="2")
    cluster.store.granted(asked(name="before", cpu="2"), "a")
    assert list(unsettled(cluster, "2")) == ["a"]


def test_a_grant_ends_when_its_pod_is_seen_on_a_node(cluster):
    before = asked(name="before", cpu="2")
    cluster.pod(name="before", cpu="2")
    cluster.store.granted(before, "a")
    assert cluster.knowledge.free("a")["cpu"] == 6000
    assert cluster.knowledge.free("a", besides=before.uid)["cpu"] == 8000
    cluster.pod(name="before", cpu="2", node="b")
    assert (cluster.knowledge.free("a")["cpu"], cluster.knowledge.free("b")["cpu"]) == (8000, 6000)


def test_room_that_was_taken_meanwhile_is_not_given(cluster):
    pod, asked_at = asked(cpu="5"), cluster.now
    cluster.now += 0.1
    cluster.pod(name="theirs", node="a", cpu="4", scheduler=OTHERS)
    assert without_taken(cluster.knowledge, pod, ["a", "b", "unknown"], asked_at) == (
        "b",
        "unknown",
    )
    small = asked(cpu="4")
    assert without_taken(cluster.knowledge, small, ["a", "b"], asked_at) == ("a", "b")


def test_what_was_taken_before_is_kube_scheduler_s_to_judge(cluster):
    """Should our count be wrong, no pod is kept off a node for ever."""
    cluster.pod(name="theirs", node="a", cpu="8", scheduler=OTHERS)
    asked_at = cluster.now + LONG_AGO
    assert without_taken(cluster.knowledge, asked(cpu="5"), ["a"], asked_at) == ("a",)


def test_what_mattered_for_a_moment_is_forgotten(cluster):
    freed(cluster, "2")
    cluster.store.granted(asked(name="lost"), "a")
    cluster.store.forget_moments()
    knowledge = cluster.knowledge
    assert (len(knowledge.granted), list(knowledge.freed_at), list(knowledge.taken_at)) == (
        1,
        ["a"],
        ["a"],
    )
    cluster.now += MOMENT_SECONDS
    cluster.store.forget_moments()
    knowledge = cluster.knowledge
    assert (knowledge.granted, knowledge.freed_at, knowledge.taken_at) == ({}, {}, {})


def test_nodes_that_are_not_known_are_not_judged(cluster):
    pod = asked(cpu="9")
    refused(cluster, "theirs", "1")
    assert settling_seconds(cluster.knowledge, pod, ["stranger"], cluster.now) == {}


def test_what_is_remembered_of_waiting_pods_is_limited(cluster):
    for number in range(MAX_WAITING + 5):
        waiting(cluster, f"p{number}", "1")
    assert len(cluster.knowledge.waiting) == MAX_WAITING
