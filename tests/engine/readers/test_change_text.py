"""Changes as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.exceptions import ChangeError
from kfp_placement_engine.plans.what_if_changes import (
    AddNodes,
    HoldImage,
    RemoveNodes,
    SetProperties,
)
from kfp_placement_engine.readers.change_text import FORMS, read_change, read_values

NODE, STEP, LOOP, VOLUME = ("node",), ("step",), ("loop",), ("volume",)
NODE_OR_STEP = ("node", "step")


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("+2 of worker", AddNodes("worker", 2)),
        (" + 2  of worker ", AddNodes("worker", 2)),
        ("+1 worker", AddNodes("worker", 1)),
        ("+1x worker", AddNodes("worker", 1)),
        ("+1 of step", AddNodes("step", 1)),
        ("+02 of worker", AddNodes("worker", 2)),
        ("+10000 of worker", AddNodes("worker", 10_000)),
        ("-1 of worker", RemoveNodes("worker", 1)),
        ("image python:3.12", HoldImage("python:3.12")),
        ("image python:3.12 everywhere", HoldImage("python:3.12")),
    ],
)
def test_every_form_is_read(text, change):
    assert read_change(text) == change
    assert read_change(change.text) == change


@pytest.mark.parametrize(
    ("text", "kinds", "name", "values"),
    [
        ("worker-* pods=20 speed=1.5", NODE, "worker-*", {"pods": "20", "speed": "1.5"}),
        ("node worker cpu=4", NODE, "worker", {"cpu": "4"}),
        ("loop for-loop-1 limit = 3", LOOP, "for-loop-1", {"limit": "3"}),
        ("step train duration=20 minutes", STEP, "train", {"duration": "20 minutes"}),
        ("step read the file  duration=1 hour ", STEP, "read the file", {"duration": "1 hour"}),
        ("read the file cpu=4", STEP, "read the file", {"cpu": "4"}),
        ("step +1 of it cpu=4", STEP, "+1 of it", {"cpu": "4"}),
        ("step predict max-latency=30 ms", STEP, "predict", {"max-latency": "30 ms"}),
        ("step train gpu=0", STEP, "train", {"nvidia.com/gpu": "0"}),
        ("step train node=w* amd.com/gpu=1", STEP, "train", {"node": "w*", "amd.com/gpu": "1"}),
        ("volume data access=ReadWriteMany", VOLUME, "data", {"access": "ReadWriteMany"}),
        ("loop l limit=1000000000", LOOP, "l", {"limit": "1000000000"}),
        ("step\ttrain\u00a0duration=5m", STEP, "train", {"duration": "5m"}),
        ("loop\u00a0l\tlimit=2", LOOP, "l", {"limit": "2"}),
        # What is changed tells whose it is; of amounts only the cluster does.
        ("for-loop-1 limit=off", LOOP, "for-loop-1", {"limit": "off"}),
        ("train node=w2 cpu=4", STEP, "train", {"node": "w2", "cpu": "4"}),
        ("data access=ReadWriteMany", VOLUME, "data", {"access": "ReadWriteMany"}),
        ("worker cpu = 8", NODE_OR_STEP, "worker", {"cpu": "8"}),
        ("gpu-node gpu=2", NODE_OR_STEP, "gpu-node", {"nvidia.com/gpu": "2"}),
        # Nodes may be called like what other forms begin with.
        ("step cpu=4", NODE_OR_STEP, "step", {"cpu": "4"}),
        ("loop speed=2", NODE, "loop", {"speed": "2"}),
    ],
)
def test_properties_are_read_with_what_they_may_be_of(text, kinds, name, values):
    change = read_change(text)
    assert change == SetProperties(kinds, name, tuple(values.items()))
    assert read_change(change.text).text == change.text


def test_values_are_those_of_the_model():
    texts = {
        "cpu": "500m",
        "memory": "8Gi",
        "speed": "2",
        "limit": "off",
        "duration": "1 hour 30 min",
        "max-latency": "30\u00a0ms",
        "access": "ReadWriteMany",
    }
    amounts, fields = read_values(texts.items())
    assert amounts == {"cpu": 500, "memory": 8 * 2**30}
    assert fields == {
        "speed": 2.0,
        "parallelism": 0,
        "duration_seconds": 5400.0,
        "max_latency_ms": 30.0,
        "access_modes": ("ReadWriteMany",),
    }


WRONG = (
    "",
    "worker",
    "2 of worker",
    "+0 of worker",
    "+99999999 of worker",
    "worker cpu",
    "worker cpus=4",
    "worker gpus=1",
    "worker gpu=1 nvidia.com/gpu=1",
    "worker amd=1",
    "worker cpu=lots",
    "worker cpu=2 cpu=4",
    "worker speed=0",
    "worker speed=fast",
    "loop for-loop-1 limit=0",
    "loop for-loop-1 limit=many",
    "loop for-loop-1 width=4",
    "step train duration=soon",
    "step train cpus=4",
    "step train pods=4",
    "step train memory=4GB",
    "step a=b duration=1m",
    "volume data size=4Gi",
    "step predict max-latency=near",
    "volume data access=ReadWriteAll",
    "best",
    "worker \x1b[2J",
    "x" * 5000 + " cpu=4",
    "step train duration=20 weeks",
    "loop for-loop-1 limit=4 or 5",
    "+2 of worker, gpu-node cpu=32",
    "worker cpu=8, +1 of worker",
    "step train duration 5m",
    "worker memory=8",
    "a,b",
    "a " * 400,
    "+1 of worker cpu=8",
    "read the file pods=4",
    "train duration=5m cpus=2",
    "worker cpu=4, memory=8Gi",
    "loop for-loop-1 limit=1000000001",
    "worker gpu=0.5",
)


@pytest.mark.golden
@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_what_cannot_be_meant_is_told_in_a_sentence(text, golden):
    with pytest.raises(ChangeError) as caught:
        read_change(text)
    golden(str(caught.value))


def test_a_message_shows_every_form():
    with pytest.raises(ChangeError) as caught:
        read_change("more of everything")
    assert all(form in str(caught.value) for form in FORMS)


@given(st.text())
def test_any_text_is_a_change_or_refused(text):
    try:
        change = read_change(text)
    except ChangeError:
        return
    assert read_change(change.text).text == change.text
