"""What the queue has decided and others do: plain data."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kfp_placement_controller.queueing.kueue.actions import KueueAction
from kfp_placement_controller.queueing.start_ranges import StartOutcome
from kfp_placement_controller.sources.queue_source import QueuedRun
from kfp_placement_engine.model.keys import QueueKey, RunKey


class ReleaseCause(StrEnum):
    """Why a held run may begin."""

    ADMITTED = "admitted"
    """Its queue has admitted it."""

    TERMINATED = "terminated"
    """Somebody has asked for its end: it ends without a pod."""

    HAS_BEGUN = "has-begun"
    """Somebody has put the hold on a run that goes on: its steps would not be seen to end."""

    NO_QUEUE = "no-queue"
    """Its namespace takes no part any more."""

    PLANNER_DOWN = "planner-down"
    """Nobody plans runs, for longer than the queue lets them wait for that."""

    REQUESTED = "requested"
    """Somebody who may has asked for it."""

    UNPLANNABLE = "unplannable"
    """The planner cannot say what it needs."""

    NO_DEMAND = "no-demand"
    """No planner has said what it needs, for longer than the queue lets it wait for that."""


@dataclass(frozen=True)
class ShowHeld:
    """Let a held run say that it waits."""

    run: QueuedRun
    message: str


@dataclass(frozen=True)
class ReleaseHeld:
    """Let a held run begin.

    Attributes:
        run: it is held.
        cause: why.
        waited_seconds: how long it has waited.
        outcome: whether it begins within the range that was first said; None = none was.
    """

    run: QueuedRun
    cause: ReleaseCause
    waited_seconds: float
    outcome: StartOutcome | None = None


@dataclass(frozen=True)
class SuspendRun:
    """Let a run make no new pods: it waits again.

    Attributes:
        run: it goes on.
        preempted_for: the uid of the run that it makes room for, or a word.
        note: why, for people.
    """

    run: QueuedRun
    preempted_for: str
    note: str


@dataclass(frozen=True)
class ResumeRun:
    """Let a run go on that was suspended; fields as of `ReleaseHeld`."""

    run: QueuedRun
    cause: ReleaseCause
    waited_seconds: float
    outcome: StartOutcome | None = None


@dataclass(frozen=True)
class WriteRequestStatus:
    """Write the status of a RunRequest.

    Attributes:
        key: of the run.
        version: of the object that this was decided by.
        fields: what to change in the status.
    """

    key: RunKey
    version: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class WriteQueueStatus:
    """Write the status of a RunQueue.

    Attributes:
        key: of the queue.
        version: of the object that this was decided by.
        fields: what to change in the status.
    """

    key: QueueKey
    version: str
    fields: Mapping[str, Any]


SteeringAction = ShowHeld | ReleaseHeld | SuspendRun | ResumeRun
"""What is done with a run."""

QueueAction = SteeringAction | WriteRequestStatus | WriteQueueStatus | KueueAction
