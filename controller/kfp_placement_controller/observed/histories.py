"""PipelineHistories, slimmed: their text is kept, and read when a namespace is asked for."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from kfp_placement_controller.observed.packed import json_text, packed, unpacked
from kfp_placement_engine.contract.pipeline_history import (
    MAX_HISTORY_BYTES,
    PipelineHistory,
    PipelineHistorySpec,
)
from kfp_placement_engine.contract.resources import read_resource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.history import PastRun

MAX_OBJECT_BYTES = 2 * MAX_HISTORY_BYTES
"""We write no larger ones; what others have made larger is not read."""

MOST_AHEAD = timedelta(days=60)
"""Workflows are seldom kept for longer after their end."""

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ObservedHistory:
    """A PipelineHistory.

    Attributes:
        spec: what people have decided.
        ended: uid -> when that run ended, of all its runs.
        is_cut: older runs have been left out.
        json_bytes: size of the object.
        packed: the object.
        is_going: it has been deleted, and stays until its finalizers are gone.
    """

    spec: PipelineHistorySpec
    ended: Mapping[str, datetime]
    is_cut: bool
    json_bytes: int
    packed: bytes
    is_going: bool

    @property
    def last_ended_at(self) -> datetime:
        """When the last run ended; long ago if there is none."""
        return max(self.ended.values(), default=_LONG_AGO)

    def is_older(self, run: PastRun) -> bool:
        """Whether a run would be left out, as older ones than those that are kept have been."""
        if self.spec.forgets_run(run.ended_at):
            return True
        oldest_at = min(self.ended.values(), default=_LONG_AGO)
        # Runs that all ended long after it had a wrong clock: it comes in their place.
        return self.is_cut and timedelta() < oldest_at - run.ended_at <= MOST_AHEAD

    def read(self, runs: Container[str]) -> PipelineHistory:
        """The object with some of its runs; to read them all takes most of the time.

        Args:
            runs: their uids.
        """
        raw = unpacked(self.packed)
        if self.ended:
            kept = [run for run in raw["status"]["runs"] if run["uid"] in runs]
            raw = {**raw, "status": {**raw["status"], "runs": kept}}
        return read_resource(PipelineHistory, raw)


def observe_history(raw: Mapping[str, Any]) -> ObservedHistory:
    """A PipelineHistory as the API server prints it.

    Raises:
        InputError: it cannot be read, or is larger than we write any.
    """
    history = read_resource(PipelineHistory, _without_rows(raw))
    text = json_text(raw)
    if len(text) > MAX_OBJECT_BYTES:
        raise InputError(
            f"PipelineHistory {history.metadata.name!r:.80} has {len(text)} bytes; at most"
            f" {MAX_OBJECT_BYTES} are read: delete it, and it is written again"
        )
    return ObservedHistory(
        spec=history.spec,
        ended=history.ended,
        is_cut=(history.status.runs_seen or 0) > len(history.ended),
        json_bytes=len(text),
        packed=packed(text),
        is_going="deletionTimestamp" in raw["metadata"],
    )


def _without_rows(raw: Mapping[str, Any]) -> dict[str, Any]:
    """An object without what takes long to read, and may never be asked for."""
    status = raw.get("status") or {}
    runs = [{**run, "steps": [], "loops": []} for run in status.get("runs") or ()]
    return {**raw, "status": {**status, "nodes": [], "steps": [], "runs": runs}}
