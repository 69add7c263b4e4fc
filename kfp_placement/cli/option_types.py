"""Types of options: they convert the text on a command line to a value."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

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

    from kfp_placement_engine.plans.what_if_changes import Change

BASELINES = ("kube-default", "heft", "fifo", "random", "brute-force")
"""Schedulers that `--compare` accepts."""

# A file that may not be read fails when it is read, which is not a usage error.
PLAIN_FILE = click.Path(path_type=Path, dir_okay=False, readable=False)
"""Type of the name of a file to read."""

INPUT_FILE = click.Path(allow_dash=True, readable=False)
"""Type of the name of a file to read; `-` = stdin."""

_Texts = tuple[str, ...]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_LARGEST_NUMBER = 2**63 - 1
"""Largest whole number that is accepted: other tools have seeds up to it."""

_TIME_OF_DAY = re.compile(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?")

_LAST_YEAR = 9998
"""Last year that is accepted: a run may end a year later, and Python's years end at 9999."""

BEST = "best"
"""Value of `--what-if` that asks for the single changes that help most."""

FORMATS = ("table", "wide", "json", "yaml", "html")
"""Formats of `plan`."""


class OutputFileType(click.Path):
    """Type of the name of a file to write; `-` is refused, as it would be a file of that name."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if str(value) == "-":
            self.fail("'-' names no file to write; name one, or /dev/stdout", param, ctx)
        return super().convert(value, param, ctx)


LOCAL_PATH = OutputFileType()
"""Type of the name of a file to write."""


class ParsedType(click.ParamType):  # type: ignore[type-arg]
    """Type of values that a function parses; the function's errors are reported as wrong usage."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        """Set up the type.

        Args:
            name: name of the type in help texts.
            read: parser of values; raises `ValueError` or `EngineError` with a message.
        """
        self.name = name
        self._read = read

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the parsed value; a default is a value already."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except (ValueError, EngineError) as error:
            self.fail(str(error), param, ctx)


def _whole_number(text: str, largest: int = _LARGEST_NUMBER) -> int:
    """Parse a whole number from 0 to `largest`, such as a seed."""
    if not (text.isascii() and text.isdigit() and int(text[:20]) <= largest):
        raise ValueError(f"{text!r:.60} is not a whole number from 0 to {largest}")
    return int(text)


def _time(text: str) -> datetime:
    """Parse `10:26`, `10:26:30`, `now`, or a date with a time; the default zone is this machine's.

    A time of day that is over today is tomorrow's.
    """
    text, present = text.strip(), now().astimezone()
    if text == "now":
        return present
    try:
        if of_day := _TIME_OF_DAY.fullmatch(text):
            time_of_day = time.fromisoformat(text if text[1] != ":" else f"0{text}")
            today = datetime.combine(present.date(), time_of_day)
            least = present.replace(microsecond=0)
            is_over = today.astimezone() < (least if of_day[1] else least.replace(second=0))
            return (today + timedelta(days=is_over)).astimezone()
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
    """Type of a format; `-o=json`, as people write it for kubectl, means `-o json`."""

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the format."""
        return super().convert(str(value).removeprefix("="), param, ctx)


