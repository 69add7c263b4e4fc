"""PipelineHistories, slimmed to their text, which is read only when a namespace needs it.

The parts that decide which runs are kept are read at once; all past runs together take long.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Self

from kfp_placement_controller.observed.packed import json_text, packed, unpacked
from kfp_placement_engine.contract.custom_resources import read_resource
from kfp_placement_engine.contract.history.pipeline_history import (
    MAX_HISTORY_BYTES,
    PipelineHistory,
    PipelineHistorySpec,
    history_name,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.history import PastRun
from kfp_placement_kube.kinds import JsonObject

MAX_OBJECT_BYTES = 2 * MAX_HISTORY_BYTES
"""Largest size of the kept parts of a history, in bytes; we write smaller ones."""

MOST_AHEAD = timedelta(days=60)
"""Longest time for which a Workflow is expected to stay in the cluster after its end."""

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class HistoryKey(NamedTuple):
    """Key of the PipelineHistory of a pipeline.

    Attributes:
        namespace: namespace of the pipeline's runs.
        name: name of the object, which follows from the name of the pipeline.
    """

    namespace: str
    name: str

    @classmethod
    def of(cls, namespace: str, pipeline: str) -> Self:
        """Return the key of the history of a pipeline."""
        return cls(namespace, history_name(pipeline))


@dataclass(frozen=True)
class ObservedHistory:
    """A PipelineHistory.

    Attributes:
        spec: decisions of people about the history.
        ended: uid -> end of that run, for all runs of the history.
        is_cut: whether older runs have been left out.
        json_bytes: size of the kept parts of the object, as JSON.
        packed: kept parts of the object, as compressed JSON.
        is_going: whether the object has been deleted, and only its finalizers keep it.
    """

    spec: PipelineHistorySpec
    ended: Mapping[str, datetime]
    is_cut: bool
    json_bytes: int
    packed: bytes
    is_going: bool

    @property
    def last_ended_at(self) -> datetime:
        """End of the last run; the year 1970 if there is no run."""
        return max(self.ended.values(), default=_LONG_AGO)

    def is_older(self, run: PastRun) -> bool:
        """Return whether a run is forgotten, or older than the runs for which there is room."""
        if self.spec.forgets_run(run.ended_at):
            return True
        oldest_at = min(self.ended.values(), default=_LONG_AGO)
        # If all kept runs ended much later, their clock was wrong: the run replaces them.
        return self.is_cut and timedelta() < oldest_at - run.ended_at <= MOST_AHEAD

    def read(self, runs: Container[str]) -> PipelineHistory:
        """Read the history with some of its runs only: reading runs takes most of the time.

        Args:
            runs: uids of the runs.
        """
        raw = unpacked(self.packed)
        if self.ended:
            kept = [run for run in raw["status"]["runs"] if run["uid"] in runs]
            raw = {**raw, "status": {**raw["status"], "runs": kept}}
        return read_resource(PipelineHistory, raw)


def observe_history(raw: JsonObject) -> ObservedHistory:
    """Slim a PipelineHistory as the API server prints it.

    Raises:
        InputError: it cannot be read, or is larger than `MAX_OBJECT_BYTES`.
    """
    history = read_resource(PipelineHistory, _without_rows(raw))
    # Who may edit the namespace writes the rest of the metadata, which nobody reads.
    name = {key: raw["metadata"].get(key) for key in ("name", "namespace")}
    text = json_text({**raw, "metadata": name})
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


def _without_rows(raw: JsonObject) -> JsonObject:
    """Return a history without the rows that take long to read and may never be needed."""
    status = raw.get("status") or {}
    runs = [{**run, "steps": [], "loops": []} for run in status.get("runs") or ()]
    return {**raw, "status": {**status, "nodes": [], "steps": [], "runs": runs}}
