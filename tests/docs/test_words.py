"""The guide to marks has every option, and the word table that guesses types."""

import inspect
import re
from pathlib import Path

import pytest

from kfp_placement import place, placed_pipeline
from kfp_placement_engine.contract import types

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/marking-steps.md"


def listed(heading: str) -> dict[str, list[str]]:
    """The list below a heading: label -> its words or phrases, in the order written."""
    text = GUIDE.read_text("utf-8").split(f"\n{heading}:\n\n", 1)[1].split("\n\n", 1)[0]
    lines = re.sub(r"\n  ", " ", text).strip().splitlines()
    found = dict(line.removeprefix("- ").split(": ", 1) for line in lines)
    return {label: words.split(", ") for label, words in found.items()}


@pytest.mark.parametrize(
    ("heading", "table"),
    [("Commands", types._COMMANDS), ("Activities", types._ACTIVITIES)],
)
def test_words_are_those_of_the_code(heading, table):
    assert listed(heading) == {kind: words.split() for kind, words in table.items()}


def test_phrases_are_those_of_the_code():
    told = [
        (tuple(phrase.split()), kind)
        for kind, phrases in listed("Phrases").items()
        for phrase in phrases
    ]
    assert sorted(told) == sorted(types._PHRASES.items())


def test_pairs_are_those_of_the_code():
    pairs = listed("Pairs set aside")
    assert set(pairs["purposes"]) == types._PURPOSES
    assert set(pairs["things"]) == types._THINGS


def test_every_option_is_described():
    table = GUIDE.read_text("utf-8").split("## Options", 1)[1].split("\n## ", 1)[0]
    described = re.findall(r"^\| `([a-z_]+)` \|", table, flags=re.M)
    options = [
        name
        for function in (place, placed_pipeline)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    assert described == list(dict.fromkeys(options))
