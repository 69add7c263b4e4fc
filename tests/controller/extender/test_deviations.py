"""Events about pods that are not where their plan wanted them."""

import pytest

from kfp_placement_controller.extender.deviations import DeviationNotes
from kfp_placement_kube.change import Change
from tests.controller.extender.known import Cluster, asked, filter_nodes, observed, predict
from tests.support import recording

ROW = ["train", 0, 0, 100, [], [[1, 10]]]


class Told:
    """What was told."""

    def __init__(self, max_notes: int = 100) -> None:
        self.events: list[tuple[str, str]] = []
        self.notes = DeviationNotes(max_notes)

    def ask(self, cluster, pod, offered):
        """The scheduler asks."""
        self.notes.decided(cluster.known, pod, filter_nodes(cluster.known, pod, offered))

    def bind(self, node, name="pod", **given):
        """The scheduler binds; None: the pod is deleted."""
        old = observed(name=name, **given)
        new = None if node is None else observed(name=name, node=node, **given)
        found = self.notes.pod_changed(Change((old.namespace, name), old, new))
        if found is not None:
            self.events.append((found.pod.name, found.message))
            recording.keep("elsewhere", pod=found.pod.name, say=found.message)


def test_a_pod_on_another_node_is_told_once():
    cluster, told = Cluster("a", "b"), Told()
    cluster.plan(ROW)
    cluster.pod(name="other", node="a", requests={"cpu": "7"})
    told.ask(cluster, asked(requests={"cpu": "2"}), ["b"])
    told.ask(cluster, asked(requests={"cpu": "2"}), ["b"])
    told.bind("")
    assert told.events == []
    told.bind("b")
    told.bind("b", phase="Running")
    message = "planned on a, placed on b: not enough cpu free"
    assert told.events == [("pod", message)]


def test_a_pod_that_reaches_its_node_in_the_end_is_not_told():
    cluster, told = Cluster("a", "b"), Told()
    cluster.plan(ROW)
    told.ask(cluster, asked(), ["b"])
    told.ask(cluster, asked(), ["a", "b"])
    told.bind("a")
    told.ask(cluster, asked(name="second"), ["b"])
    told.bind("a", name="second")
    assert told.events == []


def test_a_pod_that_is_deleted_is_forgotten():
    cluster, told = Cluster("a", "b"), Told()
    cluster.plan(ROW)
    told.ask(cluster, asked(), ["b"])
    told.bind(None)
    told.bind("b")
    assert told.events == []


def test_the_oldest_notes_are_forgotten():
    cluster, told = Cluster("a", "b"), Told(max_notes=2)
    cluster.plan(ROW)
    for name in ("p1", "p2", "p3"):
        told.ask(cluster, asked(name=name), ["b"])
    for name in ("p1", "p2", "p3"):
        told.bind("b", name=name)
    assert [name for name, _ in told.events] == ["p2", "p3"]


UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def full(cluster):
    cluster.pod(name="other", node="a", requests={"cpu": "8", "memory": "16Gi"})


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (lambda cluster: cluster.lose("a"), "it is gone"),
        (lambda cluster: cluster.node("a", unschedulable=True), "it is cordoned"),
        (lambda cluster: cluster.node("a", taints=[UNREACHABLE]), "it is not ready"),
        (full, "not enough cpu, memory free"),
        (lambda cluster: None, "it does not take the pod now"),
    ],
)
def test_why_the_scheduler_left_the_planned_node_out(before, why):
    cluster, told = Cluster("a", "b"), Told()
    cluster.plan(ROW)
    before(cluster)
    told.ask(cluster, asked(requests={"cpu": "1", "memory": "1Gi"}), ["b"])
    told.bind("b")
    assert told.events[0][1] == f"planned on a, placed on b: {why}"


def test_why_our_own_rules_speak_against_the_planned_node():
    cluster, told = Cluster(), Told()
    cluster.node("a", {"HOME-EDGE": "30"})
    cluster.node("b", {"HOME-EDGE": "1"})
    cluster.plan(["predict", 0])
    told.ask(cluster, predict(), ["a", "b"])
    told.bind("b")
    told.ask(cluster, predict(hints='{"maxLatency": "20ms"}'), ["a", "b"])
    told.bind("b")
    cluster.pod(name="user", node="b", claims=["data"])
    told.ask(cluster, predict(claims=["data"]), ["a", "b"])
    told.bind("b")
    assert [message.partition(": ")[2] for _, message in told.events] == [
        "other nodes are nearer to HOME-EDGE now",
        "its round trip to HOME-EDGE is over the step's limit",
        "the step's volume is in use on b",
    ]
