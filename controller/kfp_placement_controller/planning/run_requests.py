"""RunRequests: each says what one run needs, in the namespaces that have queues.

They are written for runs with and without our mark. The stored one is compared with what it should
say, so that a new planner continues from any state, and puts right what others have changed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from kfp_placement_controller.observed.histories import HistoryKey, ObservedHistory
from kfp_placement_controller.observed.run_queues import ObservedQueue
from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.planning.actions import DeleteRequest, WriteRequest
from kfp_placement_controller.planning.past_news import PastNews
from kfp_placement_controller.planning.round_builder import RoundBuilder
from kfp_placement_controller.runs.current_plan import CurrentPlan
from kfp_placement_controller.runs.planner_parameters import PLANS_PER_EVALUATION
from kfp_placement_controller.runs.run_needs import RunNeed
from kfp_placement_controller.runs.run_registry import RunRegistry
from kfp_placement_controller.runs.turns import RUN_STEPS, SLICE_STEPS, Turns, Work
from kfp_placement_controller.sources.source import ObservedRun
from kfp_placement_controller.warning_log import WarningLog
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.contract.run_request import RunDemand, RunRequestSpec
from kfp_placement_engine.exceptions import InputError, PlanningError
from kfp_placement_engine.model.keys import ClaimKey, QueueKey, RunKey
from kfp_placement_kube.change import Change

NO_NODES = "the cluster has no nodes"


@dataclass
class RunRequests:
    """Needs of all runs, compared with their RunRequests as stored.

    Attributes:
        registry: runs that are planned, all RunRequests, and past runs.
        builder: builder that plans a run as if it were alone.
        retry_seconds: pause between two tries of the same write.
        awaits_package: function that returns whether a run waits for its package at a moment.
        turns: turns of the namespaces.
        has_backlog: whether runs are left that one tick had no time to plan.
    """

    registry: RunRegistry
    builder: RoundBuilder
    retry_seconds: float
    awaits_package: Callable[[RunKey, float], bool]
    turns: Turns = field(default_factory=Turns)
    has_backlog: bool = False
    _needs: dict[RunKey, RunNeed] = field(default_factory=dict)
    _namespaces: set[str] = field(default_factory=set)
    _changed: dict[RunKey, None] = field(default_factory=dict)
    _tried_at: dict[RunKey, float] = field(default_factory=dict)
    _revisions: dict[RunKey, int] = field(default_factory=dict)
    _all_changed: bool = False
    _version: int = 0

    def __post_init__(self) -> None:
        """Start without news of past runs."""
        self._warnings = WarningLog(__name__)
        self._news = PastNews(self._needs, self.registry.histories)

    # What comes in.

    def run_changed(self, change: Change[ObservedRun]) -> None:
        """Take in that a run is new, has changed or is gone."""
        key, observed = RunKey(*change.key), change.new
        need = self._needs.get(key)
        if observed is None:
            self._needs.pop(key, None)
            self._revisions.pop(key, None)
        elif need is not None and need.observed.uid == observed.uid:
            need.observe(observed)
        else:
            nodes = self.registry.nodes_of(observed)
            self._needs[key] = RunNeed(observed, nodes=nodes)
        self._changed[key] = None

    def package_changed(self, run: ObservedRun) -> None:
        """Take in that the package of a run has come, or is not kept any more."""
        need = self._needs.get(run.key)
        if need is not None and need.observed.uid == run.uid:
            need.observed, need.planned_for = run, None
            self._changed[run.key] = None

    def queue_changed(self, change: Change[ObservedQueue]) -> None:
        """Take in that a RunQueue is new, has changed or is gone."""
        key = QueueKey(*change.key)
        if key.name != DEFAULT_QUEUE:
            return
        if change.new is None:
            self._namespaces.discard(key.namespace)
        elif key.namespace not in self._namespaces:
            self._namespaces.add(key.namespace)
            self._all_changed = True

    def request_changed(self, change: Change[ObservedRequest]) -> None:
        """Take in that a RunRequest is new, has changed or is gone."""
        key = RunKey(*change.key)
        self.registry.request_changed(change)
        need = self._needs.get(key)
        if need is not None:
            need.nodes = self.registry.nodes_of(need.observed)
        self._tried_at.pop(key, None)
        self._changed[key] = None

    def history_changed(self, change: Change[ObservedHistory]) -> None:
        """Take in that runs of a pipeline have ended, or that some of them no longer count."""
        key = HistoryKey(*change.key)
        if key.namespace in self._namespaces:
            self._news.history_changed(key)

    def claim_changed(self, claim: ClaimKey) -> None:
        """Plan the runs again that mount a volume claim, as it is new, has changed or is gone."""
        for key, need in self._needs.items():
            if key.namespace == claim.namespace and need.mounts(claim.name):
                need.planned_for, self._changed[key] = None, None

    def conditions_changed(self) -> None:
        """Plan all runs again, in turn, as the cluster, the policy or a namespace has changed."""
        self._version += 1
        self._all_changed = True

    def lead(self) -> None:
        """Compare all RunRequests again, as this planner leads from now on."""
        self._tried_at.clear()
        self._all_changed = True

    # What follows.

    def due(self, monotonic_seconds: float) -> Iterator[WriteRequest | DeleteRequest]:
        """Yield the RunRequests to write or delete now."""
        self.has_backlog = False
        if self._all_changed:
            self._all_changed = False
            self._changed |= dict.fromkeys(self._needs)
        tried = self._tried_at.items()
        to_retry = (
            key for key, at in tried if not lasts(self.retry_seconds, at, monotonic_seconds)
        )
        news = self._news.due(monotonic_seconds)
        self._changed |= dict.fromkeys(chain(to_retry, self._with_new_plans(), news))
        # Runs without a plan come first: they cannot be admitted until their need is known.
        keys = sorted(self._without_awaited(monotonic_seconds), key=self._was_planned)
        plans, steps = 0, 0.0
        for work in self.turns.order(map(self._work_on, keys)):
            key = work.on
            # Deleted first, so that a defect in one run does not hide the next ones forever.
            del self._changed[key]
            need = self._needs.get(key)
            must_plan = need is not None and self._must_plan(need)
            if must_plan and (plans >= PLANS_PER_EVALUATION or steps > SLICE_STEPS):
                self._changed[key], self.has_backlog = None, True
                break
            self._tried_at.pop(key, None)
            if need is None:
                continue
            if must_plan:
                self._plan(need)
                work = self._work_on(key)
                self.turns.count(work.namespace, work.steps)
                plans, steps = plans + 1, steps + work.steps
            if self._awaits_past(need, monotonic_seconds):
                # The stored one was written with the past, which this planner will know soon.
                self._changed[key] = None
                continue
            planned = self.registry.runs.get(key)
            plan = None if planned is None else planned.plan
            if plan is not None:
                self._revisions[key] = plan.revision
            action = self._action(need, plan)
            if action is not None:
                self._tried_at[key] = monotonic_seconds
                yield action

    def _work_on(self, key: RunKey) -> Work[RunKey]:
        """Return the work of planning a run alone, by its size before it has been read."""
        need = self._needs.get(key)
        return Work(key.namespace, RUN_STEPS + (0 if need is None else need.steps), key)

    def _without_awaited(self, monotonic_seconds: float) -> Iterator[RunKey]:
        """Yield the changed runs but those that wait for their package to be planned first."""
        for key in self._changed:
            if self._was_planned(key) or not self.awaits_package(key, monotonic_seconds):
                yield key

    def takes_part(self, namespace: str) -> bool:
        """Return whether the runs of a namespace wait in a queue."""
        return namespace in self._namespaces and not self.registry.excluded(namespace)

    def _takes_part(self, need: RunNeed) -> bool:
        return self.takes_part(need.observed.key.namespace)

    def _was_planned(self, key: RunKey) -> bool:
        need = self._needs.get(key)
        return need is not None and need.planned_for is not None

    def _must_plan(self, need: RunNeed) -> bool:
        """Return whether a run must be planned, or planned again."""
        if need.observed.ended or not self._takes_part(need):
            return False
        is_old = need.planned_for != self._version and need.may_fit_later
        return is_old or need.must_plan(self.registry.policy())

    def _plan(self, need: RunNeed) -> None:
        if not self.builder.has_nodes:
            need.planned_for = self._version
            return
        key = need.observed.key
        consequence = f"the RunRequest of run {key.namespace}/{key.name} does not say what it needs"
        turn = partial(self._plan_alone, need)
        self._warnings.take_turn(consequence, turn, need.refuse)
        self._news.planned(need)

    def _plan_alone(self, need: RunNeed) -> None:
        """Plan a run as if no other were there."""
        own = need.observed.key
        together = [
            other.observed.as_pods_name_it
            for other in self._needs.values()
            if self._takes_part(other)
        ]
        try:
            find_past = partial(self.registry.histories.past, own.namespace)
            reading = need.read(self.registry.policy(), self._version, find_past)
            if reading is not None:
                need.take(self.builder.plan_alone(own, together, reading.graph), reading)
        except (InputError, PlanningError) as error:
            need.refuse(str(error))

    def _action(
        self, need: RunNeed, plan: CurrentPlan | None
    ) -> WriteRequest | DeleteRequest | None:
        """Return the action that corrects the RunRequest of a run; None = it is correct."""
        observed = need.observed
        stored = self.registry.requests.get(observed.key)
        if stored is not None and observed.uid not in stored.owner_uids:
            # It belongs to an earlier run of this name, or to no run. Finalizers may keep it.
            return None if stored.is_going else DeleteRequest(observed.key, stored.uid)
        spec = self._wanted(need, stored, plan)
        if spec is None or (stored is not None and _same(spec, stored.spec)):
            return None
        return WriteRequest(observed.key, observed.owner, spec, stored.version if stored else "")

    def _wanted(
        self, need: RunNeed, stored: ObservedRequest | None, plan: CurrentPlan | None
    ) -> RunRequestSpec | None:
        """Return what the RunRequest of a run should say; None = nothing new."""
        end = need.observed.state.end
        if end is not None:
            if stored is None or stored.spec is None:
                return None
            changes = {"end": str(end), "demand": RunDemand(), "finishes_at": None}
            return stored.spec.model_copy(update=changes)
        if not self._takes_part(need) or need.planned_for is None:
            return None
        spec = need.spec(None if plan is None else plan.makespan_seconds)
        if spec.demand is None and not spec.problem:
            return spec.model_copy(update={"unschedulable": NO_NODES})
        if spec.demand is None and stored is not None and stored.spec is not None:
            # A run gives nothing back by becoming unreadable.
            return spec.model_copy(update={"demand": stored.spec.demand})
        return spec

    def _awaits_past(self, need: RunNeed, monotonic_seconds: float) -> bool:
        """Return whether a run that has a RunRequest is about to be planned with its past."""
        observed = need.observed
        stored = self.registry.requests.get(observed.key)
        if stored is None or stored.spec is None or observed.uid not in stored.owner_uids:
            return False
        if not need.lacks_past or need.has_begun or observed.ended or not self._takes_part(need):
            return False
        pasts = self.registry.histories.pasts
        return pasts.awaits(observed.key.namespace) and need.awaits_past(monotonic_seconds)

    def _with_new_plans(self) -> Iterator[RunKey]:
        """Yield the runs whose plan has changed since their end was written last."""
        for run in self.registry.planned() if self._namespaces else ():
            if run.key.namespace in self._namespaces:
                revision = run.plan.revision
                if self._revisions.get(run.key, revision) != revision:
                    yield run.key


def _same(wanted: RunRequestSpec, stored: RunRequestSpec | None) -> bool:
    """Return whether two specs look the same in the cluster; False if none is stored."""
    if stored is None:
        return False
    return wanted.model_dump(mode="json") == stored.model_dump(mode="json")
