"""Files that people give as input: read from disk, or compiled from a pipeline in Python."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kfp_placement.exceptions import RunError, UsageError
from kfp_placement_engine.exceptions import InputError, InputNotFoundError
from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES, read_file

if TYPE_CHECKING:
    from kfp_placement_engine.readers.tree.options import ArgoObjects

LIVE = "live"
"""Name in place of a file: the cluster of the kubeconfig."""


@dataclass(frozen=True)
class InputFile:
    """A file as read: of a run, a cluster, or past runs.

    Attributes:
        name: name of the file for messages.
        data: content of the file.
    """

    name: str
    data: bytes


@dataclass(frozen=True)
class RunFolder:
    """A folder in whose files a run of Argo is, with the templates that it refers to.

    Attributes:
        name: name of the folder for messages.
        objects: objects of Argo in its files.
    """

    name: str
    objects: "ArgoObjects"


def run_input(run: object) -> InputFile | RunFolder:
    """Read what describes a run: as `input_of`, or a folder of Argo's files.

    Raises:
        UsageError: the value is something else.
        EngineError: the file or the folder cannot be read.
    """
    if not isinstance(run, str | os.PathLike) or not os.path.isdir(run):
        return input_of(run)
    # Here and not above: most runs are in one file.
    from kfp_placement_engine.readers.argo_files import read_argo_objects

    name = os.fsdecode(run)
    return RunFolder(name, read_argo_objects(name))


def input_of(run: object) -> InputFile:
    """Compile a pipeline, or read a file that was compiled before.

    Args:
        run: a pipeline (or component) made with `kfp.dsl`, or the path of a package, an Argo
            Workflow or a wfformat file.

    Raises:
        UsageError: the value is neither.
        EngineError: the file cannot be read.
    """
    if isinstance(run, str | os.PathLike):
        try:
            return read_input(os.fspath(run))
        except InputNotFoundError as error:
            hint = "give the path of an existing file, or the pipeline itself"
            raise InputNotFoundError(f"{error}; {hint}") from error
    return InputFile(str(getattr(run, "name", run)), compiled(run))


def read_input(path: str, max_bytes: int = RUN_MAX_BYTES) -> InputFile:
    """Read a file that describes a run, or past runs.

    Args:
        path: path of the file.
        max_bytes: largest size that is read.

    Raises:
        InputNotFoundError: there is no such file.
        InputError: the file cannot be read, or the path is a URL.
        LimitError: the file is too large.
    """
    if "://" in path:
        raise InputError(f"{path:.200}: is a URL; download the file first and name that")
    return InputFile(path, read_file(path, max_bytes=max_bytes))


def compiled(pipeline: object) -> bytes:
    """Compile a pipeline with `kfp.compiler.Compiler` and return its KFP package.

    Raises:
        UsageError: the value is not a pipeline made with `kfp.dsl`.
        RunError: the package, a temporary file, cannot be written.
    """
    # Here and not above: reading a file must not take the 1.7 s that importing kfp does.
    from kfp import compiler
    from kfp.dsl import base_component

    if not isinstance(pipeline, base_component.BaseComponent):
        name = getattr(pipeline, "__name__", None) or f"a value of type {type(pipeline).__name__}"
        hint = "put @dsl.pipeline above it" if callable(pipeline) else "give a pipeline or a path"
        raise UsageError(f"{name:.80} is not a pipeline made with @dsl.pipeline; {hint}")
    import tempfile

    try:
        with tempfile.TemporaryDirectory(prefix="kfp-placement-") as folder:
            path = f"{folder}/pipeline.yaml"
            compiler.Compiler().compile(pipeline, path)
            return Path(path).read_bytes()
    except OSError as error:
        raise RunError(
            f"the temporary package cannot be written: {error.strerror or error}"
        ) from error


def pipeline_names(holder: object) -> list[str]:
    """Return the names under which a module or a class has pipelines made with `kfp.dsl`."""
    from kfp.dsl import graph_component

    kind, values = graph_component.GraphComponent, getattr(holder, "__dict__", {})
    return [name for name, value in values.items() if isinstance(value, kind)]
