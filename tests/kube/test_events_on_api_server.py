"""Events on a real API server."""

import threading
from datetime import UTC, datetime, timedelta
from functools import partial
from unittest.mock import Mock

import pytest
from prometheus_client import REGISTRY

from kfp_placement_controller.connection import COMPONENT
from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.events import EventRecorder, Regarding
from kfp_placement_kube.exceptions import ForbiddenError
from kfp_placement_kube.kinds import EVENTS, NODES, PODS
from tests.controlplane.waiting import wait_until


class Clock:
    """Shows the time that a test sets; whenever it passes, the time of day is set back an hour."""

    def __init__(self):
        self.seconds, self.now = 0, datetime.now(UTC)

    def forward(self, seconds):
        self.seconds += seconds
        self.now -= timedelta(hours=1)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def new_recorder(clock):
    return partial(
        EventRecorder,
        component=COMPONENT,
        identity="test",
        clock=lambda: clock.now,
        monotonic=lambda: clock.seconds,
    )


@pytest.fixture
def recorder(client, new_recorder):
    recorder = new_recorder(client)
    recorder.start()
    return recorder


@pytest.fixture
def events(client, namespace):
    def read(where=namespace):
        return [
            each
            for each in client.list(EVENTS, namespace=where).items
            if each.get("reportingController") == COMPONENT
        ]

    return read


def test_an_event_is_about_its_object(recorder, events, namespace):
    pod = Regarding(PODS, "p", namespace, "uid-1")
    recorder.record(
        pod, "PlacedElsewhere", "n2 instead of n1: n1 is full", type="Warning", action="Placing"
    )
    recorder.stop()
    (event,) = events()
    assert event["regarding"] == {
        "apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": namespace, "uid": "uid-1",
    }  # fmt: skip
    assert (event["reason"], event["type"]) == ("PlacedElsewhere", "Warning")
    assert event["note"] == "n2 instead of n1: n1 is full"


def test_the_same_event_again_is_counted(recorder, clock, events, namespace):
    pod = Regarding(PODS, "p", namespace, "uid-1")
    for _ in range(3):
        recorder.record(pod, "R", "same", action="Acting")
        clock.forward(20)
    recorder.record(Regarding(PODS, "q", namespace, "uid-2"), "R", "same", action="Acting")
    clock.forward(1000)
    recorder.record(pod, "R", "same", action="Acting")
    recorder.stop()
    counts = [(each["regarding"]["name"], each.get("series", {}).get("count")) for each in events()]
    # After a while it is an event of its own.
    assert sorted(counts, key=str) == [("p", 3), ("p", None), ("q", None)]


def events_dropped():
    return REGISTRY.get_sample_value("kfp_placement_events_dropped_total")


def test_what_is_said_once_is_said_by_one_of_us(client, new_recorder, clock, events, namespace):
    """A planner that takes over knows less than the one that saw it happen."""
    pod, other = (Regarding(PODS, name, namespace, f"uid-{name}") for name in ("p", "q"))
    dropped = events_dropped()
    for identity, note in (("first", "why"), ("second", "nothing known")):
        recorder = new_recorder(client, identity=identity)
        recorder.start()
        for _ in range(2):
            recorder.record(pod, "PlacedElsewhere", note, once=True, action="Acting")
            clock.forward(60)
        recorder.record(other, "PlacedElsewhere", note, action="Acting")
        recorder.stop()
    notes = [(each["regarding"]["name"], each["note"]) for each in events()]
    assert sorted(notes) == [("p", "why"), ("q", "nothing known"), ("q", "why")]
    assert not any("series" in each for each in events())
    assert events_dropped() == dropped


def test_an_event_about_an_object_of_the_cluster(recorder, events):
    recorder.record(Regarding(NODES, "some-node"), "R", "n" * 5000, action="Acting")
    recorder.stop()
    (event,) = (each for each in events("default") if each["regarding"]["name"] == "some-node")
    assert event["note"] == "n" * 1024


def test_recording_and_stopping_never_fail(new_recorder):
    recorder = new_recorder(KubeClient(transport=Mock()))
    recorder.record(Regarding(PODS, "p"), "R", "half a character: \ud800", action="Acting")
    recorder.stop()


def test_what_is_not_written_at_the_end_is_counted(new_recorder, caplog):
    answered, client = threading.Event(), Mock()
    client.create.side_effect = lambda *_: answered.wait()
    recorder = new_recorder(client)
    recorder.start()
    for _ in range(3):
        recorder.record(Regarding(PODS, "p" * 229 + ".cut"), "R", "unanswered", action="Acting")
    wait_until(lambda: client.create.called, "the first event")
    recorder.stop(timeout_seconds=0.1)
    answered.set()
    assert [each.args for each in caplog.records] == [(3,)]
    assert client.create.call_args.args[1]["metadata"]["name"].startswith("p" * 229 + ".")


def test_too_many_at_once_are_dropped_and_counted(client, new_recorder, namespace):
    recorder = new_recorder(client, most_waiting=2)
    before = events_dropped()
    for index in range(5):
        recorder.record(
            Regarding(PODS, f"p{index}", namespace), "R", "not started: all wait", action="Placing"
        )
    assert events_dropped() == before + 3


def test_a_refusal_ends_nothing(client, recorder, events, namespace):
    create = client.create

    def refuse_first(*arguments, **options):
        client.create = create
        raise ForbiddenError(403, "Forbidden", "may not create events")

    client.create = refuse_first
    before = events_dropped()
    recorder.record(Regarding(PODS, "a", namespace), "R", "refused", action="Acting")
    recorder.record(Regarding(PODS, "b", namespace), "R", "written", action="Acting")
    recorder.stop()
    wait_until(lambda: len(events()) == 1, "the second event")
    assert events_dropped() == before + 1
