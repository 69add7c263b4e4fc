"""What follows for one run from what Kueue says of it; pure."""

from collections.abc import Callable
from dataclasses import dataclass

from kfp_placement_controller.observed.workloads import ObservedWorkload
from kfp_placement_controller.queueing.backend import BY_KUEUE, Stop
from kfp_placement_controller.queueing.kueue.actions import KueueAction
from kfp_placement_controller.queueing.kueue.objects import KueueObjects
from kfp_placement_controller.queueing.kueue.runs import KueueRun
from kfp_placement_controller.queueing.queued_runs import KnownRun
from kfp_placement_controller.queueing.runs import AdmittedRun, WaitingRun
from kfp_placement_controller.queueing.verdicts import Lack, Rule
from kfp_placement_engine.contract.run_request import NodeGroups
from kfp_placement_engine.model.keys import QueueKey


@dataclass(frozen=True, slots=True)
class KueueDecision:
    """What was decided of a run.

    Attributes:
        known: the run.
        queue: that decides about it.
        priority: as Kueue has it.
        missing: what keeps it waiting; None = it is admitted.
        stop: why it must stop; None = it need not.
        nodes: that it was assigned; None = they stay as they are.
        waiting: the run as a forecast takes it while it waits.
        running: the same while it runs.
        writes: for its Workload.
    """

    known: KnownRun
    queue: QueueKey
    priority: int = 0
    missing: Lack | None = None
    stop: Stop | None = None
    nodes: NodeGroups | None = None
    waiting: WaitingRun | None = None
    running: AdmittedRun | None = None
    writes: tuple[KueueAction, ...] = ()


def unread(known: KnownRun, queue: QueueKey) -> Callable[[str], KueueDecision]:
    """What is decided of a run about which we fail to decide, given why: it stays where it is."""
    return lambda problem: KueueDecision(known, queue, missing=Lack(Rule.KUEUE, reason=problem))


def missing_of(run: KueueRun, objects: KueueObjects) -> Lack | None:
    """What keeps a run waiting; None = Kueue has admitted it.

    Args:
        run: which.
        objects: Kueue's.
    """
    if run.workload is not None and run.workload.is_admitted and not run.is_outdated:
        return None
    if run.unschedulable:
        return Lack(Rule.STEP, reason=run.unschedulable)
    return Lack(Rule.KUEUE, reason=objects.misfit(run.queue) or _why_waiting(run.workload))


def stop_of(run: KueueRun) -> Stop | None:
    """Why a run that runs must stop; None = it need not."""
    if not run.must_stop or run.workload is None:
        return None
    evicted = run.workload.conditions["Evicted"]
    why = evicted.message or evicted.reason
    return Stop(BY_KUEUE, f"suspended: Kueue has evicted it: {why}"[:1000])


def _why_waiting(workload: ObservedWorkload | None) -> str:
    if workload is None:
        return "it has no Workload yet"
    if workload.has_reservation:
        return "quota is reserved, the last checks are under way"
    evicted, reserved = (workload.conditions.get(each) for each in ("Evicted", "QuotaReserved"))
    if not workload.is_active:
        why = f": {evicted.message}" if evicted is not None and evicted.holds else ""
        return f"its Workload {workload.name} is not active{why}"
    return "" if reserved is None else reserved.message
