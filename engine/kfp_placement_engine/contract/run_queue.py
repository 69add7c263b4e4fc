"""RunQueue: who may run how much at a time in a namespace; written by admins.

A namespace takes part by having one named `default`. Its runs wait without a pod until their queue
admits them.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from kfp_placement_engine.contract.hints import MAX_PRIORITY
from kfp_placement_engine.contract.shared_parts import (
    Count,
    Deadline,
    LongWait,
    Priority,
    QuantityText,
    Resource,
    ResourceModel,
    ResourceStatus,
    one_of,
)
from kfp_placement_engine.exceptions import QuantityError
from kfp_placement_engine.units.quantities import format_resource, parse_resource
from kfp_placement_engine.units.resources import Resources

DEFAULT_QUEUE = "default"
"""Name of the RunQueue by which a namespace takes part, and of runs that name no other."""

ResourceName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=317,
        pattern=r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
    ),
]
"""Name of a resource, as requests of pods have it."""

_OBJECT_NAME = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"

_MAX_INSTANCE_IDS = 16
_MAX_ACCOUNTS = 32

ENGINE_ACCOUNTS = tuple(
    f"system:serviceaccount:{name}" for name in ("kubeflow:argo", "kubeflow:ml-pipeline")
)
"""Accounts of Argo and KFP where KFP works for its own namespace only."""


class QueueBackend(StrEnum):
    """Component that decides which run is next."""

    BUILTIN = "builtin"
    """Admission by this queue, by its own quota and the room of the cluster."""

    KUEUE = "kueue"
    """Kueue, by the quota of a LocalQueue's ClusterQueue."""


class ControllerDown(StrEnum):
    """Rule for runs while nobody admits them."""

    RUN = "run"
    """New runs begin at once, and those that wait are released."""

    HOLD = "hold"
    """Rule: all runs wait."""


class ResourceAmount(ResourceModel):
    """An amount of one resource."""

    name: ResourceName
    """Resource name as in requests of pods: `cpu`, `memory`, `nvidia.com/gpu`."""

    amount: QuantityText
    """A Kubernetes quantity."""

    @model_validator(mode="after")
    def _is_of_its_resource(self) -> "ResourceAmount":
        try:
            parse_resource(self.name, self.amount)
        except QuantityError as error:
            raise ValueError(str(error)) from error
        return self


ResourceAmounts = Annotated[tuple[ResourceAmount, ...], Field(max_length=32)]


def amounts_of(resources: Resources) -> tuple[ResourceAmount, ...]:
    """Return canonical amounts in the form of our resources, by name."""
    return tuple(
        ResourceAmount(name=name, amount=format_resource(name, amount))
        for name, amount in sorted(resources.items())
    )


def resources_of(amounts: tuple[ResourceAmount, ...]) -> dict[str, int]:
    """Return the amounts in canonical units; of a resource named twice the last entry counts."""
    return {each.name: parse_resource(each.name, each.amount) for each in amounts}


class QueueQuota(ResourceModel):
    """Limits of what the admitted runs of the queue may take together."""

    runs: int | None = Field(default=None, ge=0, le=100_000)
    """Limit of admitted runs; None = any number."""

    resources: ResourceAmounts = ()
    """Limit of each resource; one that is not named has no limit."""


class UnreadableDemand(ResourceModel):
    """Demand of a run, or of the part of one, that cannot be read."""

    resources: ResourceAmounts
    """Amount of each resource; with none, such a run counts as one run only."""


class PriorityRange(ResourceModel):
    """Priorities that runs of the queue may have; others are moved to the nearest one."""

    min: Priority = -MAX_PRIORITY
    """The least."""

    max: Priority = MAX_PRIORITY
    """The greatest."""

    max_across: int = Field(default=0, ge=0, le=MAX_PRIORITY)
    """The greatest against runs of other namespaces."""

    @model_validator(mode="after")
    def _is_a_range(self) -> "PriorityRange":
        if self.min > self.max:
            raise ValueError(f"min {self.min} is greater than max {self.max}")
        return self


