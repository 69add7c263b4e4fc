"""RunRequest: what a run needs, and how it waits for that, where runs wait in queues.

Named like the object of its run, which owns it. The process `plan` writes the spec, `queue` the
status; what they know of each other's work they know from here.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from kfp_placement_engine.contract.fields import (
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
from kfp_placement_engine.contract.run_queue import (
    DEFAULT_QUEUE,
    Amounts,
    ResourceName,
    amounts_of,
    resources_of,
)
from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.demand import Demand, PodGroup

MAX_RESOURCES = 32
"""Resources that an amount lists, and accelerators; more are not written."""

MAX_GANGS = 64
"""Shapes of pods that must run together."""

MAX_MESSAGE_CHARACTERS = 1024
"""Of each text."""

MAX_NODE_GROUPS = 16
"""Groups of nodes that a run is limited to."""

MAX_LABELS = 16
"""Labels of each group."""


class RequestPhase(StrEnum):
    """Where a run is."""

    WAITING = "Waiting"
    """It has not begun, or was suspended for another run."""

    ADMITTED = "Admitted"
    """It may run, whoever let it."""

    FINISHED = "Finished"
    """It has ended."""


class RequestedEnd(StrEnum):
    """How a run has ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class RequestCondition(StrEnum):
    """Conditions of a RunRequest; Kueue's words where the meaning is the same."""

    ADMITTED = "Admitted"
    """Its queue lets it run; False says what it waits for."""

    PREEMPTED = "Preempted"
    """It was suspended, for another run or by hand, and waits again."""


class RequestReason(StrEnum):
    """Reasons of these conditions."""

    ADMITTED = "Admitted"
    NOT_HELD = "NotHeld"
    """It runs without having been admitted: it was there before its queue, or others let it."""
    UNPLANNABLE = "Unplannable"
    """Nobody can say what it needs, so it does not wait."""
    PENDING_EVALUATION = "PendingEvaluation"
    """Nobody has said yet what it needs."""
    WAITING_FOR_QUOTA = "WaitingForQuota"
    WAITING_FOR_ROOM = "WaitingForRoom"
    NO_MATCHING_NODE = "NoMatchingNode"
    """A step fits no node, or the run needs more than there is or may ever have."""
    PREEMPTED = "Preempted"
    """For a run of a higher priority."""
    BY_REQUEST = "ByRequest"
    """Somebody has asked for it."""
    RESUMED = "Resumed"


class AcceleratorShare(ResourceModel):
    """What pods with an accelerator take at most, of every resource."""

    name: ResourceName
    """The accelerator, an extended resource: `nvidia.com/gpu`."""

    amounts: Amounts = ()
    """Of each resource its own peak over time."""


class Gang(ResourceModel):
    """Pods of one shape that work only when all of them run."""

    count: int = Field(ge=1, le=2**53)
    """How many."""

    requests: Amounts = ()
    """Of each of them."""


class RunDemand(ResourceModel):
    """The most that what is left of a run takes at any one time."""

    peak: Amounts = ()
    """Of each resource its own peak over time, drivers, workers and `pods` included."""

    accelerator_shares: tuple[AcceleratorShare, ...] = Field(default=(), max_length=MAX_RESOURCES)
    """How much of that needs nodes with an accelerator."""

    gangs: tuple[Gang, ...] = Field(default=(), max_length=MAX_GANGS)
    """Pods that must run together: the peak of each shape."""

    def to_demand(self) -> Demand:
        """The demand in canonical units."""
        return Demand(
            peak=resources_of(self.peak),
            accelerator_shares={
                each.name: resources_of(each.amounts) for each in self.accelerator_shares
            },
            gangs=tuple(PodGroup(each.count, resources_of(each.requests)) for each in self.gangs),
        )


def run_demand(demand: Demand) -> RunDemand:
    """A demand as a RunRequest says it.

    Raises:
        LimitError: it lists more than a RunRequest can hold.
    """
    lists = (demand.peak, demand.accelerator_shares, *(each.requests for each in demand.gangs))
    if max(map(len, lists)) > MAX_RESOURCES or len(demand.gangs) > MAX_GANGS:
        raise LimitError(
            f"the run requests more than {MAX_RESOURCES} resources, or has workers of more than"
            f" {MAX_GANGS} shapes: too many for a RunRequest"
        )
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
        )
    except ValidationError as error:
        raise LimitError(f"a RunRequest cannot hold what the run requests: {error}") from error


Message = Annotated[str, Field(max_length=MAX_MESSAGE_CHARACTERS)]
"""Text for people."""

Position = Annotated[int, Field(ge=1)]

