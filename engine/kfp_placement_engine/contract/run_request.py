"""RunRequest: the needs of a run, and its state while it waits in a queue.

It has the name of the run's object, which owns it. The process `plan` writes the spec, and the
process `queue` writes the status. Each learns only from here what the other has done.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from kfp_placement_engine.contract.run_queue import (
    DEFAULT_QUEUE,
    ResourceAmounts,
    ResourceName,
    amounts_of,
    resources_of,
)
from kfp_placement_engine.contract.shared_parts import (
    Makespan,
    Moment,
    ObjectName,
    Priority,
    Resource,
    ResourceModel,
    ResourceStatus,
    WorkflowUid,
    one_of,
)
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.demand import Demand, PodGroup

MAX_RESOURCES = 32
"""Largest number of resources in a list of amounts, and of accelerators."""

MAX_GANGS = 64
"""Largest number of shapes of pods that must run together."""

MAX_MESSAGE_CHARACTERS = 1024
"""Longest text of a field, in characters."""

MAX_NODE_GROUPS = 16
"""Largest number of groups of nodes that a run is limited to."""

MAX_LABELS = 16
"""Largest number of labels of a group of nodes."""


class RequestPhase(StrEnum):
    """State of a run in its queue."""

    WAITING = "Waiting"
    """State: the run has not begun, or was suspended for another run."""

    ADMITTED = "Admitted"
    """State: the run may run, whether its queue or somebody else has let it."""

    FINISHED = "Finished"
    """State: the run has ended."""


class RequestedEnd(StrEnum):
    """Outcome of a run."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class RequestCondition(StrEnum):
    """Conditions of a RunRequest, with Kueue's names where the meaning is the same."""

    ADMITTED = "Admitted"
    """Condition: the queue lets the run begin; if False, its reason says what the run waits for."""

    PREEMPTED = "Preempted"
    """Condition: the run was suspended, for another run or by hand, and waits again."""


class RequestReason(StrEnum):
    """Reasons of the conditions of a RunRequest."""

    ADMITTED = "Admitted"
    NOT_HELD = "NotHeld"
    """Reason: the run was created before its queue, or others let it begin."""
    UNPLANNABLE = "Unplannable"
    """Reason: the needs of the run cannot be known, or nobody has said them for long."""
    PENDING_EVALUATION = "PendingEvaluation"
    """Reason: the run is not planned yet, so its needs are not known."""
    WAITING_FOR_QUOTA = "WaitingForQuota"
    WAITING_FOR_ROOM = "WaitingForRoom"
    NO_MATCHING_NODE = "NoMatchingNode"
    """Reason: a step fits no node, or the run needs more than the empty cluster has."""
    PREEMPTED = "Preempted"
    """Reason: suspended for a run of a higher priority."""
    BY_REQUEST = "ByRequest"
    """Reason: somebody has asked for the suspension."""
    RESUMED = "Resumed"


class AcceleratorShare(ResourceModel):
    """Largest demand of all pods with one kind of accelerator together, for every resource."""

    name: ResourceName
    """The accelerator, an extended resource: `nvidia.com/gpu`."""

    amounts: ResourceAmounts = ()
    """Peak of each resource over time."""


class Gang(ResourceModel):
    """Pods of one shape that work only when all of them run."""

    count: int = Field(ge=1, le=2**53)
    """Number of pods."""

    requests: ResourceAmounts = ()
    """Requests of each pod."""


class RunDemand(ResourceModel):
    """Peak demand of what is left of a run."""

    peak: ResourceAmounts = ()
    """Peak of each resource over time, drivers, workers and `pods` included."""

    accelerator_shares: tuple[AcceleratorShare, ...] = Field(default=(), max_length=MAX_RESOURCES)
    """Part of the peaks that needs nodes with an accelerator."""

    gangs: tuple[Gang, ...] = Field(default=(), max_length=MAX_GANGS)
    """Pods that must run together: the peak of each shape."""

    most: ResourceAmounts = ()
    """The most at once, whatever time steps take; empty = as `peak`."""

    def to_demand(self) -> Demand:
        """Return the demand in canonical units."""
        return Demand(
            peak=resources_of(self.peak),
            accelerator_shares={
                each.name: resources_of(each.amounts) for each in self.accelerator_shares
            },
            gangs=tuple(PodGroup(each.count, resources_of(each.requests)) for each in self.gangs),
            most=resources_of(self.most),
        )


