"""The guide to marks has every option, and the word table that guesses types."""

import inspect
import textwrap
from collections.abc import Iterable, Mapping

import pytest

from kfp_placement import place, placed_pipeline
from kfp_placement_engine.contract import step_types
from tests.support.checkout import ROOT

GUIDE = (ROOT / "docs/guides/marking-steps.md").read_text("utf-8")
WIDTH = 113


def shown(heading: str, lines: Mapping[str, Iterable[str]]) -> str:
    """The list as the guide has it below the heading: label: its words or phrases."""
    filled = [
        textwrap.fill(f"- {label}: {', '.join(words)}", WIDTH, subsequent_indent="  ")
        for label, words in lines.items()
    ]
    return "\n".join([f"\n{heading}:\n", *filled, ""])


@pytest.mark.parametrize(
    ("heading", "table"), [("Commands", step_types.COMMANDS), ("Activities", step_types.ACTIVITIES)]
)
def test_words_are_those_of_the_code(heading, table):
    assert shown(heading, {kind: words.split() for kind, words in table.items()}) in GUIDE


def test_phrases_are_those_of_the_code():
    phrases: dict[str, list[str]] = {}
    for words, kind in step_types.PHRASES.items():
        phrases.setdefault(kind, []).append(words)
    assert shown("Phrases", phrases) in GUIDE


def test_pairs_are_those_of_the_code():
    pairs = {"purposes": sorted(step_types.PURPOSES), "things": sorted(step_types.THINGS)}
    assert shown("Pairs set aside", pairs) in GUIDE


def test_every_option_is_described():
    options = [
        name
        for function in (place, placed_pipeline)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    table = GUIDE[GUIDE.index("\n## Options\n") :]
    rows = [table.index(f"\n| `{name}` | ") for name in dict.fromkeys(options)]
    assert rows == sorted(rows)
    assert table.count("\n", rows[0], rows[-1]) == len(rows) - 1
