"""Events about pods that are not where their plan wanted them."""

import pytest

from kfp_placement_controller.extender.decisions import filter_nodes
from kfp_placement_controller.extender.deviations import DeviationNotes
from kfp_placement_kube.change import Change
from tests.controller.extender.cluster import Cluster, asked, predict


class DeviationRecorder:
    """What was told of deviations."""

    def __init__(self, max_notes: int = 100) -> None:
        self.events: list[tuple[str, str]] = []
        self.notes = DeviationNotes(max_notes)

    def ask(self, cluster, pod, offered):
        """The scheduler asks."""
        self.notes.decided(cluster.knowledge, pod, filter_nodes(cluster.knowledge, pod, offered))

    def bind(self, node, name="pod", **given):
        """The scheduler binds; None: the pod is deleted."""
        old = asked(name=name, **given)
        new = None if node is None else asked(name=name, node=node, **given)
        deviation = self.notes.pod_changed(Change((old.namespace, name), old, new))
        if deviation is not None:
            self.events.append((deviation.pod.name, deviation.message))


@pytest.fixture
def recorder():
    return DeviationRecorder()


def test_a_pod_on_another_node_is_told_once(cluster, recorder):
    cluster.pod(name="other", node="a", cpu="7")
    recorder.ask(cluster, asked(cpu="2"), ["b"])
    recorder.ask(cluster, asked(cpu="2"), ["b"])
    recorder.bind("")
    assert recorder.events == []
    recorder.bind("b")
    recorder.bind("b", phase="Running")
    message = "planned on a, placed on b: not enough cpu free"
    assert recorder.events == [("pod", message)]


def test_a_pod_that_reaches_its_node_in_the_end_is_not_told(cluster, recorder):
    recorder.ask(cluster, asked(), ["b"])
    recorder.ask(cluster, asked(), ["a", "b"])
    recorder.bind("a")
    recorder.ask(cluster, asked(name="second"), ["b"])
    recorder.bind("a", name="second")
    assert recorder.events == []


def test_a_pod_that_is_deleted_is_forgotten(cluster, recorder):
    recorder.ask(cluster, asked(), ["b"])
    recorder.bind(None)
    recorder.bind("b")
    assert recorder.events == []


def test_the_oldest_notes_are_forgotten(cluster):
    recorder = DeviationRecorder(max_notes=2)
    for name in ("p1", "p2", "p3"):
        recorder.ask(cluster, asked(name=name), ["b"])
    for name in ("p1", "p2", "p3"):
        recorder.bind("b", name=name)
    assert [name for name, _ in recorder.events] == ["p2", "p3"]


UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def full(cluster):
    cluster.pod(name="other", node="a", requests={"cpu": "8", "memory": "16Gi"})


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(lambda cluster: cluster.lose("a"), id="gone"),
        pytest.param(lambda cluster: cluster.node("a", unschedulable=True), id="cordoned"),
        pytest.param(lambda cluster: cluster.node("a", taints=[UNREACHABLE]), id="not ready"),
        pytest.param(full, id="full"),
        pytest.param(lambda cluster: None, id="unknown"),
    ],
)
def test_why_the_scheduler_left_the_planned_node_out(cluster, recorder, before, golden):
    before(cluster)
    recorder.ask(cluster, asked(requests={"cpu": "1", "memory": "1Gi"}), ["b"])
    recorder.bind("b")
    golden(recorder.events[0][1])
    assert "placed on b: " in recorder.events[0][1]


def test_why_our_own_rules_speak_against_the_planned_node(golden):
    cluster, recorder = Cluster(), DeviationRecorder()
    cluster.node("a", {"HOME-EDGE": "30"})
    cluster.node("b", {"HOME-EDGE": "1"})
    cluster.plan(["predict", 0])
    recorder.ask(cluster, predict(), ["a", "b"])
    recorder.bind("b")
    recorder.ask(cluster, predict(hints='{"maxLatency": "20ms"}'), ["a", "b"])
    recorder.bind("b")
    cluster.pod(name="user", node="b", claims=["data"])
    recorder.ask(cluster, predict(claims=["data"]), ["a", "b"])
    recorder.bind("b")
    messages = [message for _, message in recorder.events]
    golden(messages)
    nearer, limit, volume = messages
    assert "nearer to HOME-EDGE" in nearer
    assert "limit" in limit
    assert "volume" in volume
