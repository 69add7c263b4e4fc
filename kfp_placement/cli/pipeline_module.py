"""`module:pipeline`: a pipeline in Python, compiled on the spot; the one form that imports kfp."""

import contextlib
import importlib
import importlib.util
import re
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from kfp_placement.report.visible import visible
from kfp_placement_engine.exceptions import InputError, InputNotFoundError

_FORM = re.compile(r"(?P<module>[^:]+\.py|[A-Za-z_]\w*(?:\.\w+)*):(?P<name>[A-Za-z_]\w*(?:\.\w+)*)")


def is_pipeline_name(run: str) -> bool:
    """Whether RUN names a pipeline in a module (or in a .py file) and not a file."""
    return _FORM.fullmatch(run) is not None and not Path(run).exists()


def compile_named(run: str) -> bytes:
    """Import the module and compile its pipeline to a KFP package.

    Raises:
        InputNotFoundError: no such module, or no such name in it.
        InputError: the module cannot be imported, or it is no pipeline.
    """
    match = _FORM.fullmatch(run)
    assert match is not None
    with _quiet():
        module = _imported(match["module"])
        pipeline: Any = module
        for part in match["name"].split("."):
            if not hasattr(pipeline, part):
                raise InputNotFoundError(f"{run}: module {match['module']} has no {part!r}")
            pipeline = getattr(pipeline, part)
        return _compiled(run, pipeline)


def _compiled(run: str, pipeline: Any) -> bytes:
    from kfp_placement._package import compiled
    from kfp_placement.exceptions import PlacementError

    try:
        return compiled(pipeline)
    except PlacementError:
        raise
    except Exception as error:
        raise InputError(f"{run}: KFP cannot compile it: {_described(error)}") from error


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
            raise InputNotFoundError(
                f"{name}: no such module here or among the installed packages"
            ) from error
        raise InputError(f"{name}: importing it failed: {_described(error)}") from error
    except (InputError, InputNotFoundError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # Also SystemExit: a script without a main guard must not end us without a word.
        raise InputError(f"{name}: importing it failed: {_described(error)}") from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputNotFoundError(f"{path}: no such file")
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path}: is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error) or 'no message'}"[:500]


@contextlib.contextmanager
def _quiet() -> Any:
    """What a module prints goes to stderr, of warnings only ours are shown, one line each."""
    from kfp_placement.exceptions import PlacementWarning

    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("always")
        yield
    messages = [str(item.message) for item in caught if issubclass(item.category, PlacementWarning)]
    for message in dict.fromkeys(messages):
        click.echo(f"Warning: {visible(message)}", err=True)
