"""Changes as people write them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.exceptions import ChangeError
from kfp_placement_engine.model.changes import (
    AddNodes,
    ChangeStep,
    ClaimAccess,
    HoldImage,
    LoopLimit,
    RemoveNodes,
    ResizeNodes,
)
from kfp_placement_engine.readers.changes import FORMS, read_change

GIBIBYTE = 2**30


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("+2 of worker", AddNodes("worker", 2)),
        (" + 2  of worker ", AddNodes("worker", 2)),
        ("+1 worker", AddNodes("worker", 1)),
        ("+1x worker", AddNodes("worker", 1)),
        ("worker cpu = 8", ResizeNodes("worker", (("cpu", 8000),))),
        ("loop for-loop-1 limit = 3", LoopLimit("for-loop-1", 3)),
        ("image python:3.12", HoldImage("python:3.12")),
        ("-1 of worker", RemoveNodes("worker", 1)),
        ("gpu-node cpu=32", ResizeNodes("gpu-node", (("cpu", 32_000),))),
        ("gpu-node memory=64Gi", ResizeNodes("gpu-node", (("memory", 64 * GIBIBYTE),))),
        ("gpu-node nvidia.com/gpu=2", ResizeNodes("gpu-node", (("nvidia.com/gpu", 2),))),
        ("gpu-node gpu=2", ResizeNodes("gpu-node", (("nvidia.com/gpu", 2),))),
        ("worker-* pods=20 speed=1.5", ResizeNodes("worker-*", (("pods", 20),), 1.5)),
        ("worker speed=2", ResizeNodes("worker", (), 2.0)),
        ("loop for-loop-1 limit=4", LoopLimit("for-loop-1", 4)),
        ("loop for-loop-1 limit=off", LoopLimit("for-loop-1", None)),
        ("step train duration=10m", ChangeStep("train", seconds=600.0)),
        ("step train duration=20 minutes", ChangeStep("train", seconds=1200.0)),
        (
            "step read the file  duration=1 hour 30 min ",
            ChangeStep("read the file", seconds=5400.0),
        ),
        ("step predict max-latency=30 ms", ChangeStep("predict", max_latency_ms=30.0)),
        ("step predict max-latency=off", ChangeStep("predict", max_latency_ms=math.inf)),
        ("step train cpu=4", ChangeStep("train", (("cpu", 4000),))),
        ("step train gpu=0", ChangeStep("train", (("nvidia.com/gpu", 0),))),
        ("step train node=gpu-*", ChangeStep("train", nodes="gpu-*")),
        (
            "step train node=w2 memory=8Gi amd.com/gpu=1 duration=5m",
            ChangeStep("train", (("memory", 8 * GIBIBYTE), ("amd.com/gpu", 1)), "w2", 300.0),
        ),
        # What is changed tells whose it is; of amounts only the cluster does.
        ("for-loop-1 limit=off", LoopLimit("for-loop-1", None)),
        ("train duration=10m", ChangeStep("train", seconds=600.0)),
        ("train node=w2 cpu=4", ChangeStep("train", (("cpu", 4000),), "w2")),
        ("data access=ReadWriteMany", ClaimAccess("data", "ReadWriteMany")),
        ("node worker cpu=4", ResizeNodes("worker", (("cpu", 4000),))),
        ("train cpu=4", ResizeNodes("train", (("cpu", 4000),))),
        ("image python:3.12 everywhere", HoldImage("python:3.12")),
        ("volume data access=ReadWriteMany", ClaimAccess("data", "ReadWriteMany")),
        # Nodes may be called like what other forms begin with.
        ("step cpu=4", ResizeNodes("step", (("cpu", 4000),))),
        ("loop speed=2", ResizeNodes("loop", (), 2.0)),
        ("+1 of step", AddNodes("step", 1)),
    ],
)
def test_every_form_is_read(text, change):
    assert read_change(text) == change
    assert read_change(change.text) == change


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
    "read the file cpu=4",
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
    assert read_change(change.text) == change
