"""What documents show runs as printed: Python in every page, and every command that they name."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kfp_placement.cli.app import cli
from tests.support.checkout import ROOT, named
from tests.support.golden import recording
from tests.support.pages import as_run, blocks

pytestmark = pytest.mark.golden

PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(p for each in ("docs", "samples", "deploy") for p in (ROOT / each).rglob("*.md")),
    ]
)
# The tutorial has a test of its own, and tests of the samples run their code.
WITH_PYTHON = [
    page
    for page in PAGES
    if "```python\n" in page.read_text("utf-8")
    and page.name not in ("tutorial.md", "CHANGELOG.md")
    and not page.is_relative_to(ROOT / "samples")
]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
# Of a shell, not of an argument.
_END = re.compile(r"\s+#|[|;&>]|\)")


def commands(page: Path) -> Iterator[str]:
    """The lines of a page's blocks, continued ones joined, without Python and data."""
    for block in blocks(page.read_text("utf-8")):
        if block.language in ("", "console", "bash", "sh"):
            yield from block.text.replace("\\\n", " ").splitlines()


@pytest.mark.parametrize("page", WITH_PYTHON, ids=named)
def test_python_runs_as_printed(page, tmp_path):
    text = page.read_text("utf-8")
    run = as_run(text, tmp_path)
    if recording():
        page.write_text(run, "utf-8")
    else:
        assert run == text, f"`make regenerate` writes what {named(page)} shows"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_make_target_exists(page):
    used = [
        target
        for line in commands(page)
        for target in re.findall(r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*make ((?:[a-z][a-z-]* ?)+)", line)
    ]
    assert {each for line in used for each in line.split()} <= TARGETS


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_line_is_understood(page):
    """Commands and options exist, and every value has the form that its option takes."""
    lines = [
        match[1]
        for line in commands(page)
        if (
            match := re.match(
                r"^\s*(?:\$ )?(?:\S*/)?(?:kfp-placement|kubectl placement) (.+)", line
            )
        )
    ]
    for line in lines:
        # A usage line says what options are called, and gives none.
        if "[OPTIONS]" not in line:
            _understand(_END.split(line)[0].split())


def _understand(words: list[str]) -> None:
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None, words
    options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    given = [word.split("=")[0] for word in words[1:] if word.startswith("-") and len(word) > 1]
    assert set(given) <= options | {"--help"}, words
