"""The runs of the cluster as their queues see them, each with what its RunRequest says."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.queueing.runs import AdmittedRun, WaitingRun
from kfp_placement_controller.sources.queue_source import QueuedRun
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.contract.run_request import (
    RequestPhase,
    RunRequestSpec,
    RunRequestStatus,
    StartRange,
)
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_kube.change import Change

_NO_STATUS = RunRequestStatus()
_NOTHING = Demand()


@dataclass(frozen=True)
class KnownRun:
    """A run, and what its RunRequest says.

    What follows from that is worked out once: a decision asks several times for each of a thousand
    runs, of which few have changed.

    Attributes:
        run: as its object is.
        request: None = there is none yet, or it is of another run of this name.
        demand: what is left of it takes; None = nobody has said.
        went_on: it was held by hand after it had begun.
    """

    run: QueuedRun
    request: ObservedRequest | None = None
    demand: Demand | None = None
    went_on: bool = False

    @cached_property
    def key(self) -> RunKey:
        """Namespace and name."""
        return self.run.key

    @cached_property
    def spec(self) -> RunRequestSpec | None:
        """What the planner says of it."""
        return None if self.request is None else self.request.spec

    @cached_property
    def status(self) -> RunRequestStatus:
        """What its RunRequest says of its waiting."""
        return _NO_STATUS if self.request is None else self.request.status

    @cached_property
    def queue_name(self) -> str:
        """The RunQueue that it names."""
        return DEFAULT_QUEUE if self.spec is None else self.spec.queue

    @cached_property
    def priority(self) -> int:
        """As it asks for."""
        return 0 if self.spec is None else self.spec.priority

    @cached_property
    def is_waiting(self) -> bool:
        """Whether it is not to run before its queue lets it."""
        return self.run.end is None and (self.run.is_held or self.run.is_preempted)

    @cached_property
    def is_admitted(self) -> bool:
        """Whether it may run, whoever let it."""
        return self.run.end is None and not self.is_waiting

    @cached_property
    def admitted_at(self) -> datetime:
        """When it was let run last; never before its submission, whatever others have written."""
        return max(self.status.admitted_at or self.run.submitted_at, self.run.submitted_at)

    def waiting_since(self, now: datetime) -> datetime:
        """When it began to wait: between its submission and now, whatever others have written.

        Args:
            now: the time, for one that has only just begun.
        """
        if self.status.phase == RequestPhase.WAITING and self.status.waiting_since is not None:
            return max(self.run.submitted_at, min(self.status.waiting_since, now))
        is_new = self.status.phase is None and self.run.is_held and not self.run.has_begun
        return self.run.submitted_at if is_new else now

    def first_starts(self, now: datetime) -> StartRange | None:
        """What was first forecast of its start since it began to wait; None = nothing yet.

        Args:
            now: the time.
        """
        first = self.status.first_starts
        if first is None or first.forecast is None or first.said_at is None:
            return None
        since = self.waiting_since(now).replace(microsecond=0)
        return first if first.said_at >= since else None

    def ends_at(self, now: datetime) -> datetime | None:
        """When it ends by its plan, if it runs, or begins now; None = it has none.

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
        has_victims: bool = False,
        stands_back: bool = False,
    ) -> WaitingRun:
        """The run as decisions and forecasts take it while it waits.

        Args:
            queue: that decides about it.
            priority: as that allows it.
            unschedulable: as of `WaitingRun`.
            has_victims: likewise.
            stands_back: likewise.
        """
        return WaitingRun(
            self.key,
            queue,
            priority,
            self.run.submitted_at,
            self.demand or _NOTHING,
            unschedulable,
            has_victims,
            stands_back,
            None if self.spec is None else self.spec.makespan_seconds,
        )

    def as_admitted(
        self, queue: QueueKey, priority: int, now: datetime, *, is_fixed: bool = False
    ) -> AdmittedRun:
        """The same while it runs.

        Args:
            queue: that decides about it.
            priority: as that allows it.
            now: the time.
            is_fixed: as of `AdmittedRun`.
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
        """Whether somebody has asked, since it waits, that it begins; from the time they name."""
        asked_at = None if self.request is None else self.request.admit_at
        if asked_at is None:
            return False
        return self.waiting_since(now).replace(microsecond=0) <= asked_at <= now

    def is_to_be_preempted(self, obeyed: datetime | None, now: datetime) -> bool:
        """Whether somebody has asked, since it was admitted, that it stops and waits again.

        It counts from the time that is named, not before; times are written in whole seconds.

        Args:
            obeyed: the time that was named when it last stopped for that; None = it never has.
            now: the time.
        """
        asked_at = None if self.request is None else self.request.preempt_at
        if self.status.phase != RequestPhase.ADMITTED or asked_at is None or asked_at == obeyed:
            return False
        return self.admitted_at.replace(microsecond=0) <= asked_at <= now


@dataclass
class QueuedRuns:
    """All runs that have not ended, and those that have and whose RunRequest does not say so.

    Of runs that have ended a RunRequest may be seen later: each kind has a watch of its own, and
    nobody may have led when the run ended. They are not iterated over.
    """

    _runs: dict[RunKey, KnownRun] = field(default_factory=dict)
    _ended: dict[RunKey, QueuedRun] = field(default_factory=dict)
    _requests: dict[RunKey, ObservedRequest] = field(default_factory=dict)

    def __iter__(self) -> Iterator[KnownRun]:
        return iter(self._runs.values())

    def get(self, key: RunKey) -> KnownRun | None:
        """The run of that name."""
        return self._runs.get(key)

    def requests(self) -> Collection[ObservedRequest]:
        """All RunRequests."""
        return self._requests.values()

    def run_changed(self, change: Change[QueuedRun]) -> bool:
        """A run is new, has changed or is gone.

        Returns:
            Whether there is anything to decide: most that changes in runs that go on matters to no
            queue.
        """
        key, run = RunKey(*change.key), change.new
        before = self._runs.pop(key, None)
        self._ended.pop(key, None)
        if run is None:
            return True
        went_on = False
        if before is not None and run.is_held and before.run.owner.uid == run.owner.uid:
            # A run that is tried again after its end comes back as one that is held.
            went_on = before.went_on or (before.run.is_active and before.run.has_begun)
        self._keep(KnownRun(run, went_on=went_on))
        is_same = before is not None and replace(before.run, version=run.version) == run
        return not (is_same and run.is_active)

    def request_changed(self, key: RunKey, request: ObservedRequest | None) -> None:
        """Take in that a RunRequest is new, has changed or is gone."""
        self._requests.pop(key, None)
        if request is not None:
            self._requests[key] = request
        known, ended = self._runs.pop(key, None), self._ended.pop(key, None)
        if known is not None:
            self._keep(known)
        elif ended is not None:
            self._keep(KnownRun(ended))

    def _keep(self, known: KnownRun) -> None:
        request = self._requests.get(known.key)
        if request is not None and known.run.owner.uid not in request.owner_uids:
            request = None
        known = replace(known, request=request, demand=_demand_of(request))
        if known.run.end is not None and request is None:
            self._ended[known.key] = known.run
        elif known.run.end is None or known.status.phase != RequestPhase.FINISHED:
            self._runs[known.key] = known


def _demand_of(request: ObservedRequest | None) -> Demand | None:
    if request is None or request.spec is None or request.spec.demand is None:
        return None
    try:
        return request.spec.demand.to_demand()
    except InputError:
        # The planner writes it; whatever others write here is put right by it.
        return None
