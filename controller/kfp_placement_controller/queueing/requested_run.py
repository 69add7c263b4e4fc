"""A run as its queue sees it: its object together with its RunRequest."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.queueing.runs import AdmittedRun, WaitingRun
from kfp_placement_controller.sources.queue_source import QueuedRun
from kfp_placement_controller.sources.source import PodRun
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.contract.run_request import (
    RequestCondition,
    RequestPhase,
    RunRequestSpec,
    RunRequestStatus,
    StartRange,
)
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import QueueKey, RunKey

FOR_UNKNOWN = "unknown"
"""Word in place of a uid, for a stopped run whose RunRequest does not say for whom."""

_NO_STATUS = RunRequestStatus()
_NOTHING = Demand()


@dataclass(frozen=True)
class RequestedRun:
    """A run together with its RunRequest.

    What follows from both is worked out once: a decision reads it several times for each of a
    thousand runs, of which few have changed.

    Attributes:
        observed: the run as its object is.
        request: the RunRequest, or None if there is none yet, or only that of another run of the
            same name.
        demand: demand of the steps that have not ended, or None if no planner has said it.
        held_by_hand: whether somebody has held it by hand after it had started.
    """

    observed: QueuedRun
    request: ObservedRequest | None = None
    demand: Demand | None = None
    held_by_hand: bool = False

    @cached_property
    def key(self) -> RunKey:
        """Namespace and name."""
        return self.observed.key

    @cached_property
    def as_pods_name_it(self) -> PodRun:
        """The run as its pods name it."""
        return PodRun(self.key, self.observed.owner.uid)

    @cached_property
    def spec(self) -> RunRequestSpec | None:
        """Spec of its RunRequest, which the planner writes, or None."""
        return None if self.request is None else self.request.spec

    @cached_property
    def status(self) -> RunRequestStatus:
        """Status of its RunRequest, which the queue writes; an empty one without a RunRequest."""
        return _NO_STATUS if self.request is None else self.request.status

    @cached_property
    def queue_name(self) -> str:
        """Name of the RunQueue that it asks for."""
        return DEFAULT_QUEUE if self.spec is None else self.spec.queue

    @cached_property
    def priority(self) -> int:
        """Priority that it asks for."""
        return 0 if self.spec is None else self.spec.priority

    @cached_property
    def problem(self) -> str:
        """Reason why all that it needs, or a part of that, cannot be known, or ""."""
        return "" if self.spec is None else self.spec.problem

    @cached_property
    def preempted_for(self) -> str:
        """Run for which its queue has stopped it, or a word; "" = its queue has not.

        Only its RunRequest proves that. Argo marks whatever object asks for it in its spec; without
        the marks, somebody who may has let the run go on.
        """
        if not self.observed.preempted_for:
            return ""
        if self.status.preempted_for:
            return self.status.preempted_for
        condition = self.status.condition(RequestCondition.PREEMPTED)
        is_of_earlier_version = condition is not None and condition.status == "True"
        # Without a phase, the RunRequest is missing, or was deleted and is new.
        may_have_said = self.status.phase is None or is_of_earlier_version
        return FOR_UNKNOWN if may_have_said and self.observed.is_suspended else ""

    @cached_property
    def is_preempted(self) -> bool:
        """Return whether its queue has suspended it; pods of it may still be running."""
        return bool(self.preempted_for) and self.observed.is_preempted

    @cached_property
    def is_waiting(self) -> bool:
        """Return whether it must not run before its queue admits it."""
        return self.observed.end is None and (self.observed.is_held or self.is_preempted)

    @cached_property
    def is_admitted(self) -> bool:
        """Return whether it may run, whoever has started it."""
        return self.observed.end is None and not self.is_waiting

    @cached_property
    def admitted_at(self) -> datetime:
        """Time of its last start; never before its submission, whatever others have written."""
        return max(
            self.status.admitted_at or self.observed.submitted_at, self.observed.submitted_at
        )

    def waiting_since(self, now: datetime) -> datetime:
        """Return when it began to wait: between its submission and now, whatever others wrote.

        Args:
            now: the time, at which a run without a time in its status began to wait.
        """
        since = self.stated_wait_start
        return now if since is None else max(self.observed.submitted_at, min(since, now))

    @property
    def stated_wait_start(self) -> datetime | None:
        """Time at which it began to wait: its submission if it is new, else by its status, if any.

        None = nothing states that time, as for a preempted run whose RunRequest is missing.
        """
        if self.status.phase == RequestPhase.WAITING:
            return self.status.waiting_since
        is_new = self.status.phase is None and self.observed.is_held and not self.observed.has_begun
        return self.observed.submitted_at if is_new else None

    def first_starts(self, now: datetime) -> StartRange | None:
        """Return the first forecast of its start since it began to wait, or None without one.

        Args:
            now: the time.
        """
        first = self.status.first_starts
        if first is None or first.forecast is None or first.said_at is None:
            return None
        since = self.waiting_since(now).replace(microsecond=0)
        return first if first.said_at >= since else None

    def ends_at(self, now: datetime) -> datetime | None:
        """Return when it ends by its plan, if it runs or starts now, or None without a plan.

        Args:
            now: the time.
        """
        if not self.is_waiting and self.spec is not None and self.spec.finishes_at is not None:
            return self.spec.finishes_at
        if self.spec is None or self.spec.makespan_seconds is None:
            return None
        began_at = now if self.is_waiting else self.admitted_at
        return began_at + timedelta(seconds=self.spec.makespan_seconds)

    def as_waiting(
        self,
        queue: QueueKey,
        priority: int,
        unschedulable: str,
        *,
        across_priority: int = 0,
        has_victims: bool = False,
        goes_last: bool = False,
    ) -> WaitingRun:
        """Return the waiting run in the form that decisions and forecasts take.

        Args:
            queue: queue that decides about it.
            priority: priority that the queue allows.
            unschedulable: reason why no node can take one of its steps, or "".
            across_priority: priority against runs of other namespaces.
            has_victims: whether runs were suspended for it.
            goes_last: whether somebody has asked that the run stops; all others then go first.
        """
        return WaitingRun(
            self.key,
            queue,
            priority,
            self.observed.submitted_at,
            self.demand or _NOTHING,
            unschedulable,
            has_victims,
            goes_last,
            None if self.spec is None else self.spec.makespan_seconds,
            across_priority,
        )

    def as_admitted(
        self, queue: QueueKey, priority: int, now: datetime, *, is_fixed: bool = False
    ) -> AdmittedRun:
        """Return the admitted run in the form that decisions and forecasts take.

        Args:
            queue: queue that decides about it.
            priority: priority that the queue allows.
            now: the time.
            is_fixed: whether the run cannot be suspended.
        """
        return AdmittedRun(
            self.key,
            queue,
            priority,
            self.admitted_at,
            self.demand or _NOTHING,
            is_fixed=is_fixed,
            ends_at=self.ends_at(now),
        )

    def is_to_be_admitted(self, now: datetime) -> bool:
        """Return whether somebody has asked that it starts, at a time since it waits until now."""
        asked_at = None if self.request is None else self.request.admit_asked_at
        if asked_at is None:
            return False
        return self.waiting_since(now).replace(microsecond=0) <= asked_at <= now

    def is_to_be_preempted(self, obeyed: datetime | None, now: datetime) -> bool:
        """Return whether somebody has asked, since it was admitted, that it stops and waits again.

        A request counts from the time that it names; times are written in whole seconds.

        Args:
            obeyed: time in the request for which it last stopped, or None if it never has.
            now: the time.
        """
        asked_at = None if self.request is None else self.request.preempt_asked_at
        if self.status.phase != RequestPhase.ADMITTED or asked_at is None or asked_at == obeyed:
            return False
        return self.admitted_at.replace(microsecond=0) <= asked_at <= now
