"""Pipelines that nobody has planned and that have ended: packed, until they are learned from."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kfp_placement_controller.observed.packed import json_text, packed, unpacked
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.kinds import Kind


@dataclass(frozen=True, slots=True)
class EndedPipeline:
    """A run that has ended.

    Attributes:
        key: namespace and name.
        kind: of its object.
        ended_at: when it ended.
        packed: the object.
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
        key = RunKey(raw["metadata"].get("namespace", ""), raw["metadata"]["name"])
        return cls(key, kind, ended_at, packed(json_text(raw)))

    def raw(self) -> Mapping[str, Any]:
        """The object."""
        return unpacked(self.packed)
