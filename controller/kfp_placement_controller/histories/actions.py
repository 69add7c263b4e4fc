"""What must be done about PipelineHistories, and how it went: plain data."""

from dataclasses import dataclass
from enum import StrEnum

from kfp_placement_engine.model.history import PastRun
from kfp_placement_engine.model.policy import KEEP_DAYS


@dataclass(frozen=True)
class WriteHistory:
    """Add runs that have ended to the PipelineHistory of their pipeline.

    Attributes:
        namespace: of the runs.
        pipeline: name of the pipeline.
        runs: that have ended.
        keep_days: runs that ended more days before or after the last of them go.
    """

    namespace: str
    pipeline: str
    runs: tuple[PastRun, ...]
    keep_days: int = KEEP_DAYS


@dataclass(frozen=True)
class DeleteHistory:
    """Remove a PipelineHistory: its namespace has too many.

    Attributes:
        namespace: where it is.
        name: of the object.
    """

    namespace: str
    name: str


HistoryAction = WriteHistory | DeleteHistory


class HistoryOutcome(StrEnum):
    """The outcome of an action on a history."""

    DONE = "done"
    REFUSED = "refused"
    """To try it again changes nothing."""

    FAILED = "failed"
    """It may work later."""

    NAMESPACE_GONE = "namespace gone"


@dataclass(frozen=True)
class HistoryAnswer:
    """The outcome of one, and why.

    Attributes:
        action: what was tried.
        outcome: of that.
        why: in words; "" = there is nothing to say.
    """

    action: HistoryAction
    outcome: HistoryOutcome
    why: str = ""
