"""Base classes of all commands.

They turn errors into one line on stderr and an exit code; `--debug` also shows the traceback.
"""

import contextlib
import importlib
import io
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from typing_extensions import override

from kfp_placement._files import unwritable
from kfp_placement.cli.exit_codes import ExitCode
from kfp_placement.cli.terminal import tell_error
from kfp_placement.exceptions import PlacementError
from kfp_placement.live.exceptions import ClusterAmbiguousError, ClusterMissingError
from kfp_placement_engine.exceptions import EngineError, InputNotFoundError, RequestError
from kfp_placement_engine.views.formatting import visible

COMPLETE_VARIABLE = "_KFP_PLACEMENT_COMPLETE"
_DEBUG = "kfp_placement.debug"


class CommandError(click.ClickException):
    """Failure of a command, with its exit code."""

    def __init__(self, message: str, code: ExitCode) -> None:
        super().__init__(message)
        # click has one code for each class; ours depends on the cause.
        self.exit_code = code  # type: ignore[misc]


def _remember_debug(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        context.meta[_DEBUG] = True


debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_remember_debug,
    help="Show the traceback of an error.",
)
"""Option `--debug`, accepted before or after the name of a command."""


class PlacementCommand(click.Command):
    """Command with `--debug`.

    Requests that do not fit the run, and ambiguous names, are reported as wrong usage.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        debug_option(self)

    @override
    def invoke(self, ctx: click.Context) -> Any:
        """Run the command within `ctx`."""
        try:
            return super().invoke(ctx)
        except (RequestError, ClusterAmbiguousError) as error:
            raise click.UsageError(visible(str(error)), ctx) from error


def command(name: str | None = None, **attributes: Any) -> Callable[..., PlacementCommand]:
    """Return a decorator that makes a function a `PlacementCommand`, as `click.command` does."""
    return click.command(name, cls=PlacementCommand, **attributes)


class PlacementGroup(click.Group):
    """Group of all commands; imports a command only when it is used, to start fast."""

    def __init__(self, *args: Any, members: Mapping[str, str], **extra: Any) -> None:
        """Set up the group.

        Args:
            *args: arguments of `click.Group`.
            members: name of each command -> `module:function`.
            **extra: keyword arguments of `click.Group`.
        """
        super().__init__(*args, **extra)
        self._members = members

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted(self._members)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or None if there is no command of that name."""
        if cmd_name not in self._members:
            return None
        module, _, name = self._members[cmd_name].partition(":")
        member: click.Command = getattr(importlib.import_module(module), name)
        return member

    @override
    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = COMPLETE_VARIABLE,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit with its code; return the code if not in standalone mode."""
        code = self._run(args, {"prog_name": prog_name, "complete_var": complete_var, **extra})
        if standalone_mode:
            sys.exit(code)
        return code

    def _run(self, args: Sequence[str] | None, extra: Mapping[str, Any]) -> int:
        try:
            code = super().main(args, standalone_mode=False, **extra)
        except click.Abort:
            click.echo("Interrupted.", err=True)
            return ExitCode.INTERRUPTED
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            return error.exit_code
        except click.ClickException as error:
            if isinstance(error, click.UsageError) and error.ctx is not None:
                click.echo(error.ctx.get_usage(), err=True)
                click.echo(f"Try '{error.ctx.command_path} --help'.\n", err=True)
            _print_error(error.format_message())
            return error.exit_code
        except OSError as error:
            # Help and completion are printed before any command is invoked.
            _print_error(_message(error))
            return ExitCode.FAILURE
        return code if isinstance(code, int) else ExitCode.OK

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a line; report an unknown name with the names that come close."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            import difflib

            names = self.list_commands(ctx)
            close = " or ".join(map(repr, difflib.get_close_matches(name, names)))
            advice = f" Did you mean {close}?" if close else ""
            ctx.fail(f"No such command {name!r}.{advice}")
        return super().resolve_command(ctx, args)

    @override
    def invoke(self, ctx: click.Context) -> Any:
        """Run the command within `ctx`; turn what it raises into a `CommandError`."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if ctx.meta.get(_DEBUG):
                traceback.print_exception(error)
            is_missing = isinstance(error, InputNotFoundError | ClusterMissingError)
            code = ExitCode.NOT_FOUND if is_missing else ExitCode.FAILURE
            raise CommandError(_message(error), code) from error


def program_name(program: str) -> str:
    """Return the name that we were called by: kubectl finds its plugins by their file names."""
    stem = Path(program).name
    if stem.startswith("kubectl-"):
        return f"kubectl {stem.removeprefix('kubectl-').replace('_', '-')}"
    return "kfp-placement"


def _print_error(message: str) -> None:
    # click lists choices one to a line, behind a tab; other tabs are somebody's text.
    lines = [re.sub(r"^\t", "    ", line) for line in message.splitlines()] or [""]
    tell_error(lines[0])
    for line in lines[1:]:
        click.echo(visible(line), err=True)


def _give_up_stdout() -> None:
    """Discard buffered output; else Python tries to write it again when it exits."""
    with open(os.devnull, "wb") as sink, contextlib.suppress(io.UnsupportedOperation):
        os.dup2(sink.fileno(), sys.stdout.fileno())


def _message(error: Exception) -> str:
    """Return the message of an error, in one line."""
    if isinstance(error, EngineError | PlacementError):
        return visible(str(error))
    if isinstance(error, MemoryError):
        return "not enough memory for this input"
    # Whatever else writes turns its errors into ours, and a closed pipe raises none here.
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        _give_up_stdout()
        return str(unwritable("the output", error))
    return (
        f"this should not have happened: {type(error).__name__}: {visible(str(error))[:500]}"
        " (run again with --debug for details)"
    )