def refuse_more_than_fits(resources: int, shapes: int = 0) -> None:
    """Refuse a demand of more resources, or of workers of more shapes, than a RunRequest can hold.

    Raises:
        LimitError: it lists more.
    """
    if resources > MAX_RESOURCES or shapes > MAX_GANGS:
        raise LimitError(
            f"the run requests more than {MAX_RESOURCES} resources, or has workers of more than"
            f" {MAX_GANGS} shapes: too many for a RunRequest"
        )


def run_demand(demand: Demand) -> RunDemand:
    """Return a demand in the form of a RunRequest.

    Raises:
        LimitError: the demand lists more than a RunRequest can hold.
    """
    lists = (
        demand.peak,
        demand.most,
        demand.accelerator_shares,
        *(each.requests for each in demand.gangs),
    )
    refuse_more_than_fits(max(map(len, lists)), len(demand.gangs))
    try:
        return RunDemand(
            peak=amounts_of(demand.peak),
            accelerator_shares=tuple(
                AcceleratorShare(name=name, amounts=amounts_of(amounts))
                for name, amounts in sorted(demand.accelerator_shares.items())
            ),
            gangs=tuple(
                Gang(count=each.count, requests=amounts_of(each.requests)) for each in demand.gangs
            ),
            most=amounts_of(demand.most),
        )
    except ValidationError as error:
        raise LimitError(f"a RunRequest cannot hold what the run requests: {error}") from error


MessageText = Annotated[str, Field(max_length=MAX_MESSAGE_CHARACTERS)]
"""Text for people."""

Position = Annotated[int, Field(ge=1)]

Remarks = Annotated[tuple[MessageText, ...], Field(max_length=8)]


class NodeLabel(ResourceModel):
    """A label of nodes."""

    key: str = Field(min_length=1, max_length=317)
    """Key of the label."""

    value: str = Field(default="", max_length=63)
    """Value of the label."""


class NodeGroup(ResourceModel):
    """Nodes that a run may use."""

    labels: tuple[NodeLabel, ...] = Field(min_length=1, max_length=MAX_LABELS)
    """Labels of the group; its nodes have all of them."""

    @property
    def node_selector(self) -> dict[str, str]:
        """Labels of the group in the form of a pod's node selector."""
        return {each.key: each.value for each in self.labels}


NodeGroups = Annotated[tuple[NodeGroup, ...], Field(max_length=MAX_NODE_GROUPS)]
"""Groups of nodes; a run may use the nodes of any group, or all nodes if there is no group."""


def node_groups(selectors: Iterable[Mapping[str, str]]) -> NodeGroups:
    """Return groups of nodes in the form of a RunRequest.

    Args:
        selectors: labels of each group, at least one label for each.

    Raises:
        LimitError: there are more than a RunRequest can hold, or one cannot be a label.
    """
    listed = sorted(sorted(selector.items()) for selector in selectors)
    if len(listed) > MAX_NODE_GROUPS or max(map(len, listed), default=0) > MAX_LABELS:
        raise LimitError(
            f"the run is limited to more than {MAX_NODE_GROUPS} groups of nodes, or to nodes by"
            f" more than {MAX_LABELS} labels: too many for a RunRequest"
        )
    try:
        return tuple(
            NodeGroup(labels=tuple(NodeLabel(key=key, value=value) for key, value in labels))
            for labels in listed
        )
    except ValidationError as error:
        raise LimitError(f"a RunRequest cannot hold labels of nodes: {error}") from error


