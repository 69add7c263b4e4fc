"""Shared parts of the benchmarks' command lines: options, formats, errors and exit codes."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data import DATA_VARIABLE
from benchmarks.tables import FORMATS, Page, as_markdown
from kfp_placement._files import write_whole
from kfp_placement.cli.exit_codes import ExitCode
from kfp_placement.exceptions import PlacementError
from kfp_placement_engine.exceptions import EngineError, InputNotFoundError
from kfp_placement_engine.model.objective import MakespanWithin, parse_makespan_within
from kfp_placement_engine.units.durations import parse_duration
from kfp_placement_engine.views.formatting import visible

Echo = Callable[[str], None]
"""Function that prints a line."""

_MOST_DIGITS = 18


class BenchmarkError(Exception):
    """A benchmark cannot be run here; the message says what is missing and how to get it."""


DATA_HELP = f"[default: the variable {DATA_VARIABLE}, else ../shared/data]"


class _Parser(argparse.ArgumentParser):
    """Reads `-3%` as a value, which its option refuses in words, and not as an unknown option."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._negative_number_matcher = re.compile(r"-\.?[0-9]")


def parser_of(
    name: str, summary: str, *, examples: Sequence[str], exit_codes: str
) -> argparse.ArgumentParser:
    """Return the parser of a benchmark's command line, with `-o`.

    Args:
        name: name of the module.
        summary: sentence about the benchmark.
        examples: arguments, as people write them.
        exit_codes: meaning of the exit codes.
    """
    program = f"python -m benchmarks.{name}"
    lines = ["Examples:", *(f"  {program} {each}".rstrip() for each in examples)]
    parser = _Parser(
        prog=program,
        description=summary,
        epilog="\n".join([*lines, "", f"Exit codes: {exit_codes}"]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-o",
        dest="form",
        choices=FORMATS,
        default="table",
        help="what to print [default: table]",
    )
    return parser


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add `--output`, for benchmarks whose tables are committed."""
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="also write the tables to FILE, as Markdown",
    )


def number_type(least: int, most: int) -> Callable[[str], int]:
    """Return a type for argparse: a number from `least`, at least 0, to `most`."""

    def number(text: str) -> int:
        is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
        if not (is_number and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(
                f"{text!r:.40}: give a number from {least:,} to {most:,}"
            )
        return int(text)

    return number


def seconds(text: str) -> float:
    """Read a time such as `10s`, for argparse.

    Raises:
        argparse.ArgumentTypeError: it is not a time.
    """
    try:
        return parse_duration(text)
    except EngineError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def add_makespan_within(parser: argparse.ArgumentParser, limits: Sequence[MakespanWithin]) -> None:
    """Add the option of benchmarks that plan several runs; see `planning.plan_options`.

    Args:
        parser: parser of a benchmark's command line.
        limits: limits by default.
    """
    parser.add_argument(
        "--makespan-within",
        type=_makespan_within,
        nargs="+",
        default=limits,
        metavar="LIMIT",
        help="how late the last of several runs may end: a percentage such as 3%, or a time such"
        " as 20m"
        f" [default: {' '.join(each.text for each in limits)}]".replace("%", "%%"),
    )


def _makespan_within(text: str) -> MakespanWithin:
    try:
        return parse_makespan_within(text)
    except EngineError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def show(page: Page, echo: Echo, form: str = "table", output: Path | None = None) -> None:
    """Print what a benchmark found.

    Args:
        page: results of the benchmark.
        echo: function that prints a line.
        form: one of `FORMATS`.
        output: file for the page as Markdown, beside printing it; None = no file.

    Raises:
        RunError: the file cannot be written.
    """
    for line in page.lines(form):
        echo(line)
    if output is not None:
        write_whole(output.resolve(), as_markdown(page.heading, page.parts))


def exit_code_of(benchmark: Callable[[], int]) -> int:
    """Run a benchmark; what it raises becomes one line on stderr and an exit code."""
    try:
        code = benchmark()
        # Now, while a reader that has gone away is still noticed.
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Let what is still buffered go nowhere; Python would try to write it again at the end.
        with open(os.devnull, "wb") as sink:
            os.dup2(sink.fileno(), sys.stdout.fileno())
        return ExitCode.FAILURE
    except (BenchmarkError, EngineError, PlacementError) as error:
        print(f"Error: {visible(str(error))}", file=sys.stderr)
        missing = isinstance(error, InputNotFoundError)
        return ExitCode.NOT_FOUND if missing else ExitCode.FAILURE
    return code
