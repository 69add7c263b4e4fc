"""Files of past runs: what `kfp-placement history --output` and `kubectl get plh -o yaml` write."""

from collections.abc import Iterable, Iterator
from typing import Any

from kfp_placement_engine.contract.custom_resources import read_resource
from kfp_placement_engine.contract.history.pipeline_history import PipelineHistory
from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.contract.shared_parts import unknown_fields
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.readers.text.documents import load_documents
from kfp_placement_engine.readers.text.place import UNNAMED, mapping_or_empty

MAX_FILE_BYTES = 64 * 2**20
"""Size of the largest file: 200 pipelines with 256 KiB each, and some more for YAML."""

_KIND = "PipelineHistory"
_EXPECTED = (
    "a history is what `kfp-placement history --output history.yaml` writes: correct the file, or"
    " export it again"
)


def read_histories(data: bytes, *, name: str) -> tuple[PipelineHistory, ...]:
    """Read the past runs of pipelines; of several objects of one pipeline the last counts.

    Args:
        data: bytes of the file: objects of the kind PipelineHistory, alone or in a List; an empty
            List holds no history.
        name: name of the file, for messages.

    Raises:
        InputError: the file is empty or holds something else, or an object is malformed.
    """
    documents = load_documents(data, name=name, max_bytes=MAX_FILE_BYTES)
    try:
        histories = [_read(each) for each in _objects(documents)]
    except InputError as error:
        raise InputError(f"{name}: {error}; {_EXPECTED}") from error
    of_pipelines = {(each.metadata.namespace, each.spec.pipeline): each for each in histories}
    return tuple(of_pipelines.values())


def _objects(documents: Iterable[Any]) -> Iterator[Any]:
    """Yield the objects, also those in lists; `load_documents` limits how deep lists are nested."""
    for document in documents:
        given = mapping_or_empty(document)
        kind, version = given.get("kind"), given.get("apiVersion")
        if kind in ("List", f"{_KIND}List"):
            yield from _objects(UNNAMED.field("items").entries(given.get("items")))
        elif given and (kind, version) != (_KIND, API_VERSION):
            raise InputError(f"holds kind {kind!r:.80} of apiVersion {version!r:.80}")
        else:
            yield document


def _read(parsed: Any) -> PipelineHistory:
    history = read_resource(PipelineHistory, parsed)
    # Fields of the status that planners of later versions add are skipped; people write the spec.
    for place, keys in unknown_fields(history.spec, parsed["spec"]):
        raise InputError(f"spec.{place:.120} is not a field; known are {', '.join(keys):.200}")
    return history
