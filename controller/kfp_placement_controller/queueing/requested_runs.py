"""The runs of the cluster as their queues see them, by name."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.queueing.requested_run import RequestedRun
from kfp_placement_controller.sources.queue_source import QueuedRun
from kfp_placement_controller.sources.source import PodRun
from kfp_placement_engine.contract.run_request import RequestPhase
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.demand import Demand
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.change import Change


@dataclass
class RequestedRuns:
    """The runs that have not ended, and ended ones whose RunRequest does not say so yet.

    Other ended runs are kept aside, and not iterated over. Their RunRequest may be seen later,
    since each kind has a watch of its own, and maybe nobody led when the run ended; and pods of
    them may be seen later.
    """

    _runs: dict[RunKey, RequestedRun] = field(default_factory=dict)
    _aside: dict[RunKey, RequestedRun] = field(default_factory=dict)
    _requests: dict[RunKey, ObservedRequest] = field(default_factory=dict)

    def __iter__(self) -> Iterator[RequestedRun]:
        return iter(self._runs.values())

    def get(self, key: RunKey) -> RequestedRun | None:
        """Return the run of that name, or None if there is none."""
        return self._runs.get(key)

    def ended(self, named: Iterable[PodRun]) -> Iterator[RequestedRun]:
        """Yield the runs among these that have ended."""
        for each in named:
            run = self._runs.get(each.key) or self._aside.get(each.key)
            if run is None or run.as_pods_name_it != each:
                continue
            if run.observed.end is not None:
                yield run

    def requests(self) -> Collection[ObservedRequest]:
        """Return all RunRequests, also those of ended runs."""
        return self._requests.values()

    def run_changed(self, change: Change[QueuedRun]) -> bool:
        """Take in that a run is new, has changed or is gone.

        Returns:
            Whether there is anything to decide: most changes of running runs matter to no queue.
        """
        key, run = RunKey(*change.key), change.new
        before = self._runs.pop(key, None)
        self._aside.pop(key, None)
        if run is None:
            return True
        held_by_hand = False
        if before is not None and run.is_held and before.observed.owner.uid == run.owner.uid:
            # Somebody held it while it ran. (A retried run had ended first, so it was not active.)
            was_running = before.observed.is_active and before.observed.has_begun
            held_by_hand = before.held_by_hand or was_running
        self._keep(RequestedRun(run, held_by_hand=held_by_hand))
        is_same = before is not None and replace(before.observed, version=run.version) == run
        return not (is_same and run.is_active)

    def request_changed(self, change: Change[ObservedRequest]) -> None:
        """Take in that a RunRequest is new, has changed or is gone."""
        key = RunKey(*change.key)
        change.apply_to(self._requests, key)
        requested = self._runs.pop(key, None) or self._aside.pop(key, None)
        if requested is not None:
            self._keep(requested)

    def _keep(self, requested: RequestedRun) -> None:
        request = self._requests.get(requested.key)
        if request is not None and requested.observed.owner.uid not in request.owner_uids:
            request = None
        requested = replace(requested, request=request, demand=_demand_of(request))
        is_over = request is None or requested.status.phase == RequestPhase.FINISHED
        runs = self._aside if requested.observed.end is not None and is_over else self._runs
        runs[requested.key] = requested


def _demand_of(request: ObservedRequest | None) -> Demand | None:
    if request is None or request.spec is None or request.spec.demand is None:
        return None
    try:
        return request.spec.demand.to_demand()
    except InputError:
        # The planner writes the demand, and corrects whatever others have written.
        return None
