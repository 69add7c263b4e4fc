"""Output of results: to stdout, or to a file that is written whole or not at all."""

import os
import sys
from pathlib import Path

import click

from kfp_placement._files import unwritable, write_whole
from kfp_placement.cli.terminal import columns_of, has_colour
from kfp_placement_engine.exceptions import InputError, InputNotFoundError
from kfp_placement_engine.render.text import TextStyle, document_text, table_lines
from kfp_placement_engine.views.document import Document, Table

_SUFFIXES = {
    "": "table",
    ".txt": "table",
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
}


def check_target(target: Path | None) -> None:
    """Raise an error for a file that cannot be written, before any work is done for it.

    Raises:
        InputNotFoundError: the file's folder does not exist.
        InputError: the target is a folder, or its folder cannot be written to.
    """
    if target is None:
        return
    if target.is_dir():
        raise InputError(f"{target}: is a folder; name a file to write")
    if _is_device(target):
        return
    folder = target.resolve().parent
    if not folder.is_dir():
        raise InputNotFoundError(f"{target}: there is no folder {folder} to write it in")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{target}: the folder {folder} cannot be written to")


def format_for(chosen: str | None, target: Path | None) -> str:
    """Return the format asked for, else the format that the file's ending names, else `table`.

    Raises:
        click.UsageError: the file's ending names no format.
    """
    if chosen is not None:
        return chosen
    file_format = _SUFFIXES.get(target.suffix.lower() if target is not None else "")
    if file_format is None:
        raise click.UsageError(
            f"--output {target}: no format goes with that ending; end it in .json, .yaml, .html or"
            " .txt, or name the format with -o"
        )
    return file_format


def emit(text: str, target: Path | None) -> None:
    """Write a result to a file, or to stdout if `target` is None.

    Raises:
        RunError: the file cannot be written; its old content is kept.
    """
    if target is None:
        # Names that the terminal's encoding lacks are shown as escapes instead of failing.
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False)
        # Flushed here, where a closed pipe is still handled.
        sys.stdout.flush()
    elif _is_device(target):
        try:
            with target.open("w", encoding="utf-8") as stream:
                stream.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise unwritable(target, error) from error
    else:
        # A link stays a link: what it points to is replaced.
        write_whole(target.resolve(), text)


def _is_device(target: Path) -> bool:
    """Return whether the target cannot be replaced, such as /dev/stderr or a named pipe."""
    return target.exists() and not target.is_file()


def text_style(target: Path | None) -> TextStyle:
    """Return the width and colours of the terminal; neither if `target` is a file or a pipe."""
    if target is not None:
        return TextStyle()
    return TextStyle(columns=columns_of(sys.stdout), colour=has_colour(sys.stdout))


def emit_view(view: Document | Table) -> None:
    """Print a view on stdout, as wide as the terminal."""
    style = text_style(None)
    if isinstance(view, Document):
        emit(document_text(view, style), None)
    else:
        emit("".join(f"{line.rstrip()}\n" for line in table_lines(view, style)), None)
