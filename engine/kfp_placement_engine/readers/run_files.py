"""A reader of RUN files of any known format, which is recognised by the keys of the file.

Readers are imported on demand: importing all of them adds a fifth to the time of planning a small
package.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from kfp_placement_engine.exceptions import InputError, RequestError
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import RunGraph
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.plans.progress import Progress, no_progress
from kfp_placement_engine.readers.argo.keys import GROUP, TEMPLATE_KINDS, WORKFLOW_KINDS
from kfp_placement_engine.readers.kfp.package_parts import document_parts, is_pipeline
from kfp_placement_engine.readers.text.documents import RUN_MAX_BYTES, load_documents, read_file
from kfp_placement_engine.readers.text.fields import Fields, RawMapping
from kfp_placement_engine.readers.text.other_texts import HELM, is_helm, may_be_helm, way_out
from kfp_placement_engine.readers.text.place import (
    Place,
    kind_of,
    mapping_or_empty,
    text_or_empty,
)
from kfp_placement_engine.readers.tree.options import ArgoObjects, ReadOptions

_EXPECTED = (
    "give a KFP pipeline package (IR YAML), an Argo Workflow, or a wfformat workflow instance"
)
_WFFORMAT_KEYS = frozenset({"specification", "tasks", "jobs"})

_Document = RawMapping
"""Document of a file, by its keys."""

_SHOWN = 5


class _Format(StrEnum):
    """Format of a run's file, as text for people."""

    PACKAGE = "a KFP pipeline package"
    WORKFLOW = "an Argo Workflow"
    WFFORMAT = "a workflow in wfformat"


_Run = tuple[_Document, _Format]
"""Document that describes a run, and its format."""


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


def read_run_among(objects: ArgoObjects, name: str, options: ReadOptions | None = None) -> RunGraph:
    """Read the run among objects of Argo, of which the others may be templates that it refers to.

    Args:
        objects: the objects, of a folder.
        name: name of the folder, for messages.
        options: the user's settings for reading the run; None = the defaults.

    Raises:
        InputError: there is no run or more than one, or it is malformed; the message names the
            place.
        LimitError: the run is beyond a documented limit.
    """
    options = options or ReadOptions()
    runs = _runs([each.raw for each in objects.objects], options.entrypoint)
    if not runs:
        raise InputError(f"{name}: holds no run of Argo; {_EXPECTED}")
    run, _ = _only(runs, name)
    place = next(each.place for each in objects.objects if each.raw is run)
    if is_helm([run]):
        raise InputError(f"{place.spelled}: {HELM}")
    options = replace(options, templates=objects + options.templates)
    return _graph(_Format.WORKFLOW, [run], place.spelled, options)


def read_run_file(
    path: str | Path, options: ReadOptions | None = None, progress: Progress = no_progress
) -> RunGraph:
    """Read a run from a file, or from a folder of files of Argo.

    Args:
        path: path of the file or folder.
        options: the user's settings for reading the run; None = the defaults.
        progress: callback for the progress of reading.

    Raises:
        InputNotFoundError: there is no such file.
        InputError: the file cannot be read, is not a run, or malformed; the message names the
            place.
        LimitError: the file is beyond a documented limit.
    """
    if Path(path).is_dir():
        from kfp_placement_engine.readers.argo_files import read_argo_objects

        return read_run_among(read_argo_objects(path), str(path), options)
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
    runs = _runs(documents, options.entrypoint)
    if not runs:
        raise InputError(f"{name}: {way_out(data) or f'{_problem(documents)}; {_EXPECTED}'}")
    if len(platforms) > 1:
        raise InputError(f"{name}: holds several platform parts; give one package")
    if may_be_helm(data) and is_helm(documents):
        raise InputError(f"{name}: {HELM}")
    run, run_format = _only(runs, name)
    if run_format is not _Format.WORKFLOW and (options.entrypoint or options.templates.objects):
        raise RequestError(
            f"{name}: is {run_format}, which has no templates of Argo; give them and an entrypoint"
            " with an Argo Workflow only"
        )
    if options.package is not None and run_format is not _Format.WORKFLOW:
        raise RequestError(
            f"{name}: is {run_format}, which needs no package beside it; give one with an Argo"
            " Workflow only"
        )
    used = [run, *platforms] if run_format is _Format.PACKAGE else [run]
    if run_format is _Format.WORKFLOW:
        from kfp_placement_engine.readers.argo.plain.limits import semaphore_limits

        others = (each for each in documents if each is not run)
        used += [each for each in others if _is_template(each) or semaphore_limits(each)]
        beside = tuple(Fields(each, Place(name)) for each in used[1:])
        options = replace(options, templates=ArgoObjects(beside) + options.templates)
    graph = _graph(run_format, used, name, options)
    taken = set(map(id, used))
    unused = [each for each in documents if id(each) not in taken]
    notices = _unused_notices(unused)
    if run_format is _Format.PACKAGE:
        from kfp_placement_engine.readers.kfp.arguments import misread_notices

        notices += misread_notices(Fields(run, Place(name)).fields("root"), data)
    return replace(graph, notices=(*graph.notices, *notices))


