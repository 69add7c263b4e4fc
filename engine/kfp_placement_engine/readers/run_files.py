"""A reader of RUN files of any known format, which is recognised by the keys of the file.

Readers are imported on demand: importing all of them adds a fifth to the time of planning a small
package.
"""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from kfp_placement_engine.exceptions import InputError, RequestError
from kfp_placement_engine.model.run_graph import Notice, RunGraph
from kfp_placement_engine.plans.progress import Progress, no_progress
from kfp_placement_engine.readers.argo.keys import GROUP, WORKFLOW_KINDS
from kfp_placement_engine.readers.kfp.package_parts import document_parts, is_pipeline
from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES, load_documents, read_file
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.place import Place, kind_of
from kfp_placement_engine.readers.tree.options import ReadOptions

_EXPECTED = (
    "give a KFP pipeline package (IR YAML), an Argo Workflow, or a wfformat workflow instance"
)
_WFFORMAT_KEYS = frozenset({"specification", "tasks", "jobs"})

_Document = RawMapping
"""Document of a file, by its keys."""


class _Format(StrEnum):
    """Format of a run's file, as text for people."""

    PACKAGE = "a KFP pipeline package"
    WORKFLOW = "an Argo Workflow"
    WFFORMAT = "a workflow in wfformat"


def read_run(
    data: bytes, *, name: str, options: ReadOptions | None = None, progress: Progress = no_progress
) -> RunGraph:
    """Read a run from the bytes of its file.

    Args:
        data: YAML or JSON: a KFP package with one or two documents, an Argo Workflow, wfformat.
        name: name of the file, for messages.
        options: the user's settings for reading the run; None = the defaults.
        progress: callback for the progress of reading.

    Raises:
        InputError: the file is not one of these, or is malformed; the message names the place.
        LimitError: the file is beyond a documented limit.
    """
    documents = load_documents(data, name=name, max_bytes=RUN_MAX_BYTES, progress=progress)
    return _read(_unwrapped(documents, name), data, name, options or ReadOptions())


def read_run_file(
    path: str | Path, options: ReadOptions | None = None, progress: Progress = no_progress
) -> RunGraph:
    """Read a run from a file.

    Args:
        path: path of the file.
        options: the user's settings for reading the run; None = the defaults.
        progress: callback for the progress of reading.

    Raises:
        InputNotFoundError: there is no such file.
        InputError: the file cannot be read, is not a run, or malformed; the message names the
            place.
        LimitError: the file is beyond a documented limit.
    """
    data = read_file(path, max_bytes=RUN_MAX_BYTES)
    return read_run(data, name=str(path), options=options, progress=progress)


def read_pipeline(data: bytes, *, name: str, progress: Progress = no_progress) -> RawMapping:
    """Return the pipeline spec in the bytes of a package.

    Args:
        data: YAML or JSON: a KFP package, or what KFP's API answers for a run or a version.
        name: name of the file, for messages.
        progress: callback for the progress of reading.

    Raises:
        InputError: the file is not a package, or is malformed; the message names the place.
        LimitError: the file is beyond a documented limit.
    """
    documents = load_documents(data, name=name, max_bytes=RUN_MAX_BYTES, progress=progress)
    parts = _unwrapped(documents, name)
    pipelines = [part for part in parts if is_pipeline(part)]
    if len(pipelines) != 1:
        kind = next(filter(None, map(_format_of, parts)), "")
        problem = f"is {kind}" if kind else _problem(parts)
        if pipelines:
            problem = "holds several pipelines"
        raise InputError(f"{name}: {problem}; give the pipeline package of the run (IR YAML)")
    return pipelines[0]


def run_in(document: Any, place: Place) -> str:
    """Return the kind of run that a document describes, as text for people; "" = none."""
    parts = document_parts(Fields(document, place)) if isinstance(document, dict) else []
    return next(filter(None, map(_format_of, parts)), "")


