"""Actions that the queue decides on and its process carries out: plain data."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

from kfp_placement_controller.queueing.start_ranges import StartOutcome
from kfp_placement_controller.sources.queue_source import QueuedRun
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_kube.kinds import JsonObject


class ReleaseCause(StrEnum):
    """Reason for which a waiting run may start."""

    ADMITTED = "admitted"
    """The run was admitted by its queue."""

    TERMINATED = "terminated"
    """The run was terminated by somebody: it ends without a pod."""

    HAS_BEGUN = "has-begun"
    """The run was held after it had started: while it is held, the ends of its steps are unseen."""

    NO_QUEUE = "no-queue"
    """The namespace of the run takes no part any more."""

    PLANNER_DOWN = "planner-down"
    """The planner is dead for longer than the queue lets its runs wait for it."""

    REQUESTED = "requested"
    """The start was requested by somebody with the right to do so."""

    NO_DEMAND = "no-demand"
    """The planner has not said what the run needs, for longer than the queue lets it wait."""


@dataclass(frozen=True)
class _OfRun:
    """Action on the object of a run.

    Attributes:
        run: the run as its object is.
    """

    run: QueuedRun

    @property
    def identity(self) -> tuple[str, ...]:
        """Identity of this write, by which repeated tries are recognised."""
        return (type(self).__name__, self.run.owner.uid, self.run.version)


@dataclass(frozen=True)
class ShowHeld(_OfRun):
    """Show in the status of a held run that it waits."""

    message: str


@dataclass(frozen=True)
class StartRun(_OfRun):
    """Start a waiting run.

    Attributes:
        cause: reason for the start.
        waited_seconds: time that the run has waited.
        outcome: whether it starts within the range that was first forecast, or None without one.
    """

    cause: ReleaseCause
    waited_seconds: float
    outcome: StartOutcome | None = None


class ReleaseHeld(StartRun):
    """Start a held run, which has not run yet."""


class ResumeRun(StartRun):
    """Resume a suspended run."""


@dataclass(frozen=True)
class SuspendRun(_OfRun):
    """Suspend a run: it makes no new pods, and waits again.

    Attributes:
        preempted_for: uid of the run that it makes room for, or `BY_KUEUE` or `BY_REQUEST`.
        note: explanation for people.
    """

    preempted_for: str
    note: str


@dataclass(frozen=True)
class WriteRequestStatus:
    """Write the status of a RunRequest.

    Attributes:
        key: key of the run.
        version: resource version of the RunRequest on which the decision was made.
        fields: fields of the status to change.
    """

    key: RunKey
    version: str
    fields: JsonObject


@dataclass(frozen=True)
class WriteQueueStatus:
    """Write the status of a RunQueue.

    Attributes:
        key: key of the queue.
        version: resource version of the RunQueue on which the decision was made.
        fields: fields of the status to change.
    """

    key: QueueKey
    version: str
    fields: JsonObject


class BackendAction(ABC):
    """Write to an object of a backend; only the writer of that backend carries it out."""

    @property
    @abstractmethod
    def identity(self) -> tuple[str, ...]:
        """Identity of this write, by which repeated tries are recognised."""


SteeringAction = ShowHeld | ReleaseHeld | SuspendRun | ResumeRun
"""Action that lets a run start, wait or continue."""

QueueAction = SteeringAction | WriteRequestStatus | WriteQueueStatus | BackendAction
"""Action of any kind that the coordinator decides on."""