Remarks = Annotated[tuple[Message, ...], Field(max_length=8)]


class NodeLabel(ResourceModel):
    """A label of nodes."""

    key: str = Field(min_length=1, max_length=317)
    """Its key."""

    value: str = Field(default="", max_length=63)
    """Its value."""


class NodeGroup(ResourceModel):
    """Nodes that a run may use."""

    labels: tuple[NodeLabel, ...] = Field(min_length=1, max_length=MAX_LABELS)
    """A node must have all of these."""

    @property
    def node_selector(self) -> dict[str, str]:
        """The same as pods say it."""
        return {each.key: each.value for each in self.labels}


NodeGroups = Annotated[tuple[NodeGroup, ...], Field(max_length=MAX_NODE_GROUPS)]
"""Groups of nodes; a node of any of them may be used, and any node where there are none."""


def node_groups(selectors: Iterable[Mapping[str, str]]) -> NodeGroups:
    """Groups of nodes as a RunRequest says them.

    Args:
        selectors: the labels of each, at least one.

    Raises:
        LimitError: more than a RunRequest can hold, or what cannot be a label.
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
    """What a run needs, as the planner sees it."""

    workflow_uid: WorkflowUid
    """The Workflow."""

    submitted_at: Moment
    """When the Workflow was created."""

    display_name: str = Field(default="", max_length=253)
    """What people call the run."""

    queue: ObjectName = DEFAULT_QUEUE
    """The RunQueue that its steps name; `default` if they name none or several."""

    priority: Priority = 0
    """The highest that its steps ask for."""

    demand: RunDemand | None = None
    """What is left of it takes; not there if it cannot be planned."""

    makespan_seconds: Makespan | None = None
    """How long the whole run takes by a plan of it alone."""

    finishes_at: Moment | None = None
    """When it ends by the plan in force; of a run that has begun."""

    unschedulable: Message = ""
    """Why no node can take one of its steps."""

    problem: Message = ""
    """Why it cannot be planned: then it does not wait."""

    planned_nodes: NodeGroups = ()
    """The nodes that this is planned for: those of `status.assignedNodes`, once it is."""

    notes: Remarks = ()
    """What its author should know, such as that its steps name several queues."""

    end: Annotated[str, one_of(RequestedEnd)] | None = None
    """How it has ended."""


class MissingAmount(ResourceModel):
    """Something of which a run has not enough."""

    rule: str = Field(min_length=1, max_length=63)
    """Which rule says so, such as `quota`, `capacity` or `gangs`."""

    resource: str = Field(default="", max_length=317)
    """Of which it needs more; `runs` for the number of runs, `pods` for pods that run together."""

    amount: str = Field(default="", max_length=32)
    """How much more, as a Kubernetes quantity."""


class StartRange(ResourceModel):
    """When a run is likely to start."""

    earliest: Moment
    """Not before."""

    latest: Moment | None = None
    """Not after, for four of five runs; not there before the queue has seen enough waits."""

    forecast: Moment | None = None
    """By the plans in force alone; not there for runs that begin after all that was played."""

    said_at: Moment | None = None
    """When this was worked out."""


class RunRequestStatus(ResourceStatus):
    """How the run waits, as its queue sees it."""

    phase: Annotated[str, one_of(RequestPhase)] | None = None
    """Where it is."""

    queue: str | None = Field(default=None, max_length=253)
    """The RunQueue that decides."""

    priority: Priority | None = None
    """As the queue allows it."""

    position: Position | None = None
    """Among the runs of its queue that wait, from 1."""

    waiting: Position | None = None
    """How many these are."""

    missing: tuple[MissingAmount, ...] = Field(default=(), max_length=MAX_RESOURCES)
    """What keeps it waiting."""

    message: Message | None = None
    """The same for people: `3rd of 7, lacks 8 cpu of the quota`."""

    notes: Remarks = ()
    """What its author should know, such as that its priority is more than the queue allows."""

    starts: StartRange | None = None
    """When it is likely to start."""

    first_starts: StartRange | None = None
    """What was first said of that; it stays, so that it can be compared with what happened."""

    assigned_nodes: NodeGroups = ()
    """The nodes that its queue has assigned to it; those of flavors, where Kueue admits runs."""

    waiting_since: Moment | None = None
    """When it was held, or suspended."""

    admitted_at: Moment | None = None
    """When it was let run last."""


class RunRequest(Resource):
    """What one run needs and how it waits for it; of a namespace whose runs wait in queues."""

    kind: Literal["RunRequest"] = "RunRequest"
    spec: RunRequestSpec
    status: RunRequestStatus | None = None
