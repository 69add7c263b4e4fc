"""The reference of the command line says what `--help` says."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kfp_placement.cli.app import cli
from kfp_placement.cli.exit_codes import ExitCode

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/command-line.md"


def contexts(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator:
    """The command and all below it."""
    context = click.Context(command, info_name=name, parent=parent)
    yield context
    for each in getattr(command, "commands", {}).values():
        yield from contexts(each, each.name, context)


CONTEXTS = list(contexts(cli, "kfp-placement"))


def section(title: str) -> str:
    """The text below a heading, up to the next of its level or above."""
    level, rest = re.split(rf"^(##+) {re.escape(title)}$", PAGE.read_text("utf-8"), flags=re.M)[1:]
    return re.split(rf"^#{{2,{len(level)}}} ", rest, maxsplit=1, flags=re.M)[0]


def title_of(context: click.Context) -> str:
    return context.command_path if context.parent is None else f"`{context.command_path}`"


def told(context: click.Context) -> list[str]:
    """A line for each option, as `--help` words it; that help itself is there goes without."""
    records = [
        option.get_help_record(context)
        for option in context.command.params
        if isinstance(option, click.Option)
    ]
    return [f"- `{names}`: {re.sub(' +', ' ', words)}" for names, words in filter(None, records)]


def page_lines(lines: list[str]) -> str:
    """The same as the page has them, for whoever has to write them anew."""
    return "\n".join(
        textwrap.fill(
            line, 120, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
        )
        for line in lines
    )


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.command_path)
def test_options_are_those_of_help(context):
    written = re.sub(r"\n  +", " ", section(title_of(context)))
    found = [line for line in written.splitlines() if line.startswith("- `-")]
    if context.parent is None or isinstance(context.command, click.Group):
        found = found[: len(told(context))]
    wanted = told(context)
    assert found == wanted, f"write into {PAGE.name}:\n{page_lines(wanted)}"


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.command_path)
def test_usage_is_that_of_help(context):
    usage = f"{context.command_path} {' '.join(context.command.collect_usage_pieces(context))}"
    assert usage in section(title_of(context))


def test_every_command_of_the_page_exists():
    titles = re.findall(r"^##+ `(.*)`$", PAGE.read_text("utf-8"), flags=re.M)
    assert titles == [context.command_path for context in CONTEXTS if context.parent is not None]


def test_exit_codes_are_those_of_the_code():
    guide = PAGE.parents[1] / "guides/reading-a-plan.md"
    codes = re.findall(r"^\| ([0-9]+) \|", guide.read_text("utf-8"), flags=re.M)
    assert codes == [str(code.value) for code in ExitCode]
