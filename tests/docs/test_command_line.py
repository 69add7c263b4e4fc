"""The reference of the command line says what `--help` says."""

import re
import textwrap
from collections.abc import Iterator

import click
import pytest

from kfp_placement.cli.app import COMMANDS, cli
from kfp_placement.cli.exit_codes import ExitCode
from tests.support.checkout import ROOT

DOCS = ROOT / "docs"
PAGE = (DOCS / "reference/command-line.md").read_text("utf-8")
GUIDE = (DOCS / "guides/reading-a-plan.md").read_text("utf-8")


def contexts() -> Iterator[click.Context]:
    """The program and its commands, in their order."""
    program = click.Context(cli, info_name="kfp-placement")
    yield program
    for name in COMMANDS:
        command = cli.get_command(program, name)
        assert command is not None
        yield click.Context(command, info_name=name, parent=program)


CONTEXTS = list(contexts())


def options(context: click.Context) -> Iterator[str]:
    """A line for each option, as `--help` words it; that help itself is there goes without."""
    for parameter in context.command.params:
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Option) and record is not None:
            yield f"- `{record[0]}`: {re.sub(' +', ' ', record[1])}"


def reference(context: click.Context) -> str:
    """What the page says of a command's usage, and of all its options and no other."""
    usage = f"{context.command_path} {' '.join(context.command.collect_usage_pieces(context))}"
    lines = [
        textwrap.fill(
            line, 120, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
        )
        for line in options(context)
    ]
    shown = f"`{usage}`" if context.parent is None else f"```\n{usage}\n```"
    return "\n".join(["", shown, "", *lines, ""])


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.command_path)
def test_usage_and_options_are_those_of_help(context):
    wanted = reference(context)
    parts = PAGE.partition(wanted)[1:]
    assert parts[0], f"write into command-line.md:\n{wanted}"
    assert parts[1].startswith("\n") or not parts[1]


def test_the_page_names_every_command_in_order_and_no_other():
    headings = [f"## `{context.command_path}`" for context in CONTEXTS[1:]]
    assert [line for line in PAGE.splitlines() if line.startswith("## `")] == headings


def test_exit_codes_are_those_of_the_code():
    described = [number for number in range(256) if f"\n| {number} | " in GUIDE]
    assert described == [code.value for code in ExitCode]
