"""Compilation of RUN of the form `module:pipeline`, a pipeline in Python; needs kfp."""

import contextlib
import difflib
import importlib
import importlib.util
import re
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from kfp_placement.cli.terminal import warn
from kfp_placement_engine.exceptions import InputError, InputNotFoundError
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.readers.text.other_texts import OLD_KFP, is_old_kfp, is_old_task

_MAX_NAMES = 5
"""Pipelines of a module that a message names."""

_FORM = re.compile(r"(?P<module>[^:]+\.py|[A-Za-z_]\w*(?:\.\w+)*):(?P<name>[A-Za-z_]\w*(?:\.\w+)*)")


def is_pipeline_name(run: str) -> bool:
    """Return whether RUN names a pipeline in a module or .py file, and is not itself a file."""
    return _FORM.fullmatch(run) is not None and not Path(run).exists()


def compile_named(run: str) -> bytes:
    """Import the module and compile its pipeline to a KFP package.

    Raises:
        InputNotFoundError: there is no such module, or no such name in it.
        InputError: the module cannot be imported, or the name is not a pipeline.
    """
    from kfp_placement._input_file import pipeline_names

    match = _FORM.fullmatch(run)
    assert match is not None
    with _quiet():
        module = _imported(match["module"])
        pipeline: Any = module
        for part in match["name"].split("."):
            if not hasattr(pipeline, part):
                holder = run.rpartition(f".{part}")[0] or f"module {match['module']}"
                raise InputNotFoundError(
                    f"{run}: {holder} has no {part!r}{_advice(part, pipeline_names(pipeline))}"
                )
            pipeline = getattr(pipeline, part)
        return _compiled(run, pipeline)


def _compiled(run: str, pipeline: Any) -> bytes:
    from kfp_placement._input_file import compiled
    from kfp_placement.exceptions import PlacementError

    try:
        return compiled(pipeline)
    except PlacementError:
        raise
    except Exception as error:
        raise InputError(
            f"{run}: KFP cannot compile it{_line_of(error)}: {_described(error)}"
        ) from error


def _advice(name: str, pipelines: Iterable[str]) -> str:
    """Return the end of a message: the pipeline that comes close to a name, else all of them."""
    names = list(pipelines)
    others = f"; its pipelines: {listed(names, _MAX_NAMES)}" if names else ""
    return _near(name, names) or others


def _near(name: str, names: Iterable[str]) -> str:
    """Return `; did you mean 'train'?`, or "" if no name comes close."""
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _imported(name: str) -> ModuleType:
    is_file = name.endswith(".py")
    try:
        if is_file:
            return _from_file(Path(name))
        # As `python -m` does: the current folder comes first.
        sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not is_file and error.name and f"{name}.".startswith(f"{error.name}."):
            files = [path.stem for path in sorted(Path.cwd().glob("*.py"))]
            raise InputNotFoundError(
                f"{name}: no such module here or among the installed packages{_near(name, files)}"
            ) from error
        raise _failed(name, error) from error
    except (InputError, InputNotFoundError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # Also SystemExit: a script without a main guard must not end us without a word.
        raise _failed(name, error) from error


def _failed(name: str, error: BaseException) -> InputError:
    frame = _own_frame(error)
    if frame is not None and is_old_kfp(Path(frame.filename).read_bytes()):
        return InputError(f"{_relative(frame.filename)}: {OLD_KFP}")
    return InputError(f"{name}: importing it failed{_line_of(error)}: {_described(error)}")


def _line_of(error: BaseException) -> str:
    """Return the last line of the author's code that led to an error: ` at taxi.py:12`, or ""."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" at {_relative(error.filename)}:{error.lineno}"
    frame = _own_frame(error)
    return "" if frame is None else f" at {_relative(frame.filename)}:{frame.lineno}"


def _own_frame(error: BaseException) -> traceback.FrameSummary | None:
    """Return the last frame of the author's code that led to an error; None = there is none."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next((frame for frame in frames if _is_of_the_author(frame.filename)), None)


def _is_of_the_author(file: str) -> bool:
    """Return whether a file is neither Python's, nor an installed library's, nor ours."""
    others = {sysconfig.get_path(name) for name in ("stdlib", "platlib", "purelib")}
    others.add(str(Path(__file__).parents[1]))
    return Path(file).is_file() and not any(Path(file).is_relative_to(each) for each in others)


def _relative(file: str) -> str:
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputNotFoundError(f"{path}: no such file")
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _described(error: BaseException) -> str:
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    described = f"{type(error).__name__}: {message or 'no message'}"[:500]
    return f"{described}; the file {OLD_KFP}" if is_old_task(error) else described


@contextlib.contextmanager
def _quiet() -> Any:
    """Send what a module prints to stderr, and show only our own warnings, in one line each."""
    from kfp_placement.exceptions import PlacementWarning

    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("always")
        yield
    messages = [str(item.message) for item in caught if issubclass(item.category, PlacementWarning)]
    for message in dict.fromkeys(messages):
        warn(message)
