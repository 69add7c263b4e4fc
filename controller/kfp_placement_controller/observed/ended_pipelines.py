"""Pipelines that nobody has planned and that have ended: packed, until they are learned from."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.kinds import Kind

_PARTS = ("apiVersion", "kind", "metadata", "spec", "status")


@dataclass(frozen=True, slots=True)
class EndedPipeline:
    """A run that has ended.

    Attributes:
        key: namespace and name.
        kind: of its object.
        ended_at: when it ended.
        packed: the object as JSON, compressed to a tenth.
    """

    key: RunKey
    kind: Kind
    ended_at: datetime
    packed: bytes

    @classmethod
    def of(cls, kind: Kind, raw: Mapping[str, Any], ended_at: datetime) -> "EndedPipeline":
        """Pack a run as the API server prints it.

        Raises:
            InputError: it cannot be written as JSON again.
        """
        metadata = raw["metadata"]
        key = RunKey(metadata.get("namespace", ""), metadata["name"])
        try:
            # Managed fields are a third of a Workflow.
            kept = {**metadata, "managedFields": None}
            parts = {each: raw[each] for each in _PARTS if each in raw} | {"metadata": kept}
            packed = zlib.compress(orjson.dumps(parts), 1)
        except orjson.JSONEncodeError as error:
            raise InputError(f"{kind.kind} {key.name!r:.80} cannot be kept: {error}") from error
        return cls(key, kind, ended_at, packed)

    def raw(self) -> Mapping[str, Any]:
        """The object."""
        found: Mapping[str, Any] = orjson.loads(zlib.decompress(self.packed))
        return found
