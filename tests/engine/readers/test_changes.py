"""Changes as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.exceptions import ChangeError
from kfp_placement_engine.model.changes import (
    ACCESS_MODES,
    AddNodes,
    ClaimAccess,
    HoldImage,
    LatencyLimit,
    LoopLimit,
    RemoveNodes,
    ResizeNodes,
    StepDuration,
)
from kfp_placement_engine.readers.changes import FORMS, read_change

GIBIBYTE = 2**30


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("+2 of worker", AddNodes("worker", 2)),
        (" + 2  of worker ", AddNodes("worker", 2)),
        ("-1 of worker", RemoveNodes("worker", 1)),
        ("gpu-node cpu=32", ResizeNodes("gpu-node", (("cpu", 32_000),))),
        ("gpu-node memory=64Gi", ResizeNodes("gpu-node", (("memory", 64 * GIBIBYTE),))),
        ("gpu-node nvidia.com/gpu=2", ResizeNodes("gpu-node", (("nvidia.com/gpu", 2),))),
        ("worker-* pods=20 speed=1.5", ResizeNodes("worker-*", (("pods", 20),), 1.5)),
        ("worker speed=2", ResizeNodes("worker", (), 2.0)),
        ("loop for-loop-1 limit=4", LoopLimit("for-loop-1", 4)),
        ("loop for-loop-1 limit=off", LoopLimit("for-loop-1", None)),
        ("step train duration=10m", StepDuration("train", 600.0)),
        ("step train duration=20 minutes", StepDuration("train", 1200.0)),
        ("step read the file  duration=1 hour 30 min ", StepDuration("read the file", 5400.0)),
        ("step predict max-latency=30 ms", LatencyLimit("predict", 30.0)),
        ("step predict max-latency=30ms", LatencyLimit("predict", 30.0)),
        ("step predict max-latency=off", LatencyLimit("predict", None)),
        ("step read the file duration=5s", StepDuration("read the file", 5.0)),
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
    "+1 worker",
    "worker cpu",
    "worker cpus=4",
    "worker gpu=1",
    "worker cpu=lots",
    "worker cpu=2 cpu=4",
    "worker speed=0",
    "worker speed=fast",
    "loop for-loop-1 limit=0",
    "loop for-loop-1 limit=many",
    "loop for-loop-1 width=4",
    "step train duration=soon",
    "step train cpu=4",
    "volume data size=4Gi",
    "step predict max-latency=near",
    "image python:3.12",
    "volume data access=ReadWriteAll",
    "best",
    "worker \x1b[2J",
    "x" * 5000 + " cpu=4",
    "step train duration=20 weeks",
    "loop for-loop-1 limit=4 or 5",
    "+2 of worker, gpu-node cpu=32",
    "+1x worker",
    "worker cpu = 8",
    "loop for-loop-1 limit = 3",
    "step train duration 5m",
    "worker memory=8",
    "a,b",
    "a " * 400,
    "+1 of worker cpu=8",
    "node worker-1 cpu=8",
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


NAMES = st.from_regex(r"[a-z]([-a-z0-9.]{0,20}[a-z0-9])?", fullmatch=True)
COUNTS = st.integers(1, 1000)
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "pods", "example.com/gpu"]), st.integers(0, 2**50)
).map(lambda amounts: tuple(amounts.items()))
POSITIVE = st.floats(1e-3, 1e5).map(lambda number: float(f"{number:.6g}"))
SPEEDS = st.floats(1e-3, 1e3).map(lambda number: float(f"{number:.6g}"))
RESIZED = st.builds(ResizeNodes, NAMES, AMOUNTS, st.none() | SPEEDS).filter(
    lambda change: change.resources or change.speed
)
CHANGES = st.one_of(
    st.builds(AddNodes, NAMES, COUNTS),
    st.builds(RemoveNodes, NAMES, COUNTS),
    RESIZED,
    st.builds(LoopLimit, NAMES, st.none() | COUNTS),
    st.builds(StepDuration, NAMES, POSITIVE),
    st.builds(LatencyLimit, NAMES, st.none() | POSITIVE),
    st.builds(HoldImage, NAMES),
    st.builds(ClaimAccess, NAMES, st.sampled_from(ACCESS_MODES)),
)


@given(CHANGES)
def test_what_a_change_says_of_itself_is_read_back(change):
    assert read_change(change.text) == change


@given(st.text())
def test_any_text_is_a_change_or_refused(text):
    try:
        change = read_change(text)
    except ChangeError:
        return
    assert read_change(change.text) == change
