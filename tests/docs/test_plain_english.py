"""What people read is plain English: messages, help, comments, docstrings and documents."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.checkout import ROOT
from tests.support.plain_english import TURNS, findings
from tests.support.prose import passages

# Tests themselves are not read: only what they share is.
ROOMS = (
    "benchmarks",
    "components",
    "controller",
    "deploy",
    "docs",
    "engine",
    "kfp_placement",
    "kube",
    "samples",
    "scripts",
    "tests/support",
)
SUFFIXES = (".c", ".h", ".ipynb", ".json", ".md", ".py", ".sh", ".yaml")
# What a compiler or a recording wrote, and the table of turns itself.
NOT_OURS = re.compile(
    r"/data/|/golden/|/pipeline\.yaml$|^kfp_placement/demo/.*\.yaml$|^tests/support/plain_english\.py$"
)


def files(room: str) -> list[Path]:
    """The files of a room that git knows and that people read."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", room],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [
        ROOT / name
        for name in listed
        if (name.endswith(SUFFIXES) or name == "Makefile")
        and not NOT_OURS.search(name)
        and (ROOT / name).exists()
    ]


@pytest.mark.parametrize("room", [*ROOMS, "*.md", "Makefile"])
def test_no_turn_is_translated(room):
    turns = [finding for path in files(room) for finding in findings(path)]
    assert not turns, "\n".join(str(each).replace(f"{ROOT}/", "") for each in turns)


def test_a_name_says_more_than_that_a_thing_is_known_found_or_told():
    assert [
        f"{path}:{getattr(node, 'lineno', 1)}"
        for path in files("*.py")
        # A component's source is in packages: with another name, KFP's cache and past runs miss it.
        if ROOT / "components" not in path.parents
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if {"found", "known", "played", "replayed", "said", "told"}
        & {
            f"{getattr(node, part, path.stem)}".lower().strip("_")
            for part in ("id", "arg", "attr", "name", "asname")
        }
    ] == []


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.example)
def test_a_turn_is_found_where_it_is(turn, tmp_path):
    document = tmp_path / "page.md"
    document.write_text(f"A heading\n\nA line before.\n{turn.example}\n")
    code = tmp_path / "module.py"
    code.write_text(
        f'"""A module."""\n\nMESSAGE = (\n    {turn.example!r}\n    " and more of it"\n)\n'
    )
    for path, line in ((document, 4), (code, 4)):
        assert (line, turn) in [(each.line, each.turn) for each in findings(path)], path.name


def test_code_and_quoted_names_are_not_read(tmp_path):
    document = tmp_path / "page.md"
    document.write_text(
        "Text.\n\n```\n4x is no quantity\n```\n\nThe message `4x is no quantity`.\n"
    )
    assert list(findings(document)) == []


def test_a_sentence_over_several_lines_is_read_as_one(tmp_path):
    code = tmp_path / "module.py"
    code.write_text(
        '"""A module.\n\nIts amount is\nno quantity.\n"""\n\n# What is planned, be\n# it late.\n'
    )
    assert [(each.line, each.words) for each in findings(code)] == [(3, "is no"), (7, "be it")]
    assert [each.text for each in passages(code)][-1] == "What is planned, be it late. "
