"""What the coordinator has decided and others do: plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kfp_placement_controller.observed.deviations import Deviation
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.planning.gates import OpenGate
from kfp_placement_controller.planning.rounds import PlanningRound
from kfp_placement_controller.sources.source import RunOwner
from kfp_placement_engine.contract.policy_status import PolicyFinding
from kfp_placement_engine.contract.resources import PipelinePlacement
from kfp_placement_engine.contract.run_request import RunRequestSpec
from kfp_placement_engine.model.history import PastRun
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.model.policy import KEEP_DAYS


@dataclass(frozen=True)
class WritePlacement:
    """Write a run's PipelinePlacement.

    Attributes:
        key: of the run.
        placement: whole.
        plan: the plan has changed, or there is no object yet.
    """

    key: RunKey
    placement: PipelinePlacement
    plan: bool


@dataclass(frozen=True)
class Announce:
    """Warn in an event that a run is not planned.

    Attributes:
        key: of the run.
        owner: the object that it is.
        note: for people.
    """

    key: RunKey
    owner: RunOwner
    note: str


@dataclass(frozen=True)
class DeletePod:
    """Delete a pod that waits for a dead scheduler."""

    pod: ObservedPod


@dataclass(frozen=True)
class SayFindings:
    """Write findings into the policy's status."""

    findings: Sequence[PolicyFinding]


@dataclass(frozen=True)
class CloseQueue:
    """Say in the status of a RunQueue that it may hold no more runs."""

    key: QueueKey


@dataclass(frozen=True)
class WriteRequest:
    """Write what a run needs into its RunRequest.

    Attributes:
        key: of the run.
        owner: the object that it is.
        spec: whole.
        version: of the RunRequest that this was decided by; "" = there is none.
    """

    key: RunKey
    owner: RunOwner
    spec: RunRequestSpec
    version: str


@dataclass(frozen=True)
class DeleteRequest:
    """Remove a RunRequest that is not of the run of its name.

    Attributes:
        key: of the run.
        uid: of the RunRequest.
    """

    key: RunKey
    uid: str


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


@dataclass(frozen=True)
class MemoryPod:
    """A pod whose memory is asked for.

    Attributes:
        uid: identifier of the pod.
        name: its name.
        since_start_seconds: time since its step began.
    """

    uid: str
    name: str
    since_start_seconds: float


@dataclass(frozen=True)
class AskMemory:
    """Ask Prometheus how much memory pods used; the answer comes later, or never.

    Attributes:
        url: address of the server.
        run: the run that has ended; its namespace is that of the pods.
        pods: those that ended well.
    """

    url: str
    run: RunKey
    pods: tuple[MemoryPod, ...]


@dataclass(frozen=True)
class MemoryAnswer:
    """The answer to a question.

    Attributes:
        question: as it was asked.
        peaks: bytes by uid of the pod, of those that the server knows.
        failure: why there is no answer; "" = there is one.
    """

    question: AskMemory
    peaks: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""


@dataclass(frozen=True)
class ForgetRun:
    """A run is gone: nothing more is written about it."""

    key: RunKey


Action = (
    WritePlacement
    | Announce
    | OpenGate
    | Deviation
    | DeletePod
    | SayFindings
    | CloseQueue
    | WriteRequest
    | DeleteRequest
    | HistoryAction
    | AskMemory
    | PlanningRound
    | ForgetRun
)