class NamesType(ParsedType):
    """Type of a list of names with commas between them, or `none`; each name counts once."""

    def __init__(self, choices: Iterable[str]) -> None:
        super().__init__("names", self._names)
        self.choices = tuple(choices)

    def _names(self, text: str) -> _Texts:
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        if names in (("none",), ("",)):
            return ()
        for name in names:
            if name not in self.choices:
                choices = ", ".join(self.choices)
                raise ValueError(f"{name!r} is not known; choose from {choices}, or none")
        return names

    @override
    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Return completions: the names given so far, followed by each that is not given yet."""
        from click.shell_completion import CompletionItem

        complete, comma, start = incomplete.rpartition(",")
        given = complete.split(",")
        return [
            CompletionItem(f"{complete}{comma}{name}")
            for name in self.choices
            if name.startswith(start) and name not in given
        ]


def now() -> datetime:
    """Return the present time."""
    return datetime.now(UTC)


def pairs(
    example: str, convert: Callable[[str], Any] = str, *, last: bool = True
) -> Callable[[click.Context, click.Parameter, _Texts], dict[str, Any]]:
    """Return a callback for a repeatable option `NAME=VALUE`.

    Args:
        example: example for messages: `train=20m`.
        convert: parser of values; raises `ValueError` or `EngineError` with a message.
        last: whether the last `=` separates (names of steps), not the first (values of arguments).
    """

    def read(_ctx: click.Context, param: click.Parameter, values: _Texts) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for value in values:
            name, equals, text = value.rpartition("=") if last else value.partition("=")
            if not equals or not name:
                raise click.BadParameter(f"{value!r}: write it as {example}", param=param)
            if name in result:
                raise click.BadParameter(f"{name!r} is given twice", param=param)
            try:
                result[name] = convert(text)
            except (ValueError, EngineError) as error:
                raise click.BadParameter(f"{name}: {error}", param=param) from error
        return result

    return read


def changes(ctx: click.Context, param: click.Parameter, values: _Texts) -> "tuple[Change, ...]":
    """Parse the values of `--what-if`: changes, or `best` alone, which sets `best_changes`."""
    best = ctx.params["best_changes"] = values == (BEST,)
    if best or not values:
        return ()
    from kfp_placement_engine.readers.change_text import read_change

    if BEST in values:
        raise click.BadParameter(f"give {BEST!r} without other changes", param=param)
    try:
        return tuple(read_change(value) for value in values)
    except EngineError as error:
        raise click.BadParameter(str(error), param=param) from error


def parse_width(text: str) -> int:
    """Parse the number of iterations of a loop.

    Raises:
        ValueError: the text is not a whole number, or more than a run may have steps.
    """
    from kfp_placement_engine.readers.tree.options import ReadOptions

    return _whole_number(text, ReadOptions.max_steps)


def _branches(_ctx: click.Context, param: click.Parameter, values: _Texts) -> dict[str, bool]:
    """Return which branches are taken: `good`, `good=true` or `good=false`."""
    words = {"": True, "=true": True, "=false": False}
    result: dict[str, bool] = {}
    for value in values:
        name, equals, text = value.rpartition("=") if "=" in value else (value, "", "")
        taken = words.get(equals + text.lower())
        if not name or taken is None:
            raise click.BadParameter(f"{value!r}: write it as good or good=false", param=param)
        if name in result:
            raise click.BadParameter(f"{name!r} is given twice", param=param)
        result[name] = taken
    return result


_RUN_OPTIONS = (
    click.option(
        "--arg",
        "arguments",
        multiple=True,
        metavar="NAME=VALUE",
        callback=pairs("rows=5000", last=False),
        help="A pipeline parameter, typed by the pipeline. Repeatable.",
    ),
    click.option(
        "--branch",
        "branches",
        multiple=True,
        metavar="BRANCH[=false]",
        callback=_branches,
        help="A branch that is taken (with =false: not taken), if its condition is known only at"
        " run time: condition-1, or its own name. Repeatable.",
    ),
    click.option(
        "--semaphore",
        "semaphores",
        multiple=True,
        metavar="CONFIGMAP/KEY=N",
        callback=pairs("limits/gpu=2", parse_width),
        help="Limit of a semaphore of an Argo Workflow, which is in a ConfigMap; for one in a"
        " database its key alone. Repeatable.",
    ),
    click.option(
        "--package",
        metavar="FILE",
        type=INPUT_FILE,
        help="The pipeline package of RUN, if RUN is a Workflow of KFP 3, which has no images and"
        " requests of its steps: a file, FILE.py:PIPELINE, or - for stdin.",
    ),
    click.option(
        "--with",
        "templates",
        multiple=True,
        metavar="FILE|FOLDER|live",
        type=INPUT_FILE,
        help="Where the WorkflowTemplates are that a Workflow of Argo refers to: a file, a folder,"
        " - for stdin, or live, which fetches them from the cluster of the kubeconfig. Repeatable.",
    ),
    click.option(
        "--entrypoint",
        metavar="NAME",
        default="",
        help="The template that a Workflow or WorkflowTemplate of Argo begins with.  [default:"
        " spec.entrypoint]",
    ),
    click.option(
        "--duration",
        "durations",
        multiple=True,
        metavar="STEP=TIME",
        callback=pairs("train=20m", parse_duration),
        help="Run time of a step (20m, 1h30m), instead of its hint. Repeatable.",
    ),
    click.option(
        "--durations",
        "durations_file",
        metavar="FILE",
        type=PLAIN_FILE,
        help="Run times of many steps: a YAML or JSON mapping of steps to times.",
    ),
    click.option(
        "--loop-width",
        "loop_widths",
        multiple=True,
        metavar="LOOP=N",
        callback=pairs("for-loop-1=5", parse_width),
        help="Iterations of a loop whose width is known only at run time. Repeatable.",
    ),
    click.option(
        "--assume-cached",
        multiple=True,
        metavar="STEP",
        help="A step whose result is taken to be in KFP's cache. Repeatable.",
    ),
)
"""Options of `plan` and `check` about the run."""


def run_options(function: _Function) -> _Function:
    """Add the options about the run to a command, as a decorator."""
    for option in reversed(_RUN_OPTIONS):
        function = option(function)
    return function


output_option = click.option(
    "--output",
    metavar="FILE",
    type=LOCAL_PATH,
    help="Write to FILE, whole or not at all, instead of stdout.",
)
"""Option `--output`, for a result that may go to a file."""
