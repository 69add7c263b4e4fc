"""RUN files of any known format -> run graph; the format is recognised by what is in them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.progress import Progress, no_progress
from kfp_placement_engine.model.run_graph import Notice, RunGraph
from kfp_placement_engine.readers.argo.workflow import is_workflow, read_workflow
from kfp_placement_engine.readers.fields import Fields
from kfp_placement_engine.readers.kfp.package import is_package, package_tree
from kfp_placement_engine.readers.options import ReadOptions
from kfp_placement_engine.readers.place import Place, kind_of
from kfp_placement_engine.readers.text.documents import (
    RUN_MAX_BYTES,
    load_documents,
    read_file,
)
from kfp_placement_engine.readers.tree.expansion import expand
from kfp_placement_engine.readers.wfformat import is_wfformat, read_wfformat

_EXPECTED = (
    "give a KFP pipeline package (IR YAML), an Argo Workflow, or a wfformat workflow instance"
)
_WRAPPERS = (("pipelineSpec", "platformSpec"), ("pipeline_spec", "platform_spec"))


def read_run(
    data: bytes,
    *,
    name: str,
    options: ReadOptions | None = None,
    progress: Progress = no_progress,
) -> RunGraph:
    """Read a run from the bytes of its file.

    Args:
        data: YAML or JSON: a KFP package with one or two documents, an Argo Workflow, wfformat.
        name: what to call the file in messages.
        options: what the user says about the run.
        progress: called while reading.

    Raises:
        InputError: it is none of these, or malformed; the message names the place.
        LimitError: beyond a documented limit.
    """
    documents = load_documents(data, name=name, max_bytes=RUN_MAX_BYTES, progress=progress)
    return _read(_unwrapped(documents, name), name, options or ReadOptions())


def read_run_file(
    path: str | Path, options: ReadOptions | None = None, progress: Progress = no_progress
) -> RunGraph:
    """Read a run from a file.

    Args:
        path: the file.
        options: what the user says about the run.
        progress: called while reading.

    Raises:
        InputNotFoundError: there is no such file.
        InputError: it cannot be read, is no run, or malformed; the message names the place.
        LimitError: beyond a documented limit.
    """
    data = read_file(path, max_bytes=RUN_MAX_BYTES)
    return read_run(data, name=str(path), options=options, progress=progress)


def _unwrapped(documents: list[Any], name: str) -> list[dict[str, Any]]:
    """The documents as mappings, lists of objects and API wrappers taken apart."""
    unwrapped: list[dict[str, Any]] = []
    for document in documents:
        if not isinstance(document, dict):
            raise InputError(f"{name}: holds {kind_of(document)}; {_EXPECTED}")
        kind = document.get("kind")
        if isinstance(kind, str) and kind.endswith("List") and "items" in document:
            place = Place(name).field("items")
            unwrapped.extend(place.mapping(item) for item in place.entries(document["items"]))
        else:
            unwrapped.extend(_parts(document, Place(name)))
    return unwrapped


def _parts(document: dict[str, Any], place: Place) -> list[dict[str, Any]]:
    # A PipelineVersion object, or what KFP's API answers, holds both documents of a package.
    holder = Fields(document, place)
    if document.get("kind") == "PipelineVersion":
        holder = holder.flat("spec")
    for pipeline, platform in _WRAPPERS:
        if isinstance(holder.get(pipeline), dict):
            nested = holder.mapping(pipeline)
            if isinstance(nested.get(pipeline), dict):
                return _parts(nested, place)
            parts = [nested]
            if holder.get(platform) is not None:
                parts.append(holder.mapping(platform))
            return parts
    return [document]


def _read(documents: list[dict[str, Any]], name: str, options: ReadOptions) -> RunGraph:
    platforms = [document for document in documents if "platforms" in document]
    packages = [document for document in documents if is_package(document)]
    workflows = [document for document in documents if is_workflow(document)]
    instances = [document for document in documents if is_wfformat(document)]
    runs = len(packages) + len(workflows) + len(instances)
    if runs == 0:
        raise InputError(f"{name}: {_problem(documents)}; {_EXPECTED}")
    if runs > 1 or len(platforms) > 1:
        raise InputError(f"{name}: holds {max(runs, len(platforms))} runs; give one at a time")
    if packages:
        platform = platforms[0] if platforms else {}
        graph = expand(package_tree(packages[0], platform, name, options), options)
        used = [packages[0], platform]
    elif workflows:
        graph, used = read_workflow(workflows[0], name, options), workflows
    else:
        graph, used = read_wfformat(instances[0], name, options), instances
    unused = [each for each in documents if not any(each is one for one in used)]
    return replace(graph, notices=(*graph.notices, *_unused_notices(unused)))


def _unused_notices(documents: list[dict[str, Any]]) -> list[Notice]:
    """What a file holds beside its run."""
    if not documents:
        return []
    count = "1 document" if len(documents) == 1 else f"{len(documents)} documents"
    return [
        Notice(
            "ignored-objects", f"not used: {count} beside the run; the first {_problem(documents)}"
        )
    ]


def _problem(documents: list[dict[str, Any]]) -> str:
    """What was found in place of a run, in words."""
    if not documents:
        return "holds no object"
    first = documents[0]
    kind = first.get("kind")
    if isinstance(kind, str) and kind in ("Node", "Pod", "PersistentVolumeClaim", "Cluster"):
        return f"describes a cluster ({kind:.40}), not a run"
    if isinstance(kind, str) and kind:
        version = first.get("apiVersion")
        return f"kind {kind:.60} of API {version!s:.60} is no run"
    if "implementation" in first:
        return "is a component, not a pipeline; compile a pipeline that uses it"
    if "platforms" in first:
        return "holds the platform part of a package without its pipeline"
    keys = ", ".join(str(key)[:40] for key in list(first)[:5]) or "no keys"
    return f"is no run (it has {keys})"
