"""Values that authors give, without kfp."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement import (
    MarkValueError,
    NotConstantError,
    PlacementError,
    UnknownOptionError,
    Workers,
)
from kfp_placement._marks import Marks
from kfp_placement_engine.contract.hints import StepHints, decode_hints, encode_hints
from tests.support.pipelines import CHANNEL, Channel


def checked(**options):
    return Marks.checked("step 'train'", options)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("HOME EDGE", "for example 'HOME-EDGE'"),
        ("-edge", "for example 'edge'"),
        ("édge", "for example 'dge'"),
        ("<b>", "for example 'b'"),
        ("", "is not a Kubernetes label value"),
        ("   ", "is not a Kubernetes label value"),
        ("edge\n", "is not a Kubernetes label value"),
        ("x" * 64, "has 64 characters"),
        ("x" * 5000, "has 5000 characters"),
        (7, "is not text"),
        (True, "is not text"),
    ],
)
@pytest.mark.parametrize("option", ["type", "location", "scheduler"])
def test_label_unsafe_values_are_refused_with_a_remedy(option, value, part):
    with pytest.raises(MarkValueError) as failure:
        checked(**{option: value})
    message = str(failure.value)
    assert message.startswith(f"step 'train': {option} = ")
    assert part in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("1h30m", 5400), ("20 minutes", 1200), (timedelta(minutes=20), 1200), (1.5, 1.5)],
)
def test_durations_are_seconds(value, seconds):
    assert checked(duration=value).hints.duration_seconds == seconds


BAD_QUANTITIES = ("4GB", "512K", "-1Gi", "", "a lot", True, "1e99")
REFUSED: dict[tuple[str, str], Any] = {
    ("duration", "^step 'train': duration: "): ("20 minutess", "-5m", float("nan"), True),
    ("priority", "priority = .* is not a whole number in range"): (
        1.0,
        "1",
        True,
        1_000_001,
        -1_000_001,
    ),
    ("cpu", "^step 'train': cpu: "): BAD_QUANTITIES,
    ("cpu", "requests nothing; leave cpu out"): (0,),
    ("memory", "^step 'train': memory: "): BAD_QUANTITIES,
    ("memory", "requests nothing; leave memory out"): (0,),
    ("gpu", "is not a whole number of accelerators"): (
        0,
        -1,
        1.5,
        "two",
        True,
        "9" * 400,
        1001,
        "²",
    ),
    ("accelerator_type", "is not a resource name"): ("", "nvidia.com/gpu!", 1, "a b"),
}
"""Values that are refused, by option and message."""


@pytest.mark.parametrize(
    ("option", "message", "value"),
    [(*refused, value) for refused, values in REFUSED.items() for value in values],
)
def test_bad_values_are_refused(option, message, value):
    with pytest.raises(MarkValueError, match=message):
        checked(**{option: value})


@pytest.mark.parametrize(("value", "milliseconds"), [("1s", 1000), (20, 20), ("20", 20)])
def test_bare_latencies_are_milliseconds(value, milliseconds):
    assert checked(max_latency=value).hints.max_latency_ms == pytest.approx(milliseconds)


def test_image_sizes_are_quantities():
    assert checked(image_size="3Gi").hints.image_bytes == 3 * 2**30
    assert checked(image_size=500_000).hints.image_bytes == 500_000
    with pytest.raises(MarkValueError, match=r"^step 'train': image_size: '3 apples' is not a "):
        checked(image_size="3 apples")


def test_sizes_are_bytes_by_name():
    marks = checked(outputs={"model": "50Mi", "log": 10}, inputs={"table": "1e6"})
    assert marks.hints.output_bytes == {"model": 50 * 2**20, "log": 10}
    assert marks.hints.input_bytes == {"table": 10**6}


@pytest.mark.parametrize(
    "value",
    [
        {"model": "50Q"},
        {"model": "-1"},
        {"model": None},
        {1: "1Mi"},
        {"": "1Mi"},
        "50Mi",
        ["model"],
    ],
    ids=str,
)
def test_bad_sizes_are_refused(value, golden):
    with golden.error(MarkValueError):
        checked(outputs=value)


@pytest.mark.parametrize(
    ("value", "text"), [("500m", "500m"), (2, "2"), (0.5, "500m"), ("2.5", "2500m"), ("0.1m", "1m")]
)
def test_cpu_is_written_as_kfp_takes_it(value, text):
    assert checked(cpu=value).cpu == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("4Gi", "4Gi"),
        ("4G", "4G"),
        (2**20, "1048576"),
        ("0.5Gi", "512Mi"),
        ("1e9", "1000000000"),
        ("2000k", "2000000"),
    ],
)
def test_memory_is_written_as_kfp_takes_it(value, text):
    assert checked(memory=value).memory == text


@pytest.mark.parametrize(
    ("value", "size"), [(4, "4 bytes"), ("4", "4 bytes"), ("400m", "1 byte"), ("512Ki", "524,288")]
)
def test_memory_without_its_unit_is_refused(value, size):
    message = f"^step 'train': memory = {value!r} is {size}.*give it a unit, for example '4Gi'"
    with pytest.raises(MarkValueError, match=message):
        checked(memory=value)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("typ", "did you mean 'type'"),
        ("max_latncy", "did you mean 'max_latency'"),
        ("zzz", "options: "),
    ],
)
def test_unknown_options_name_the_closest(name, part):
    with pytest.raises(UnknownOptionError, match=part) as failure:
        checked(**{name: 1})
    assert isinstance(failure.value, TypeError)
    assert isinstance(failure.value, PlacementError)


@pytest.mark.parametrize(
    "options",
    [
        {"type": Channel()},
        {"location": Channel()},
        {"location": f"edge-{CHANNEL}"},
        {"scheduler": Channel()},
        {"duration": Channel()},
        {"max_latency": Channel()},
        {"priority": Channel()},
        {"workers": Channel()},
        {"outputs": {"model": Channel()}},
        {"outputs": Channel()},
        {"inputs": {CHANNEL: "1Mi"}},
        {"cpu": f"{CHANNEL}m"},
    ],
)
def test_pipeline_parameters_are_refused_where_kfp_takes_constants(options):
    with pytest.raises(NotConstantError, match=r"pipeline parameter or output 'where'.*constant"):
        checked(**options)


def test_channels_are_kept_where_kfp_takes_them():
    channel = Channel()
    marks = checked(cpu=channel, memory=channel, gpu=channel, accelerator_type=channel)
    assert marks.cpu is marks.memory is marks.gpu is marks.accelerator_type is channel


def test_unknown_and_newer_hints_survive_refining():
    hints, _ = decode_hints('{"v":2,"duration":"5m","colour":"blue"}')
    text = encode_hints(checked(priority=4).refine_hints(hints))
    assert json.loads(text) == {"v": 2, "duration": "5m", "colour": "blue", "priority": 4}


LABEL_VALUE = re.compile("[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""Kubernetes' rule for a label's value; the empty one marks nothing and is left out."""


@given(st.text(max_size=70) | st.from_regex(LABEL_VALUE, fullmatch=True))
def test_a_label_is_refused_or_valid(text):
    try:
        checked(location=text)
    except PlacementError:
        assert LABEL_VALUE.fullmatch(text) is None
    else:
        assert LABEL_VALUE.fullmatch(text)


sizes = st.dictionaries(st.text(min_size=1, max_size=20), st.integers(0, 2**63 - 1), max_size=4)


@given(
    duration=st.none() | st.integers(0, 10**8) | st.integers(1, 10**6).map(lambda n: f"{n}ms"),
    outputs=st.none() | sizes,
    inputs=st.none() | sizes,
    max_latency=st.none() | st.integers(0, 60_000),
    priority=st.none() | st.integers(-1_000_000, 1_000_000),
    workers=st.none() | st.builds(Workers, st.integers(1, 1_000), gpu=st.integers(1, 16)),
)
def test_hints_survive_the_annotation(**options):
    """What the author says is read back equal, whatever it is."""
    hints = checked(**options).refine_hints(StepHints())
    decoded, warnings = decode_hints(encode_hints(hints))
    assert decoded == hints
    assert warnings == []
    assert encode_hints(decoded) == encode_hints(hints)
