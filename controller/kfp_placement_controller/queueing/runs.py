"""Runs that wait or were admitted, and the rules of their queues."""

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.resources import Resources


@dataclass(frozen=True, slots=True)
class QueueRules:
    """What a RunQueue allows.

    Its quota is for the runs that it admits: a namespace with several RunQueues has the sum of
    their quotas, so an administrator can give GPUs to one of them and none to another.

    Attributes:
        quota: the most that its admitted runs take together; what is not named is not limited.
        max_runs: the most runs admitted at once; None = any number.
        overcommit: admitted runs of the whole cluster may take capacity times this. Runs seldom
            take their peaks at the same time; at 1 much of the cluster is idle.
        capacity: replaces the sum of the nodes, for the resources it names, where node pools grow.
        reserve_after_seconds: how long after its submission room is kept for a run that waits.
        aging_per_hour: how much a run's priority grows with each hour that it waits.
    """

    quota: Resources = field(default_factory=dict)
    max_runs: int | None = None
    overcommit: float = 2.0
    capacity: Resources | None = None
    aging_per_hour: float = 0.0
    reserve_after_seconds: float = math.inf


NO_RULES = QueueRules()
"""The rules of a RunQueue that is not there: those of an empty one."""


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A run that is held.

    Attributes:
        key: of the run.
        queue: its RunQueue.
        priority: as its queue allows it.
        submitted_at: when; a suspended run keeps its old time.
        demand: what it needs.
        unschedulable: why no node can take one of its steps; "" = all steps fit a node.
        has_victims: runs were suspended for it. Those behind it do not get the room that this
            makes, even if it is not enough yet.
        goes_last: somebody has asked that it stops: all others go first.
        makespan_seconds: how long it takes by a plan of it alone; None = not known.
    """

    key: RunKey
    queue: QueueKey
    priority: int
    submitted_at: datetime
    demand: Demand
    unschedulable: str = ""
    has_victims: bool = False
    goes_last: bool = False
    makespan_seconds: float | None = None

    def as_admitted(self, now: datetime) -> "AdmittedRun":
        """The run as it takes room once it is let run.

        Args:
            now: the time.
        """
        seconds = self.makespan_seconds
        ends_at = None if seconds is None else now + timedelta(seconds=seconds)
        return AdmittedRun(self.key, self.queue, self.priority, now, self.demand, ends_at=ends_at)


@dataclass(frozen=True, slots=True)
class AdmittedRun:
    """A run that may run.

    Attributes:
        key: of the run.
        queue: its RunQueue.
        priority: as its queue allows it.
        admitted_at: when.
        demand: what is left of it needs.
        suspended: it was asked to stop; it takes room until its running steps have ended.
        is_fixed: it cannot be asked to stop: another backend has admitted it, somebody else has
            suspended it, or its object refuses to be changed.
        ends_at: when it ends by the plan in force; None = not known.
    """

    key: RunKey
    queue: QueueKey
    priority: int
    admitted_at: datetime
    demand: Demand
    suspended: bool = False
    is_fixed: bool = False
    ends_at: datetime | None = None

    @property
    def may_be_suspended(self) -> bool:
        """Whether it can be asked to stop."""
        return not self.suspended and not self.is_fixed
