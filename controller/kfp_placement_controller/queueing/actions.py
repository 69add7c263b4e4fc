"""What the queue has decided and others do: plain data."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

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
class _OfRun:
    """Something that is done with a run.

    Attributes:
        run: which.
    """

    run: QueuedRun

    @property
    def target(self) -> tuple[str, ...]:
        """What tells this write from the next one of its kind."""
        return (type(self).__name__, self.run.owner.uid, self.run.version)


@dataclass(frozen=True)
class ShowHeld(_OfRun):
    """Let a held run say that it waits."""

    message: str


@dataclass(frozen=True)
class LetRun(_OfRun):
    """Let a run begin, or go on.

    Attributes:
        cause: why.
        waited_seconds: how long it has waited.
        outcome: whether it begins within the range that was first said; None = none was.
    """

    cause: ReleaseCause
    waited_seconds: float
    outcome: StartOutcome | None = None


class ReleaseHeld(LetRun):
    """Let a held run begin."""


class ResumeRun(LetRun):
    """Let a run go on that was suspended."""


@dataclass(frozen=True)
class SuspendRun(_OfRun):
    """Let a run make no new pods: it waits again.

    Attributes:
        preempted_for: the uid of the run that it makes room for, or a word.
        note: why, for people.
    """

    preempted_for: str
    note: str


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


class BackendAction(ABC):
    """Write to an object of a backend; only the writer of that backend carries it out."""

    @property
    @abstractmethod
    def target(self) -> tuple[str, ...]:
        """Words that tell this write from the next one of its kind."""


SteeringAction = ShowHeld | ReleaseHeld | SuspendRun | ResumeRun
"""Action that lets a run start, wait or continue."""

QueueAction = SteeringAction | WriteRequestStatus | WriteQueueStatus | BackendAction
"""Action of any kind that the coordinator decides on."""
