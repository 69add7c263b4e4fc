"""Runs of pipelines that ended without a plan, kept compressed until we learn from them."""

from dataclasses import dataclass
from datetime import datetime

from kfp_placement_controller.observed.packed import json_text, packed, unpacked
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.kinds import JsonObject, Kind, key_of


@dataclass(frozen=True, slots=True)
class EndedPipeline:
    """A run of a pipeline that has ended without a plan.

    Attributes:
        key: namespace and name.
        kind: kind of the run's object.
        ended_at: end of the run.
        packed: object of the run, as compressed JSON.
    """

    key: RunKey
    kind: Kind
    ended_at: datetime
    packed: bytes

    @classmethod
    def of(cls, kind: Kind, raw: JsonObject, ended_at: datetime) -> "EndedPipeline":
        """Compress the object of a run as the API server prints it.

        Raises:
            InputError: the object cannot be written as JSON again.
        """
        return cls(RunKey(*key_of(raw)), kind, ended_at, packed(json_text(raw)))

    def raw(self) -> JsonObject:
        """Decompress the object of the run."""
        return unpacked(self.packed)