class RunRequestSpec(ResourceModel):
    """Needs of a run, as the planner sees them."""

    workflow_uid: WorkflowUid
    """Uid of the run's Workflow."""

    submitted_at: Moment
    """Moment at which the Workflow was created."""

    display_name: str = Field(default="", max_length=253)
    """Name of the run for people."""

    queue: ObjectName = DEFAULT_QUEUE
    """The RunQueue that its steps name; `default` if they name none or several."""

    priority: Priority = 0
    """Highest priority that the run's steps ask for."""

    demand: RunDemand | None = None
    """Demand of what is left of the run, as far as it is known; None = nothing of it is known."""

    makespan_seconds: Makespan | None = None
    """Length of the whole run in a plan without other runs."""

    finishes_at: Moment | None = None
    """End of a run that has begun, by the plan in force."""

    unschedulable: MessageText = ""
    """Reason why no node can take one of its steps."""

    problem: MessageText = ""
    """Reason why all of the demand, or a part, is not known; the run's queue may state one."""

    planned_nodes: NodeGroups = ()
    """Groups of nodes that the run was planned for: `status.assignedNodes` as last read."""

    notes: Remarks = ()
    """Warnings for its author, such as that its steps name several queues."""

    end: Annotated[str, one_of(RequestedEnd)] | None = None
    """Outcome of the run."""


class MissingAmount(ResourceModel):
    """Shortage that keeps a run waiting."""

    rule: str = Field(min_length=1, max_length=63)
    """Rule that the shortage comes from, such as `quota`, `capacity` or `gangs`."""

    resource: str = Field(default="", max_length=317)
    """Resource that is short; `runs` for the number of runs, `pods` for pods that run together."""

    amount: str = Field(default="", max_length=32)
    """Missing amount, as a Kubernetes quantity."""


class StartRange(ResourceModel):
    """Likely start of a run."""

    earliest: Moment
    """Earliest start."""

    latest: Moment | None = None
    """Latest start for four of five runs; None before the queue has seen enough waits."""

    forecast: Moment | None = None
    """Start by the plans in force alone; None if the run starts after the end of the simulation."""

    said_at: Moment | None = None
    """Moment at which the forecast was made."""


class RunRequestStatus(ResourceStatus):
    """State of a waiting run, as its queue sees it."""

    phase: Annotated[str, one_of(RequestPhase)] | None = None
    """State of the run."""

    queue: str | None = Field(default=None, max_length=253)
    """Name of the RunQueue that decides about the run."""

    priority: Priority | None = None
    """Priority that the queue allows."""

    position: Position | None = None
    """Position among the waiting runs of its queue, from 1."""

    waiting: Position | None = None
    """Number of waiting runs of its queue."""

    missing: tuple[MissingAmount, ...] = Field(default=(), max_length=MAX_RESOURCES)
    """Shortages that keep the run waiting."""

    message: MessageText | None = None
    """Position and shortages for people: `3rd of 7, lacks 8 cpu of the quota`."""

    notes: Remarks = ()
    """Warnings for its author, such as that its priority is more than the queue allows."""

    starts: StartRange | None = None
    """Likely start of the run."""

    first_starts: StartRange | None = None
    """First forecast of the start; it stays, so that it can be compared with the real start."""

    assigned_nodes: NodeGroups = ()
    """Groups of nodes that the queue has assigned to the run; with Kueue, those of its flavors."""

    preempted_for: str | None = Field(default=None, max_length=63)
    """Uid of the run for which its queue stops the run or has stopped it, or a word."""

    waiting_since: Moment | None = None
    """Moment at which the run was held, or suspended."""

    admitted_at: Moment | None = None
    """Moment at which the run was last allowed to run."""


class RunRequest(Resource):
    """Needs and waiting state of one run, in a namespace whose runs wait in queues."""

    kind: Literal["RunRequest"] = "RunRequest"
    spec: RunRequestSpec
    status: RunRequestStatus | None = None
