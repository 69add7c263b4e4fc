"""Types of options: what people write on a command line -> values."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from typing_extensions import override

from kfp_placement._kube_versions import read_kube_version
from kfp_placement_engine.exceptions import EngineError
from kfp_placement_engine.model.objective import parse_makespan_within
from kfp_placement_engine.model.promise import parse_confidence
from kfp_placement_engine.planning.given_values import check_namespace
from kfp_placement_engine.units.durations import parse_duration

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from kfp_placement_engine.plans.changes import Change

BASELINES = ("kube-default", "heft", "fifo", "random", "brute-force")
"""Schedulers that `--compare` knows."""

# A file that may not be read is found when it is read, and told as what it is: no usage error.
INPUT_FILE = click.Path(allow_dash=True, readable=False)
"""A file by name, or `-`."""

_LARGEST_NUMBER = 2**63 - 1
"""What seeds of other tools go up to."""

_TIME_OF_DAY = re.compile(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?")

_LAST_YEAR = 9998
"""Of times; a run of the next year may end later than a time can be written."""

BEST = "best"
"""In place of a change: the single changes that help most."""

FORMATS = ("table", "wide", "json", "yaml", "html")


class OutputFileType(click.Path):
    """A file to write; `-`, which is stdin elsewhere, would be a file of that name."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        if str(value) == "-":
            self.fail("'-' names no file to write; name one, or /dev/stdout", param, ctx)
        return super().convert(value, param, ctx)


LOCAL_PATH = OutputFileType()
"""A file to write."""


class ParsedType(click.ParamType):  # type: ignore[type-arg]
    """What a function reads from text; its errors are wrong use."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        """Give the type a name, for help texts, and what reads its values."""
        self.name = name
        self._read = read

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value; what is not text is one already."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except (ValueError, EngineError) as error:
            self.fail(str(error), param, ctx)


def _whole_number(text: str, largest: int = _LARGEST_NUMBER) -> int:
    """Read a whole number from 0 on, such as a seed."""
    if not (text.isascii() and text.isdigit() and int(text[:20]) <= largest):
        raise ValueError(f"{text!r:.60} is not a whole number from 0 to {largest}")
    return int(text)


def _time(text: str) -> datetime:
    """Read `10:26`, `10:26:30`, `now`, or a date with a time; without a zone it is this machine's.

    A time of day is the next one.
    """
    text, present = text.strip(), now().astimezone()
    if text == "now":
        return present
    try:
        if of_day := _TIME_OF_DAY.fullmatch(text):
            time_of_day = time.fromisoformat(text if text[1] != ":" else f"0{text}")
            found = datetime.combine(present.date(), time_of_day)
            least = present.replace(microsecond=0)
            is_over = found.astimezone() < (least if of_day[1] else least.replace(second=0))
            return (found + timedelta(days=is_over)).astimezone()
        at = datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        example = "10:26, now or 2026-11-26T10:26:00Z"
        raise ValueError(f"{text!r:.60} is not a time; write for example {example}") from error
    if at.year > _LAST_YEAR:
        raise ValueError(f"{text!r:.60} is too late; the last year is {_LAST_YEAR}")
    return at


WHOLE_NUMBER = ParsedType("n", _whole_number)
DURATION = ParsedType("duration", parse_duration)
CONFIDENCE = ParsedType("share", parse_confidence)
TIME = ParsedType("time", _time)
MAKESPAN_WITHIN = ParsedType("limit", parse_makespan_within)
KUBE_VERSION = ParsedType("version", read_kube_version)
NAMESPACE = ParsedType("namespace", check_namespace)


class FormatType(click.Choice):  # type: ignore[type-arg]
    """A format; `-o=json`, as people write it for kubectl, is `-o json`."""

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The format."""
        return super().convert(str(value).removeprefix("="), param, ctx)


class NamesType(ParsedType):
    """Names with commas between them, each once, in the order given; or `none`."""

    def __init__(self, choices: Iterable[str]) -> None:
        super().__init__("names", self._names)
        self.choices = tuple(choices)

    def _names(self, text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        if names in (("none",), ("",)):
            return ()
        for name in names:
            if name not in self.choices:
                known = ", ".join(self.choices)
                raise ValueError(f"{name!r} is not known; choose from {known}, or none")
        return names

    @override
    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Names not given yet, after those that are."""
        from click.shell_completion import CompletionItem

        done, comma, start = incomplete.rpartition(",")
        given = done.split(",")
        rest = [name for name in self.choices if name.startswith(start) and name not in given]
        return [CompletionItem(f"{done}{comma}{name}") for name in rest]


def now() -> datetime:
    """The time."""
    return datetime.now(UTC)


def pairs(
    what: str, convert: Callable[[str], Any] = str, *, last: bool = True
) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, Any]]:
    """A callback for a repeatable option `NAME=VALUE`.

    Args:
        what: an example, for messages: `train=20m`.
        convert: value from its text; raises `ValueError` or `EngineError` with a message.
        last: split at the last `=` (names of steps) instead of the first (values of arguments).
    """

    def read(
        _ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
    ) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for value in values:
            name, equals, text = value.rpartition("=") if last else value.partition("=")
            if not equals or not name:
                raise click.BadParameter(f"{value!r}: write it as {what}", param=param)
            if name in result:
                raise click.BadParameter(f"{name!r} is given twice", param=param)
            try:
                result[name] = convert(text)
            except (ValueError, EngineError) as error:
                raise click.BadParameter(f"{name}: {error}", param=param) from error
        return result

    return read


def changes(
    _ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> "tuple[Change, ...] | str":
    """A callback for changes to plan with: several, or `best` alone."""
    if values == (BEST,):
        return BEST
    if not values:
        return ()
    from kfp_placement_engine.readers.change_text import read_change

    if BEST in values:
        raise click.BadParameter(f"give {BEST!r} without other changes", param=param)
    try:
        return tuple(read_change(value) for value in values)
    except EngineError as error:
        raise click.BadParameter(str(error), param=param) from error


def width(text: str) -> int:
    """A loop's width.

    Raises:
        ValueError: no whole number from 0 on, or more iterations than a run may have steps.
    """
    from kfp_placement_engine.readers.tree.options import ReadOptions

    return _whole_number(text, ReadOptions.max_steps)


argument_option = click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    callback=pairs("rows=5000", last=False),
    help="A pipeline parameter, typed by the pipeline. Repeatable.",
)
"""`--arg`, for what a run is started with."""

output_option = click.option(
    "--output",
    metavar="FILE",
    type=LOCAL_PATH,
    help="Write to FILE, whole or not at all, instead of stdout.",
)
"""`--output`, for a result that may go into a file."""