def _runs(documents: Sequence[_Document], entrypoint: str) -> list[_Run]:
    """Return the documents that describe a run, without templates that others can refer to.

    If there are templates only, those are runs that name their entrypoint, and to which no other
    object refers; with an entrypoint, those that have it.
    """
    runs = [(each, run_format) for each in documents if (run_format := _format_of(each))]
    own = [run for run in runs if not _is_template(run[0])]
    if own or len(runs) < 2:
        return own or runs
    from kfp_placement_engine.readers.argo.references.template_library import referred

    if entrypoint:
        return [run for run in runs if entrypoint in _template_names(run[0])] or runs
    named = [run for run in runs if _entrypoint(run[0])] or runs
    used = {source for document in documents for source in referred(document)}
    return [run for run in named if (run[0].get("kind"), _name(run[0])) not in used] or named


def _only(runs: Sequence[_Run], name: str) -> _Run:
    if len(runs) == 1:
        return runs[0]
    described = [f"{each.get('kind', 'a pipeline')} {_name(each)}".strip() for each, _ in runs]
    way = "give a file with only one of them"
    if all(run_format is _Format.WORKFLOW for _, run_format in runs):
        way += f", and this one for its templates (--with {name}, in Python templates=)"
        if all(_is_template(each) for each, _ in runs):
            names = [name for each, _ in runs for name in _template_names(each)]
            if own := [each for each in names if names.count(each) == 1]:
                one = f"name the template that runs ({listed(own, _SHOWN)})"
                way += f", or {one}: --entrypoint, in Python entrypoint="
    raise InputError(f"{name}: holds {len(runs)} runs ({listed(described, _SHOWN)}); {way}")


def _is_template(document: _Document) -> bool:
    return document.get("kind") in TEMPLATE_KINDS and _format_of(document) is _Format.WORKFLOW


def _entrypoint(document: _Document) -> str:
    return text_or_empty(mapping_or_empty(document.get("spec")).get("entrypoint"))


def _template_names(document: _Document) -> list[str]:
    templates = mapping_or_empty(document.get("spec")).get("templates")
    return [
        text_or_empty(mapping_or_empty(each).get("name"))
        for each in (templates if isinstance(templates, list) else ())
    ]


def _name(document: _Document) -> str:
    metadata = mapping_or_empty(document.get("metadata"))
    return text_or_empty(metadata.get("name") or metadata.get("generateName"))


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


@contextmanager
def _collection_paused() -> Iterator[None]:
    """Keep Python from searching for unreachable cycles: the many objects of a run make none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_collection_paused()
def _graph(
    run_format: _Format, documents: list[_Document], name: str, options: ReadOptions
) -> RunGraph:
    """Read the documents of a run, with the recognised document first."""
    if run_format is _Format.PACKAGE:
        from kfp_placement_engine.readers.expansion.expand import expand
        from kfp_placement_engine.readers.kfp.package import package_tree

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
