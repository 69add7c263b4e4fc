"""Actions that the coordinator decides and others carry out, as plain data."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kfp_placement_controller.histories.actions import HistoryAction
from kfp_placement_controller.learning.actions import AskMemory
from kfp_placement_controller.observed.deviations import Deviation
from kfp_placement_controller.observed.pods import ObservedPod
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.packages.actions import AskPackage
from kfp_placement_controller.planning.gates import OpenGate
from kfp_placement_controller.planning.rounds import PlanningRound
from kfp_placement_controller.sources.source import RunOwner
from kfp_placement_engine.contract.custom_resources import PipelinePlacement
from kfp_placement_engine.contract.keys import OVER_BUDGET
from kfp_placement_engine.contract.policy_status import PolicyFinding
from kfp_placement_engine.contract.run_request import RunRequestSpec
from kfp_placement_engine.model.keys import RunKey


@dataclass(frozen=True)
class WritePlacement:
    """Write a run's PipelinePlacement.

    Attributes:
        key: key of the run.
        placement: the whole object.
        is_new_plan: whether the plan has changed, or there is no object yet.
    """

    key: RunKey
    placement: PipelinePlacement
    is_new_plan: bool


class Unplanned(StrEnum):
    """Reason of the event about a run that is not planned."""

    MISCONFIGURED = "Misconfigured"
    OVER_BUDGET = OVER_BUDGET


@dataclass(frozen=True)
class Announce:
    """Warn in an event that a run is not planned.

    Attributes:
        key: key of the run.
        owner: object that the run is.
        why: explanation for people.
        reason: reason of the event.
    """

    key: RunKey
    owner: RunOwner
    why: str
    reason: Unplanned = Unplanned.MISCONFIGURED


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

    queue: ObservedQueue


@dataclass(frozen=True)
class WriteRequest:
    """Write what a run needs into its RunRequest.

    Attributes:
        key: key of the run.
        owner: object that the run is.
        spec: the whole spec.
        version: resource version of the RunRequest that was compared; "" = there was none.
    """

    key: RunKey
    owner: RunOwner
    spec: RunRequestSpec
    version: str


@dataclass(frozen=True)
class DeleteRequest:
    """Remove a RunRequest that is not of the run of its name.

    Attributes:
        key: key of the run.
        uid: uid of the RunRequest.
    """

    key: RunKey
    uid: str


@dataclass(frozen=True)
class ForgetRun:
    """Write nothing more about a run, which is gone."""

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
    | AskPackage
    | PlanningRound
    | ForgetRun
)
