"""Files of past runs: what `kfp-placement history --output` and `kubectl get plh -o yaml` write."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kfp_placement_engine.contract.fields import unknown_fields
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.contract.pipeline_history import PipelineHistory
from kfp_placement_engine.contract.resources import read_resource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.place import kind_of
from kfp_placement_engine.readers.text.documents import load_documents, read_file

MAX_FILE_BYTES = 64 * 2**20
"""200 pipelines of a namespace with 256 KiB each, and some more for YAML."""

_KIND = "PipelineHistory"
_EXPECTED = "a history is what `kfp-placement history --output history.yaml` writes"
_AGAIN = "the file may be incomplete or changed: correct it, or export it again"


def read_histories(data: bytes, *, name: str) -> tuple[PipelineHistory, ...]:
    """Read the past runs of pipelines; of several objects of one the last counts, as the newest.

    Args:
        data: the file's bytes: objects of the kind PipelineHistory, alone or in a List.
        name: what to call the file in messages.

    Raises:
        InputError: it holds something else or nothing, or an object is malformed.
    """
    if not data.strip():
        raise InputError(f"{name}: is empty; {_EXPECTED}")
    documents = load_documents(data, name=name, max_bytes=MAX_FILE_BYTES)
    try:
        histories = [_read(each) for each in _objects(documents)]
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    of_pipelines = {(each.metadata.namespace, each.spec.pipeline): each for each in histories}
    return tuple(of_pipelines.values())


def read_histories_file(path: str | Path) -> tuple[PipelineHistory, ...]:
    """Read the past runs of pipelines from a file.

    Raises:
        InputNotFoundError: there is no such file.
        InputError: it cannot be read or is malformed.
    """
    return read_histories(read_file(path, max_bytes=MAX_FILE_BYTES), name=str(path))


def _objects(documents: Sequence[Any]) -> Iterator[Any]:
    for document in documents:
        if not isinstance(document, dict):
            raise InputError(f"holds {kind_of(document)}; {_EXPECTED}")
        kind, version = document.get("kind"), document.get("apiVersion")
        if kind in ("List", f"{_KIND}List") and isinstance(document.get("items"), list):
            yield from _objects(document["items"])
        elif (kind, version) == (_KIND, API_VERSION):
            yield document
        else:
            raise InputError(f"holds kind {kind!r:.80} of apiVersion {version!r:.80}; {_EXPECTED}")


def _read(parsed: Any) -> PipelineHistory:
    try:
        found = read_resource(PipelineHistory, parsed)
    except InputError as error:
        raise InputError(f"{error}; {_AGAIN}") from error
    for place, known in unknown_fields(found, parsed):
        # Planners of later versions write more into the status; people write the spec.
        if place.startswith("spec."):
            fields = ", ".join(known)
            raise InputError(f"{place:.120} is not a field; known are {fields:.200}; {_AGAIN}")
    return found