def _unwrapped(documents: list[Any], name: str) -> list[_Document]:
    """Return the documents as mappings, with lists of objects and API wrappers taken apart."""
    unwrapped: list[_Document] = []
    for document in documents:
        if not isinstance(document, dict):
            raise InputError(f"{name}: holds {kind_of(document)}; {_EXPECTED}")
        holder, kind = Fields(document, Place(name)), document.get("kind")
        if isinstance(kind, str) and kind.endswith("List") and "items" in document:
            for item in holder.each("items"):
                unwrapped.extend(document_parts(item))
        else:
            unwrapped.extend(document_parts(holder))
    return unwrapped


def _read(documents: list[_Document], data: bytes, name: str, options: ReadOptions) -> RunGraph:
    platforms = [document for document in documents if "platforms" in document]
    runs = [(each, run_format) for each in documents if (run_format := _format_of(each))]
    if not runs:
        raise InputError(f"{name}: {_problem(documents)}; {_EXPECTED}")
    if len(runs) > 1 or len(platforms) > 1:
        raise InputError(f"{name}: holds several runs or platform parts; give one run")
    [(run, run_format)] = runs
    if options.package is not None and run_format is not _Format.WORKFLOW:
        raise RequestError(
            f"{name}: is {run_format}, which needs no package beside it; give one with an Argo"
            " Workflow only"
        )
    used = [run, *platforms] if run_format is _Format.PACKAGE else [run]
    graph = _graph(run_format, used, name, options)
    unused = [each for each in documents if not any(each is one for one in used)]
    beside = _unused_notices(unused)
    if run_format is _Format.PACKAGE:
        from kfp_placement_engine.readers.kfp.arguments import misread_notices

        beside += misread_notices(Fields(run, Place(name)).fields("root"), data)
    return replace(graph, notices=(*graph.notices, *beside))


def _format_of(document: _Document) -> _Format | None:
    """Return the format of a document that describes a run, or None for any other document."""
    if is_pipeline(document):
        return _Format.PACKAGE
    version = document.get("apiVersion")
    if document.get("kind") in WORKFLOW_KINDS and (
        not isinstance(version, str) or version.startswith(f"{GROUP}/")
    ):
        return _Format.WORKFLOW
    workflow = document.get("workflow")
    if isinstance(workflow, dict) and not _WFFORMAT_KEYS.isdisjoint(workflow):
        return _Format.WFFORMAT
    return None


def _graph(
    run_format: _Format, documents: list[_Document], name: str, options: ReadOptions
) -> RunGraph:
    """Read the documents of a run, with the recognised document first."""
    if run_format is _Format.PACKAGE:
        from kfp_placement_engine.readers.kfp.package import package_tree
        from kfp_placement_engine.readers.tree.expansion import expand

        pipeline, platform = documents if len(documents) > 1 else (documents[0], {})
        return expand(package_tree(pipeline, platform, name, options), options)
    if run_format is _Format.WORKFLOW:
        from kfp_placement_engine.readers.argo.workflow import read_workflow

        return read_workflow(documents[0], name, options)
    from kfp_placement_engine.readers.wfformat import read_wfformat

    return read_wfformat(documents[0], name, options)


def _unused_notices(documents: list[_Document]) -> list[Notice]:
    """Return notices about documents beside the run."""
    if not documents:
        return []
    count = "1 document" if len(documents) == 1 else f"{len(documents)} documents"
    return [
        Notice(
            "ignored-objects", f"not used: {count} beside the run; the first {_problem(documents)}"
        )
    ]


def _problem(documents: list[_Document]) -> str:
    """Return what the documents are in place of a run, as text for people."""
    if not documents:
        return "holds no object"
    first = documents[0]
    kind = first.get("kind")
    if kind in ("Node", "Pod", "PersistentVolumeClaim", "Cluster"):
        return f"describes a cluster ({kind}), not a run"
    if isinstance(kind, str) and kind:
        version = first.get("apiVersion")
        return f"kind {kind:.60} of API {version!s:.60} is not a run"
    if "implementation" in first:
        return "is a component, not a pipeline; compile a pipeline that uses it"
    if "platforms" in first:
        return "holds the platform part of a package without its pipeline"
    keys = ", ".join(str(key)[:40] for key in list(first)[:5])
    return f"is not a run: {f'its keys are {keys}' if keys else 'it is empty'}"
