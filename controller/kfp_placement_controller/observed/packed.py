"""Objects kept as compressed JSON, which has a tenth to a half of its size, until they are read."""

import zlib

import orjson

from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.kinds import JsonObject

_PARTS = ("apiVersion", "kind", "metadata", "spec", "status")


def json_text(raw: JsonObject) -> bytes:
    """Write an object as the API server prints it as JSON, without fields that nobody reads.

    Raises:
        InputError: the object cannot be written as JSON again.
    """
    # Managed fields are a third of a Workflow.
    metadata = {**raw["metadata"], "managedFields": None}
    parts = {each: raw[each] for each in _PARTS if each in raw} | {"metadata": metadata}
    try:
        return orjson.dumps(parts)
    except orjson.JSONEncodeError as error:  # nested too deeply, numbers beyond 64 bits
        name = metadata.get("name")
        raise InputError(f"{name!r:.80} cannot be written as JSON: {error}") from error


def packed(text: bytes) -> bytes:
    """Compress JSON text."""
    return zlib.compress(text, 1)


def unpacked(data: bytes) -> JsonObject:
    """Decompress and read JSON text."""
    raw: JsonObject = orjson.loads(zlib.decompress(data))
    return raw
