"""Runs that wait or were admitted, and the rules of their queues."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.resources import Resources


@dataclass(frozen=True, slots=True)
class QueueRules:
    """Rules of a RunQueue.

    Its quota is for the runs that it admits: a namespace with several RunQueues has the sum of
    their quotas, so an administrator can give GPUs to one of them and none to another.

    Attributes:
        quota: limits on what its admitted runs take together; other resources have no limit.
        max_runs: limit on the number of admitted runs, or None for any number.
        overcommit: factor on the capacity of the cluster that admitted runs may take. Runs seldom
            take their peaks at the same time; at 1 much of the cluster is idle.
        capacity: amounts that replace the sum of the nodes, where node pools grow.
        reserve_after_seconds: time from the submission of a waiting run until room is kept for it.
        aging_per_hour: growth of a run's priority in each hour that it waits.
        weight: weight of its namespace's share, in the queue `default`; 0 for a queue that another
            backend shares.
    """

    quota: Resources = field(default_factory=dict)
    max_runs: int | None = None
    overcommit: float = 2.0
    capacity: Resources | None = None
    aging_per_hour: float = 0.0
    reserve_after_seconds: float = math.inf
    weight: float = 1.0


Rules = Mapping[QueueKey, QueueRules]
"""Rules of RunQueues by key; a queue that is missing has `NO_RULES`."""

NO_RULES = QueueRules()
"""Rules where there is no RunQueue: no quota, priorities do not grow, no room is kept."""


def rules_in_use(
    rules: Rules, waiting: Iterable["WaitingRun"], admitted: Iterable["AdmittedRun"]
) -> Rules:
    """Return the rules of namespaces that have runs: these share the cluster."""
    used = {run.queue.namespace for run in waiting} | {run.queue.namespace for run in admitted}
    return {queue: each for queue, each in rules.items() if queue.namespace in used}


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A waiting run, reduced to what decisions and forecasts need.

    Attributes:
        key: key of the run.
        queue: RunQueue that decides about it.
        priority: priority that its queue allows.
        across_priority: priority that counts against runs of other namespaces.
        submitted_at: time of its submission; a suspended run keeps it.
        demand: resources that it needs.
        unschedulable: reason why no node can take one of its steps, or "".
        has_victims: whether runs were suspended for it. Runs behind it do not get their room, even
            if it is not enough for this run yet.
        goes_last: whether somebody has asked that the run stops; all others then go first.
        makespan_seconds: duration by a plan of the run alone, or None without such a plan.
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
    across_priority: int = 0

    def as_admitted(self, now: datetime) -> "AdmittedRun":
        """Return the run as if it started now.

        Args:
            now: the time.
        """
        seconds = self.makespan_seconds
        ends_at = None if seconds is None else now + timedelta(seconds=seconds)
        return AdmittedRun(
            self.key,
            self.queue,
            self.priority,
            now,
            self.demand,
            ends_at=ends_at,
            across_priority=self.across_priority,
        )


@dataclass(frozen=True, slots=True)
class AdmittedRun:
    """An admitted run, reduced to what decisions and forecasts need.

    Attributes:
        key: key of the run.
        queue: RunQueue that decides about it.
        priority: priority that its queue allows.
        across_priority: priority that counts against runs of other namespaces.
        admitted_at: time of its last start.
        demand: resources that its remaining steps need.
        suspended: whether it is suspended; it keeps room until its running steps have ended.
        is_fixed: whether it cannot be suspended: another backend has admitted it, somebody else has
            suspended it, or its object refuses to be changed.
        ends_at: end by the plan in force, or None without a plan.
        in_use: part of its demand that counts for other queues too; None = all of it. Other queues
            may have the rest until pods take it. Its gangs count if all of it does.
        beyond: resources that its pods request beyond its demand. They count for its own queue; for
            the cluster those on nodes count as pods of nobody.
    """

    key: RunKey
    queue: QueueKey
    priority: int
    admitted_at: datetime
    demand: Demand
    suspended: bool = False
    is_fixed: bool = False
    ends_at: datetime | None = None
    across_priority: int = 0
    in_use: Resources | None = None
    beyond: Resources | None = None

    @property
    def may_be_suspended(self) -> bool:
        """Return whether the run can be suspended."""
        return not self.suspended and not self.is_fixed
