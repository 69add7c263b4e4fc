"""Annotations as released versions wrote them are read for ever; the files are never edited."""

import json
from pathlib import Path

import pytest

from kfp_placement_engine.contract.hints import StepHints, decode_hints, encode_hints

FILES = sorted(Path(__file__).with_name("data").glob("annotations-*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_annotations_of_every_release_are_read(path):
    for entry in json.loads(path.read_text()):
        found, warnings = decode_hints(entry["text"])
        assert found == StepHints(**entry["hints"])
        assert warnings == []


def test_the_text_of_this_release_has_not_changed():
    """Two parts of one version may compare annotations as text."""
    for entry in json.loads(FILES[-1].read_text()):
        assert encode_hints(StepHints(**entry["hints"])) == entry["text"]
