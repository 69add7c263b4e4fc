"""Runs commands within this process, so that imports are paid once, and catches what they print."""

import contextlib
import importlib
import io
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from tests.comparison.cases import Outcome

PROGRAMS = {
    "kfp-placement": "kfp_placement.cli",
    "kfp-placement-controller": "kfp_placement_controller.main",
}
"""Program -> the module of its function `main`, as its distribution declares it."""

FILE_SHOWN = "file "


def run(
    program: str,
    arguments: Sequence[str],
    *,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    files: Sequence[str] = (),
) -> Outcome:
    """What a command does.

    Args:
        program: by name.
        arguments: of the command line.
        stdin: what is typed.
        environment: variables beside our own.
        files: that it may write; they are shown and removed.
    """
    main = _main(program)
    with _streams(stdin) as (stdout, stderr), mock.patch.dict(os.environ, environment or {}):
        try:
            with mock.patch.object(sys, "argv", [program, *arguments]):
                code = _code(main(list(arguments)))
        except SystemExit as error:
            code = _code(error.code)
    _forget_logging()
    more = {FILE_SHOWN + name: _taken(Path(name)) for name in files if Path(name).exists()}
    return Outcome(code, _text(stdout), _text(stderr), more)


def _main(program: str) -> Callable[[list[str]], Any]:
    found: Callable[[list[str]], Any] = importlib.import_module(PROGRAMS[program]).main
    return found


@contextlib.contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    stdout, stderr = io.BytesIO(), io.BytesIO()
    wrapped = [io.TextIOWrapper(each, "utf-8", write_through=True) for each in (stdout, stderr)]
    typed = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    with mock.patch.multiple(sys, stdin=typed, stdout=wrapped[0], stderr=wrapped[1]):
        yield stdout, stderr
        for each in wrapped:
            each.flush()
            each.detach()


def _code(value: Any) -> int:
    return value if isinstance(value, int) else 0 if value is None else 1


def _text(stream: io.BytesIO) -> str:
    """What was printed; the folder in which commands run has another name each time."""
    text = stream.getvalue().decode("utf-8", "backslashreplace")
    return text.replace(str(Path.cwd()), "FOLDER")


def _taken(path: Path) -> str:
    text = path.read_bytes().decode("utf-8", "backslashreplace")
    path.unlink()
    return text


def _forget_logging() -> None:
    """The next command logs to its own stderr."""
    for handler in list(logging.root.handlers):
        logging.root.removeHandler(handler)