class RunQueueSpec(ResourceModel):
    """Settings that admins decide."""

    backend: Annotated[str, one_of(QueueBackend)] = QueueBackend.BUILTIN.value
    """Component that decides which run is next."""

    local_queue: str | None = Field(
        default=None, min_length=1, max_length=253, pattern=_OBJECT_NAME
    )
    """Kueue's LocalQueue of the same namespace, with backend `kueue`."""

    quota: QueueQuota = QueueQuota()

    unreadable: UnreadableDemand | None = None
    """Demand of runs that cannot be read.

    None = where the quota names resources, or Kueue decides, such runs wait; else each counts as
    one run.
    """

    overcommit: float = Field(default=2.0, ge=1.0, le=100.0)
    """Multiple of the cluster's capacity that the admitted runs may demand together.

    Peaks of runs rarely coincide: with 1, much of the cluster stays idle.
    """

    capacity: ResourceAmounts = ()
    """Capacity of a cluster whose node pools grow; () = that of its nodes."""

    priorities: PriorityRange = PriorityRange()

    aging_per_hour: float = Field(default=1.0, ge=0.0, le=1_000_000.0)
    """Priority that a run gains for each hour that it waits."""

    reserve_after_seconds: LongWait = 12 * 3600.0
    """Time after a run's submission from which room is kept for it.

    Until then runs behind it may begin first, if they fit; forever, if they kept coming.
    """

    weight: float = Field(default=1.0, ge=0.001, le=1000.0)
    """Weight of its share of the cluster, beside those of the other RunQueues."""

    idle_after_seconds: Deadline = 600.0
    """Time without a pod after which other queues may have the room of a run until it has one."""

    on_controller_down: Annotated[str, one_of(ControllerDown)] = ControllerDown.RUN.value
    """Rule for runs while nobody admits them."""

    hold_deadline_seconds: Deadline = 120.0
    """Longest time that a dead controller may hold up runs that are to run then."""

    exempt_instance_ids: tuple[Annotated[str, Field(max_length=63)], ...] = Field(
        default=(), max_length=_MAX_INSTANCE_IDS, alias="exemptInstanceIDs"
    )
    """Instance ids of other workflow controllers, whose Workflows are never held."""

    engine_accounts: tuple[Annotated[str, Field(max_length=339)], ...] = Field(
        default=ENGINE_ACCOUNTS, max_length=_MAX_ACCOUNTS
    )
    """Accounts of Argo and KFP, which write whole Workflows; admission reads them."""

    @model_validator(mode="after")
    def _has_its_local_queue(self) -> "RunQueueSpec":
        if self.backend == QueueBackend.KUEUE and self.local_queue is None:
            raise ValueError("backend kueue needs localQueue: the LocalQueue of this namespace")
        return self


MAX_WAITS = 60
"""Waits that a queue remembers."""

MAX_WAIT_RATIO = 1_000_000.0
"""A wait that was longer than its forecast by more counts as this."""

WaitRatio = Annotated[float, Field(ge=0.0, le=MAX_WAIT_RATIO)]
"""Waits of runs, as shares of what was forecast."""


class RunQueueStatus(ResourceStatus):
    """Findings of the controller."""

    ready: bool | None = None
    """State that admission asks for: true = runs are admitted, so that new ones may be held."""

    waiting: Count | None = None
    """Runs that wait."""

    admitted: Count | None = None
    """Runs that were admitted and have not ended."""

    used: ResourceAmounts = ()
    """Demand of the admitted runs for the resources that have a quota."""

    wait_ratios: tuple[WaitRatio, ...] = Field(default=(), max_length=MAX_WAITS)
    """Waits of the runs admitted last, as shares of what was first forecast; the latest last."""


class RunQueue(Resource):
    """A queue of whole runs, in a namespace."""

    kind: Literal["RunQueue"] = "RunQueue"
    spec: RunQueueSpec = RunQueueSpec()
    status: RunQueueStatus | None = None
