"""The hints annotation: what is written is read again, and newer or broken ones do no harm."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfp_placement_engine.contract.hints import (
    MAX_ANNOTATION_CHARACTERS,
    StepHints,
    decode_hints,
    encode_hints,
)
from kfp_placement_engine.exceptions import HintsError
from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.units.durations import MAX_DURATION_SECONDS, MAX_LATENCY_MS
from tests.support.json_values import JSON_VALUES

texts = st.text(st.characters(codec="utf-8"), max_size=20)
sizes = st.dictionaries(texts, st.integers(0, 2**62), max_size=4)
names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
resources = st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "ephemeral-storage"])
workers = st.builds(
    PodGroup,
    count=st.integers(1, 1_000),
    requests=st.dictionaries(resources, st.integers(0, 2**63 - 1)),
)
hints = st.builds(
    StepHints,
    duration_seconds=st.none() | st.floats(0, MAX_DURATION_SECONDS),
    output_bytes=sizes,
    input_bytes=sizes,
    image_bytes=st.none() | st.integers(0, 2**62),
    max_latency_ms=st.none() | st.floats(0, MAX_LATENCY_MS),
    priority=st.integers(-1_000_000, 1_000_000),
    queue=st.none() | names,
    workers=st.none() | workers,
    type_guessed=st.booleans(),
)


@given(hints)
def test_what_is_written_is_read_again(given_hints):
    """Exactly, and without warnings."""
    step_hints, warnings = decode_hints(encode_hints(given_hints))
    assert step_hints == given_hints
    assert warnings == []


def test_only_what_is_set_is_written():
    assert encode_hints(StepHints()) == '{"v":1}'
    full = StepHints(
        duration_seconds=1200,
        output_bytes={"model": 50 * 2**20},
        input_bytes={"table": 1000},
        image_bytes=3 * 2**30,
        max_latency_ms=20,
        priority=5,
        queue="gpu",
        workers=PodGroup(3, {"cpu": 500, "memory": 2**30, "nvidia.com/gpu": 1}),
        type_guessed=True,
    )
    assert json.loads(encode_hints(full)) == {
        "v": 1,
        "duration": "20m",
        "outputs": {"model": "50Mi"},
        "inputs": {"table": "1000"},
        "imageSize": "3Gi",
        "maxLatency": "20ms",
        "priority": 5,
        "queue": "gpu",
        "workers": {
            "count": 3,
            "requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"},
        },
        "typeGuessed": True,
    }


def test_unknown_keys_are_kept_and_named():
    """A part that does not know a key hands it on."""
    step_hints, warnings = decode_hints('{"v":1,"duration":"5m","colour":["red"],"nodes":{"a":1}}')
    assert step_hints.duration_seconds == 300
    (warning,) = warnings
    assert "colour" in warning
    assert json.loads(encode_hints(step_hints))["nodes"] == {"a": 1}


def test_names_of_python_fields_are_not_keys():
    """`duration_seconds` in an annotation is as unknown as any other key."""
    step_hints, warnings = decode_hints('{"v":1,"duration_seconds":5,"version":9}')
    assert step_hints == StepHints(unknown={"duration_seconds": 5, "version": 9})
    assert "duration_seconds (did you mean duration?), version" in warnings[0]


def test_a_newer_version_is_read_as_far_as_known():
    step_hints, warnings = decode_hints(
        '{"v":7,"duration":"5m","outputs":["other form"],"fresh":1}'
    )
    assert step_hints.version == 7
    assert step_hints.duration_seconds == 300
    assert step_hints.output_bytes == {}
    newer, unread, _ = warnings
    assert "newer" in newer
    assert "outputs" in unread


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "JSON"),
        ("20m", "JSON"),
        ("[]", "object"),
        ("null", "object"),
        ('{"v":0}', "version"),
        ('{"v":"1"}', "version"),
        ('{"v":true}', "version"),
        ('{"v":' + "9" * 4000 + "}", "1000000"),
        ('{"v":1,"duration":"soon"}', "duration"),
        ('{"v":1,"duration":-5}', "negative"),
        ('{"v":1,"duration":"99999d"}', "ten years"),
        ('{"v":1,"outputs":{"model":"big"}}', "big"),
        ('{"v":1,"outputs":{"model":"-1Mi"}}', "negative"),
        ('{"v":1,"maxLatency":"20 parsecs"}', "maxLatency"),
        ('{"v":1,"priority":"high"}', "priority"),
        ('{"v":1,"priority":99999999}', "priority"),
        ('{"v":1,"queue":7}', "queue: 7 is not the name of a RunQueue"),
        ('{"v":1,"queue":""}', "RunQueue"),
        ('{"v":1,"queue":"GPU"}', "lower-case"),
        ('{"v":1,"queue":"a..b"}', "RunQueue"),
        ('{"v":1,"queue":"' + "a" * 64 + '"}', "63"),
        ('{"v":1,"workers":3}', '"count": 3'),
        ('{"v":1,"workers":{"requests":{}}}', '"count": 3'),
        ('{"v":1,"workers":{"count":3,"gpu":1}}', '"count": 3'),
        ('{"v":1,"workers":{"count":0}}', "count 0 is not"),
        ('{"v":1,"workers":{"count":true}}', "count True is not"),
        ('{"v":1,"workers":{"count":1001}}', "1,000"),
        ('{"v":1,"workers":{"count":' + "9" * 4000 + "}}", "1,000"),
        ('{"v":1,"workers":{"count":1,"requests":[]}}', "mapping"),
        ('{"v":1,"workers":{"count":1,"requests":{"cpu":"much"}}}', "cpu: 'much'"),
        ('{"v":1,"workers":{"count":1,"requests":{"memory":"-1"}}}', "negative"),
        ('{"v":1,"workers":{"count":1,"requests":{"pods":"1"}}}', "'pods' is not a resource"),
        ('{"v":1,"workers":{"count":1,"requests":{"a b":"1"}}}', "'a b' is not a resource"),
        (json.dumps({"workers": {"count": 1, "requests": {f"r{i}": 1 for i in range(33)}}}), "32"),
        ('{"v":1,"x":NaN}', "JSON"),
        ('{"v":1,"x":1e999}', "JSON"),
        ('{"v":1,"x":"\\ud800"}', "JSON"),
        ("[" * 10_000, "JSON"),
        ("9" * 10_000, "JSON"),
        (" " * (MAX_ANNOTATION_CHARACTERS + 1), "characters"),
    ],
)
def test_bad_annotations_are_refused_with_the_reason(text, problem):
    with pytest.raises(HintsError, match=problem) as caught:
        decode_hints(text)
    assert len(str(caught.value)) < 400


@given(
    st.dictionaries(
        st.sampled_from(["v", "duration", "outputs", "priority", "queue", "workers", "x"]),
        JSON_VALUES,
    )
)
def test_any_object_is_read_or_refused(entries):
    """Nothing else is raised, and what is read can be written and printed."""
    try:
        step_hints, warnings = decode_hints(json.dumps(entries))
    except HintsError as error:
        str(error).encode("utf-8")
        return
    "".join([encode_hints(step_hints), *warnings]).encode("utf-8")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    try:
        decode_hints(text)
    except HintsError:
        return


# Annotations as released versions wrote them are read for ever; the files are never edited.
RELEASED = sorted(Path(__file__).with_name("data").glob("annotations-*.json"))


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_annotations_of_every_release_are_read(path):
    for entry in json.loads(path.read_text()):
        step_hints, warnings = decode_hints(entry["text"])
        assert step_hints == StepHints(**entry["hints"])
        assert warnings == []


def test_the_text_of_this_release_has_not_changed():
    """Two parts of one version may compare annotations as text."""
    for entry in json.loads(RELEASED[-1].read_text()):
        assert encode_hints(StepHints(**entry["hints"])) == entry["text"]
