"""Writes and deletions of PipelineHistories, and their outcomes: plain data."""

from dataclasses import dataclass
from enum import StrEnum

from kfp_placement_controller.observed.histories import HistoryKey
from kfp_placement_engine.model.history import PastRun


@dataclass(frozen=True)
class WriteHistory:
    """Add runs that have ended to the PipelineHistory of their pipeline.

    Attributes:
        namespace: namespace of the runs.
        pipeline: name of the pipeline.
        runs: ended runs to add.
        keep_days: stored runs whose end is more than this many days from the last end in `runs` are
            removed.
    """

    namespace: str
    pipeline: str
    runs: tuple[PastRun, ...]
    keep_days: int

    @property
    def key(self) -> HistoryKey:
        """Key of the PipelineHistory."""
        return HistoryKey.of(self.namespace, self.pipeline)


@dataclass(frozen=True)
class DeleteHistory:
    """Remove a PipelineHistory: its namespace has too many.

    Attributes:
        namespace: namespace of the object.
        name: name of the object.
    """

    namespace: str
    name: str


HistoryAction = WriteHistory | DeleteHistory


class HistoryOutcome(StrEnum):
    """The outcome of an action on a history."""

    DONE = "done"
    REFUSED = "refused"
    """The write failed for good: another try would change nothing."""

    FAILED = "failed"
    """The write failed, and may work later."""

    NAMESPACE_GONE = "namespace gone"


@dataclass(frozen=True)
class HistoryAnswer:
    """The outcome of an action on a history, and why.

    Attributes:
        action: action that was tried.
        outcome: outcome of the try.
        why: reason of a failure for the log, or "".
    """

    action: HistoryAction
    outcome: HistoryOutcome
    why: str = ""
